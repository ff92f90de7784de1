#!/bin/sh
# The table of contracts in docs/systems.md is what whole campaigns of all stores show.
# usage: test_systems_contracts.sh PROGRAM ROOT
set -eu
program=$1 root=$2
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
TIDEMARK=$program "$root/scripts/systems" contracts | grep -v '^$' >measured
sed -n '/^<!-- contracts -->$/,/^<!-- end of contracts -->$/p' "$root/docs/systems.md" | grep -v '^$\|^<' >written
diff written measured || {
	echo "docs/systems.md is not what is measured: scripts/systems write contracts" >&2
	exit 1
}
