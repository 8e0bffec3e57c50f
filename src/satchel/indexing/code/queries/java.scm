; Java: types of every kind, their methods and constructors, fields and constants.

(class_declaration
  name: (identifier) @name
  body: (class_body) @body) @class

(record_declaration
  name: (identifier) @name
  body: (class_body) @body) @class

(interface_declaration
  name: (identifier) @name
  body: (interface_body) @body) @interface

(annotation_type_declaration
  name: (identifier) @name
  body: (annotation_type_body) @body) @interface

(enum_declaration
  name: (identifier) @name
  body: (enum_body) @body) @enum

(method_declaration
  name: (identifier) @name
  body: (block)? @body) @method

(constructor_declaration
  name: (identifier) @name
  body: (constructor_body) @body) @method

(compact_constructor_declaration
  name: (identifier) @name
  body: (block) @body) @method

(annotation_type_element_declaration name: (identifier) @name) @method

(enum_constant name: (identifier) @name) @constant

(constant_declaration
  declarator: (variable_declarator name: (identifier) @name)) @constant

((field_declaration
  declarator: (variable_declarator name: (identifier) @name)) @constant
  (#match? @name "^[A-Z][A-Z0-9_]*$"))

((field_declaration
  declarator: (variable_declarator name: (identifier) @name)) @field
  (#not-match? @name "^[A-Z][A-Z0-9_]*$"))

(module_declaration
  name: [
    (identifier)
    (scoped_identifier)
  ] @name
  body: (module_body) @body) @module

;; references

(method_invocation name: (identifier) @call)

(object_creation_expression
  type: [
    (type_identifier) @call
    (scoped_type_identifier (type_identifier) @call .)
    (generic_type
      [
        (type_identifier) @call
        (scoped_type_identifier (type_identifier) @call .)
      ])
  ])

(method_reference "::" (identifier) @call .)

(import_declaration
  [
    (identifier) @import
    (scoped_identifier) @import
  ])

(import_declaration (scoped_identifier name: (identifier) @imported) .)

(superclass
  [
    (type_identifier) @inherit
    (scoped_type_identifier (type_identifier) @inherit .)
    (generic_type
      .
      [
        (type_identifier) @inherit
        (scoped_type_identifier (type_identifier) @inherit .)
      ])
  ])

(super_interfaces
  (type_list
    [
      (type_identifier) @inherit
      (scoped_type_identifier (type_identifier) @inherit .)
      (generic_type
        .
        [
          (type_identifier) @inherit
          (scoped_type_identifier (type_identifier) @inherit .)
        ])
    ]))

(extends_interfaces
  (type_list
    [
      (type_identifier) @inherit
      (scoped_type_identifier (type_identifier) @inherit .)
      (generic_type
        .
        [
          (type_identifier) @inherit
          (scoped_type_identifier (type_identifier) @inherit .)
        ])
    ]))

(annotation name: (identifier) @type)
(marker_annotation name: (identifier) @type)
(method_declaration type: (type_identifier) @type)
(field_declaration type: (type_identifier) @type)
(formal_parameter type: (type_identifier) @type)
(spread_parameter (type_identifier) @type)
(local_variable_declaration type: (type_identifier) @type)
(cast_expression type: (type_identifier) @type)
(instanceof_expression right: (type_identifier) @type)
(catch_type (type_identifier) @type)
(class_literal (type_identifier) @type)
(throws (type_identifier) @type)
(type_bound (type_identifier) @type)
(generic_type . (type_identifier) @type)
(type_arguments (type_identifier) @type)
(array_type element: (type_identifier) @type)
