#!/bin/sh
# Runs commands at the same time, so that no core waits, and fails if one of them does.
set -u
running=""
trap 'kill $running 2>/dev/null; exit 130' INT TERM
for command in "$@"; do
    sh -c "$command" &
    running="$running $!"
done
failed=0
for one in $running; do wait "$one" || failed=1; done
exit "$failed"
