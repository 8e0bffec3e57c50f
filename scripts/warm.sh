#!/bin/sh
# Compiles once what three test workers and hundreds of child processes would each compile again: Satchel itself and the
# tests with their rewritten assertions.
set -u
python=$1
"$python" -m compileall -q src || exit 1
told=$("$python" -m pytest --collect-only -qq 2>&1) && exit 0
echo "$told"
exit 1
