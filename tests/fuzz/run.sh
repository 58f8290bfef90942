#!/usr/bin/env bash
# run.sh SECONDS [NAME...]: runs the fuzz targets beside it, all or these, for so long each, as many at a
# time as there are cores (CORES), and prints LEDGER.md's row of each. Finds are in found/.
set -eu

cd "$(dirname "$0")"
export seconds=$1
shift
[ $# != 0 ] || set -- ./fuzz_*
[ ! -d lib ] || export LD_LIBRARY_PATH=$PWD/lib

# one TARGET: runs it, begun with the repository's corpus and what earlier runs found here.
one() {
	local name=${1##*fuzz_} options=()
	local dir=found/$name
	local TIMEFORMAT='processor time: %U %S'
	mkdir -p "$dir/corpus" "$dir/crashes"
	[ ! -f "$name.options" ] || read -ra options <"$name.options"
	[ ! -f "$name.dict" ] || options+=("-dict=$name.dict")
	[ ! -d "corpus/$name" ] || options+=("$dir/corpus" "corpus/$name")
	{ time "./fuzz_$name" "-max_total_time=$seconds" -timeout=20 -print_final_stats=1 \
		"-artifact_prefix=$dir/crashes/" "${options[@]}" || true; } >"$dir/log" 2>&1
	awk -v name="$name" -v finds="$(find "$dir/crashes" -type f | wc -l)" '
		/ cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "corp:") corpus = $(i + 1) } }
		/number_of_executed_units/ { runs = $2 }
		/^processor time/ { used = $3 + $4 }
		END {
			sub("/.*", "", corpus)
			printf "| %s | %d | %d | %d | %d | %d |\n", name, runs, used ? runs / used : 0, cov, corpus, finds
		}' "$dir/log"
}
export -f one

printf '%s\n' "$@" | xargs -P "${CORES:-$(nproc)}" -I{} bash -c 'one {}' | sort
