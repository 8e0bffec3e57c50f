; Elixir: modules, protocols and their implementations, functions, macros, guards, module attributes,
; types, callbacks and tests. All of these are calls, so the word that is called decides. Captures whose
; name begins with an underscore serve only the predicates.

((call
  target: (identifier) @_word
  (arguments . (alias) @name)
  (do_block) @body) @module
  (#eq? @_word "defmodule"))

((call
  target: (identifier) @_word
  (arguments . (alias) @name)
  (do_block) @body) @interface
  (#eq? @_word "defprotocol"))

; An implementation bears the name of its protocol.
((call
  target: (identifier) @_word
  (arguments . (alias) @name)
  (do_block) @body) @impl
  (#eq? @_word "defimpl"))

((call
  target: (identifier) @_word
  (arguments
    .
    [
      (identifier) @name
      (call target: (identifier) @name)
      (binary_operator
        left: [
          (identifier) @name
          (call target: (identifier) @name)
        ]
        operator: "when")
    ])
  (do_block)? @body) @function
  (#match? @_word "^(def|defp|defdelegate|defn|defnp)$"))

; A function that is an operator.
((call
  target: (identifier) @_word
  (arguments
    .
    (binary_operator
      operator: [
        "+"
        "-"
        "*"
        "/"
        "<>"
        "++"
        "--"
        "|>"
        "~>"
        "<~>"
        "|||"
        "&&&"
        "=="
        "<"
        ">"
        "in"
        ".."
        "^^^"
      ] @name))
  (do_block)? @body) @function
  (#match? @_word "^(def|defp)$"))

((call
  target: (identifier) @_word
  (arguments
    .
    [
      (identifier) @name
      (call target: (identifier) @name)
      (binary_operator
        left: [
          (identifier) @name
          (call target: (identifier) @name)
        ]
        operator: "when")
    ])
  (do_block)? @body) @macro
  (#match? @_word "^(defmacro|defmacrop|defguard|defguardp)$"))

((call
  target: (identifier) @_word
  (arguments
    .
    (string (quoted_content) @name))
  (do_block) @body) @function
  (#eq? @_word "test"))

((call
  target: (identifier) @_word
  (arguments
    .
    (string (quoted_content) @name)
    .)
  (do_block) @body) @module
  (#eq? @_word "describe"))

; @type, @callback and the attributes a module gives a value.
((unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_word
    (arguments
      (binary_operator
        left: [
          (identifier) @name
          (call target: (identifier) @name)
        ]
        operator: "::")))) @type
  (#match? @_word "^(type|typep|opaque)$"))

((unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_word
    (arguments
      [
        (binary_operator
          left: [
            (identifier) @name
            (call target: (identifier) @name)
          ]
          operator: "::")
        (binary_operator
          left: (binary_operator
            left: (call target: (identifier) @name)
            operator: "::")
          operator: "when")
      ]))) @method
  (#match? @_word "^(callback|macrocallback)$"))

((do_block
  (unary_operator
    operator: "@"
    operand: (call
      target: (identifier) @name
      (arguments))) @constant)
  (#not-match? @name "^(type|typep|opaque|spec|callback|macrocallback|impl|behaviour|doc|moduledoc|typedoc|tag|moduletag|describetag|deprecated|derive|dialyzer|compile|optional_callbacks|enforce_keys|external_resource|before_compile|after_compile|on_load|on_definition|since|shortdoc|requirements|recursive|preferred_cli_env|capture_log|fallback_to_any)$"))

;; references

; The head of a definition reads as a call too: what is the name of a definition is no reference.
((call target: (identifier) @call)
  (#not-match? @call "^(def[a-z]*|use|import|alias|require|doc|moduledoc|typedoc|spec|type|typep|opaque|impl|callback|behaviour|tag|moduletag)$"))

; Without arguments it is most often the field of a map.
(call
  target: (dot right: (identifier) @call)
  (arguments))

(binary_operator
  operator: "|>"
  right: (identifier) @call)

((call
  target: (identifier) @_word
  (arguments
    .
    [
      (alias) @import
      (dot
        left: (alias) @import
        right: (tuple (alias) @imported))
    ]))
  (#match? @_word "^(use|import|alias|require)$"))

((unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_word
    (arguments (alias) @inherit)))
  (#eq? @_word "behaviour"))

((call
  target: (identifier) @_word
  (arguments . (alias) @inherit))
  (#eq? @_word "defimpl"))

; %Name{}
(struct (alias) @type)
