# shellcheck shell=bash
# fuzz.sh: builds and runs the fuzz targets, and tests of kernels compiled as C; ./dev sources it. $top is
# the source, $build the build directory; configure() is dev's.

top=${top:-.} build=${build:-build}

jpeg_modules="device/jpeg device/jpeg_decode device/jpeg_encode ../tests/lib/jpegs ../tests/lib/opencl_on_host"
# Modules below daemon/ that a target of tests/fuzz is linked with, beside the libraries.
declare -A fuzz_modules=([remote]="front/api/remote front/jobs/fair front/jobs/shares" [jpeg]=../tests/lib/jpegs
	[jpeg_kernels]="$jpeg_modules" [jpeg_blocks]="$jpeg_modules")
# Options of targets; and how many brief runs slow ones make.
declare -A fuzz_options=([jpeg_kernels]="-len_control=0 -max_len=60" [workers]="-len_control=10 -max_len=400"
	[decode]="-len_control=0 -max_len=400 -close_fd_mask=2" [jpeg_blocks]="-len_control=0 -max_len=100")
declare -A fuzz_runs=([jpeg_kernels]=200 [gather]=3000 [png]=6000 [workers]=3000 [archive]=5000 [config]=5000 [decode]=1000)

# clang_libraries: builds the libraries that programs by clang_sanitized are linked with.
clang_libraries() {
	(
		flock 9
		configure "$build/clang" CC=clang CFLAGS='-g -O2' --enable-sanitize=fuzzer-no-link,address,undefined
		make -s -C "$build/clang" -j "$(nproc)" libclient.a libcodec.a libcommon.a libfront.a libhttp.a liblink.a || exit
		# The front with its variables in a section, see restore_front() in fuzz.h. Other targets may be linking
		# with it, so that it is replaced as a whole, and only when it has changed.
		[ "$build/clang/libfront.a" -nt "$build/clang/libfront_state.a" ] || exit 0
		objcopy --rename-section .data=front_state --rename-section .data.rel.local=front_state \
			--rename-section .bss=front_state,alloc,load,data,contents \
			"$build/clang/libfront.a" "$build/clang/libfront_state.part" &&
			mv "$build/clang/libfront_state.part" "$build/clang/libfront_state.a"
	) 9>"$build/clang.lock"
}

# clang_sanitized SANITIZERS ARGUMENT...: runs clang with the flags of tests that look for undefined behaviour.
clang_sanitized() {
	# shellcheck disable=SC2046
	clang -D_GNU_SOURCE -DCL_TARGET_OPENCL_VERSION=120 -std=gnu2x -g -O2 "-fsanitize=$1" -fno-sanitize-recover=all -Wl,--as-needed \
		"-I$top" "-I$top/daemon" "-I$top/kernels" "-I$top/tests/lib" $(pkg-config --cflags vips) "${@:2}" \
		"$build"/clang/lib{client,front_state,codec,http,link,common}.a -lm -lz \
		$(pkg-config --libs glib-2.0 jansson sqlite3 libsystemd libseccomp libcurl libjpeg libexif libwebp libwebpdemux libwebpmux libdeflate libisal libbrotlidec vips)
}

# fuzz_kernel OBJECT [-OPTION] STAGE...: compiles stages of kernels/jpeg/ together as C.
fuzz_kernel() {
	local object=$1 option=() sources=()
	shift
	case $1 in -*) option=("$1"); shift ;; esac
	for stage; do sources+=("$top/kernels/jpeg/$stage.cl"); done
	# Each object would define the constant of jpeg/common.cl.
	cat "$top"/kernels/{border.h,common.cl,jpeg/image.h,jpeg/common.cl} "${sources[@]}" |
		clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -DPIXEL=uchar -DPIXEL_MAX=255.0f \
			"-Dby_column=by_column_$(basename "$object" .o)" "${option[@]}" -w -g -O2 \
			-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
			-fno-sanitize-coverage=trace-cmp -c - -o "$object"
}

# fuzz_kernels TARGET: compiles kernels/jpeg/ for it: each stage; for jpeg_blocks, also calls of their parts.
fuzz_kernels() {
	local objects=$build/fuzz_$1 calls=../../tests/fuzz/jpeg_blocks
	rm -rf "$objects"
	mkdir -p "$objects"
	if [ "$1" = jpeg_blocks ]; then
		fuzz_kernel "$objects/decode.o" destuff sync write $calls || return 1
		fuzz_kernel "$objects/encode.o" -DENCODES code $calls || return 1
		set -- idct upsample fdct downsample
	else
		set -- destuff sync write dc idct upsample downsample fdct code merge stuff
	fi
	for stage; do fuzz_kernel "$objects/$stage.o" "$stage" || return 1; done
}

# fuzz_build NAME: builds tests/fuzz/NAME.c, into $build/fuzz.
fuzz_build() {
	local modules=() flags=() more=()
	for module in ${fuzz_modules[$1]-}; do modules+=("$top/daemon/$module.c"); done
	case $1 in
	jpeg_kernels | jpeg_blocks) # kernels are found by their names; comparisons there are too many to be noted
		fuzz_kernels "$1" || return 1
		modules+=("$build/fuzz_$1"/*.o)
		flags=(-rdynamic -fno-sanitize-coverage=trace-cmp)
		;;
	tuning) # measuring, which is not tried there, needs more modules than are linked
		flags=(-fno-plt "-Wl,--unresolved-symbols=ignore-all")
		;;
	decode) # the front has a module of the same name as the codec worker
		read -ra more <<<"$(pkg-config --libs gmodule-2.0 libtiff-4 libheif libde265 dav1d)"
		modules+=("$build/clang/libcodec.a")
		;;
	esac
	mkdir -p "$build/fuzz"
	clang_libraries &&
		clang_sanitized fuzzer,address,undefined -o "$build/fuzz/fuzz_$1" "${flags[@]}" "$top/tests/fuzz/$1.c" "${modules[@]}" "${more[@]}"
}

# fuzz_lay NAME...: builds targets, and lays all that run.sh needs beside them in $build/fuzz.
fuzz_lay() {
	mkdir -p "$build/fuzz/corpus"
	cp "$top/tests/fuzz/run.sh" "$build/fuzz"
	for name; do
		fuzz_build "$name" || return 1
		rm -rf "$build/fuzz/corpus/$name"
		cp -r "$top/tests/fuzz/corpus/$name" "$build/fuzz/corpus"
		[ ! -f "$top/tests/fuzz/$name.dict" ] || cp "$top/tests/fuzz/$name.dict" "$build/fuzz"
		echo "${fuzz_options[$name]-}" >"$build/fuzz/$name.options"
	done
}

# fuzz_pack FILE: packs what fuzz_lay made, with its libraries but the C library's, for run.sh elsewhere.
fuzz_pack() {
	mkdir -p "$build/fuzz/lib"
	ldd "$build"/fuzz/fuzz_* | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | sort -u |
		grep -vE '/lib(c|m|dl|rt|pthread|resolv)\.so|ld-linux' | xargs cp -Lt "$build/fuzz/lib"
	for target in "$build"/fuzz/fuzz_*; do strip -g "$target"; done
	tar -C "$build/fuzz" --exclude=found/*/log -cJf "$1" .
}

# fuzz all SECONDS: runs all targets for so long each. fuzz pack FILE: packs them. fuzz NAME OPTION...:
# runs one, with libFuzzer's options. fuzz keep: renews the corpora by what runs have found.
fuzz() {
	local names
	mapfile -t names < <(basename -s .c "$top"/tests/fuzz/*.c)
	case $1 in
	all) fuzz_lay "${names[@]}" && "$build/fuzz/run.sh" "${2:-60}" ;;
	keep) for name in "${names[@]}"; do fuzz_keep "$name"; done ;;
	pack) fuzz_lay "${names[@]}" && fuzz_pack "${2:-$build/fuzz.tar.xz}" ;;
	*) fuzz_build "$1" && fuzz_run "$@" ;;
	esac
}

# fuzz_run NAME OPTION...: runs a target that has been built, begun with its corpus.
fuzz_run() {
	local options=() found=$build/fuzz/found/$1/corpus
	read -ra options <<<"${fuzz_options[$1]-}"
	[ ! -f "$top/tests/fuzz/$1.dict" ] || options+=("-dict=$top/tests/fuzz/$1.dict")
	mkdir -p "$found"
	"$build/fuzz/fuzz_$1" "${options[@]}" -timeout=20 "${@:2}" "$found" "$top/tests/fuzz/corpus/$1"
}

fuzz_briefly() {
	fuzz_build "$1" && fuzz_run "$1" -runs="${fuzz_runs[$1]-20000}" && echo "1 passed"
}

# fuzz_keep NAME: replaces the repository's corpus of a target, but for finds, which have words as names, by
# at most 40 of the inputs that runs here have found, none larger than 1 KB: those that reach most.
fuzz_keep() {
	local kept=$top/tests/fuzz/corpus/$1 found=$build/fuzz/found/$1/corpus merged
	merged=$(mktemp -d)
	mkdir -p "$kept" "$found"
	"$build/fuzz/fuzz_$1" -set_cover_merge=1 -use_counters=0 -max_len=1024 "$merged" "$found" "$kept" 2>/dev/null
	find "$kept" -type f -regex '.*/[0-9a-f]*' -delete
	find "$merged" -type f -size -1025c -printf '%s %p\n' | sort -rn | head -n 40 | cut -d ' ' -f 2 | xargs -r cp -t "$kept"
	rm -r "$merged"
}

# mma_test: builds and runs tests/kernels/test_mma.c, which has kernels compiled as C.
mma_test() {
	mkdir -p "$build/mma"
	# shellcheck disable=SC2046
	clang -D_GNU_SOURCE -DCL_TARGET_OPENCL_VERSION=120 -std=gnu2x -g -O1 -fsanitize=address,undefined \
		-fno-sanitize-recover=all -rdynamic "-I$top" "-I$top/daemon" "-I$top/kernels" "-I$top/tests/lib" \
		-o "$build/mma/test_mma" "$top"/tests/kernels/test_mma.c "$top"/tests/lib/{opencl,warps}_on_host.c \
		"$top"/daemon/device/plan/{half_error,variant,weights}.c "$top/daemon/device/cl/source.c" \
		"$build/kernels_embedded.c" "$build/libcommon.a" $(pkg-config --cflags --libs glib-2.0 jansson) -lm &&
		"$build/mma/test_mma" "$top/kernels" "$build/mma"
}
