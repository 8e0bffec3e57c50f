; Ruby: modules, classes, methods of the object and of the class, constants, and what attr_* declares.

(module
  name: [
    (constant) @name
    (scope_resolution name: (constant) @name)
  ]
  body: (body_statement)? @body) @module

(class
  name: [
    (constant) @name
    (scope_resolution name: (constant) @name)
  ]
  body: (body_statement)? @body) @class

(method
  name: (_) @name
  body: (_)? @body) @method

(singleton_method
  object: (self)
  name: (_) @name
  body: (_)? @body) @method

(singleton_method
  object: (constant) @owner
  name: (_) @name
  body: (_)? @body) @method

; private def name and the like: the call belongs to the method.
(call
  !receiver
  method: (identifier)
  arguments: (argument_list
    .
    (method
      name: (_) @name
      body: (_)? @body)
    .)
  !block) @method

; Constants; those that hold a new class are classes.
(assignment
  left: (constant) @name
  right: [
    (array)
    (binary)
    (chained_string)
    (constant)
    (element_reference)
    (false)
    (float)
    (hash)
    (identifier)
    (integer)
    (lambda)
    (nil)
    (parenthesized_statements)
    (range)
    (regex)
    (scope_resolution)
    (string)
    (string_array)
    (subshell)
    (simple_symbol)
    (symbol_array)
    (true)
    (unary)
    (begin)
    (conditional)
    (heredoc_beginning)
    (self)
  ]) @constant

((assignment
  left: (constant) @name
  right: (call method: (identifier) @_method)) @constant
  (#not-match? @_method "^(new|define)$"))

((assignment
  left: (constant) @name
  right: (call
    receiver: (constant) @_class
    method: (identifier) @_new)) @class
  (#match? @_class "^(Class|Module|Struct|Data)$")
  (#match? @_new "^(new|define)$"))

((assignment
  left: (constant) @name
  right: (call
    receiver: (_) @_class
    method: (identifier) @_new)) @constant
  (#not-match? @_class "^(Class|Module|Struct|Data)$")
  (#match? @_new "^(new|define)$"))

((call
  method: (identifier) @_attr
  arguments: (argument_list (simple_symbol) @name)) @field
  (#match? @_attr "^([mc]attr_|thread_mattr_|class_attribute|attr_)(accessor|reader|writer)?$"))

((call
  method: (identifier) @_define
  arguments: (argument_list . (simple_symbol) @name)) @method
  (#match? @_define "^(define_method|define_singleton_method|alias_method)$"))

(alias name: (identifier) @name) @method

;; references

(call method: (identifier) @call)

(call method: (constant) @call)

((call
  receiver: [
    (constant) @call
    (scope_resolution name: (constant) @call)
  ]
  method: (identifier) @_new)
  (#eq? @_new "new"))

((call
  !receiver
  method: (identifier) @_require
  arguments: (argument_list
    .
    (string (string_content) @import)))
  (#match? @_require "^(require|require_relative|load|require_dependency)$"))

((call
  !receiver
  method: (identifier) @_autoload
  arguments: (argument_list
    .
    (simple_symbol) @imported
    .
    (string (string_content) @import)))
  (#eq? @_autoload "autoload"))

(superclass
  [
    (constant) @inherit
    (scope_resolution name: (constant) @inherit)
    (call
      receiver: [
        (constant) @inherit
        (scope_resolution name: (constant) @inherit)
      ])
  ])

((call
  !receiver
  method: (identifier) @_include
  arguments: (argument_list
    [
      (constant) @inherit
      (scope_resolution name: (constant) @inherit)
    ]))
  (#match? @_include "^(include|extend|prepend)$"))
