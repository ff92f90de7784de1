#!/bin/bash
# Does the drop-in libibverbs.so.1 have every symbol that the system's has, in the same version?
#
#   tests/core/provider/test_nic_symbols.sh DROP-IN PRELOAD SYSTEM
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
# Lines of the first file whose `field` is not a line of the second one.
without() {
	awk -v field="$3" 'NR == FNR { has[$0] = 1; next } !($field in has)' "$2" "$1"
}

cut -d ' ' -f 1 "$dir/ours" | sort -u > "$dir/versions"
cut -d ' ' -f 2 "$dir/system" > "$dir/names"
without "$dir/system" "$dir/versions" 1 | sed 's/\(.*\) \(.*\)/note: \2 is of \1, a version that the drop-in has not/'
awk 'NR == FNR { has[$1] = 1; next } $1 in has' "$dir/versions" "$dir/system" > "$dir/wanted"
comm -23 "$dir/wanted" "$dir/ours" > "$dir/missing"
sed "s|\(.*\) \(.*\)|missing in $dropin: \2@\1|" "$dir/missing"
without "$dir/wanted" "$dir/preload" 2 > "$dir/hidden"
sed "s|.* |missing in $preload: |" "$dir/hidden"
# Nothing else but what newer ones have: what the program has of the same name would be taken for ours, or ours for its. But for libc's functions
# that core/provider/base/fault_safe.c has to see calls of, and how the drop-in librdmacm.so.1 finds queue pair 1.
printf '%s\n' ibv_cmd_create_cq_ex2 ibv_wr_opcode_str >> "$dir/names"
printf '%s\n' sigaction signal pthread_sigmask sigprocmask tidemark_mads >> "$dir/names"
without "$dir/ours" "$dir/names" 2 > "$dir/more"
sed "s|\(.*\) \(.*\)|shown by $dropin, and not by $system: \2@\1|" "$dir/more"
for found in missing hidden more; do
	[ ! -s "$dir/$found" ] || failed=1
done
exit $failed
