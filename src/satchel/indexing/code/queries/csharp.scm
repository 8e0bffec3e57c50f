; C#: namespaces with a body, types of every kind, methods, constructors, operators, properties, fields, events.

(namespace_declaration
  name: [
    (identifier)
    (qualified_name)
  ] @name
  body: (declaration_list) @body) @module

(class_declaration
  name: (identifier) @name
  body: (declaration_list)? @body) @class

(record_declaration
  name: (identifier) @name
  body: (declaration_list)? @body) @class

(struct_declaration
  name: (identifier) @name
  body: (declaration_list)? @body) @struct

(interface_declaration
  name: (identifier) @name
  body: (declaration_list)? @body) @interface

(enum_declaration
  name: (identifier) @name
  body: (enum_member_declaration_list) @body) @enum

(enum_member_declaration name: (identifier) @name) @constant

(delegate_declaration name: (identifier) @name) @type

(method_declaration
  name: (identifier) @name
  body: (_)? @body) @method

(local_function_statement
  name: (identifier) @name
  body: (_)? @body) @function

(constructor_declaration
  name: (identifier) @name
  body: (_)? @body) @method

(destructor_declaration
  name: (identifier) @name
  body: (_)? @body) @method

; An operator has a sign for its name, a conversion the type it gives, an indexer the word "this".
(operator_declaration
  operator: _ @name
  body: (_)? @body) @method

(conversion_operator_declaration
  type: (_) @name
  body: (_)? @body) @method

(indexer_declaration "this" @name) @method

(property_declaration name: (identifier) @name) @field

(event_declaration name: (identifier) @name) @field

(event_field_declaration
  (variable_declaration
    (variable_declarator name: (identifier) @name))) @field

(field_declaration
  (variable_declaration
    (variable_declarator name: (identifier) @name))) @field

;; references

(invocation_expression
  function: [
    (identifier) @call
    (generic_name (identifier) @call)
    (member_access_expression
      name: [
        (identifier) @call
        (generic_name (identifier) @call)
      ])
    (conditional_access_expression
      (member_binding_expression
        name: [
          (identifier) @call
          (generic_name (identifier) @call)
        ]))
    (member_binding_expression
      name: [
        (identifier) @call
        (generic_name (identifier) @call)
      ])
  ])

(object_creation_expression
  type: [
    (identifier) @call
    (generic_name (identifier) @call)
    (qualified_name name: (identifier) @call)
    (qualified_name name: (generic_name (identifier) @call))
  ])

(using_directive
  !name
  [
    (identifier) @import
    (qualified_name) @import
  ])

(using_directive
  name: (identifier)
  [
    (qualified_name) @import
    (generic_name) @import
  ])

(base_list
  [
    (identifier) @inherit
    (generic_name . (identifier) @inherit)
    (qualified_name name: (identifier) @inherit)
    (qualified_name name: (generic_name . (identifier) @inherit))
    (primary_constructor_base_type type: (identifier) @inherit)
    (primary_constructor_base_type
      type: (generic_name . (identifier) @inherit))
  ])

(attribute
  name: [
    (identifier) @type
    (qualified_name name: (identifier) @type)
  ])

(parameter type: (identifier) @type)
(method_declaration returns: (identifier) @type)
(property_declaration type: (identifier) @type)
(variable_declaration type: (identifier) @type)
(nullable_type type: (identifier) @type)
(array_type type: (identifier) @type)
(type_argument_list (identifier) @type)
(generic_name . (identifier) @type)
(cast_expression type: (identifier) @type)
(typeof_expression type: (identifier) @type)
(type_parameter_constraint type: (identifier) @type)
