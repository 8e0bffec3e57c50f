; Haskell: type signatures and equations of a module, of classes and of instances, data types with their
; constructors and record fields, newtypes, synonyms, families, classes and instances.
; Every equation of a function is a match of its own, like the signature before it.

(declarations
  (signature
    name: [
      (variable) @name
      (prefix_id (operator) @name)
    ]) @function)

(declarations
  (signature
    names: (binding_list
      [
        (variable) @name
        (prefix_id (operator) @name)
      ])) @function)

(declarations
  (function
    name: [
      (variable) @name
      (prefix_id (operator) @name)
    ]
    patterns: (patterns)
    .
    match: (match) @body) @function)

(declarations
  (function
    (infix
      operator: [
        (operator) @name
        (infix_id (variable) @name)
      ])
    .
    match: (match) @body) @function)

(declarations
  (bind
    name: [
      (variable) @name
      (prefix_id (operator) @name)
    ]
    .
    match: (match) @body) @function)

(class_declarations
  (signature
    name: [
      (variable) @name
      (prefix_id (operator) @name)
    ]) @method)

(class_declarations
  (signature
    names: (binding_list
      [
        (variable) @name
        (prefix_id (operator) @name)
      ])) @method)

(class_declarations
  (function name: (variable) @name) @method)

(class_declarations
  (bind name: (variable) @name) @method)

(instance_declarations
  (function
    name: [
      (variable) @name
      (prefix_id (operator) @name)
    ]) @method)

(instance_declarations
  (function
    (infix
      operator: [
        (operator) @name
        (infix_id (variable) @name)
      ])) @method)

(instance_declarations
  (bind
    name: [
      (variable) @name
      (prefix_id (operator) @name)
    ]) @method)

(data_type name: (name) @name) @type

(newtype name: (name) @name) @type

(type_synonym name: (name) @name) @type

(type_family name: (name) @name) @type

(data_family name: (name) @name) @type

(data_constructor
  constructor: [
    (prefix name: (constructor) @name)
    (record name: (constructor) @name)
  ]) @constant

(gadt_constructor name: (constructor) @name) @constant

(newtype_constructor name: (constructor) @name) @constant

(field name: (field_name (variable) @name)) @field

(class
  name: (name) @name
  declarations: (class_declarations)? @body) @class

; An instance bears the name of its class.
(instance
  name: [
    (name) @name
    (qualified id: (name) @name)
  ]
  declarations: (instance_declarations)? @body) @impl

(pattern_synonym
  (equation
    synonym: [
      (constructor) @name
      (apply function: (constructor) @name)
    ])) @constant

(pattern_synonym
  (signature synonym: (constructor) @name)) @constant

(foreign_import
  signature: (signature name: (variable) @name)) @function

;; references

(apply
  function: [
    (variable) @call
    (constructor) @call
    (qualified id: (variable) @call)
    (qualified id: (constructor) @call)
    (projection field: (field_name (variable) @call))
  ])

((infix
  left_operand: [
    (variable) @call
    (constructor) @call
    (qualified id: (variable) @call)
  ]
  operator: (operator) @_operator)
  (#match? @_operator "^(\\$!?|<\\$!?>|\\.|=<<|>=>|<=<)$"))

((infix
  operator: (operator) @_operator
  right_operand: [
    (variable) @call
    (qualified id: (variable) @call)
  ])
  (#match? @_operator "^(\\.|>>=|>=>|<=<|&|<&>)$"))

(infix operator: (infix_id (variable) @call))

(import module: (module) @import)

; What is hidden is not imported.
((import
  names: (import_list
    name: (import_name
      [
        (variable)
        (name)
      ] @imported))) @_import
  (#not-match? @_import "\\shiding\\s"))

(instance
  name: [
    (name) @inherit
    (qualified id: (name) @inherit)
  ])

(deriving
  classes: [
    (name) @inherit
    (tuple (name) @inherit)
  ])

(deriving_instance name: (name) @inherit)

(class
  context: (context
    context: [
      (apply constructor: (name) @inherit)
      (parens (apply constructor: (name) @inherit))
      (tuple (apply constructor: (name) @inherit))
    ]))

(signature type: (name) @type)
(function parameter: (name) @type)
(function result: (name) @type)
(apply constructor: (name) @type)
(apply argument: (name) @type)
(list element: (name) @type)
(field type: (name) @type)
