# What the scripts of vm/ have in common; sourced, not run.

# Tools of the system may be outside of a plain user's path.
PATH=$PATH:/usr/sbin:/sbin
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
made=${TIDEMARK_VM_DIR:-$root/build/vm}

say() { echo "tidemark: $*" >&2; }
# This machine lacks something: not a failure.
lacks() {
	say "skipped: $*"
	exit 77
}
usage() {
	say "$*"
	exit 2
}
# read_options FLAGS VALUES ARGUMENT...: an option of FLAGS sets the variable of its name to y, one of VALUES sets it to the
# next argument, or adds that where it is an array; "NAME:VARIABLE" names another variable. What comes from "--" on is in
# $rest.
# shellcheck disable=SC2034
read_options() {
	local flags=$1 values=$2 word variable
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		variable=''
		for word in $flags $values; do
			[ "$1" != "--${word%:*}" ] || variable=${word#*:}
		done
		if [ "$1" = --help ]; then
			help
			exit 0
		elif [ -z "$variable" ]; then
			usage "unknown option '$1' (vm/$(basename "$0") --help)"
		elif [[ " $flags " == *" ${1#--} "* ]]; then
			printf -v "$variable" y
			shift
			continue
		fi
		[ $# -ge 2 ] || usage "$1: a value is missing"
		if [[ $(declare -p "$variable") == 'declare -a'* ]]; then
			eval "$variable+=(\"\$2\")"
		else
			printf -v "$variable" %s "$2"
		fi
		shift 2
	done
	rest=("$@")
}
exit_on_signals() {
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
}
# A seed for a user who names none: as many digits as --seed takes.
any_seed() { echo $(((RANDOM << 15 | RANDOM) % 1000000000)); }
# need TOOL PACKAGE
need() {
	command -v "$1" >/dev/null ||
		lacks "vm needs $1 (package $2). This installs all that is needed: $("$root/scripts/deps" --command vm)"
}

need_qemu() {
	[ "$(uname -m)" = x86_64 ] || lacks "vm runs on x86-64 only, this is $(uname -m)"
	need qemu-system-x86_64 qemu-system-x86
}

# A directory NAME.<our process id>.* in $made, in $private. Those of scripts that were killed are removed.
private_dir() {
	local old owner
	mkdir -p "$made"
	for old in "$made/$1".*; do
		owner=${old##*/"$1".}
		if [ -d "$old" ] && ! kill -0 "${owner%%.*}" 2>/dev/null; then
			rm -rf "$old"
		fi
	done
	private=$(mktemp -d "$made/$1.$$.XXXXXX")
}

# read_within SECONDS DESCRIPTOR: the next line of a pipe in $line, if it comes in time. read forgets what it has of a line
# when its time is over; a machine that is busy lets it be over in the middle of one.
begun=''
read_within() {
	if IFS= read -r -t "$1" -u "$2" line; then
		line=$begun$line begun=''
	else
		begun=$begun$line
		return 1
	fi
}

# collect DIR FILE...: copy host programs (or libraries) to DIR, each at its own path, and the libraries that
# they are linked with. What is in DIR already is left alone, as is what the list $present (a file) names.
collect() {
	local dir=$1 file lib
	shift
	for file in "$@"; do
		printf '%s\n' "$file"
		# Scripts and static programs have none.
		ldd "$file" 2>/dev/null | awk '$3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }' || true
	done | sort -u | while read -r lib; do
		if [ ! -e "$dir$lib" ] && ! grep -qxF -e "$lib" "${present:-/dev/null}"; then
			mkdir -p "$dir$(dirname "$lib")"
			cp -L "$lib" "$dir$lib"
		fi
	done
}

# pack DIR FILE: a cpio archive that the kernel unpacks; archives may follow one another.
pack() { (cd "$1" && find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$2"; }
