# shellcheck shell=bash
# fuzz.sh: builds and runs the fuzz targets, and tests of kernels compiled as C; ./dev sources it. $top is
# the source, $build the build directory; configure() is dev's.

top=${top:-.} build=${build:-build}

# Modules below daemon/ that a target of tests/fuzz is linked with, beside the libraries.
declare -A fuzz_modules=([remote]="front/api/remote front/jobs/fair front/jobs/shares" [jpeg]=../tests/lib/jpegs
	[aws]="../client/aws ../client/ini ../client/place ../client/report ../client/xml"
	[jpeg_kernels]="device/jpeg device/jpeg_decode device/jpeg_encode ../tests/lib/jpegs ../tests/lib/opencl_on_host")
# Slow targets make fewer runs, with inputs that are not small at first.
declare -A fuzz_options=([jpeg_kernels]="-runs=200 -len_control=0 -max_len=60" [gather]=-runs=3000 [png]=-runs=6000)

# clang_libraries: builds the libraries that programs by clang_sanitized are linked with.
clang_libraries() {
	(
		flock 9
		configure "$build/clang" CC=clang CFLAGS='-g -O1' --enable-sanitize=fuzzer-no-link,address,undefined
		make -s -C "$build/clang" -j "$(nproc)" libcodec.a libcommon.a libfront.a libhttp.a liblink.a
	) 9>"$build/clang.lock"
}

# clang_sanitized SANITIZERS ARGUMENT...: runs clang with the flags of tests that look for undefined behaviour.
clang_sanitized() {
	# shellcheck disable=SC2046
	clang -D_GNU_SOURCE -DCL_TARGET_OPENCL_VERSION=120 -std=gnu11 -g -O1 "-fsanitize=$1" -fno-sanitize-recover=all \
		"-I$top" "-I$top/daemon" "-I$top/kernels" "-I$top/tests/lib" $(pkg-config --cflags vips) -rdynamic "${@:2}" \
		"$build"/clang/lib{front,codec,http,link,common}.a -lm -lz \
		$(pkg-config --libs glib-2.0 jansson sqlite3 libsystemd libseccomp libcurl libjpeg libexif libwebp libwebpdemux libwebpmux libdeflate libisal libbrotlidec vips)
}

# fuzz_kernels: compiles kernels/jpeg/ as C, for jpeg_kernels.
fuzz_kernels() {
	rm -rf "$build/fuzz_kernels"
	mkdir -p "$build/fuzz_kernels"
	for stage in "$top"/kernels/jpeg/*.cl; do
		name=$(basename "$stage" .cl)
		[ "$name" != common ] || continue
		# Otherwise each stage would define the constant of jpeg/common.cl.
		cat "$top"/kernels/{border.h,common.cl,jpeg/image.h,jpeg/common.cl} "$stage" |
			clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -DPIXEL=uchar \
				-DPIXEL_MAX=255.0f "-Dby_column=by_column_$name" -w -g -O1 \
				-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
				-c - -o "$build/fuzz_kernels/$name.o" || return 1
	done
}

# fuzz_build NAME: builds tests/fuzz/NAME.c.
fuzz_build() {
	modules=()
	for module in ${fuzz_modules[$1]-}; do modules+=("$top/daemon/$module.c"); done
	if [ "$1" = jpeg_kernels ]; then
		fuzz_kernels || return 1
		modules+=("$build"/fuzz_kernels/*.o)
	fi
	clang_libraries &&
		clang_sanitized fuzzer,address,undefined -o "$build/fuzz_$1" "$top/tests/fuzz/$1.c" "${modules[@]}"
}

fuzz_briefly() {
	# shellcheck disable=SC2086
	fuzz_build "$1" &&
		"$build/fuzz_$1" -dict="$top/tests/fuzz/$1.dict" -timeout=20 -runs=20000 ${fuzz_options[$1]-} &&
		echo "1 passed"
}

# mma_test: builds and runs tests/kernels/test_mma.c, which has kernels compiled as C.
mma_test() {
	mkdir -p "$build/mma"
	clang_libraries &&
		clang_sanitized address,undefined -o "$build/mma/test_mma" \
			"$top"/tests/kernels/test_mma.c "$top"/tests/lib/{opencl,warps}_on_host.c \
			"$top"/daemon/device/plan/{half_error,variant,weights}.c "$top/daemon/device/cl/source.c" \
			"$build/kernels_embedded.c" &&
		"$build/mma/test_mma" "$top/kernels" "$build/mma"
}
