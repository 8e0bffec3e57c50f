; Scala: classes, traits, objects, enums and their cases, functions, types, givens, and the values of a file,
; of a class or of an object.

(class_definition
  name: (identifier) @name
  body: (template_body)? @body) @class

(object_definition
  name: (identifier) @name
  body: (template_body)? @body) @class

(trait_definition
  name: (identifier) @name
  body: (template_body)? @body) @trait

(enum_definition
  name: (identifier) @name
  body: (enum_body) @body) @enum

(simple_enum_case name: (identifier) @name) @constant

(full_enum_case name: (identifier) @name) @constant

(package_object
  name: (identifier) @name
  body: (template_body) @body) @module

(function_definition
  name: [
    (identifier)
    (operator_identifier)
  ] @name
  body: (_) @body) @function

(function_declaration
  name: [
    (identifier)
    (operator_identifier)
  ] @name) @function

(type_definition name: (type_identifier) @name) @type

(given_definition
  name: (identifier) @name
  body: (_)? @body) @constant

(compilation_unit
  (val_definition pattern: (identifier) @name) @constant)

(compilation_unit
  (var_definition pattern: (identifier) @name) @constant)

(template_body
  (val_definition
    pattern: [
      (identifier) @name
      (identifiers (identifier) @name)
      (tuple_pattern (identifier) @name)
    ]) @field)

(class_parameter
  [
    "val"
    "var"
  ]
  name: (identifier) @name) @field

(template_body
  (var_definition pattern: (identifier) @name) @field)

(template_body
  (val_declaration name: (identifier) @name) @field)

(template_body
  (var_declaration name: (identifier) @name) @field)

(enum_body
  (val_definition pattern: (identifier) @name) @field)

;; references

(call_expression
  function: [
    (identifier) @call
    (field_expression field: (identifier) @call)
    (generic_function
      function: [
        (identifier) @call
        (field_expression field: (identifier) @call)
      ])
  ])

(instance_expression
  .
  [
    (type_identifier) @call
    (generic_type type: (type_identifier) @call)
    (stable_type_identifier (type_identifier) @call .)
    (generic_type
      type: (stable_type_identifier (type_identifier) @call .))
  ])

(infix_expression operator: (identifier) @call)

; The path of an import is not a node of its own, so the whole statement is taken.
(import_declaration) @import

(import_declaration (identifier) @imported .)

(namespace_selectors
  [
    (identifier) @imported
    (arrow_renamed_identifier name: (identifier) @imported)
    (as_renamed_identifier name: (identifier) @imported)
  ])

(extends_clause
  [
    (type_identifier) @inherit
    (generic_type type: (type_identifier) @inherit)
    (stable_type_identifier (type_identifier) @inherit .)
    (generic_type
      type: (stable_type_identifier (type_identifier) @inherit .))
    (compound_type
      [
        (type_identifier) @inherit
        (generic_type type: (type_identifier) @inherit)
      ])
  ])

(parameter type: (type_identifier) @type)
(class_parameter type: (type_identifier) @type)
(function_definition return_type: (type_identifier) @type)
(function_declaration return_type: (type_identifier) @type)
(val_definition type: (type_identifier) @type)
(generic_type type: (type_identifier) @type)
(type_arguments (type_identifier) @type)
(annotation name: (type_identifier) @type)
