#!/bin/sh
# page.sh TEMPLATE VERSION SYSCONFDIR PROGRAM: a manual page from a template: the version, the folder, and in
# the place of @OPTIONS@ what the program says of its options.
set -eu

options=$(mktemp)
trap 'rm -f "$options"' EXIT
grep -q '^@OPTIONS@' "$1" && "$4" --print-manual-options >"$options"
sed -e "s,@VERSION@,$2,; s,@sysconfdir@,$3," -e "/^@OPTIONS@/{r $options
d}" "$1"
