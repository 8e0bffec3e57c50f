#!/usr/bin/env bash
# Packs a crate and sends it off.
set -euo pipefail

source lib/colours.sh
. "$ROOT/lib/retry.sh"

readonly MAX_CRATES=12
declare -r LABEL="crate"
export CRATE_HOME="${HOME}/crates"
queue=()

# Prints a line in the colour of warnings.
warn() {
  local text="$1"
  printf '%s\n' "$text" >&2
}

function weigh {
  local crate="$1"
  du -s "$crate" | awk '{ print $1 }'
}

function pack::all() {
  local crate
  for crate in "${queue[@]}"; do
    retry 3 seal "$crate" || warn "could not seal $crate"
  done
}

in_folder() (
  cd "$1"
  pack::all
)

if command -v tar >/dev/null; then
  seal() {
    tar -czf "$1.tgz" "$1"
  }
fi

main() {
  [[ $# -gt 0 ]] || { warn "nothing to pack"; return 1; }
  queue=("$@")
  in_folder "$CRATE_HOME"
  echo "$(weigh "$CRATE_HOME")"
}

main "$@"
