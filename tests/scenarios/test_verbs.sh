#!/usr/bin/env bash
# test_verbs.sh TIDEMARK SOURCES: what the verbs programs say on the soft RNIC is what is checked in, so that it
# stays as it was compared with rdma_rxe; the table of differences is whole; options, errors, isolation.
set -u
tidemark=$1
cd "$2" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
bad() {
	echo "test_verbs: $*"
	failed=1
}
# expect STATUS ARGUMENT...: output in $work/out, errors in $work/err.
expect() {
	local status=$1 got
	shift
	"$tidemark" verbs "$@" >"$work/out" 2>"$work/err"
	got=$?
	[ "$got" -eq "$status" ] || bad "verbs $*: status $got, not $status: $(head -1 "$work/err")"
}

expect 0
if ! diff -u scenarios/verbs/soft.txt "$work/out" >"$work/diff"; then
	head -40 "$work/diff"
	bad "the soft RNIC does something else than scenarios/verbs/soft.txt (if it should: tidemark verbs >it)"
fi
programs=$(grep -c '^== ' "$work/out")
[ "$programs" -ge 35 ] || bad "only $programs programs"

expect 0 --list
[ "$(wc -l <"$work/out")" -eq "$programs" ] || bad "--list has another number of programs"
grep -v '^[a-z][a-z0-9/-]*  *[^ ]' "$work/out" && bad "--list: a program without a sentence"
[ -z "$(cut -d' ' -f1 "$work/out" | sort | uniq -d)" ] || bad "two programs of one name"

expect 0 itself overrun
grep -c '^== ' "$work/out" | grep -qx 2 || bad "two programs named, others run"
expect 2 ovrrun
grep -q 'did you mean "overrun"' "$work/err" || bad "no hint for a misspelt name"
expect 2 --frobnicate
expect 77 --device no-such-device overrun
[ "$(wc -l <"$work/err")" -eq 1 ] || bad "a device that is missing is told once"

vm/differential --check || bad "differences.txt"
# Each of its programs exists.
expect 0 --list
sed -n 's/^== //p' scenarios/verbs/differences.txt | while read -r name; do
	grep -q "^$name " "$work/out" || echo "$name"
done | grep . && bad "differences of programs that there are not"
# What the table says that the soft RNIC does, it does.
awk '/^== / { name = $0 } /^soft\| / { print name "\t" substr($0, 7) }' scenarios/verbs/differences.txt >"$work/claims"
awk '/^== / { name = $0; next } { print name "\t" $0 }' scenarios/verbs/soft.txt >"$work/lines"
grep -vxFf "$work/lines" "$work/claims" && bad "lines of the table that the soft RNIC does not print"

exit $failed
