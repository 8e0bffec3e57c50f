; Python: functions, classes, type aliases, the names a module sets and the names a class body sets.
; A decorated function or class matches twice; the decorated node is the outer one.

(function_definition
  name: (identifier) @name
  body: (block) @body) @function

(decorated_definition
  definition: (function_definition
    name: (identifier) @name
    body: (block) @body)) @function

(class_definition
  name: (identifier) @name
  body: (block) @body) @class

(decorated_definition
  definition: (class_definition
    name: (identifier) @name
    body: (block) @body)) @class

(type_alias_statement
  left: (type
    [
      (identifier) @name
      (generic_type . (identifier) @name)
    ])) @type

(module
  (expression_statement
    (assignment
      left: [
        (identifier) @name
        (pattern_list (identifier) @name)
      ])) @constant)

(class_definition
  body: (block
    (expression_statement
      (assignment left: (identifier) @name)) @field))

;; references

(call
  function: [
    (identifier) @call
    (attribute attribute: (identifier) @call)
  ])

(decorator
  [
    (identifier) @call
    (attribute attribute: (identifier) @call)
  ])

(import_statement
  name: [
    (dotted_name) @import
    (aliased_import name: (dotted_name) @import)
  ])

(import_from_statement
  module_name: [
    (dotted_name)
    (relative_import)
  ] @import)

(import_from_statement
  name: [
    (dotted_name) @imported
    (aliased_import name: (dotted_name) @imported)
  ])

(class_definition
  superclasses: (argument_list
    [
      (identifier) @inherit
      (attribute attribute: (identifier) @inherit)
      (subscript
        value: [
          (identifier) @inherit
          (attribute attribute: (identifier) @inherit)
        ])
    ]))

(type
  [
    (identifier) @type
    (attribute attribute: (identifier) @type)
    (binary_operator left: (identifier) @type)
    (binary_operator right: (identifier) @type)
  ])

(generic_type . (identifier) @type)
