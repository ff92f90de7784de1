#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# again.sh COMMAND...: run a test that boots guests. If the kernel of a guest or its emulator crashed, run it again, three
# times in all.
#
# With several CPUs emulated, a kernel sometimes crashes in an instruction that it has just patched in its own code, and
# QEMU itself now and then in the code that it translates (status 139, SIGSEGV). Neither says anything about what is tested.
# A test that fails for another reason has failed.
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
	if [ "$status" -eq 0 ] || [ $try -eq 3 ] || ! grep -qaE 'Oops: |Kernel panic|QEMU ended with status 139' "$said"; then
		exit "$status"
	fi
	echo "tidemark: a guest crashed (above): once more" >&2
done
