# shellcheck shell=bash
# bootstrap.sh: installs another system into a directory; elsewhere.sh and run.sh source it.

# bootstrap SUITE DIRECTORY [OPTION...]: installs a minimal Debian or Ubuntu there, unless it is there already.
bootstrap() {
	local suite=$1 directory=$2 mirror=() list=$2.part/etc/apt/sources.list script=/usr/share/debootstrap/scripts/gutsy
	shift 2
	[ ! -d "$directory" ] || return 0
	case $suite in
	noble)
		# Debian has no keys for Ubuntu, so that this comes by HTTPS; and debootstrap may know older releases alone.
		mirror=("https://$(sed -n 's,^.*default_mirror http://\(archive[^ ]*\)$,\1,p' "$script" | head -n 1)" "$script")
		set -- "--components=main,universe" "$@"
		;;
	*) # the mirror that this machine uses, if it is of that release
		# shellcheck disable=SC2016
		mapfile -t mirror < <(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $suite" | head -n 1)
		;;
	esac
	mkdir -p "$(dirname "$directory")"
	rm -rf "$directory.part"
	debootstrap --variant=minbase "$@" "$suite" "$directory.part" "${mirror[@]}" >&2
	[ "$suite" != noble ] || sed -i 's,^deb https:,deb http:,' "$list" # its apt has the keys, but no certificates
	mv "$directory.part" "$directory"
}
