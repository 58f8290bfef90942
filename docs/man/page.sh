#!/bin/sh
# page.sh TEMPLATE [OPTIONS]: a manual page from a template: the version $VERSION, the directory $SYSCONFDIR, and in
# the place of @OPTIONS@ the file that options.sh has made.
set -eu

sed -e "s,@VERSION@,$VERSION,; s,@sysconfdir@,$SYSCONFDIR," -e "/^@OPTIONS@/{r ${2-/dev/null}
d}" "$1"
