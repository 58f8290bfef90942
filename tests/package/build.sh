#!/usr/bin/env bash
# build.sh DIRECTORY [--try] [--twice] [--repository PLACE]: builds and checks the commit's Debian packages in
# DIRECTORY. --twice builds them again under other circumstances, and compares; --repository puts them into a directory
# for apt; --try installs, upgrades and removes them on a fresh Debian, as root.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
directory=$1
shift
export PATH=/usr/sbin:/usr/bin:/sbin:/bin # Debian's compilers and Python, no others
usage() {
	echo "usage: ./dev package [--try] [--twice] [--repository DIRECTORY]" >&2
	exit 2
}
tried='' twice='' place=''
while [ $# != 0 ]; do
	case $1 in
	--try) tried=1 ;;
	--twice) twice=1 ;;
	--repository)
		place=${2-}
		[ -n "$place" ] || usage
		shift
		;;
	*) usage ;;
	esac
	shift
done

# build DIRECTORY [VERSION]: another version than the commit's serves to try an upgrade.
build() {
	mkdir -p "$1"
	git -C "$top" archive --prefix=convolved/ HEAD | tar x -C "$1"
	if [ -n "${2-}" ]; then
		sed -i "s/^AC_INIT(\[convolved\], \[.*\])/AC_INIT([convolved], [$2])/" "$1/convolved/configure.ac"
		sed -i "1s/(.*)/($2)/" "$1/convolved/debian/changelog"
	fi
	(cd "$1/convolved" && "${under[@]}" dpkg-buildpackage -b -us -uc >"$1/log" 2>&1) ||
		{ tail -n 30 "$1/log" >&2; echo "building the packages failed" >&2; exit 1; }
}

# repository DIRECTORY: adds the packages to those that apt finds in the directory.
repository() {
	mkdir -p "$1"
	cp "$directory"/*.deb "$directory"/*.spdx.json "$1"
	(cd "$1" && apt-ftparchive packages . >Packages && xz -kf Packages &&
		apt-ftparchive -o APT::FTPArchive::Release::Label=convolved release . >.Release && mv .Release Release)
}

# differ DIRECTORY DIRECTORY: fails if both have not the same packages, to the bit.
differ() {
	local deb status=0
	diff <(cd "$1" && ls ./*.deb) <(cd "$2" && ls ./*.deb) >&2 || return 1
	for deb in "$1"/*.deb; do
		cmp "$deb" "$2/${deb##*/}" >&2 || status=1
	done
	return "$status"
}

rm -rf "$directory"
under=(env)
build "$directory"
(cd "$directory" && lintian --profile debian --fail-on error,warning ./*.changes && ls ./*.deb)
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
dpkg-deb -x "$directory"/convolved-doc_*.deb "$unpacked"
/usr/bin/python3 "$top/tests/package/links.py" "$unpacked"
/usr/bin/python3 "$top/tests/package/sbom.py" "$directory"
[ -z "$place" ] || repository "$place"
if [ -n "$twice" ]; then
	# Another day, host, time zone, language, home and path; fewer processes, and no compiler's cache.
	under=(unshare --map-root-user --uts sh -c 'hostname elsewhere && umask 027 && exec "$@"' sh
		env -i PATH="$PATH" HOME=/nonexistent TZ=Pacific/Kiritimati LC_ALL=C DEB_BUILD_OPTIONS='nocheck parallel=1'
		faketime '+400 days')
	build "$directory/twice/other"
	differ "$directory" "$directory/twice/other" || { echo "a second build differs" >&2; exit 1; }
	echo "a second build is the same, to the bit"
fi
[ -n "$tried" ] || exit 0
repository "$directory/repository"
under=(env DEB_BUILD_OPTIONS=nocheck)
build "$directory/next" 99.0.0
[ -n "${ELSEWHERE-}" ] || "$top/tests/package/run.sh" "$directory" # elsewhere.sh boots it outside
