; Rust: functions, types, traits, impl blocks, modules, macros, constants and statics.
; Attributes and doc comments stand before an item as its siblings; they are not part of the node.

(function_item
  name: (identifier) @name
  body: (block) @body) @function

(function_signature_item name: (identifier) @name) @function

(struct_item
  name: (type_identifier) @name
  body: [
    (field_declaration_list)
    (ordered_field_declaration_list)
  ]? @body) @struct

(union_item
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @struct

(enum_item
  name: (type_identifier) @name
  body: (enum_variant_list) @body) @enum

(enum_variant name: (identifier) @name) @constant

(trait_item
  name: (type_identifier) @name
  body: (declaration_list) @body) @trait

(impl_item
  type: [
    (type_identifier) @name
    (primitive_type) @name
    (scoped_type_identifier name: (type_identifier) @name)
    (generic_type
      type: [
        (type_identifier) @name
        (scoped_type_identifier name: (type_identifier) @name)
      ])
    (reference_type
      type: [
        (type_identifier) @name
        (primitive_type) @name
        (scoped_type_identifier name: (type_identifier) @name)
        (generic_type type: (type_identifier) @name)
        (array_type) @name
      ])
    (dynamic_type
      trait: [
        (type_identifier) @name
        (scoped_type_identifier name: (type_identifier) @name)
        (generic_type type: (type_identifier) @name)
      ])
    (pointer_type) @name
    (tuple_type) @name
    (unit_type) @name
    (array_type) @name
    (function_type) @name
    (macro_invocation) @name
  ]
  body: (declaration_list) @body) @impl

(type_item name: (type_identifier) @name) @type

(associated_type name: (type_identifier) @name) @type

(mod_item
  name: (identifier) @name
  body: (declaration_list) @body) @module

(macro_definition name: (identifier) @name) @macro

; Types that are declared inside a macro call, such as pin_project!; the call is the definition.
((macro_invocation
  (token_tree
    "struct"
    .
    (identifier) @name)) @struct
  (#match? @name "^[A-Z]"))

((macro_invocation
  (token_tree
    "enum"
    .
    (identifier) @name)) @enum
  (#match? @name "^[A-Z]"))

((macro_invocation
  (token_tree
    "type"
    .
    (identifier) @name)) @type
  (#match? @name "^[A-Z]"))

; const _ only holds checks for the compiler.
((source_file
  (const_item name: (identifier) @name) @constant)
  (#not-eq? @name "_"))

((declaration_list
  (const_item name: (identifier) @name) @constant)
  (#not-eq? @name "_"))

(source_file
  (static_item name: (identifier) @name) @constant)

(declaration_list
  (static_item name: (identifier) @name) @constant)

;; references

(call_expression
  function: [
    (identifier) @call
    (scoped_identifier name: (identifier) @call)
    (field_expression field: (field_identifier) @call)
    (generic_function
      function: [
        (identifier) @call
        (scoped_identifier name: (identifier) @call)
        (field_expression field: (field_identifier) @call)
      ])
  ])

(macro_invocation
  macro: [
    (identifier) @call
    (scoped_identifier name: (identifier) @call)
  ])

; What a macro is given is not parsed: a name right before a parenthesis is taken for a call.
(token_tree (identifier) @call . (token_tree . "("))

(use_declaration
  argument: [
    (identifier) @import
    (scoped_identifier) @import
    (use_as_clause path: (_) @import)
    (use_wildcard (_) @import)
    (scoped_use_list path: (_) @import)
  ])

(use_declaration
  argument: [
    (scoped_identifier name: (identifier) @imported)
    (use_as_clause path: (scoped_identifier name: (identifier) @imported))
  ])

(use_list
  [
    (identifier) @imported
    (scoped_identifier name: (identifier) @imported)
    (use_as_clause
      path: [
        (identifier) @imported
        (scoped_identifier name: (identifier) @imported)
      ])
  ])

(extern_crate_declaration name: (identifier) @import)

(mod_item name: (identifier) @import !body)

(impl_item
  trait: [
    (type_identifier) @inherit
    (scoped_type_identifier name: (type_identifier) @inherit)
    (generic_type
      type: [
        (type_identifier) @inherit
        (scoped_type_identifier name: (type_identifier) @inherit)
      ])
  ])

(trait_item
  bounds: (trait_bounds
    [
      (type_identifier) @inherit
      (scoped_type_identifier name: (type_identifier) @inherit)
      (generic_type
        type: [
          (type_identifier) @inherit
          (scoped_type_identifier name: (type_identifier) @inherit)
        ])
    ]))

(parameter type: (type_identifier) @type)
(field_declaration type: (type_identifier) @type)
(ordered_field_declaration_list type: (type_identifier) @type)
(function_item return_type: (type_identifier) @type)
(function_signature_item return_type: (type_identifier) @type)
(reference_type type: (type_identifier) @type)
(generic_type type: (type_identifier) @type)
(type_arguments (type_identifier) @type)
(scoped_type_identifier name: (type_identifier) @type)
(trait_bounds (type_identifier) @type)
(dynamic_type trait: (type_identifier) @type)
(abstract_type trait: (type_identifier) @type)
(tuple_type (type_identifier) @type)
(array_type element: (type_identifier) @type)
(struct_expression name: (type_identifier) @type)
(let_declaration type: (type_identifier) @type)
