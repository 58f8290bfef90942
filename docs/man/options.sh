#!/bin/sh
# options.sh PROGRAM: prints a program's description of its options, for its manual page: from its
# sample file (the daemon), else from its --help.
set -eu

program=$1
roff='function roff(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); return text }'

# "# About.", "[section]" and "# About.", "# Valid: ….", "#name=default" as sections and paragraphs with tags.
from_sample() {
	echo .SH OPTIONS
	"$program" --print-config | awk "$roff"'
		/^\[/ { print ".SS " $0; print roff(about) }
		/^#[A-Za-z]/ { sub(/=.*/, "="); print ".TP\n.B " roff(substr($0, 2)); print roff(about); print roff(valid) }
		/^# Valid: / { valid = substr($0, 3); next }
		/^# / { about = substr($0, 3) }'
}

# Lines "  -o, --option VALUE   meaning", and deeper ones that go on with it, as paragraphs with tags.
from_help() {
	"$program" --help | awk "$roff"'
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
*/convolved) from_sample ;;
*) from_help ;;
esac
