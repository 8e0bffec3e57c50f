; Swift: classes, actors, structs, enums and their cases, protocols and what they ask for, extensions,
; functions, initialisers, subscripts, aliases, and the properties of a file or of a type.

(class_declaration
  declaration_kind: [
    "class"
    "actor"
  ]
  name: (type_identifier) @name
  body: (class_body) @body) @class

(class_declaration
  declaration_kind: "struct"
  name: (type_identifier) @name
  body: (class_body) @body) @struct

(class_declaration
  declaration_kind: "enum"
  name: (type_identifier) @name
  body: (enum_class_body) @body) @enum

(class_declaration
  declaration_kind: "extension"
  name: (user_type (type_identifier) @name .)
  body: (class_body) @body) @impl

(class_declaration
  declaration_kind: "extension"
  name: (user_type
    (type_identifier) @name
    .
    (type_arguments))
  body: (class_body) @body) @impl

(protocol_declaration
  name: (type_identifier) @name
  body: (protocol_body) @body) @interface

(function_declaration
  name: [
    (simple_identifier)
    (custom_operator)
    "=="
    "!="
    "<"
    ">"
    "<="
    ">="
    "+"
    "-"
    "*"
    "/"
    "+="
    "-="
  ] @name
  body: (function_body) @body) @function

(protocol_function_declaration
  name: (simple_identifier) @name) @method

(init_declaration
  name: "init" @name
  body: (function_body)? @body) @method

(deinit_declaration
  "deinit" @name
  body: (function_body) @body) @method

(subscript_declaration "subscript" @name) @method

(enum_entry name: (simple_identifier) @name) @constant

(typealias_declaration name: (type_identifier) @name) @type

(associatedtype_declaration name: (type_identifier) @name) @type

(macro_declaration (simple_identifier) @name) @macro

(source_file
  (property_declaration
    name: (pattern bound_identifier: (simple_identifier) @name)) @constant)

(class_body
  (property_declaration
    name: (pattern bound_identifier: (simple_identifier) @name)) @field)

(enum_class_body
  (property_declaration
    name: (pattern bound_identifier: (simple_identifier) @name)) @field)

(protocol_property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)) @field

;; references

; With brackets it reads as a call as well, but is an element of a list.
(call_expression
  .
  [
    (simple_identifier) @call
    (navigation_expression
      suffix: (navigation_suffix suffix: (simple_identifier) @call))
  ]
  (call_suffix
    [
      (value_arguments "(")
      (lambda_literal)
    ]))

(constructor_expression
  constructed_type: (user_type (type_identifier) @call))

(macro_invocation . (simple_identifier) @call)

(import_declaration (identifier) @import)

(inheritance_specifier
  inherits_from: [
    (user_type (type_identifier) @inherit .)
    (user_type
      (type_identifier) @inherit
      .
      (type_arguments))
  ])

(user_type (type_identifier) @type)
