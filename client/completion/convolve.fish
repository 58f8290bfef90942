# Fish completion for convolve: bash finds the words (_convolve_print), or else fish the files.
set -g __convolve_script (status dirname)/convolve
test -f $__convolve_script
or set -g __convolve_script (status dirname)/../../bash-completion/completions/convolve

function __convolve_complete
	set -l found (bash -c 'source "$1"; _convolve_print "$2"' bash $__convolve_script \
		(commandline -cp | string collect) 2>/dev/null)
	if set -q found[1]
		printf '%s\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end

complete -c convolve -f -a '(__convolve_complete)'
