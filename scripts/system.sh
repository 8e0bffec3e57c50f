#!/bin/sh
# What the tests need from the system: Tesseract, which reads scanned pages. Where it cannot be had, its tests are skipped.
set -u
command -v tesseract >/dev/null 2>&1 && exit 0
command -v apt-get >/dev/null 2>&1 || { echo "no apt-get: install tesseract-ocr to test it"; exit 0; }
if [ "$(id -u)" = 0 ]; then as_root=""; elif sudo -n true 2>/dev/null; then as_root="sudo -n"; else
    echo "not root: install tesseract-ocr to test it"; exit 0
fi
install() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tesseract-ocr >/dev/null 2>&1; }
install || { $as_root apt-get update -qq >/dev/null 2>&1; install; } || echo "tesseract-ocr could not be installed: its tests are skipped"
exit 0
