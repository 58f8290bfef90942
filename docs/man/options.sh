#!/bin/sh
# options.sh PROGRAM: what a program says of its options, for its manual page: by --print-manual-options (the
# daemon), else in its --help.
set -eu

program=$1

# Lines "  -o, --option VALUE   meaning", and deeper ones that go on with it, as paragraphs with tags.
from_help() {
	"$program" --help | awk '
		function roff(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); return text }
		match($0, /^ +(-[a-zA-Z], )?--[a-z-]+( [A-Z][A-Z,]*)?(, --[a-z]+)?/) {
			tag = substr($0, 1, RLENGTH); text = substr($0, RLENGTH + 1)
			sub(/^ +/, "", tag); sub(/^ +/, "", text)
			print ".TP\n.B " roff(tag); print roff(text == "" ? "Say so, and exit." : text)
			inside = 1; next
		}
		inside && match($0, /^ +/) && RLENGTH >= 20 { sub(/^ +/, ""); print roff($0); next }
		{ inside = 0 }'
}

case $program in
*/convolved) "$program" --print-manual-options ;;
*) from_help ;;
esac
