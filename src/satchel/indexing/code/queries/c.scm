; C: functions and their prototypes, structs, unions, enums, typedefs, macros and file-level variables.

(function_definition
  declarator: [
    (function_declarator declarator: (identifier) @name)
    (pointer_declarator
      declarator: (function_declarator declarator: (identifier) @name))
    (pointer_declarator
      declarator: (pointer_declarator
        declarator: (function_declarator declarator: (identifier) @name)))
    (function_declarator
      declarator: (parenthesized_declarator
        [
          (identifier) @name
          (pointer_declarator
            declarator: (function_declarator declarator: (identifier) @name))
        ]))
  ]
  body: (compound_statement) @body) @function

; Prototypes and variables of the file, also between #if lines.
(translation_unit
  (declaration
    declarator: [
      (function_declarator declarator: (identifier) @name)
      (pointer_declarator
        declarator: (function_declarator declarator: (identifier) @name))
      (pointer_declarator
        declarator: (pointer_declarator
          declarator: (function_declarator declarator: (identifier) @name)))
    ]) @function)

([(preproc_ifdef
    (declaration
      declarator: [
        (function_declarator declarator: (identifier) @name)
        (pointer_declarator
          declarator: (function_declarator declarator: (identifier) @name))
      ]) @function)
  (preproc_if
    (declaration
      declarator: [
        (function_declarator declarator: (identifier) @name)
        (pointer_declarator
          declarator: (function_declarator declarator: (identifier) @name))
      ]) @function)
  (preproc_else
    (declaration
      declarator: [
        (function_declarator declarator: (identifier) @name)
        (pointer_declarator
          declarator: (function_declarator declarator: (identifier) @name))
      ]) @function)
  (linkage_specification
    body: (declaration_list
      (declaration
        declarator: [
          (function_declarator declarator: (identifier) @name)
          (pointer_declarator
            declarator: (function_declarator declarator: (identifier) @name))
        ]) @function))])

(translation_unit
  (declaration
    declarator: [
      (identifier) @name
      (pointer_declarator declarator: (identifier) @name)
      (array_declarator declarator: (identifier) @name)
      (pointer_declarator
        declarator: (pointer_declarator declarator: (identifier) @name))
      (pointer_declarator
        declarator: (array_declarator declarator: (identifier) @name))
      (init_declarator
        declarator: [
          (pointer_declarator
            declarator: (pointer_declarator declarator: (identifier) @name))
          (identifier) @name
          (pointer_declarator declarator: (identifier) @name)
          (array_declarator declarator: (identifier) @name)
          (pointer_declarator
            declarator: (array_declarator declarator: (identifier) @name))
          (array_declarator
            declarator: (array_declarator declarator: (identifier) @name))
        ])
    ]) @constant)

(struct_specifier
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @struct

(union_specifier
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @struct

(enum_specifier
  name: (type_identifier) @name
  body: (enumerator_list) @body) @enum

(enumerator name: (identifier) @name) @constant

(type_definition
  type: (struct_specifier body: (field_declaration_list) @body)
  declarator: [
    (type_identifier) @name
    (pointer_declarator declarator: (type_identifier) @name)
    (array_declarator declarator: (type_identifier) @name)
  ]) @struct

(type_definition
  type: (union_specifier body: (field_declaration_list) @body)
  declarator: [
    (type_identifier) @name
    (pointer_declarator declarator: (type_identifier) @name)
    (array_declarator declarator: (type_identifier) @name)
  ]) @struct

(type_definition
  type: (enum_specifier body: (enumerator_list) @body)
  declarator: (type_identifier) @name) @enum

; The tag in typedef struct tag { … } name; belongs to the whole typedef.
(type_definition
  type: [
    (struct_specifier
      name: (type_identifier) @name
      body: (field_declaration_list) @body)
    (union_specifier
      name: (type_identifier) @name
      body: (field_declaration_list) @body)
  ]) @struct

(type_definition
  type: (enum_specifier
    name: (type_identifier) @name
    body: (enumerator_list) @body)) @enum

; typedef struct a a; and the like have no body and are aliases.
(type_definition
  type: [
    (struct_specifier !body)
    (union_specifier !body)
    (enum_specifier !body)
    (primitive_type)
    (sized_type_specifier)
    (type_identifier)
    (macro_type_specifier)
  ]
  declarator: [
    (type_identifier) @name
    (primitive_type) @name
    (pointer_declarator declarator: (type_identifier) @name)
    (array_declarator declarator: (type_identifier) @name)
    (function_declarator declarator: (type_identifier) @name)
    (function_declarator
      declarator: (parenthesized_declarator (type_identifier) @name))
    (function_declarator
      declarator: (parenthesized_declarator
        (pointer_declarator declarator: (type_identifier) @name)))
    (pointer_declarator
      declarator: (function_declarator
        declarator: (parenthesized_declarator
          (pointer_declarator declarator: (type_identifier) @name))))
  ]) @type

(preproc_def
  name: (identifier) @name
  value: (preproc_arg)) @macro

(preproc_function_def name: (identifier) @name) @macro

;; references

(call_expression
  function: [
    (identifier) @call
    (field_expression field: (field_identifier) @call)
    (parenthesized_expression
      (pointer_expression argument: (identifier) @call))
    (parenthesized_expression
      (pointer_expression
        argument: (field_expression field: (field_identifier) @call)))
  ])

(preproc_include
  path: [
    (system_lib_string) @import
    (string_literal (string_content) @import)
  ])

(parameter_declaration type: (type_identifier) @type)
(field_declaration type: (type_identifier) @type)
(function_definition type: (type_identifier) @type)
(declaration type: (type_identifier) @type)
(type_definition type: (type_identifier) @type)
(type_descriptor type: (type_identifier) @type)
(struct_specifier name: (type_identifier) @type !body)
(union_specifier name: (type_identifier) @type !body)
(enum_specifier name: (type_identifier) @type !body)
