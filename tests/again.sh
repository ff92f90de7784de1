#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# again.sh COMMAND...: run a test that works with guests; if the kernel of one crashed, run it again, three times in all.
#
# With several CPUs emulated, a kernel now and then trips over an instruction that it has just patched in itself. That says
# nothing about what the test looks at. A test that fails for another reason has failed.
set -u
[ $# -gt 0 ] || {
	echo 'usage: again.sh COMMAND...' >&2
	exit 2
}
said=$(mktemp)
trap 'rm -f "$said"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for try in 1 2 3; do
	"$@" 2>&1 | tee "$said"
	status=${PIPESTATUS[0]}
	if [ "$status" -eq 0 ] || [ $try -eq 3 ] || ! grep -qaE 'Oops: |Kernel panic' "$said"; then
		exit "$status"
	fi
	echo "tidemark: the kernel of a guest crashed (above): once more" >&2
done
