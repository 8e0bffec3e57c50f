; Zig: functions, containers that are given a name, tests, and the names of a file or of a container.

(function_declaration
  name: (identifier) @name
  body: (block)? @body) @function

(variable_declaration
  .
  (identifier) @name
  [
    (struct_declaration)
    (union_declaration)
    (opaque_declaration)
  ] @body) @struct

(variable_declaration
  .
  (identifier) @name
  [
    (enum_declaration)
    (error_set_declaration)
  ] @body) @enum

(test_declaration
  [
    (string (string_content) @name)
    (identifier) @name
  ]
  (block) @body) @function

; Names of the file or of a container; what @import brings is an import, and the containers were above.
((source_file
  (variable_declaration
    .
    (identifier) @name
    (_) @_value
    .) @constant)
  (#not-match? @_value "^((packed|extern) +)?(struct|enum|union|opaque)\\b|^error *\\{[^}]*\\}$|^@import"))

((struct_declaration
  (variable_declaration
    .
    (identifier) @name
    (_) @_value
    .) @constant)
  (#not-match? @_value "^((packed|extern) +)?(struct|enum|union|opaque)\\b|^error *\\{[^}]*\\}$|^@import"))

((enum_declaration
  (variable_declaration
    .
    (identifier) @name
    (_) @_value
    .) @constant)
  (#not-match? @_value "^((packed|extern) +)?(struct|enum|union|opaque)\\b|^error *\\{[^}]*\\}$|^@import"))

((union_declaration
  (variable_declaration
    .
    (identifier) @name
    (_) @_value
    .) @constant)
  (#not-match? @_value "^((packed|extern) +)?(struct|enum|union|opaque)\\b|^error *\\{[^}]*\\}$|^@import"))

;; references

(call_expression
  function: [
    (identifier) @call
    (field_expression member: (identifier) @call)
  ])

((builtin_function
  (builtin_identifier) @_import
  (arguments (string (string_content) @import)))
  (#match? @_import "^@(import|embedFile|cInclude)$"))

(parameter type: (identifier) @type)
(container_field type: (identifier) @type)
(function_declaration type: (identifier) @type)
(pointer_type (identifier) @type)
(slice_type (identifier) @type)
(nullable_type (identifier) @type)
(struct_initializer (identifier) @type)
(error_union_type ok: (identifier) @type)
