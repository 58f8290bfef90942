# shellcheck shell=bash
# gate.sh: runs test programs side by side and judges them; ./dev sources it.
#
# A program passes only if its exit status is 0 (a sanitizer's report may change only that), tests
# passed, none failed, and none was skipped except for a reason that may_skip knows. This holds for
# cmocka programs, pytest, and programs whose last line is `N passed, N failed`. $logs is the directory
# of their logs, $tests that of the tests.

logs=${logs:-.} tests=${tests:-tests}
at_once=$(nproc) niceness=0
passed=0 failed=0 skipped=0
started=()

say() { printf '%s\n' "$*" >&2; }

# may_skip LINE: true if its reason to skip a test applies here. cmocka gives no reason, so no skips.
may_skip() {
	case $1 in
	*"a sanitizer's memory says nothing" | *"a sanitizer do not run within the unit's limits")
		[ -n "${sanitized-}" ]
		;;
	*"only root can boot a machine to test the units in" | *"only root can be another user")
		[ "$(id -u)" != 0 ]
		;;
	*"systemd-nspawn cannot boot here: "*) # nor in the system of `./dev elsewhere`
		[ -n "${ELSEWHERE-}" ] || ! unshare --mount mount -t tmpfs none /mnt 2>/dev/null
		;;
	*"no file system can be mounted: "*)
		! unshare --mount mount -t tmpfs none /mnt 2>/dev/null # as in an unprivileged container
		;;
	*"no clock of its own can be made")
		! unshare --time true 2>/dev/null
		;;
	*) false ;;
	esac
}

# select_tests NAME...: maps the source of each named test below $tests to its arguments for a run,
# in $selected. A name is a directory, a program, a Python file or FILE::TEST; without names, all
# tests.
select_tests() {
	local name path file part found
	local -A names=()
	declare -gA selected=()
	for path in "$tests"/*/test_*.{c,py} "$tests"/fuzz/*.c; do
		[ -e "$path" ] || continue
		file=${path#"$tests/"}
		file=${file%.*}
		names[$path]=${file/\// }
		names[$path]=${names[$path]/#fuzz /fuzz fuzz_}
		[ $# != 0 ] || selected[$path]=$path
	done
	for name; do
		file=${name%%::*} part=${name#"${name%%::*}"} found=
		for path in "${!names[@]}"; do
			[[ " ${names[$path]} " = *" $file "* ]] || continue
			[ -z "$part" ] || [ "${path##*.}" = py ] || continue
			selected[$path]+=" $path$part" found=1
		done
		[ -z "$found" ] || continue
		say "$name is not a test. Tests are:"
		printf '%s\n' "${names[@]}" | tr ' ' '\n' | sort -u | fmt -w 100 >&2
		return 1
	done
}

# start NAME COMMAND...: runs it in the background, at most $at_once at a time, $niceness nicer.
start() {
	while [ "$(jobs -pr | wc -l)" -ge "$at_once" ]; do wait -n || true; done
	say "== $1"
	started+=("$1")
	rm -f "$logs/$1.status"
	run "$@" &
}

run() {
	local status=0
	renice -n "$(($(nice) + niceness))" "$BASHPID" >/dev/null
	"${@:2}" >"$logs/$1.log" 2>&1 </dev/null || status=$?
	echo "$status" >"$logs/$1.status"
}

# judge_all: waits for all programs and judges them. Counts in $passed, $failed, $skipped.
judge_all() {
	local name
	wait
	for name in "${started[@]}"; do judge "$name"; done
}

judge() {
	local log=$logs/$1.log status summary good bad left excused
	status=$(cat "$logs/$1.status" 2>/dev/null || echo none)
	summary=$(grep -E '^[0-9]+ (passed|failed|skipped|errors?)\b' "$log" | tail -n 1 || true)
	left=$(number skipped) excused=$(excused)
	good=$(($(number passed) + $(lines '^\[       OK \]')))
	bad=$(($(number failed) + $(number 'errors?') + left - excused +
		$(lines '^\[ RUN      \]') - $(lines '^\[       OK \]')))
	if [ "$bad" = 0 ] && { [ "$status" != 0 ] || [ $((good + excused)) = 0 ]; }; then bad=1; fi
	passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + excused))
	[ "$bad" = 0 ] || complain "$1"
}

# number WORD: the number before the word in $summary.
number() { grep -Eo "[0-9]+ $1\b" <<<"$summary" | cut -d' ' -f1 | grep . || echo 0; }

# lines PATTERN: the number of lines of $log that match.
lines() { grep -Ec "$1" "$log" || true; }

# excused: the number of skipped tests in $log that may skip. pytest prints `SKIPPED [2] FILE:LINE: reason`.
excused() {
	local line sum=0 times
	while read -r line; do
		times=${line#SKIPPED [}
		if may_skip "$line"; then sum=$((sum + ${times%%]*})); fi
	done < <(grep '^SKIPPED \[' "$log")
	echo "$sum"
}

complain() {
	say "== $1: exit status $status, $good passed, $bad failed, $left skipped, $excused of them for a known reason"
	grep -Ei -A3 'FAIL|ERROR|^not ok|^SKIPPED' "$log" | head -n 60 >&2 || true
	say "-- the end of $log"
	tail -n 30 "$log" >&2
}

# end_jobs: ends all programs, with their children under `set -m`. For an EXIT trap under `set -e`, whose
# last status is the shell's: a listed program that has already ended is not a failure.
end_jobs() {
	local job
	for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
}
