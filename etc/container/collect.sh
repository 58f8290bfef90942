#!/bin/sh
# Lists what a container needs of the Debian system that this runs on, for `tar --no-recursion -T`:
# files, the libraries that they are linked to, and libraries loaded by name.
# collect.sh KIND FILE...
# KIND is `cpu`, or `gpu`: without PoCL, for devices whose drivers come from elsewhere.
set -eu
kind=$1
shift
lib=/usr/lib/$(uname -m)-linux-gnu

# Prints a name and all names that it leads to, in directories that are no links.
names() {
	name=$1
	while :; do
		directory=$(realpath -- "$(dirname -- "$name")")
		name=${directory%/}/${name##*/}
		printf '%s\n' "$name"
		[ -L "$name" ] || return 0
		link=$(readlink -- "$name")
		case $link in
		/*) name=$link ;;
		*) name=${name%/*}/$link ;;
		esac
	done
}

# Prints the libraries that a program or library is linked to, and the loader.
linked() {
	ldd "$1" 2>/dev/null | awk '$2 == "=>" && $3 ~ "^/" { print $3 } $1 ~ "^/" { print $1 }'
}

# Prints the existing ones of these: not all releases have the same.
present() {
	for name; do [ ! -e "$name" ] || printf '%s\n' "$name"; done
}

# Files that are run or loaded.
programs() {
	printf '%s\n' "$@" "$lib/libOpenCL.so.1"
	# Libraries of vendors' drivers, which come without them.
	printf '%s\n' "$lib"/libdl.so.2 "$lib"/libpthread.so.0 "$lib"/librt.so.1 "$lib"/libstdc++.so.6
	present "$lib"/vips-modules-*/vips-heif.so "$lib"/vips-modules-*/vips-jxl.so "$lib"/libheif/plugins/*.so
	[ "$kind" = gpu ] || printf '%s\n' "$lib"/libpocl.so.2 "$lib"/pocl/*.so /usr/bin/ld
}

{
	# Directories that may be links.
	present /bin /sbin /lib /lib64 /etc/os-release
	programs "$@"
	programs "$@" | while read -r file; do linked "$file"; done
	# The names by which PoCL's kernels are linked to libraries.
	[ "$kind" = gpu ] || present "$lib"/libc.so "$lib"/libm.so "$lib"/libgcc_s.so "$lib"/libgcc.a
} | sort -u | while read -r file; do names "$file"; done | sort -u
present /etc/nsswitch.conf
printf '%s\n' /etc/passwd /etc/group /etc/ssl/certs/ca-certificates.crt /var/lib/dpkg/status
find /usr/share/doc /usr/share/common-licenses \( -name copyright -o -path '*/common-licenses/*' \) \( -type f -o -type l \)
find /etc/ld.so.conf /etc/ld.so.conf.d
[ "$kind" = gpu ] || find /usr/share/pocl /etc/OpenCL/vendors/pocl.icd
