#!/bin/sh
# The table of contracts in docs/systems.md is what whole campaigns show: of a third of the stores, another third for each
# commit, as all of them take half an hour. `scripts/systems write contracts` measures all.
# usage: test_systems_contracts.sh PROGRAM ROOT
set -eu
program=$1 root=$2
third=$(($(git -C "$root" rev-list --count HEAD 2>/dev/null || echo 0) % 3))
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
stores=$("$program" list stores | awk -v third=$third '/^[a-z]/ && n++ % 3 == third { print $1 }')
echo "measured: $stores"
# shellcheck disable=SC2086 # each is a word
TIDEMARK=$program "$root/scripts/systems" contracts $stores | grep -E '^ +[a-z_]+ .*[.xX?-]$' | tr -s ' ' >measured
[ "$(wc -l <measured)" -ge "$(echo "$stores" | wc -l)" ] || {
	echo "not a row for each store" >&2
	exit 1
}
sed -n '/^<!-- contracts -->$/,/^<!-- end of contracts -->$/p' "$root/docs/systems.md" | tr -s ' ' >written
if grep -vxF -f written measured >&2; then
	echo "these rows are not those of docs/systems.md: scripts/systems write contracts" >&2
	exit 1
fi
