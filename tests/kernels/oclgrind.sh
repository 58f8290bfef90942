#!/usr/bin/env bash
# oclgrind.sh BUILD: runs all kernels of the test programs in BUILD under Oclgrind, and fails if it has
# findings: data races, uninitialised reads.
set -eu
build=$1 status=0

# under_oclgrind PROGRAM OPTION...: with the options in $checks.
under_oclgrind() {
	printf '%s\n' "== oclgrind ${checks[*]} $*" >&2
	local findings=$build/oclgrind.findings log=$build/oclgrind.log program=$build/$1
	shift
	rm -f "$findings"
	if ! oclgrind "${checks[@]}" --log "$findings" "$program" "$@" >"$log" 2>&1; then
		grep -E '^not ok|FAILED' "$log" >&2 || tail -n 5 "$log" >&2
		status=1
		return
	fi
	# Oclgrind places private variables anywhere, also vectors of 24 elements, whose type is aligned.
	awk -v RS= -v ORS='\n\n' '!/not aligned to the pointed type/' "$findings" >"$findings.real"
	[ ! -s "$findings.real" ] || status=1
	head -n 30 "$findings.real" >&2
}

# Optimised code has intrinsics that Oclgrind lacks, and after optimisation Oclgrind 21.10 reports false
# uninitialised values for vectors. Image objects: see test_classic.c. For uninitialised values of JPEGs
# Oclgrind poisons buffers.
built=(--build-options '-cl-opt-disable -disable-llvm-passes')
checks=(--data-races "${built[@]}")
under_oclgrind test_kernels --copy --most 30 --every 13
under_oclgrind test_classic --copy --most 30 --every 13
under_oclgrind test_jpeg --brief
under_oclgrind test_jpeg_tiles --brief
checks=(--uninitialized "${built[@]}")
under_oclgrind test_kernels --copy --most 30 --every 13 --no-images
under_oclgrind test_classic --copy --most 30 --every 13 --no-images
[ "$status" = 0 ] && echo "oclgrind.sh: Oclgrind found nothing"
