#!/bin/sh
# What the tests need from the system: Tesseract, which reads scanned pages, Chromium, in which the inspector is tried,
# and PgBouncer, behind which the store in PostgreSQL is tried; with "bench", what peers on the scoreboard need. Where one
# cannot be had, its tests are skipped, its peer left out.
set -u
PATH="$PATH:/usr/sbin"  # where Debian puts PgBouncer, and few users look
programs="tesseract:tesseract-ocr chromium:chromium pgbouncer:pgbouncer"
[ "${1:-}" != bench ] || programs="rg:ripgrep node:nodejs npm:npm"
wanted=""
for program in $programs; do
    command -v "${program%%:*}" >/dev/null 2>&1 || wanted="$wanted ${program#*:}"
done
[ -n "$wanted" ] || exit 0
command -v apt-get >/dev/null 2>&1 || { echo "no apt-get: install $wanted to test with it"; exit 0; }
if [ "$(id -u)" = 0 ]; then as_root=""; elif sudo -n true 2>/dev/null; then as_root="sudo -n"; else
    echo "not root: install $wanted to test with it"; exit 0
fi
install() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1; }
updated=""
for package in $wanted; do
    if install "$package"; then
        # The tests start one of their own; Debian's service is not wanted.
        [ "$package" != pgbouncer ] || $as_root systemctl disable --now pgbouncer >/dev/null 2>&1
        continue
    fi
    [ -n "$updated" ] || { $as_root apt-get update -qq >/dev/null 2>&1; updated=yes; }
    install "$package" || echo "$package could not be installed: what needs it is skipped"
done
exit 0
