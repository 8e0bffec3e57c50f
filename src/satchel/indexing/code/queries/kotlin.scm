; Kotlin: classes, interfaces, objects, enums, aliases, functions (with the type they extend as owner),
; constructors, and the properties of a file, of a class and of its constructor.

(class_declaration
  "class"
  name: (identifier) @name
  (class_body) @body) @class

(class_declaration
  "class"
  name: (identifier) @name
  .) @class

(class_declaration
  "class"
  name: (identifier) @name
  [
    (delegation_specifiers)
    (primary_constructor)
    (type_constraints)
    (type_parameters)
  ]
  .) @class

(class_declaration
  "class"
  name: (identifier) @name
  (enum_class_body) @body) @enum

(class_declaration
  "interface"
  name: (identifier) @name
  (class_body)? @body) @interface

(object_declaration
  name: (identifier) @name
  (class_body)? @body) @class

(companion_object
  name: (identifier) @name
  (class_body)? @body) @class

(enum_entry . (identifier) @name) @constant

(enum_entry
  .
  (modifiers)
  .
  (identifier) @name) @constant

(type_alias type: (identifier) @name) @type

(function_declaration
  .
  name: (identifier) @name
  (function_body)? @body) @function

(function_declaration
  [
    (modifiers)
    (type_parameters)
  ]
  .
  name: (identifier) @name
  (function_body)? @body) @function

(function_declaration
  [
    (user_type . (identifier) @owner)
    (nullable_type (user_type . (identifier) @owner))
    (parenthesized_type (user_type . (identifier) @owner))
  ]
  .
  name: (identifier) @name
  (function_body)? @body) @function

(secondary_constructor
  "constructor" @name
  (block)? @body) @method

(source_file
  (property_declaration
    (variable_declaration . (identifier) @name)) @constant)

(class_declaration
  (class_body
    (property_declaration
      (variable_declaration . (identifier) @name)) @field))

(object_declaration
  (class_body
    (property_declaration
      (variable_declaration . (identifier) @name)) @field))

(companion_object
  (class_body
    (property_declaration
      (variable_declaration . (identifier) @name)) @field))

(enum_class_body
  (property_declaration
    (variable_declaration . (identifier) @name)) @field)

(class_parameter
  [
    "val"
    "var"
  ]
  .
  (identifier) @name) @field

;; references

(call_expression . (identifier) @call)

(call_expression
  .
  (navigation_expression (identifier) @call .))

(infix_expression
  .
  (_)
  .
  (identifier) @call
  .
  (_)
  .)

(callable_reference (identifier) @call .)

(import (qualified_identifier) @import)

((import (qualified_identifier (identifier) @imported .)) @_import
  (#not-match? @_import "\\*$"))

(delegation_specifier
  [
    (user_type (identifier) @inherit .)
    (user_type (identifier) @inherit . (type_arguments) .)
    (constructor_invocation
      .
      [
        (user_type (identifier) @inherit .)
        (user_type (identifier) @inherit . (type_arguments) .)
      ])
    (explicit_delegation
      .
      [
        (user_type (identifier) @inherit .)
        (user_type (identifier) @inherit . (type_arguments) .)
      ])
  ])

(user_type (identifier) @type)
