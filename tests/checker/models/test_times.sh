#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_times.sh PROGRAM PAGE...
#
# The command `tidemark times`: pages have what is printed, the JSON has all parts, a profile counts,
# what is known of contracts, and what is wrong is refused.
prefix="$(realpath "$1") times"
shift
pages=$(realpath "$@")
. "$(dirname "$0")/../../shell.sh"

for page in $pages; do
	sed -n '/<!-- times -->/,/<!-- end times -->/p' "$page" | sed '/<!-- times -->/{N;d};/<!-- end times -->/d' >written
	: >printed
	sed -n 's/^    \$ tidemark times //p' written >commands
	[ -s commands ] || wrong "$page has no command"
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
		wrong "$page has something else than what is printed; put that there"
	}
done

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

# What is recorded; what a campaign has found counts instead.
run 0 --contracts pilaf rfp herd -q --json contracts.json --plot plot
says '^a \* herd .* 3[.0-9]* .*  \.   \.   \.   \.   \.    \.     \.   \.   \.    \.$'
says '^c   pilaf .*  \.   \.   X   \.   x    \.     \.   \.   \.    \.$'
grep -q '^"herd" [0-9.]* 10$' plot || wrong "the plot has no point"
cat >matrix.json <<'END'
{"cells": [{"store": "pilaf", "variant": "default", "config": "default", "contract": "DUR", "verdict": "holds"},
	{"store": "herd", "variant": "default", "config": "default", "contract": "LIN", "verdict": "broken"},
	{"store": "herd", "variant": "default", "config": "ddio=off", "contract": "RDA", "verdict": "broken"}]}
END
run 0 --contracts pilaf herd -q --matrix matrix.json
says '^a \* herd .*  \.   X   \.   \.   \.    \.     \.   \.   \.    \.$'
says '^b \* pilaf .*  \.   \.   \.   \.   x '
# A variant that nobody has measured promises nothing; a shape is measured. Longer values are no match for shorter ones.
run 0 --contracts saw_imm --variant rpc --variant volatile -q
says '^. \* saw_imm rpc .*  \.   \.   \.   \.   \. '
says '^. . saw_imm volatile .*  -   -   -   -   - '
run 0 --contracts herd ca --value 4096 -q
says '^a   herd, 960 B .*'
says '^b \* ca '
run 0 --contracts erda --knob domain=wsp --workload u -q
says '; domain=wsp$'
says '^a \* erda .*  \.   X   X   x   x    x     [?]   \.'
bad "expected --contracts" erda --plot plot
bad "expected JSON" erda --contracts --matrix slow
bad "no store \"hard\"" hard
bad "one of a, b, c, u" herd --workload x
bad "slow.profile" herd --profile slow.profile
bad "expected at most 1000000 in all" herd --clients 16 --ops 62501
ended
