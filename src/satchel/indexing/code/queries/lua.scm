; Lua: functions, those of a table with the table as their owner, and the names a file sets at its top.

(function_declaration
  name: (identifier) @name
  body: (block)? @body) @function

(function_declaration
  name: [
    (dot_index_expression
      table: [
        (identifier) @owner
        (dot_index_expression field: (identifier) @owner)
      ]
      field: (identifier) @name)
    (method_index_expression
      table: [
        (identifier) @owner
        (dot_index_expression field: (identifier) @owner)
      ]
      method: (identifier) @name)
  ]
  body: (block)? @body) @method

; name = function() … end, also local
(assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list
    .
    value: (function_definition
      body: (block)? @body))) @function

(variable_declaration
  (assignment_statement
    (variable_list . name: (identifier) @name)
    (expression_list
      .
      value: (function_definition
        body: (block)? @body)))) @function

(assignment_statement
  (variable_list
    .
    name: [
      (dot_index_expression
        table: [
          (identifier) @owner
          (dot_index_expression field: (identifier) @owner)
        ]
        field: (identifier) @name)
      (bracket_index_expression
        table: (identifier) @owner
        field: (string content: (string_content) @name))
    ])
  (expression_list
    .
    value: (function_definition
      body: (block)? @body))) @method

; Functions in a table that is written out.
(field
  name: [
    (identifier) @name
    (string content: (string_content) @name)
  ]
  value: (function_definition
    body: (block)? @body)) @method

; Names of the file. What require() brings is an import and not a constant.
(chunk
  (variable_declaration
    (assignment_statement
      (variable_list . name: (identifier) @name)
      (expression_list
        .
        value: [
          (binary_expression)
          (dot_index_expression)
          (false)
          (identifier)
          (nil)
          (number)
          (parenthesized_expression)
          (string)
          (table_constructor)
          (true)
          (unary_expression)
          (vararg_expression)
        ]))) @constant)

((chunk
  (variable_declaration
    (assignment_statement
      (variable_list . name: (identifier) @name)
      (expression_list
        .
        value: (function_call name: (_) @_callee)))) @constant)
  (#not-eq? @_callee "require"))

(chunk
  (assignment_statement
    (variable_list
      .
      name: [
        (identifier) @name
        (dot_index_expression
          table: (identifier) @owner
          field: (identifier) @name)
      ])
    (expression_list
      .
      value: [
        (binary_expression)
        (dot_index_expression)
        (false)
        (function_call)
        (identifier)
        (number)
        (string)
        (table_constructor)
        (true)
        (unary_expression)
      ])) @constant)

;; references

(function_call
  name: [
    (identifier) @call
    (dot_index_expression field: (identifier) @call)
    (method_index_expression method: (identifier) @call)
  ])

((function_call
  name: (identifier) @_require
  arguments: (arguments
    .
    (string content: (string_content) @import)))
  (#match? @_require "^(require|dofile|loadfile)$"))
