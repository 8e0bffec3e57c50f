; Bash: functions however they are written, and the variables a script sets at its top.

(function_definition
  name: (word) @name
  body: (_) @body) @function

(program
  (variable_assignment name: (variable_name) @name) @constant)

(program
  (declaration_command
    (variable_assignment name: (variable_name) @name)) @constant)

; bats: @test "name" { reads as a command that has only its first line.
((command
  name: (command_name) @_test
  argument: [
    (string (string_content) @name)
    (raw_string) @name
  ]) @function
  (#eq? @_test "@test"))

;; references

((command name: (command_name (word) @call))
  (#match? @call "^[A-Za-z_]"))

((command
  name: (command_name) @_source
  .
  argument: [
    (word)
    (string)
    (raw_string)
    (concatenation)
  ] @import)
  (#match? @_source "^(source|\\.|load)$"))
