#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_nic_death.sh TIDEMARK [KILLS]
#
# Processes on the soft RNIC whose peer is killed, stopped, or leaves (nic_death, beside TIDEMARK): KILLS times by
# SIGKILL, the other ways in proportion. None hangs, each sees the error that docs/nic/guide.md names, and nothing
# is left in the fabric's directory.
set -eu
tidemark=$1 kills=${2:-30}
pair=$(dirname "$tidemark")/nic_death
net=/dev/shm/tidemark-test-death.$$
trap 'rm -rf "$net"' EXIT
[ -x "$pair" ] || {
	echo "test_nic_death: no $pair" >&2
	exit 77
}

"$tidemark" run --fabric "$net" -- "$pair" "$kills"

# The watcher cleans up after processes that could not.
for _ in $(seq 600); do
	[ -e "$net" ] || exit 0
	sleep 0.1
done
echo "left behind:" >&2
ls -l "$net" >&2
exit 1
