#!/bin/sh
# Runs in a fresh Debian that has booted: installs the packages from the repository in /packages, tries them,
# upgrades them to those of /packages/next under load, removes and purges them. Says `passed` or what is wrong in
# /packages/outcome.
set -eu

fail() {
	echo "failed: $*" >/packages/outcome
	journalctl -u convolved -u convolved.socket --no-pager -n 80 >>/packages/outcome 2>&1 || true
	exit 1
}

files() { find / -xdev \( -name '*convolve*' -o -name '*Convolve*' \) -not -path '/packages/*' -not -path '/proc/*' | sort; }

export DEBIAN_FRONTEND=noninteractive
echo 'deb [trusted=yes] file:/packages/repository ./' >/etc/apt/sources.list.d/local.list
apt-get update -qq || fail "apt does not take the repository"
apt-get install -y -qq --no-install-recommends autopkgtest curl doc-base convolved convolve convolved-doc python3-convolved ||
	fail "the packages cannot be installed"

# This machine is the isolation that they ask for.
autopkgtest --ignore-restrictions=isolation-container --no-built-binaries --output-dir=/packages/autopkgtest \
	/packages/tree -- null || fail "the tests of the installed packages have failed"
sed -n 's,.*runbook_url: file://,,p' /usr/share/convolved/convolved.rules.yml | sort -u | while IFS='#' read -r page section; do
	grep -q "id=\"$section\"" "$page" || fail "$page does not say what to do at the alert $section"
done
install-docs --status convolved | grep -q 'HTML' || fail "doc-base does not know the pages"
status=$(curl -s -o /tmp/out.jpg -w '%{http_code} %{content_type}' \
	--data-binary @/packages/photograph.jpg 'http://127.0.0.1:8700/v1/filters/gaussian?sigma=3')
[ "$status" = '200 image/jpeg' ] || fail "curl was answered with $status"
convolve sobel /packages/photograph.jpg -o /tmp/edges.png || fail "convolve failed"
[ -s /tmp/edges.png ] || fail "convolve made nothing"
for page in convolved.8 convolved.conf.5 convolve.1 convolved-bench.1; do
	[ -e "/usr/share/man/man${page##*.}/$page.gz" ] || fail "there is no manual page $page"
done

# Each loop is a client that connects anew for each image; what is not answered with 200 is a line in `lost`.
load() {
	while [ -e /tmp/load ]; do
		got=$(curl -sS -m 60 -o /dev/null -w '%{http_code}' --data-binary @/packages/photograph.jpg \
			'http://127.0.0.1:8700/v1/filters/gaussian?sigma=3' 2>>/tmp/lost || true)
		[ "$got" = 200 ] && echo >>/tmp/served || echo "$got" >>/tmp/lost
	done
}
served() { wc -l </tmp/served; }
serve_more() {
	wanted=$(($(served) + 20))
	for _ in $(seq 120); do
		[ "$(served)" -lt "$wanted" ] || return 0
		sleep 0.5
	done
	fail "$1: no images pass"
}
version() { curl -s http://127.0.0.1:8700/metrics | sed -n 's/^convolved_build_info{version="\(.*\)"} 1$/\1/p'; }
show() { systemctl show -P "$1" "$2"; }

touch /tmp/load /tmp/served /tmp/lost
for _ in 1 2 3; do load & done
serve_more "before the upgrade"
old=$(version) socket=$(show InvocationID convolved.socket) front=$(show MainPID convolved)
# Between these two the files are the new ones, the service is still the old one; all its workers end at once,
# but for those of HTTP, which hold the clients' connections.
dpkg --unpack /packages/next/convolved_*.deb /packages/next/convolve_*.deb || fail "the next packages cannot be unpacked"
[ "$(show MainPID convolved)" = "$front" ] || fail "unpacking has restarted the service"
serve_more "with the next version unpacked"
tr ' ' '\n' <"/proc/$front/task/$front/children" | while read -r child; do
	grep -q http "/proc/$child/comm" || kill -KILL "$child"
done
serve_more "with new workers of the old version"
[ "$(show MainPID convolved)" = "$front" ] || fail "the old service has ended"
dpkg --configure convolved convolve || fail "the next packages cannot be configured"
serve_more "after the upgrade"
rm /tmp/load
wait
[ "$(show MainPID convolved)" != "$front" ] || fail "the upgrade has not restarted the service"
[ "$(version)" != "$old" ] || fail "after the upgrade it is still $old"
[ "$(show InvocationID convolved.socket)" = "$socket" ] || fail "the upgrade has restarted the socket"
[ "$(show NRestarts convolved)" = 0 ] || fail "it has crashed"
! journalctl -u convolved --no-pager | grep 'is of version' || fail "workers of two versions have met"
[ ! -s /tmp/lost ] || fail "of $(served) images the upgrade has lost: $(cat /tmp/lost)"
served=$(served)
sh /packages/tree/debian/tests/service || fail "the test of the upgraded packages has failed"

apt-get remove -y -qq convolved convolve || fail "the packages cannot be removed"
systemctl is-active -q convolved && fail "it still runs after its removal"
[ -e /etc/convolved/convolved.conf ] || fail "removal has taken the configuration"
apt-get purge -y -qq convolved convolve convolved-doc python3-convolved || fail "the packages cannot be purged"
left=$(files | grep -v -e '^/var/cache/apt' -e '^/var/lib/apt' -e '^/var/log' -e '^/run' || true)
[ -z "$left" ] || fail "this is left after the purge: $left"
getent passwd convolved || fail "the purge has taken the user, whose number another may get"
echo "$served images during the upgrade from $old" >/packages/outcome
echo passed >>/packages/outcome
