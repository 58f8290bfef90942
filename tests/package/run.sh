#!/usr/bin/env bash
# run.sh DIRECTORY [SUITE]: tries the packages in DIRECTORY, and an upgrade to those in DIRECTORY/next, on a
# fresh system of the same release: debootstrap makes it, systemd-nspawn boots it, inside.sh does the rest. As root.
# CONVOLVED_ROOT: a directory that keeps the fresh system for the next time.
set -eu

# shellcheck source=tests/package/bootstrap.sh
. "$(dirname "$0")/bootstrap.sh"
here=$(cd "$(dirname "$0")" && pwd)
packages=$(cd "$1" && pwd)
suite=${2:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
fresh=${CONVOLVED_ROOT:-$(mktemp -d)/fresh}

bootstrap "$suite" "$fresh" --include=systemd,systemd-sysv,dbus,ca-certificates 2>"$packages/debootstrap.log"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cp -a "$fresh/." "$root"
apt-config dump Acquire >"$root/etc/apt/apt.conf.d/host" # proxies and the like
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
cp "$here/inside.sh" "$here/../photograph.jpg" "$packages"
mkdir -p "$packages/tree"
cp -r "$here/../../debian" "$packages/tree"
cat >"$root/etc/systemd/system/try.service" <<'END'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh /packages/inside.sh
ExecStopPost=/bin/systemctl poweroff --no-block
StandardOutput=truncate:/packages/log
StandardError=inherit
[Install]
WantedBy=multi-user.target
END
ln -s ../try.service "$root/etc/systemd/system/multi-user.target.wants/try.service"
rm -rf "$packages/outcome" "$packages/autopkgtest"
scope=
[ -e /run/systemd/system ] || scope=--keep-unit
# One machine at a time, as in tests/systemd: without a systemd here they would share their control groups.
flock "${TMPDIR:-/tmp}/convolved-machine.lock" timeout 900 systemd-nspawn -q -D "$root" --bind="$packages:/packages" --register=no $scope \
	--machine=convolved-package --console=pipe -b >"$packages/boot.log" 2>&1 || true
cat "$packages/outcome" || { tail -n 30 "$packages/log"; exit 1; }
grep -qx passed "$packages/outcome"
