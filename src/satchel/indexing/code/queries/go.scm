; Go: functions, methods with the type of their receiver, types by their kind, package-level names and the
; methods an interface asks for. A declaration of one thing is captured whole, one of many by its specs.

(function_declaration
  name: (identifier) @name
  body: (block)? @body) @function

(method_declaration
  receiver: (parameter_list
    (parameter_declaration
      type: [
        (type_identifier) @owner
        (generic_type type: (type_identifier) @owner)
        (pointer_type (type_identifier) @owner)
        (pointer_type (generic_type type: (type_identifier) @owner))
      ]))
  name: (field_identifier) @name
  body: (block)? @body) @method

(type_spec
  name: (type_identifier) @name
  type: (struct_type (field_declaration_list) @body)) @struct

(type_declaration
  .
  (type_spec
    name: (type_identifier) @name
    type: (struct_type (field_declaration_list) @body))
  .) @struct

(type_spec
  name: (type_identifier) @name
  type: (interface_type)) @interface

(type_declaration
  .
  (type_spec
    name: (type_identifier) @name
    type: (interface_type))
  .) @interface

(interface_type
  (method_elem name: (field_identifier) @name) @method)

(type_spec
  name: (type_identifier) @name
  type: [
    (array_type)
    (channel_type)
    (function_type)
    (generic_type)
    (map_type)
    (parenthesized_type)
    (pointer_type)
    (qualified_type)
    (slice_type)
    (type_identifier)
  ]) @type

(type_declaration
  .
  (type_spec
    name: (type_identifier) @name
    type: [
      (array_type)
      (channel_type)
      (function_type)
      (generic_type)
      (map_type)
      (parenthesized_type)
      (pointer_type)
      (qualified_type)
      (slice_type)
      (type_identifier)
    ])
  .) @type

(type_alias name: (type_identifier) @name) @type

(type_declaration
  .
  (type_alias name: (type_identifier) @name)
  .) @type

(source_file
  (const_declaration
    (const_spec (identifier) @name) @constant))

(source_file
  (const_declaration
    .
    (const_spec (identifier) @name)
    .) @constant)

(source_file
  (var_declaration
    (var_spec name: (identifier) @name)) @constant)

(source_file
  (var_declaration
    (var_spec_list
      (var_spec name: (identifier) @name) @constant)))

;; references

(call_expression
  function: [
    (identifier) @call
    (selector_expression field: (field_identifier) @call)
    (index_expression operand: (identifier) @call)
    (index_expression operand: (selector_expression field: (field_identifier) @call))
  ])

; Called with type arguments and one argument, a generic function reads like a conversion.
(type_conversion_expression
  type: (generic_type
    type: [
      (type_identifier) @call
      (qualified_type name: (type_identifier) @call)
    ]))

(import_spec
  path: [
    (interpreted_string_literal (interpreted_string_literal_content) @import)
    (raw_string_literal (raw_string_literal_content) @import)
  ])

; An embedded type is what Go has for a base class.
(field_declaration
  !name
  type: [
    (type_identifier) @inherit
    (qualified_type name: (type_identifier) @inherit)
    (generic_type type: (type_identifier) @inherit)
  ])

(interface_type
  (type_elem
    .
    [
      (type_identifier) @inherit
      (qualified_type name: (type_identifier) @inherit)
    ]
    .))

(parameter_declaration type: (type_identifier) @type)
(variadic_parameter_declaration type: (type_identifier) @type)
(field_declaration name: (field_identifier) type: (type_identifier) @type)
(function_declaration result: (type_identifier) @type)
(method_declaration result: (type_identifier) @type)
(method_elem result: (type_identifier) @type)
(pointer_type (type_identifier) @type)
(slice_type element: (type_identifier) @type)
(array_type element: (type_identifier) @type)
(map_type key: (type_identifier) @type)
(map_type value: (type_identifier) @type)
(channel_type value: (type_identifier) @type)
(qualified_type name: (type_identifier) @type)
(generic_type type: (type_identifier) @type)
(composite_literal type: (type_identifier) @type)
(var_spec type: (type_identifier) @type)
(type_conversion_expression type: (type_identifier) @type)
