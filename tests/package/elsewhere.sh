#!/usr/bin/env bash
# elsewhere.sh SUITE [NAME...]: builds, runs and tests the commit on another Debian or Ubuntu.
# elsewhere.sh SUITE package [OPTION...]: builds and checks its packages there, for build-packages-SUITE.
# CONVOLVED_ROOT is the directory that keeps that system for the next time. Its processes end with the command.
# They run as root, which tests of sandboxes need.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/package/bootstrap.sh
. "$top/tests/package/bootstrap.sh"
die() { printf '%s\n' "$*" >&2; exit 1; }

suite=${1-}
[ -n "$suite" ] || die "usage: ./dev elsewhere SUITE [NAME...] or SUITE package [OPTION...]; SUITE is a release, such as trixie"
shift
[ "$(id -u)" = 0 ] || die "only root can install another Debian"
other=${CONVOLVED_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/convolved/$suite}
bootstrap "$suite" "$other"
rm -rf "$other/convolved"
git clone -q --depth 1 "file://$top" "$other/convolved"
cp /etc/resolv.conf "$other/etc/resolv.conf"
apt-config dump Acquire >"$other/etc/apt/apt.conf.d/host" # proxies and the like
# shellcheck disable=SC2016
unshare --mount --pid --fork --kill-child --propagation slave bash -eu -c '
	mount --bind "$1" "$1" # tests that mount need a root that is a mount point
	cd "$1"
	shift
	mount -t proc proc proc
	mount --rbind /sys sys
	mount --rbind /dev dev
	mount -t tmpfs tmpfs tmp
	chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ELSEWHERE=1 \
		bash -c "cd /convolved && if [ \"\${1-}\" = package ]; then ./dev \"\$@\"; else ./dev run --once && ./dev test \"\$@\"; fi" \
		elsewhere "$@"
' elsewhere "$other" "$@"
if [ "${1-}" = package ]; then
	rm -rf "$top/build-packages-$suite"
	mkdir "$top/build-packages-$suite"
	find "$other/convolved/build-packages" -maxdepth 1 -type f -exec cp -t "$top/build-packages-$suite" {} +
	[ ! -d "$other/convolved/build-packages/next" ] ||
		CONVOLVED_ROOT=$other-fresh "$top/tests/package/run.sh" "$other/convolved/build-packages" "$suite"
fi
