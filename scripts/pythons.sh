#!/bin/sh
# Runs the tests on each Python from 3.11 to 3.14 that is found here, each in its own virtual environment (.venv-3.12 …),
# and says at the end which passed, which failed and which were not found. Arguments go to pytest; without any, the whole
# suite runs. PYTHONS="3.12 3.13" chooses other versions. A version that is not found is no failure, unless none is.
set -u
cd "$(dirname "$0")/.." || exit 1
MAX_RUN=40m # a suite takes 6 to 15 minutes on two cores, so one that is not done by then hangs
limit=""
command -v timeout >/dev/null 2>&1 && limit="timeout $MAX_RUN" # macOS has none
REPORT=build/pythons.txt
mkdir -p build
: >"$REPORT"

# pyenv puts a shim on PATH for each version it has installed, and a shim of a version that is not switched on only
# fails: so each candidate is asked for its version.
find_python() {
    for candidate in "$(command -v "python$1")" "$(pyenv root 2>/dev/null)"/versions/"$1".*/bin/python \
        "$HOME"/.pyenv/versions/"$1".*/bin/python "/usr/local/bin/python$1" "/usr/bin/python$1"; do
        [ -x "$candidate" ] || continue
        "$candidate" -c "import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null || continue
        echo "$candidate"
        return
    done
    return 1
}

failed=0
found=0
for version in ${PYTHONS:-3.11 3.12 3.13 3.14}; do
    python=$(find_python "$version") || { echo "Python $version: not found, not tested" >>"$REPORT"; continue; }
    found=1
    name="Python $("$python" -c 'import platform; print(platform.python_version())')"
    echo "== $name ($python) in .venv-$version"
    if ! make --no-print-directory setup VENV=".venv-$version" PYTHON="$python"; then
        echo "$name: FAILED, its packages could not be installed" >>"$REPORT"
        failed=1
        continue
    fi
    log=build/pytest-$version.log
    # Through a file and not `| tee`, whose exit code would hide that of pytest.
    $limit ".venv-$version/bin/python" -m pytest -n 3 "$@" >"$log" 2>&1
    code=$?
    cat "$log"
    case $code in
        0) echo "$name: $(tail -n 1 "$log")" >>"$REPORT" ;;
        124) echo "$name: FAILED, not done after $MAX_RUN; see $log" >>"$REPORT"; failed=1 ;;
        *) echo "$name: FAILED, $(tail -n 1 "$log"); see $log" >>"$REPORT"; failed=1 ;;
    esac
done
echo
cat "$REPORT"
[ "$found" = 1 ] || { echo "no Python was found: install one with pyenv, or put it on PATH as python3.12" >&2; exit 1; }
exit "$failed"
