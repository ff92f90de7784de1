#!/bin/sh
# The table of costs in docs/systems.md is what is measured now; a line that is changed is noticed.
# usage: test_systems.sh PROGRAM ROOT
set -eu
program=$1 root=$2
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
TIDEMARK=$program "$root/scripts/systems" costs >measured
documented() { sed -n '/^<!-- costs -->$/,/^<!-- end of costs -->$/p' | grep '^|'; }
documented <"$root/docs/systems.md" >written
diff written measured || {
	echo "docs/systems.md is not what is measured: scripts/systems write costs" >&2
	exit 1
}
sed 's/| Erda | 2 |/| Erda | 3 |/' "$root/docs/systems.md" | documented >written
! diff written measured >/dev/null || { echo 'a wrong line is not noticed' >&2; exit 1; }
