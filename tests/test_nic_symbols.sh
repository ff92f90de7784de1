#!/bin/bash
# Does the drop-in libibverbs.so.1 have every symbol that the system's has, in the same version?
#
#   tests/test_nic_symbols.sh DROP-IN PRELOAD SYSTEM
#
# Symbols of a version that the drop-in does not know at all (a newer rdma-core's) are named, not counted. The library
# to be preloaded has to show the same ones, without versions.
set -eu

dropin=$1 preload=$2 system=${3:-}
[ -e "$system" ] || { echo "no libibverbs.so of the system's to compare with" >&2; exit 77; }
command -v objdump >/dev/null || { echo "no objdump" >&2; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# "VERSION name", of default versions; those in parentheses are for programs that were linked with libibverbs 1.0,
# before 2007, whose structures differed.
symbols() {
	objdump -T "$1" | grep -v '\*UND\*' |
		awk '$4 == ".text" || $4 == ".bss" || $4 == ".data" || $4 == ".rodata" { print $(NF - 1), $NF }' |
		grep -v '^(' | sort
}

symbols "$system" > "$dir/system"
symbols "$dropin" > "$dir/ours"
[ -s "$dir/system" ] && [ -s "$dir/ours" ] || { echo "objdump found no symbols" >&2; exit 70; }
objdump -T "$preload" | grep -v '\*UND\*' | awk '{ print $NF }' | sort > "$dir/preload"

failed=0
while read -r version name; do
	if ! grep -q "^$version " "$dir/ours"; then
		echo "note: $name is of $version, a version that the drop-in has not"
	elif ! grep -qx "$version $name" "$dir/ours"; then
		echo "missing in $dropin: $name@$version"
		failed=1
	elif ! grep -qx "$name" "$dir/preload"; then
		echo "missing in $preload: $name"
		failed=1
	fi
done < "$dir/system"
# Nothing else: what the program has of the same name would be taken for ours, or ours for its. But for libc's functions
# that core/nic/copy.c has to see calls of.
instead=' sigaction signal pthread_sigmask sigprocmask '
while read -r version name; do
	if ! grep -q " $name\$" "$dir/system" && [[ $instead != *" $name "* ]]; then
		echo "shown by $dropin, and not by $system: $name@$version"
		failed=1
	fi
done < "$dir/ours"
exit $failed
