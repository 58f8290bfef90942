# shellcheck shell=bash
# gate.sh: runs test programs side by side and judges them; ./dev sources it.
#
# A program has passed only if all that it says agrees: its exit status is 0 (a sanitizer's report may
# change nothing but that), tests passed, none failed, and none was skipped but for a reason that
# may_skip knows. cmocka's programs, pytest and programs whose last line is `N passed, N failed` are
# judged alike. $logs is the directory of their logs.

logs=${logs:-.}
passed=0 failed=0 skipped=0
started=()

say() { printf '%s\n' "$*" >&2; }

# may_skip LINE: true if its reason to skip a test holds here. cmocka's give none: they may not.
may_skip() {
	case $1 in
	*"a sanitizer's memory says nothing" | *"a sanitizer do not run within the unit's limits")
		[ -n "${sanitized-}" ]
		;;
	*"only root can boot a machine to test the units in" | *"only root can be another user")
		[ "$(id -u)" != 0 ]
		;;
	*"systemd-nspawn cannot boot here: "* | *"no file system can be mounted: "*)
		! unshare --mount mount -t tmpfs none /mnt 2>/dev/null # as in an unprivileged container
		;;
	*"no clock of its own can be made")
		! unshare --time true 2>/dev/null
		;;
	*) false ;;
	esac
}

# start NAME COMMAND...: runs it beside others, as many at once as there are processors.
start() {
	while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
	say "== $1"
	started+=("$1")
	rm -f "$logs/$1.status"
	run "$@" &
}

run() {
	local status=0
	"${@:2}" >"$logs/$1.log" 2>&1 </dev/null || status=$?
	echo "$status" >"$logs/$1.status"
}

# judge_all: waits for what was started, and judges it. Counts in $passed, $failed, $skipped.
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

# number WORD: what stands before the word in $summary.
number() { grep -Eo "[0-9]+ $1\b" <<<"$summary" | cut -d' ' -f1 | grep . || echo 0; }

# lines PATTERN: how many lines of $log it fits.
lines() { grep -Ec "$1" "$log" || true; }

# excused: how many skipped tests of $log may be skipped. pytest says `SKIPPED [2] FILE:LINE: reason`.
excused() {
	local line sum=0 times
	while read -r line; do
		times=${line#SKIPPED [}
		if may_skip "$line"; then sum=$((sum + ${times%%]*})); fi
	done < <(grep '^SKIPPED \[' "$log")
	echo "$sum"
}

complain() {
	say "== $1: exit status $status, $good passed, $bad failed, skipped $left, of them $excused for a known reason"
	grep -Ei -A3 'FAIL|ERROR|^not ok|^SKIPPED' "$log" | head -n 60 >&2 || true
	say "-- the end of $log"
	tail -n 30 "$log" >&2
}

# judge_ran PROGRAM: one that is built for the tests and that nothing started is a failure.
judge_ran() {
	case " ${started[*]} " in
	*" $1 "*) ;;
	*)
		say "== $1 is built for the tests, but nothing runs it"
		failed=$((failed + 1))
		;;
	esac
}

# end_jobs: ends what was started, and under `set -m` all that it started. For an EXIT trap, whose last
# status is the shell's under `set -e`: one that has ended by itself, and is still listed, is no failure.
end_jobs() {
	local job
	for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
}
