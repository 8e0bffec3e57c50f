; TypeScript: functions however they are written, classes and their members, interfaces, types, enums, namespaces,
; object literals with functions in them, and the names that a module sets at its top.
; What is exported matches twice; the export statement is the outer node.

(function_declaration
  name: (identifier) @name
  body: (statement_block) @body) @function

(generator_function_declaration
  name: (identifier) @name
  body: (statement_block) @body) @function

(export_statement
  declaration: [
    (function_declaration
      name: (identifier) @name
      body: (statement_block) @body)
    (generator_function_declaration
      name: (identifier) @name
      body: (statement_block) @body)
  ]) @function

(class_declaration
  name: (type_identifier) @name
  body: (class_body) @body) @class

(export_statement
  declaration: (class_declaration
    name: (type_identifier) @name
    body: (class_body) @body)) @class

(abstract_class_declaration
  name: (type_identifier) @name
  body: (class_body) @body) @class

(export_statement
  declaration: (abstract_class_declaration
    name: (type_identifier) @name
    body: (class_body) @body)) @class

(lexical_declaration
  (variable_declarator
    name: (identifier) @name
    value: [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
      (generator_function body: (_) @body)
    ])) @function

(export_statement
  declaration: (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      value: [
        (arrow_function body: (_) @body)
        (function_expression body: (_) @body)
        (generator_function body: (_) @body)
      ]))) @function

(lexical_declaration
  (variable_declarator
    name: (identifier) @name
    value: (class body: (class_body) @body))) @class

(export_statement
  declaration: (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      value: (class body: (class_body) @body)))) @class

(variable_declaration
  (variable_declarator
    name: (identifier) @name
    value: [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
      (generator_function body: (_) @body)
    ])) @function

(export_statement
  declaration: (variable_declaration
    (variable_declarator
      name: (identifier) @name
      value: [
        (arrow_function body: (_) @body)
        (function_expression body: (_) @body)
        (generator_function body: (_) @body)
      ]))) @function

(variable_declaration
  (variable_declarator
    name: (identifier) @name
    value: (class body: (class_body) @body))) @class

(export_statement
  declaration: (variable_declaration
    (variable_declarator
      name: (identifier) @name
      value: (class body: (class_body) @body)))) @class

; Functions set as a property: Type.make, Type.prototype.run, exports.run.
((expression_statement
  (assignment_expression
    left: (member_expression
      object: [
        (identifier) @owner
        (member_expression
          object: (identifier) @owner
          property: (property_identifier) @_prototype)
      ]
      property: (property_identifier) @name)
    right: [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
      (generator_function body: (_) @body)
    ])) @function
  (#not-match? @owner "^(exports|module)$")
  (#eq? @_prototype "prototype"))

((expression_statement
  (assignment_expression
    left: (member_expression
      object: [
        (identifier) @_exports
        (member_expression
          object: (identifier) @_exports
          property: (property_identifier))
      ]
      property: (property_identifier) @name)
    right: [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
      (generator_function body: (_) @body)
    ])) @function
  (#any-of? @_exports "exports" "module")
  (#not-eq? @name "exports"))

; module.exports = function name() {}
((expression_statement
  (assignment_expression
    left: (member_expression object: (identifier) @_module)
    right: (function_expression
      name: (identifier) @name
      body: (_) @body))) @function
  (#eq? @_module "module"))

((expression_statement
  (assignment_expression
    left: (member_expression object: (identifier) @_module)
    right: (class
      name: (type_identifier) @name
      body: (_) @body))) @class
  (#eq? @_module "module"))

(method_definition
  name: [
    (property_identifier) @name
    (private_property_identifier) @name
    (computed_property_name) @name
    (string (string_fragment) @name)
  ]
  body: (statement_block) @body) @method

; Functions in an object literal that is named, exported or assigned.
(variable_declarator
  value: (object
    (pair
      key: (property_identifier) @name
      value: [
        (arrow_function body: (_) @body)
        (function_expression body: (_) @body)
        (generator_function body: (_) @body)
      ]) @method))

(export_statement
  value: (object
    (pair
      key: (property_identifier) @name
      value: [
        (arrow_function body: (_) @body)
        (function_expression body: (_) @body)
        (generator_function body: (_) @body)
      ]) @method))

(assignment_expression
  right: (object
    (pair
      key: (property_identifier) @name
      value: [
        (arrow_function body: (_) @body)
        (function_expression body: (_) @body)
        (generator_function body: (_) @body)
      ]) @method))

(public_field_definition
  name: [
    (property_identifier)
    (private_property_identifier)
  ] @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @method

(public_field_definition
  name: [
    (property_identifier)
    (private_property_identifier)
  ] @name
  !value) @field

(public_field_definition
  name: [
    (property_identifier)
    (private_property_identifier)
  ] @name
  value: [
    (array)
    (as_expression)
    (await_expression)
    (binary_expression)
    (call_expression)
    (false)
    (identifier)
    (member_expression)
    (new_expression)
    (non_null_expression)
    (null)
    (number)
    (object)
    (parenthesized_expression)
    (regex)
    (satisfies_expression)
    (string)
    (subscript_expression)
    (template_string)
    (ternary_expression)
    (this)
    (true)
    (unary_expression)
    (undefined)
  ]) @field

(interface_declaration
  name: (type_identifier) @name
  body: (interface_body) @body) @interface

(export_statement
  declaration: (interface_declaration
    name: (type_identifier) @name
    body: (interface_body) @body)) @interface

(enum_declaration
  name: (identifier) @name
  body: (enum_body) @body) @enum

(export_statement
  declaration: (enum_declaration
    name: (identifier) @name
    body: (enum_body) @body)) @enum

(type_alias_declaration name: (type_identifier) @name) @type

(export_statement
  declaration: (type_alias_declaration name: (type_identifier) @name)) @type

(function_signature name: (identifier) @name) @function

(export_statement
  declaration: (function_signature name: (identifier) @name)) @function

(abstract_method_signature name: (property_identifier) @name) @method

(class_body
  (method_signature name: (property_identifier) @name) @method)

(interface_body
  (method_signature name: (property_identifier) @name) @method)

(interface_body
  (property_signature name: (property_identifier) @name) @field)

(enum_body (property_identifier) @name @constant)

(enum_body
  (enum_assignment name: (property_identifier) @name) @constant)

; declare …, with or without export
(ambient_declaration
  [
    (function_signature name: (identifier) @name)
  ]) @function

(ambient_declaration
  [
    (class_declaration
      name: (type_identifier) @name
      body: (class_body) @body)
    (abstract_class_declaration
      name: (type_identifier) @name
      body: (class_body) @body)
  ]) @class

(ambient_declaration
  (interface_declaration
    name: (type_identifier) @name
    body: (interface_body) @body)) @interface

(ambient_declaration
  (type_alias_declaration name: (type_identifier) @name)) @type

(ambient_declaration
  (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      !value))) @constant

(ambient_declaration
  (module
    name: [
      (string (string_fragment) @name)
      (identifier) @name
      (nested_identifier) @name
    ]
    body: (statement_block) @body)) @module

(ambient_declaration
  (internal_module
    name: [
      (identifier) @name
      (nested_identifier) @name
    ]
    body: (statement_block) @body)) @module

(expression_statement
  (internal_module
    name: [
      (identifier) @name
      (nested_identifier) @name
    ]
    body: (statement_block) @body)) @module

(export_statement
  declaration: (internal_module
    name: [
      (identifier) @name
      (nested_identifier) @name
    ]
    body: (statement_block) @body)) @module

; Names of the module. What require() brings is an import and not a constant.
(program
  (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      value: [
        (array)
        (as_expression)
        (await_expression)
        (binary_expression)
        (false)
        (identifier)
        (member_expression)
        (new_expression)
        (non_null_expression)
        (null)
        (number)
        (object)
        (parenthesized_expression)
        (regex)
        (satisfies_expression)
        (string)
        (subscript_expression)
        (template_string)
        (ternary_expression)
        (this)
        (true)
        (unary_expression)
        (undefined)
      ])) @constant)

(export_statement
  declaration: (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      value: [
        (array)
        (as_expression)
        (await_expression)
        (binary_expression)
        (false)
        (identifier)
        (member_expression)
        (new_expression)
        (non_null_expression)
        (null)
        (number)
        (object)
        (parenthesized_expression)
        (regex)
        (satisfies_expression)
        (string)
        (subscript_expression)
        (template_string)
        (ternary_expression)
        (this)
        (true)
        (unary_expression)
        (undefined)
      ]))) @constant

(program
  (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      !value)) @constant)

(export_statement
  declaration: (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      !value))) @constant

((program
  (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      value: (call_expression
        function: [
          (identifier) @_callee
          (member_expression)
          (call_expression)
          (parenthesized_expression)
        ]))) @constant)
  (#not-eq? @_callee "require"))

((export_statement
  declaration: (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      value: (call_expression
        function: [
          (identifier) @_callee
          (member_expression)
          (call_expression)
          (parenthesized_expression)
        ])))) @constant
  (#not-eq? @_callee "require"))

(program
  (variable_declaration
    (variable_declarator
      name: (identifier) @name
      value: [
        (array)
        (as_expression)
        (await_expression)
        (binary_expression)
        (false)
        (identifier)
        (member_expression)
        (new_expression)
        (non_null_expression)
        (null)
        (number)
        (object)
        (parenthesized_expression)
        (regex)
        (satisfies_expression)
        (string)
        (subscript_expression)
        (template_string)
        (ternary_expression)
        (this)
        (true)
        (unary_expression)
        (undefined)
      ])) @constant)

(export_statement
  declaration: (variable_declaration
    (variable_declarator
      name: (identifier) @name
      value: [
        (array)
        (as_expression)
        (await_expression)
        (binary_expression)
        (false)
        (identifier)
        (member_expression)
        (new_expression)
        (non_null_expression)
        (null)
        (number)
        (object)
        (parenthesized_expression)
        (regex)
        (satisfies_expression)
        (string)
        (subscript_expression)
        (template_string)
        (ternary_expression)
        (this)
        (true)
        (unary_expression)
        (undefined)
      ]))) @constant

(program
  (variable_declaration
    (variable_declarator
      name: (identifier) @name
      !value)) @constant)

(export_statement
  declaration: (variable_declaration
    (variable_declarator
      name: (identifier) @name
      !value))) @constant

((program
  (variable_declaration
    (variable_declarator
      name: (identifier) @name
      value: (call_expression
        function: [
          (identifier) @_callee
          (member_expression)
          (call_expression)
          (parenthesized_expression)
        ]))) @constant)
  (#not-eq? @_callee "require"))

((export_statement
  declaration: (variable_declaration
    (variable_declarator
      name: (identifier) @name
      value: (call_expression
        function: [
          (identifier) @_callee
          (member_expression)
          (call_expression)
          (parenthesized_expression)
        ])))) @constant
  (#not-eq? @_callee "require"))

;; references

(call_expression
  function: [
    (identifier) @call
    (member_expression
      property: [
        (property_identifier)
        (private_property_identifier)
      ] @call)
  ])

(new_expression
  constructor: [
    (identifier) @call
    (member_expression property: (property_identifier) @call)
  ])

(decorator
  [
    (identifier) @call
    (member_expression property: (property_identifier) @call)
  ])

(import_statement source: (string (string_fragment) @import))

(export_statement source: (string (string_fragment) @import))

((call_expression
  function: (identifier) @_require
  arguments: (arguments . (string (string_fragment) @import)))
  (#eq? @_require "require"))

(call_expression
  function: (import)
  arguments: (arguments . (string (string_fragment) @import)))

(import_specifier name: (identifier) @imported)

(import_clause (identifier) @imported)

(export_statement
  (export_clause
    (export_specifier name: (identifier) @imported))
  source: (string))

(import_require_clause source: (string (string_fragment) @import))

(extends_clause
  value: [
    (identifier) @inherit
    (member_expression property: (property_identifier) @inherit)
  ])

(implements_clause
  [
    (type_identifier) @inherit
    (nested_type_identifier name: (type_identifier) @inherit)
    (generic_type
      name: [
        (type_identifier) @inherit
        (nested_type_identifier name: (type_identifier) @inherit)
      ])
  ])

(extends_type_clause
  type: [
    (type_identifier) @inherit
    (nested_type_identifier name: (type_identifier) @inherit)
    (generic_type
      name: [
        (type_identifier) @inherit
        (nested_type_identifier name: (type_identifier) @inherit)
      ])
  ])

(type_annotation (type_identifier) @type)
(generic_type name: (type_identifier) @type)
(nested_type_identifier name: (type_identifier) @type)
(union_type (type_identifier) @type)
(intersection_type (type_identifier) @type)
(array_type (type_identifier) @type)
(type_arguments (type_identifier) @type)
(as_expression (type_identifier) @type)
(satisfies_expression (type_identifier) @type)
(constraint (type_identifier) @type)
(type_alias_declaration value: (type_identifier) @type)
(index_type_query (type_identifier) @type)
(lookup_type (type_identifier) @type)
(conditional_type (type_identifier) @type)
(function_type return_type: (type_identifier) @type)
