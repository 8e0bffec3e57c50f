; PHP: functions, classes, interfaces, traits, enums, their methods, constants and properties.
; Attributes are part of the node; the doc comment before it is not.

(function_definition
  name: (name) @name
  body: (compound_statement) @body) @function

(class_declaration
  name: (name) @name
  body: (declaration_list) @body) @class

(interface_declaration
  name: (name) @name
  body: (declaration_list) @body) @interface

(trait_declaration
  name: (name) @name
  body: (declaration_list) @body) @trait

(enum_declaration
  name: (name) @name
  body: (enum_declaration_list) @body) @enum

(method_declaration
  name: (name) @name
  body: (compound_statement)? @body) @method

(enum_case name: (name) @name) @constant

(const_declaration
  (const_element . (name) @name)) @constant

((expression_statement
  (function_call_expression
    function: (name) @_define
    arguments: (arguments
      .
      (argument
        [
          (string (string_content) @name)
          (encapsed_string (string_content) @name)
        ])))) @constant
  (#eq? @_define "define"))

(property_declaration
  (property_element
    name: (variable_name (name) @name))) @field

(property_promotion_parameter
  name: (variable_name (name) @name)) @field

(namespace_definition
  name: (namespace_name) @name
  body: (compound_statement) @body) @module

;; references

(function_call_expression
  function: [
    (name) @call
    (qualified_name (name) @call)
    (relative_name (name) @call)
  ])

(member_call_expression name: (name) @call)

(nullsafe_member_call_expression name: (name) @call)

(scoped_call_expression name: (name) @call)

(object_creation_expression
  [
    (name) @call
    (qualified_name (name) @call)
  ])

; use A\B;
(namespace_use_declaration
  (namespace_use_clause
    .
    [
      (name) @import
      (qualified_name) @import
    ]))

(namespace_use_declaration
  (namespace_use_clause
    .
    (qualified_name (name) @imported)))

; use A\{B, C};
(namespace_use_declaration
  (namespace_name) @import
  body: (namespace_use_group))

(namespace_use_group
  (namespace_use_clause
    .
    [
      (name) @imported
      (qualified_name (name) @imported)
    ]))

(include_expression (string (string_content) @import))
(include_once_expression (string (string_content) @import))
(require_expression (string (string_content) @import))
(require_once_expression (string (string_content) @import))
(require_once_expression
  (binary_expression right: (string (string_content) @import)))
(require_expression
  (binary_expression right: (string (string_content) @import)))

(base_clause
  [
    (name) @inherit
    (qualified_name (name) @inherit)
  ])

(class_interface_clause
  [
    (name) @inherit
    (qualified_name (name) @inherit)
  ])

; The traits a class uses.
(use_declaration
  [
    (name) @inherit
    (qualified_name (name) @inherit)
  ])

(named_type
  [
    (name) @type
    (qualified_name (name) @type)
  ])

(attribute
  .
  [
    (name) @type
    (qualified_name (name) @type)
  ])

(class_constant_access_expression . (name) @type)

(scoped_call_expression scope: (name) @type)
