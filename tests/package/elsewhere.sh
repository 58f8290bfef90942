#!/usr/bin/env bash
# elsewhere.sh SUITE [ARCHITECTURE] [NAME...]: builds, runs and tests the commit on another Debian or Ubuntu; for another
# architecture, such as arm64, under qemu, where those without a name are the unit tests that it can run.
# elsewhere.sh SUITE package [OPTION...]: builds and checks its packages there, for build-packages-SUITE.
# CONVOLVED_ROOT is the directory that keeps that system for the next time. Its processes end with the command.
# They run as root, which tests of sandboxes need.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/package/bootstrap.sh
. "$top/tests/package/bootstrap.sh"
die() { printf '%s\n' "$*" >&2; exit 1; }

suite=${1-}
[ -n "$suite" ] || die "usage: ./dev elsewhere SUITE [ARCHITECTURE] [NAME...] or SUITE package [OPTION...]; SUITE is a release, such as trixie"
shift
[ "$(id -u)" = 0 ] || die "only root can install another Debian"
foreign=
if [ "${1-}" != "$(dpkg --print-architecture)" ] && dpkg-architecture -L | grep -qxF -e "${1-}"; then
	"$top/dev" install qemu-user-static
	emulator=qemu-$(dpkg-architecture -A "$1" -qDEB_TARGET_GNU_CPU)
	[ -e /proc/sys/fs/binfmt_misc/status ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
	[ -e "/proc/sys/fs/binfmt_misc/$emulator" ] || /lib/systemd/systemd-binfmt "$emulator.conf" # no systemd runs
	foreign=$1
	shift
	[ "${1-}" != package ] || die "packages are built for this machine's architecture alone"
fi
other=${CONVOLVED_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/convolved/$suite${foreign:+-$foreign}}
bootstrap "$suite" "$other" ${foreign:+"--arch=$foreign"}
rm -rf "$other/convolved"
git clone -q --depth 1 "file://$top" "$other/convolved"
cp /etc/resolv.conf "$other/etc/resolv.conf"
apt-config dump Acquire >"$other/etc/apt/apt.conf.d/host" # proxies and the like
# shellcheck disable=SC2016
{
	work='./dev run --once && ./dev test "$@"'
	[ "${1-}" != package ] || work='./dev "$@"'
	# qemu knows no seccomp, so workers start in no sandbox there; no ptrace; and no program by a relative name after chdir().
	[ -z "$foreign" ] || work='./dev install gcc libc6-dev libcmocka-dev &&
		gcc -shared -fPIC -o /lib/unconfined.so tests/package/unconfined.c &&
		echo /lib/unconfined.so >/etc/ld.so.preload &&
		if [ $# != 0 ]; then ./dev test "$@"; else
			./dev build && make -s -j "$(nproc)" -C build check TESTS="$(ls tests/unit/test_*.c |
				sed -e "s/[.]c$//" -e "/_sandbox$/d" -e "/_stall$/d" -e "/_supervisor$/d" | xargs)"
		fi'
	unshare --mount --pid --fork --kill-child --propagation slave bash -eu -c '
		mount --bind "$1" "$1" # tests that mount need a root that is a mount point
		cd "$1"
		shift
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --rbind /dev dev
		mount -t tmpfs tmpfs tmp
		chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ELSEWHERE=1 \
			bash -c "cd /convolved && $1" elsewhere "${@:2}"
	' elsewhere "$other" "$work" "$@"
}
if [ "${1-}" = package ]; then
	rm -rf "$top/build-packages-$suite"
	mkdir "$top/build-packages-$suite"
	find "$other/convolved/build-packages" -maxdepth 1 -type f -exec cp -t "$top/build-packages-$suite" {} +
	[ ! -d "$other/convolved/build-packages/next" ] ||
		CONVOLVED_ROOT=$other-fresh "$top/tests/package/run.sh" "$other/convolved/build-packages" "$suite"
fi
