#!/usr/bin/env bash
# dist.sh TARBALL: tries what `make dist` has made: what is in it, a build of the client with nothing but its
# libraries, and an installation over another. CFLAGS and the like are those of configure.
set -eu

tarball=$(realpath "$1")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

fail() {
	echo "failed: $*" >&2
	exit 1
}

tar xf "$tarball"
source=$(echo "$directory"/convolved-*)
for file in debian/control debian/rules debian/source/format debian/tests/service debian/convolved.postrm; do
	[ -f "$source/$file" ] || fail "$file is not in the tarball"
done
[ -x "$source/debian/rules" ] || fail "debian/rules cannot be run"
left=$(find "$source" -name __pycache__ -o -name '*.pyc')
[ -z "$left" ] || fail "in the tarball there is $left"

# Another machine's programs cannot be run: their stand-ins here are newer than their sources, as they would be.
mkdir cross
cd cross
"$source/configure" -q
for program in convolved convolve convolved-bench; do
	printf '#!/bin/sh\necho "%s was run" >&2\nexit 126\n' "$program" >"$program"
	chmod +x "$program"
done
pages="convolve.1 convolved.8 convolved.conf.5 convolved-bench.1"
for page in $pages; do
	make -s "docs/man/$page" -o convolved -o convolve -o convolved-bench >log 2>&1 || fail "$page needs programs: $(cat log)"
	grep -q '^\.SH OPTIONS' "docs/man/$page" || fail "$page has no options"
done
for page in convolve.1 convolved.conf.5 convolved-bench.1; do
	[ "$(grep -c '^\.TP' "docs/man/$page")" -gt 10 ] || fail "$page lacks the options of its program"
done
cd ..

# Nothing but these is there.
mkdir libraries client
for library in libcurl jansson; do
	ln -s "$(pkg-config --variable=pcfiledir $library)/$library.pc" libraries
done
cd client
export PKG_CONFIG_LIBDIR=$directory/libraries
"$source/configure" -q --disable-daemon --disable-sanitize --prefix=/usr
unset PKG_CONFIG_LIBDIR
make -s -j "$(nproc)"
make -s install DESTDIR="$directory/root" >/dev/null
"$directory/root/usr/bin/convolve" --version >/dev/null || fail "the client does not run"
found=$(cd "$directory/root" && find . -type f -path '*bin/*')
[ "$found" = ./usr/bin/convolve ] || fail "with the client alone this is installed: $found"
[ -z "$(find "$directory/root" -name '*.conf')" ] || fail "the client has brought a configuration"
[ -e "$directory/root/usr/share/man/man1/convolve.1" ] || fail "the client has no manual page"
cd ..

# The configuration that an administrator has changed, and one that he has not.
cd cross
rm -f convolved convolve convolved-bench
file=$directory/all/usr/local/etc/convolved/convolved.conf
make -s install-data-local DESTDIR="$directory/all" >/dev/null
cmp -s "$file" "$source/etc/convolved.conf" || fail "no configuration is installed"
echo '# mine' >>"$file"
cp -p "$file" mine
make -s install-data-local uninstall-local DESTDIR="$directory/all" >/dev/null
cmp -s "$file" mine || fail "the configuration has been overwritten"
cp "$source/etc/convolved.conf" "$file"
make -s uninstall-local DESTDIR="$directory/all" >/dev/null
[ ! -e "$file" ] || fail "an unchanged configuration is left"
echo "the tarball is as it should be"
