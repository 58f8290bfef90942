#!/usr/bin/env bash
# elsewhere.sh SUITE [NAME...]: builds, runs and tests the commit on another Debian. CONVOLVED_ROOT is the
# directory that keeps that system for the next time. Its processes end with the command. They run as
# root, which tests of sandboxes need.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
die() { printf '%s\n' "$*" >&2; exit 1; }

suite=${1-}
[ -n "$suite" ] || die "usage: ./dev elsewhere SUITE [NAME...]; SUITE is a Debian release, such as trixie"
shift
[ "$(id -u)" = 0 ] || die "only root can install another Debian"
other=${CONVOLVED_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/convolved/$suite}
if [ ! -d "$other" ]; then
	mkdir -p "$(dirname "$other")"
	rm -rf "$other.part"
	debootstrap --variant=minbase "$suite" "$other.part" >&2
	mv "$other.part" "$other"
fi
rm -rf "$other/convolved"
mkdir "$other/convolved"
git -C "$top" archive HEAD | tar x -C "$other/convolved"
cp /etc/resolv.conf "$other/etc/resolv.conf"
cp -r /etc/apt/apt.conf.d/. "$other/etc/apt/apt.conf.d"
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
		sh -c "cd /convolved && ./dev run --once && ./dev test \"\$@\"" elsewhere "$@"
' elsewhere "$other" "$@"
