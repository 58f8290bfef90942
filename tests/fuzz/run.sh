#!/usr/bin/env bash
# run.sh SECONDS [NAME...]: runs the fuzz targets beside it, all or these, for so long each, as many at a
# time as there are cores (CORES), and prints LEDGER.md's row of each. What it finds is in found/.
set -eu

cd "$(dirname "$0")"
seconds=$1; shift
[ $# != 0 ] || set -- $(ls -1 ./fuzz_* | sed 's/.*fuzz_//')
[ ! -d lib ] || export LD_LIBRARY_PATH=$PWD/lib

# one NAME: runs a target, begun with the repository's corpus and what earlier runs found here.
one() {
	local name=$1 options=() dir=found/$1
	mkdir -p "$dir/corpus" "$dir/crashes"
	[ ! -f "$name.dict" ] || options+=("-dict=$name.dict")
	[ ! -f "$name.options" ] || read -ra options2 <"$name.options"
	"./fuzz_$name" "${options[@]}" ${options2+"${options2[@]}"} -max_total_time="$seconds" -timeout=20 -print_final_stats=1 \
		-artifact_prefix="$dir/crashes/" "$dir/corpus" $(ls -d "corpus/$name" 2>/dev/null) >"$dir/log" 2>&1 || true
	awk -v name="$name" -v finds="$(find "$dir/crashes" -type f | wc -l)" '
		/ cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "corp:") corpus = $(i + 1) } }
		/number_of_executed_units/ { runs = $2 }
		/average_exec_per_sec/ { rate = $2 }
		END { sub("/.*", "", corpus); printf "| %s | %d | %d | %d | %d | %d |\n", name, runs, rate, cov, corpus, finds }' "$dir/log"
}

export -f one
export seconds
printf '%s\n' "$@" | xargs -P "${CORES:-$(nproc)}" -I{} bash -c 'one {}' | sort
