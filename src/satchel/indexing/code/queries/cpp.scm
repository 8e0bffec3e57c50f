; C++: functions and methods wherever they are defined, prototypes, classes, structs, unions, enums, namespaces,
; aliases, concepts, macros, and constants of a namespace or a class. A template is captured with its head.

; A pointer or a reference that is given back stands around the declarator, hence the (_ …).
; A definition outside its class: the name carries up to three scopes, the last of which owns it.
(function_definition
  declarator: [
    (function_declarator
      declarator: [
        (qualified_identifier
          scope: [
            (namespace_identifier) @owner
            (template_type name: (type_identifier) @owner)
          ]
          name: [
            (identifier) @name
            (operator_name) @name
            (destructor_name) @name
            (template_function name: (identifier) @name)
          ])
        (qualified_identifier
          name: (qualified_identifier
            scope: [
              (namespace_identifier) @owner
              (template_type name: (type_identifier) @owner)
            ]
            name: [
              (identifier) @name
              (operator_name) @name
              (destructor_name) @name
              (template_function name: (identifier) @name)
            ]))
        (qualified_identifier
          name: (qualified_identifier
            name: (qualified_identifier
              scope: [
                (namespace_identifier) @owner
                (template_type name: (type_identifier) @owner)
              ]
              name: [
                (identifier) @name
                (operator_name) @name
                (destructor_name) @name
                (template_function name: (identifier) @name)
              ])))
      ])
    (_
      (function_declarator
        declarator: [
          (qualified_identifier
            scope: [
              (namespace_identifier) @owner
              (template_type name: (type_identifier) @owner)
            ]
            name: [
              (identifier) @name
              (operator_name) @name
              (destructor_name) @name
              (template_function name: (identifier) @name)
            ])
          (qualified_identifier
            name: (qualified_identifier
              scope: [
                (namespace_identifier) @owner
                (template_type name: (type_identifier) @owner)
              ]
              name: [
                (identifier) @name
                (operator_name) @name
                (destructor_name) @name
                (template_function name: (identifier) @name)
              ]))
          (qualified_identifier
            name: (qualified_identifier
              name: (qualified_identifier
                scope: [
                  (namespace_identifier) @owner
                  (template_type name: (type_identifier) @owner)
                ]
                name: [
                  (identifier) @name
                  (operator_name) @name
                  (destructor_name) @name
                  (template_function name: (identifier) @name)
                ])))
        ]))
  ]
  body: (compound_statement)? @body) @method

(template_declaration
  (function_definition
    declarator: [
      (function_declarator
        declarator: [
          (qualified_identifier
            scope: [
              (namespace_identifier) @owner
              (template_type name: (type_identifier) @owner)
            ]
            name: [
              (identifier) @name
              (operator_name) @name
              (destructor_name) @name
              (template_function name: (identifier) @name)
            ])
          (qualified_identifier
            name: (qualified_identifier
              scope: [
                (namespace_identifier) @owner
                (template_type name: (type_identifier) @owner)
              ]
              name: [
                (identifier) @name
                (operator_name) @name
                (destructor_name) @name
                (template_function name: (identifier) @name)
              ]))
          (qualified_identifier
            name: (qualified_identifier
              name: (qualified_identifier
                scope: [
                  (namespace_identifier) @owner
                  (template_type name: (type_identifier) @owner)
                ]
                name: [
                  (identifier) @name
                  (operator_name) @name
                  (destructor_name) @name
                  (template_function name: (identifier) @name)
                ])))
        ])
      (_
        (function_declarator
          declarator: [
            (qualified_identifier
              scope: [
                (namespace_identifier) @owner
                (template_type name: (type_identifier) @owner)
              ]
              name: [
                (identifier) @name
                (operator_name) @name
                (destructor_name) @name
                (template_function name: (identifier) @name)
              ])
            (qualified_identifier
              name: (qualified_identifier
                scope: [
                  (namespace_identifier) @owner
                  (template_type name: (type_identifier) @owner)
                ]
                name: [
                  (identifier) @name
                  (operator_name) @name
                  (destructor_name) @name
                  (template_function name: (identifier) @name)
                ]))
            (qualified_identifier
              name: (qualified_identifier
                name: (qualified_identifier
                  scope: [
                    (namespace_identifier) @owner
                    (template_type name: (type_identifier) @owner)
                  ]
                  name: [
                    (identifier) @name
                    (operator_name) @name
                    (destructor_name) @name
                    (template_function name: (identifier) @name)
                  ])))
          ]))
    ]
    body: (compound_statement)? @body)) @method

(template_declaration
  (template_declaration
    (function_definition
      declarator: (function_declarator
        declarator: [
          (qualified_identifier
            scope: [
              (namespace_identifier) @owner
              (template_type name: (type_identifier) @owner)
            ]
            name: [
              (identifier) @name
              (operator_name) @name
              (destructor_name) @name
              (template_function name: (identifier) @name)
            ])
          (qualified_identifier
            name: (qualified_identifier
              scope: [
                (namespace_identifier) @owner
                (template_type name: (type_identifier) @owner)
              ]
              name: [
                (identifier) @name
                (operator_name) @name
                (destructor_name) @name
                (template_function name: (identifier) @name)
              ]))
          (qualified_identifier
            name: (qualified_identifier
              name: (qualified_identifier
                scope: [
                  (namespace_identifier) @owner
                  (template_type name: (type_identifier) @owner)
                ]
                name: [
                  (identifier) @name
                  (operator_name) @name
                  (destructor_name) @name
                  (template_function name: (identifier) @name)
                ])))
        ])
      body: (compound_statement)? @body))) @method

((function_definition
  declarator: [
    (function_declarator
      declarator: [
        (identifier) @name
        (field_identifier) @name
        (operator_name) @name
        (destructor_name) @name
        (template_function name: (identifier) @name)
      ])
    (_
      (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
          (destructor_name) @name
          (template_function name: (identifier) @name)
        ]))
  ]
  body: (compound_statement)? @body) @function
  (#not-match? @name "^((TYPED_)?TEST|[A-Z][A-Z0-9]*_[A-Z0-9_]+)$"))

(template_declaration
  (function_definition
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
          (destructor_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (field_identifier) @name
            (operator_name) @name
            (destructor_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]
    body: (compound_statement)? @body)) @function

(template_declaration
  (template_declaration
    (function_definition
      declarator: (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
          (destructor_name) @name
          (template_function name: (identifier) @name)
        ])
      body: (compound_statement)? @body))) @function

(friend_declaration
  (function_definition
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
          (destructor_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (field_identifier) @name
            (operator_name) @name
            (destructor_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]
    body: (compound_statement)? @body)) @function

(template_declaration
  (friend_declaration
    (function_definition
      declarator: [
        (function_declarator
          declarator: [
            (identifier) @name
            (field_identifier) @name
            (operator_name) @name
            (destructor_name) @name
            (template_function name: (identifier) @name)
          ])
        (_
          (function_declarator
            declarator: [
              (identifier) @name
              (field_identifier) @name
              (operator_name) @name
              (destructor_name) @name
              (template_function name: (identifier) @name)
            ]))
      ]
      body: (compound_statement)? @body))) @function

; Conversions have no name but the type they give.
(function_definition
  declarator: (operator_cast) @name
  body: (compound_statement)? @body) @function

(function_definition
  declarator: (qualified_identifier
    scope: [
      (namespace_identifier) @owner
      (template_type name: (type_identifier) @owner)
    ]
    name: (operator_cast) @name)
  body: (compound_statement)? @body) @method

; GoogleTest: TEST(Suite, Name) reads as a function without a type.
((function_definition
  !type
  declarator: (function_declarator
    declarator: (identifier) @_test
    parameters: (parameter_list
      .
      (parameter_declaration type: (type_identifier) @owner)
      .
      (parameter_declaration type: (type_identifier) @name)
      .))
  body: (compound_statement) @body) @function
  (#match? @_test "^(TYPED_)?TEST(_F|_P)?$"))

; Prototypes.

((translation_unit
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (operator_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (operator_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]) @function)
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

((declaration_list
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (operator_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (operator_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]) @function)
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

((preproc_ifdef
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (operator_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (operator_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]) @function)
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

((preproc_if
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (operator_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (operator_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]) @function)
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

((preproc_else
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (operator_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (operator_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]) @function)
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

((preproc_elif
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (operator_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (operator_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]) @function)
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

(template_declaration
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
          (destructor_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (field_identifier) @name
            (operator_name) @name
            (destructor_name) @name
            (template_function name: (identifier) @name)
          ]))
    ])) @function

(friend_declaration
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (operator_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (operator_name) @name
            (template_function name: (identifier) @name)
          ]))
    ])) @function

; Members that a class declares without a body.
((field_declaration
  declarator: [
    (function_declarator
      declarator: [
        (identifier) @name
        (field_identifier) @name
        (operator_name) @name
        (destructor_name) @name
        (template_function name: (identifier) @name)
      ])
    (_
      (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
          (destructor_name) @name
          (template_function name: (identifier) @name)
        ]))
  ]) @method
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

((field_declaration_list
  (declaration
    declarator: [
      (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
          (destructor_name) @name
          (template_function name: (identifier) @name)
        ])
      (_
        (function_declarator
          declarator: [
            (identifier) @name
            (field_identifier) @name
            (operator_name) @name
            (destructor_name) @name
            (template_function name: (identifier) @name)
          ]))
    ]) @method)
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

; Macros that the grammar cannot know lead to these shapes.
; MACRO namespace name { … }
((function_definition
  (ERROR (identifier) @_namespace)
  declarator: (identifier) @name
  body: (compound_statement) @body) @module
  (#eq? @_namespace "namespace"))

((function_definition
  declarator: (identifier) @_namespace
  (ERROR (identifier) @name)
  body: (compound_statement) @body) @module
  (#eq? @_namespace "namespace"))

; type name() MACRO { … }
(function_definition
  [
    (ERROR
      (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
        ]))
    (_
      (ERROR
        (function_declarator
          declarator: [
            (identifier) @name
            (field_identifier) @name
            (operator_name) @name
          ])))
  ]
  body: (compound_statement) @body) @function

(template_declaration
  (function_definition
    (ERROR
      (function_declarator
        declarator: [
          (identifier) @name
          (field_identifier) @name
          (operator_name) @name
        ]))
    body: (compound_statement) @body)) @function

; class MACRO Name : public Base<T> { … }
(function_definition
  type: [
    (class_specifier !body)
    (struct_specifier !body)
  ]
  (ERROR (identifier) @name)
  declarator: [
    (template_function)
    (qualified_identifier)
  ]
  body: (compound_statement) @body) @class

; What such a namespace or class declares.
((function_definition
  declarator: [
    (identifier)
    (template_function)
    (qualified_identifier)
  ]
  body: (compound_statement
    (declaration
      declarator: [
        (function_declarator
          declarator: [
            (identifier) @name
            (operator_name) @name
            (template_function name: (identifier) @name)
          ])
        (_
          (function_declarator
            declarator: [
              (identifier) @name
              (operator_name) @name
              (template_function name: (identifier) @name)
            ]))
      ]) @function))
  (#not-match? @name "^[A-Z][A-Z0-9]*_[A-Z0-9_]+$"))

(function_definition
  declarator: (identifier)
  body: (compound_statement
    (declaration
      (type_qualifier
        [
          "const"
          "constexpr"
        ])
      declarator: (init_declarator
        declarator: (identifier) @name)) @constant))

; class MACRO Name { … } reads as a function whose type is a class.
(function_definition
  type: [
    (class_specifier !body)
    (struct_specifier !body)
  ]
  declarator: (identifier) @name
  body: (compound_statement) @body) @class

(template_declaration
  (function_definition
    type: [
      (class_specifier !body)
      (struct_specifier !body)
    ]
    declarator: (identifier) @name
    body: (compound_statement) @body)) @class

(class_specifier
  name: [
    (type_identifier) @name
    (template_type name: (type_identifier) @name)
    (qualified_identifier
      scope: [
        (namespace_identifier) @owner
        (template_type name: (type_identifier) @owner)
      ]
      name: [
        (type_identifier) @name
        (template_type name: (type_identifier) @name)
      ])
  ]
  body: (field_declaration_list) @body) @class

(template_declaration
  (class_specifier
    name: [
      (type_identifier) @name
      (template_type name: (type_identifier) @name)
      (qualified_identifier
        scope: [
          (namespace_identifier) @owner
          (template_type name: (type_identifier) @owner)
        ]
        name: [
          (type_identifier) @name
          (template_type name: (type_identifier) @name)
        ])
    ]
    body: (field_declaration_list) @body)) @class

(struct_specifier
  name: [
    (type_identifier) @name
    (template_type name: (type_identifier) @name)
    (qualified_identifier
      scope: [
        (namespace_identifier) @owner
        (template_type name: (type_identifier) @owner)
      ]
      name: [
        (type_identifier) @name
        (template_type name: (type_identifier) @name)
      ])
  ]
  body: (field_declaration_list) @body) @struct

(template_declaration
  (struct_specifier
    name: [
      (type_identifier) @name
      (template_type name: (type_identifier) @name)
      (qualified_identifier
        scope: [
          (namespace_identifier) @owner
          (template_type name: (type_identifier) @owner)
        ]
        name: [
          (type_identifier) @name
          (template_type name: (type_identifier) @name)
        ])
    ]
    body: (field_declaration_list) @body)) @struct

(union_specifier
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @struct

(template_declaration
  (union_specifier
    name: (type_identifier) @name
    body: (field_declaration_list) @body)) @struct

(enum_specifier
  name: (type_identifier) @name
  body: (enumerator_list) @body) @enum

(enumerator name: (identifier) @name) @constant

(namespace_definition
  name: [
    (namespace_identifier)
    (nested_namespace_specifier)
  ] @name
  body: (declaration_list) @body) @module

(namespace_alias_definition name: (namespace_identifier) @name) @module

(alias_declaration name: (type_identifier) @name) @type

(template_declaration
  (alias_declaration name: (type_identifier) @name)) @type

(concept_definition name: (identifier) @name) @type

(template_declaration
  (concept_definition name: (identifier) @name)) @type

(type_definition
  type: [
    (struct_specifier body: (field_declaration_list) @body)
    (union_specifier body: (field_declaration_list) @body)
  ]
  declarator: [
    (type_identifier) @name
    (pointer_declarator declarator: (type_identifier) @name)
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

(type_definition
  type: [
    (struct_specifier !body)
    (union_specifier !body)
    (enum_specifier !body)
    (class_specifier !body)
    (primitive_type)
    (sized_type_specifier)
    (type_identifier)
    (template_type)
    (qualified_identifier)
    (dependent_type)
    (decltype)
  ]
  declarator: [
    (type_identifier) @name
    (primitive_type) @name
    (pointer_declarator declarator: (type_identifier) @name)
    (reference_declarator (type_identifier) @name)
    (array_declarator declarator: (type_identifier) @name)
    (function_declarator declarator: (type_identifier) @name)
    (function_declarator
      declarator: (parenthesized_declarator
        (pointer_declarator declarator: (type_identifier) @name)))
  ]) @type

(preproc_def
  name: (identifier) @name
  value: (preproc_arg)) @macro

(preproc_function_def name: (identifier) @name) @macro

; Names of the file or of a namespace.
(translation_unit
  (declaration
    type: [
      (decltype)
      (enum_specifier)
      (placeholder_type_specifier)
      (primitive_type)
      (qualified_identifier)
      (sized_type_specifier)
      (struct_specifier)
      (template_type)
      (type_identifier)
    ]
    declarator: [
      (identifier) @name
      (pointer_declarator declarator: (identifier) @name)
      (array_declarator declarator: (identifier) @name)
      (init_declarator
        declarator: [
          (identifier) @name
          (pointer_declarator declarator: (identifier) @name)
          (array_declarator declarator: (identifier) @name)
          (pointer_declarator
            declarator: (array_declarator declarator: (identifier) @name))
        ])
    ]) @constant)

(declaration_list
  (declaration
    type: [
      (decltype)
      (enum_specifier)
      (placeholder_type_specifier)
      (primitive_type)
      (qualified_identifier)
      (sized_type_specifier)
      (struct_specifier)
      (template_type)
      (type_identifier)
    ]
    declarator: [
      (identifier) @name
      (pointer_declarator declarator: (identifier) @name)
      (array_declarator declarator: (identifier) @name)
      (init_declarator
        declarator: [
          (identifier) @name
          (pointer_declarator declarator: (identifier) @name)
          (array_declarator declarator: (identifier) @name)
          (pointer_declarator
            declarator: (array_declarator declarator: (identifier) @name))
        ])
    ]) @constant)

(preproc_ifdef
  (declaration
    (type_qualifier
      [
        "const"
        "constexpr"
      ])
    declarator: (init_declarator
      declarator: [
        (identifier) @name
        (pointer_declarator declarator: (identifier) @name)
        (array_declarator declarator: (identifier) @name)
        (pointer_declarator
          declarator: (array_declarator declarator: (identifier) @name))
      ])) @constant)

(preproc_if
  (declaration
    (type_qualifier
      [
        "const"
        "constexpr"
      ])
    declarator: (init_declarator
      declarator: [
        (identifier) @name
        (pointer_declarator declarator: (identifier) @name)
        (array_declarator declarator: (identifier) @name)
        (pointer_declarator
          declarator: (array_declarator declarator: (identifier) @name))
      ])) @constant)

(preproc_else
  (declaration
    (type_qualifier
      [
        "const"
        "constexpr"
      ])
    declarator: (init_declarator
      declarator: [
        (identifier) @name
        (pointer_declarator declarator: (identifier) @name)
        (array_declarator declarator: (identifier) @name)
        (pointer_declarator
          declarator: (array_declarator declarator: (identifier) @name))
      ])) @constant)

(template_declaration
  (declaration
    declarator: (init_declarator
      declarator: (identifier) @name))) @constant

(field_declaration
  (type_qualifier
    [
      "const"
      "constexpr"
    ])
  declarator: [
    (field_identifier) @name
    (array_declarator declarator: (field_identifier) @name)
    (pointer_declarator declarator: (field_identifier) @name)
  ]
  default_value: (_)) @constant

;; references

(call_expression
  function: [
    (identifier) @call
    (template_function name: (identifier) @call)
    (field_expression
      field: [
        (field_identifier) @call
        (template_method name: (field_identifier) @call)
        (dependent_name
          (template_method name: (field_identifier) @call))
      ])
    (qualified_identifier
      name: [
        (identifier) @call
        (template_function name: (identifier) @call)
      ])
    (qualified_identifier
      name: (qualified_identifier
        name: [
          (identifier) @call
          (template_function name: (identifier) @call)
        ]))
    (qualified_identifier
      name: (qualified_identifier
        name: (qualified_identifier
          name: [
            (identifier) @call
            (template_function name: (identifier) @call)
          ])))
  ])

(new_expression
  type: [
    (type_identifier) @call
    (template_type name: (type_identifier) @call)
    (qualified_identifier
      name: [
        (type_identifier) @call
        (template_type name: (type_identifier) @call)
        (qualified_identifier
          name: [
            (type_identifier) @call
            (template_type name: (type_identifier) @call)
          ])
      ])
  ])

(compound_literal_expression
  type: [
    (type_identifier) @call
    (template_type name: (type_identifier) @call)
    (qualified_identifier
      name: [
        (type_identifier) @call
        (template_type name: (type_identifier) @call)
        (qualified_identifier
          name: [
            (type_identifier) @call
            (template_type name: (type_identifier) @call)
          ])
      ])
  ])

(preproc_include
  path: [
    (system_lib_string) @import
    (string_literal (string_content) @import)
  ])

(using_declaration
  [
    (identifier) @imported
    (qualified_identifier) @imported
  ])

(base_class_clause
  [
    (type_identifier) @inherit
    (template_type name: (type_identifier) @inherit)
    (qualified_identifier
      name: [
        (type_identifier) @inherit
        (template_type name: (type_identifier) @inherit)
        (qualified_identifier
          name: [
            (type_identifier) @inherit
            (template_type name: (type_identifier) @inherit)
          ])
      ])
  ])

; class MACRO Name : public Base
((function_definition
  type: [
    (class_specifier !body)
    (struct_specifier !body)
  ]
  declarator: (identifier)
  (ERROR (identifier) @inherit))
  (#not-eq? @inherit "final"))

(function_definition
  type: [
    (class_specifier !body)
    (struct_specifier !body)
  ]
  (ERROR (identifier))
  declarator: (template_function name: (identifier) @inherit))

(parameter_declaration type: (type_identifier) @type)
(optional_parameter_declaration type: (type_identifier) @type)
(field_declaration type: (type_identifier) @type)
(function_definition type: (type_identifier) @type)
(declaration type: (type_identifier) @type)
(type_descriptor type: (type_identifier) @type)
(template_type name: (type_identifier) @type)
(qualified_identifier name: (type_identifier) @type)
