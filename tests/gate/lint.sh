#!/usr/bin/env bash
# lint.sh [FILE...]: checks formatting, compilers' warnings, scripts and this project's own rules in the
# whole tree; or formatting and unused names in these files alone.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
status=0

sources() { git ls-files -co --exclude-standard "$@"; }

# format FILE...: checks the formatting of C.
format() { [ $# = 0 ] || clang-format --dry-run -Werror "$@"; }

# unused FILE...: prints unused and undefined Python names, and fails if there are any. Imports marked
# noqa provide fixtures.
unused() {
	[ $# != 0 ] || return 0
	found=$(pyflakes3 "$@" | grep -v 'redefinition of unused' | while IFS=: read -r file line what; do
		sed -n "${line}p" "$file" | grep -q noqa || echo "$file:$line:$what"
	done)
	[ -z "$found" ] || { printf '%s\n' "$found" >&2; false; }
}


if [ $# != 0 ]; then
	mapfile -t c < <(printf '%s\n' "$@" | grep '\.[ch]$')
	mapfile -t python < <(printf '%s\n' "$@" | grep '\.py$')
	format "${c[@]}" || status=1
	unused "${python[@]}" || status=1
	exit "$status"
fi

# clang_checks: checks all C with clang's warnings and .clang-tidy, with configure's flags.
clang_checks() {
	# shellcheck disable=SC2046
	printf '%s\n' $(sed -n 's/^WARNINGS="\(.*\)"$/\1/p' configure.ac) -std=gnu2x -O2 \
		-D_FORTIFY_SOURCE=2 -D_GNU_SOURCE -DCL_TARGET_OPENCL_VERSION=120 '-DLIBEXECDIR=""' \
		'-DPACKAGE_STRING=""' '-DPACKAGE_VERSION=""' -I. -Idaemon -Ikernels -Itests/lib \
		-Itests/kernels $(pkg-config --cflags $(sed -n \
			's/^[[:space:]]*PKG_CHECK_MODULES(\[[A-Z]*\], \[\([^ ]*\) .*/\1/p' configure.ac)) \
		>compile_flags.txt # place where clang's tools, and editors', look for them
	sources '*.c' | xargs -n 8 -P "$(nproc)" clang-tidy --quiet \
		2> >(grep -v 'warnings\? generated' >&2)
}

cd "$top"
mapfile -t c < <(sources '*.c' '*.h')
mapfile -t python < <(sources '*.py')
format "${c[@]}" || status=1
unused "${python[@]}" || status=1
shellcheck -x dev tests/gate/*.sh tests/gate/hooks/* tests/package/*.sh tests/fuzz/*.sh tests/kernels/*.sh debian/tests/python debian/tests/service \
	docs/*.sh docs/man/*.sh etc/container/collect.sh docs/images/make.sh daemon/embed.sh .ci/run client/completion/convolve || status=1
/usr/bin/python3 tests/gate/rooms.py || status=1
/usr/bin/python3 tests/gate/comments.py || status=1
clang_checks || status=1
# Compilers of some devices take the standard's macros alone.
find kernels -name '*.cl' -print0 |
	xargs -0 -n 1 clang -x cl -cl-std=CL1.2 -E -pedantic-errors >/dev/null || status=1
# It misreads the loops of sys/queue.h, and takes a member for a variable.
cppcheck --quiet --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
	--suppress=missingIncludeSystem --suppress=uninitvar --suppress=unknownEvaluationOrder \
	'-DRB_GENERATE(a,b,c,d)=' '-DRB_FOREACH(a,b,c)=while ((a = next(b)))' \
	'-DLIST_FOREACH(a,b,c)=while ((a = next(b)))' \
	'-DTAILQ_FOREACH(a,b,c)=while ((a = next(b)))' \
	-j "$(nproc)" -I. -Idaemon -Ikernels \
	daemon client || status=1
[ "$status" = 0 ] && echo "lint.sh: found nothing" >&2
exit "$status"
