; JavaScript: functions however they are written, classes and their members,
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
  name: (identifier) @name
  body: (class_body) @body) @class

(export_statement
  declaration: (class_declaration
    name: (identifier) @name
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
      name: (identifier) @name
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

(field_definition
  property: [
    (property_identifier)
    (private_property_identifier)
  ] @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @method

(field_definition
  property: [
    (property_identifier)
    (private_property_identifier)
  ] @name
  !value) @field

(field_definition
  property: [
    (property_identifier)
    (private_property_identifier)
  ] @name
  value: [
    (array)
    (await_expression)
    (binary_expression)
    (call_expression)
    (false)
    (identifier)
    (member_expression)
    (new_expression)
    (null)
    (number)
    (object)
    (parenthesized_expression)
    (regex)
    (string)
    (subscript_expression)
    (template_string)
    (ternary_expression)
    (this)
    (true)
    (unary_expression)
    (undefined)
  ]) @field

; Names of the module. What require() brings is an import and not a constant.
(program
  (lexical_declaration
    (variable_declarator
      name: (identifier) @name
      value: [
        (array)
        (await_expression)
        (binary_expression)
        (false)
        (identifier)
        (jsx_element)
        (jsx_self_closing_element)
        (member_expression)
        (new_expression)
        (null)
        (number)
        (object)
        (parenthesized_expression)
        (regex)
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
        (await_expression)
        (binary_expression)
        (false)
        (identifier)
        (jsx_element)
        (jsx_self_closing_element)
        (member_expression)
        (new_expression)
        (null)
        (number)
        (object)
        (parenthesized_expression)
        (regex)
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
        (await_expression)
        (binary_expression)
        (false)
        (identifier)
        (jsx_element)
        (jsx_self_closing_element)
        (member_expression)
        (new_expression)
        (null)
        (number)
        (object)
        (parenthesized_expression)
        (regex)
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
        (await_expression)
        (binary_expression)
        (false)
        (identifier)
        (jsx_element)
        (jsx_self_closing_element)
        (member_expression)
        (new_expression)
        (null)
        (number)
        (object)
        (parenthesized_expression)
        (regex)
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

(class_heritage
  [
    (identifier) @inherit
    (member_expression property: (property_identifier) @inherit)
  ])

; A component in an element is called; a tag in lower case belongs to the page.
((jsx_opening_element
  name: [
    (identifier) @call
    (member_expression property: (property_identifier) @call)
  ])
  (#match? @call "^[A-Z]"))

((jsx_self_closing_element
  name: [
    (identifier) @call
    (member_expression property: (property_identifier) @call)
  ])
  (#match? @call "^[A-Z]"))
