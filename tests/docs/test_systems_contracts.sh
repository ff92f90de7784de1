#!/bin/sh
# The table of contracts in docs/systems.md is what whole campaigns show; `scripts/systems write contracts` measures them.
# usage: test_systems_contracts.sh PROGRAM ROOT
set -eu
program=$1 root=$2
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
stores=$("$program" list stores | awk '/^[a-z]/ { print $1 }' | "$root/tests/share.sh")
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
