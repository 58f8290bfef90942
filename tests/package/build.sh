#!/usr/bin/env bash
# build.sh DIRECTORY [--try]: builds the commit's Debian packages in DIRECTORY; with --try, also installs,
# upgrades and removes them on a fresh Debian, as root.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
directory=$1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin # Debian's compilers and Python, not others

# build DIRECTORY [VERSION]: another version than the commit's serves to try an upgrade.
build() {
	mkdir -p "$1"
	git -C "$top" archive --prefix=convolved/ HEAD | tar x -C "$1"
	if [ -n "${2-}" ]; then
		sed -i "s/^AC_INIT(\[convolved\], \[.*\])/AC_INIT([convolved], [$2])/" "$1/convolved/configure.ac"
		sed -i "1s/(.*)/($2)/" "$1/convolved/debian/changelog"
	fi
	(cd "$1/convolved" && dpkg-buildpackage -b -us -uc >"$1/log" 2>&1) ||
		{ tail -n 30 "$1/log" >&2; echo "building the packages failed" >&2; exit 1; }
}

rm -rf "$directory"
build "$directory"
(cd "$directory" && lintian --fail-on error,warning ./*.changes && ls ./*.deb)
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
dpkg-deb -x "$directory"/convolved-doc_*.deb "$unpacked"
/usr/bin/python3 "$top/tests/package/links.py" "$unpacked"
[ "${2-}" = --try ] || exit 0
DEB_BUILD_OPTIONS=nocheck build "$directory/next" 99.0.0
"$top/tests/package/run.sh" "$directory"
