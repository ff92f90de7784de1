#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_times.sh PROGRAM PAGE
#
# The command `tidemark times`: the page has what is printed, the JSON has all parts, a profile counts,
# and what is wrong is refused.
prefix="$(realpath "$1") times"
page=$(realpath "$2")
. "$(dirname "$0")/../../shell.sh"

sed -n '/<!-- times -->/,/<!-- end times -->/p' "$page" | sed '1,2d;$d' >written
: >printed
sed -n 's/^    \$ tidemark times //p' written >commands
[ -s commands ] || wrong "the page has no command"
while read -r words; do
	# shellcheck disable=SC2086 # words
	run 0 $words -q
	{
		printf '    $ tidemark times %s\n\n' "$words"
		sed 's/^/    /; s/ *$//' out
		echo
	} >>printed
done <commands
cmp printed written >/dev/null || {
	diff written printed >&2
	wrong "the page has something else than what is printed; put that there"
}

run 0 herd rfp --clients 4 -q --json times.json
for part in post wire dma handle copy crc flush fence bandwidth wake rest; do
	[ "$(grep -c "\"part\": *\"$part\"" times.json)" -eq 4 ] || wrong "the JSON has not $part of four kinds"
done
has_not bandwidth
echo 'pm_write 10 # slow' >slow
run 0 herd --workload u -q --profile slow
says '^    bandwidth +[0-9]{2}[0-9.]* us'
# Its clients wait half a second for a connection that is closed, while servers look at their logs.
run 0 farm -q
says '^farm, '
bad "no store \"hard\"" hard
bad "one of a, b, c, u" herd --workload x
bad "slow.profile" herd --profile slow.profile
bad "expected at most 4096 in all" herd --clients 16 --ops 300
ended
