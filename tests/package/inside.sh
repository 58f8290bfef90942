#!/bin/sh
# Runs in a fresh Debian that has booted: installs the packages of /packages, filters an image with them, and
# removes and purges them. Says `passed` or what is wrong in /packages/outcome.
set -eu

fail() {
	echo "failed: $*" >/packages/outcome
	journalctl -u convolved --no-pager -n 50 >>/packages/outcome 2>&1 || true
	exit 1
}

files() { find / -xdev \( -name '*convolve*' -o -name '*Convolve*' \) -not -path '/packages/*' -not -path '/proc/*' | sort; }

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends curl /packages/convolved_*.deb /packages/convolve_*.deb ||
	fail "the packages cannot be installed"

systemctl is-enabled -q convolved.socket || fail "the socket is not enabled"
systemctl is-active -q convolved.socket || fail "the socket does not listen"
# The first start compiles the kernels.
for _ in $(seq 180); do
	curl -sf http://127.0.0.1:8700/readyz >/dev/null && break
	sleep 1
done
curl -sf http://127.0.0.1:8700/readyz >/dev/null || fail "the service is not ready"
status=$(curl -s -o /tmp/out.jpg -w '%{http_code} %{content_type}' \
	--data-binary @/packages/photograph.jpg 'http://127.0.0.1:8700/v1/filters/gaussian?sigma=3')
[ "$status" = '200 image/jpeg' ] || fail "curl was answered with $status"
convolve sobel /packages/photograph.jpg -o /tmp/edges.png || fail "convolve failed"
[ -s /tmp/edges.png ] || fail "convolve made nothing"
systemctl reload convolved || fail "it cannot be reloaded"
for page in convolved.8 convolved.conf.5 convolve.1 convolved-bench.1; do
	[ -e "/usr/share/man/man${page##*.}/$page.gz" ] || fail "there is no manual page $page"
done

apt-get remove -y -qq convolved convolve || fail "the packages cannot be removed"
systemctl is-active -q convolved && fail "it still runs after its removal"
[ -e /etc/convolved/convolved.conf ] || fail "removal has taken the configuration"
apt-get purge -y -qq convolved convolve || fail "the packages cannot be purged"
left=$(files | grep -v -e '^/var/cache/apt' -e '^/var/lib/apt' -e '^/var/log' -e '^/run' || true)
getent passwd convolved && fail "the user is left after the purge"
getent group convolved && fail "the group is left after the purge"
[ -z "$left" ] || fail "this is left after the purge: $left"
echo passed >/packages/outcome
