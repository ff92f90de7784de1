#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_count.sh PROGRAM
#
# The command `tidemark count`: its table, its JSON, its exit status, one line for bad input.
prefix="$(realpath "$1") count"
. "$(dirname "$0")/../../shell.sh"

run 0 erda --value 16 --value 4096
says '^erda, keys of 8 bytes$'
# NIC, CPU, together, in the paper's layout
says '^ +16 create +34 +18 +52 +42 '
says '^ +16 update +34 +8 +42 +33 .* WRITE_WITH_IMM, server SEND, WRITE$'
says '^ +4096 delete +18 +8 +26 +17 '
grep -q '^ *64 ' out && wrong "64 was not asked for"
run 0 erda --value 16 --key 19 --fields
says '^erda, keys of 19 bytes$'
says '^ +16 update +45 +8 +53 +44 '
says '^ +16 update +atomic region 8 -> 4, object tag 1 -> 1, object CRC 4 -> 4, object lengths 5 -> 0, object key 19 -> 19, object value 16 -> 16$'
run 0 efactory --variant literal --knob ddio=off --value 64 --fields
says '^efactory literal \(ddio=off\), keys of 8 bytes$'
says '^  PM bytes by region$'
says '^ +64 update +64 +[0-9]+\+[0-9]+ '
grep -q 'paper' out && wrong "eFactory's paper has no such figures"
run 0 --value 8
for store in efactory erda rdmp_kv ca forca pilaf redo_log remotelog saw_imm rfp hydradb octopus herd nessie; do
	says "^$store, keys of 8 bytes\$"
done
run 0 --knob seg=small --value 8
[ "$(grep -c ', keys of ' out)" -eq 1 ] || wrong "only erda has this knob"
run 0 --knob method=w2 --value 8
says '^remotelog \(method=w2\), keys of 8 bytes$'
run 1 erda --variant narrow_offset --value 64
says '^  values of 64 bytes: GET k[0-9]+ returns not found, and the key exists$'
run 0 --help
says '^usage: tidemark count '

bad 'no store has a variant "sur", did you mean "sure"?' erda --variant sur
bad '--value' --value 7
bad '--value' --value 65537
bad '--key' --key 0
many=
for i in 1 2 3 4 5 6 7 8 9 10 11; do
	many="$many --value $i$i --value 1$i$i --value 2$i$i"
done
# shellcheck disable=SC2086
bad 'more than 32 sizes' $many

# What is done without need: on which hardware, where.
run 0 redo_log --value 16
grep -q '^    flush of lines of which no cache holds a change: .* by redo_apply, core/stores/redo_log/record.c:[0-9]*$' out ||
	wrong 'redo_log: nothing without need'
run 0 efactory --value 16
! grep -q 'without need' out || wrong "efactory: $(grep -A2 'without need' out)"
run 0 efactory --value 16 --knob domain=mhp
grep -q ' by link_header, core/stores/efactory/server.c:' out || wrong 'efactory needs flushes where caches survive'
# What the taxonomy has instead.
run 0 efactory --value 16 --advise
says '^    two, a record and then what names it: 1 round trip by cs1: SEND a, b; '
says '^    update takes 2: 1 could be saved, 1748 ns \(profile ef\)$'
says '^    delete takes 1$'
says 'does not promise DUR'
run 0 redo_log --value 16 --advise --knob domain=mhp
says '^    two, a record and then what names it: 1 round trip by cw3: '
says 'taxonomy --advise domain=mhp$'
says '^    flush of lines .*, by redo_apply, core/stores/redo_log/record.c:[0-9]*: [0-9]+ ns each time \(profile ef\)$'
echo 'flight 1000000 # far' >far
run 0 efactory --value 16 --advise --profile far
says '^    update takes 2: 1 could be saved, 20[0-9]{5} ns \(profile far\)$'
echo 'flight 1000000' >far
bad "far:1: expected where the value is from, after '#'" efactory --advise --profile far
! grep -q 'does not promise' out || wrong 'redo_log promises DUR'
run 0 erda efactory --value 16 --json results.json
if command -v python3 >/dev/null; then
	python3 - <<'END' 2>err || wrong "results.json"
import json
rows = json.load(open("results.json"))["operations"]
assert len(rows) == 14, len(rows)
by = {(r["store"], r["operation"]): r for r in rows}
put = by["erda", "update"]
assert put["variant"] == put["config"] == "default" and put["key"] == 8 and put["value"] == 16
assert put["pm_bytes"] == 42 and put["paper_bytes"] == 33 and put["times"] == put["of"] == 8
assert put["foreground"]["nic_bytes"] == 34 and put["foreground"]["cpu_bytes"] == 8
assert put["foreground"]["round_trips"] == 2 and put["foreground"]["handled_by_server"] == 1
assert put["foreground"]["messages"] == {"client": {"WRITE": 1, "WRITE_WITH_IMM": 1}, "server": {"SEND": 1}}
assert put["fields"]["atomic region"] == {"bytes": 8, "paper": 4}
assert put["background"]["packets"] == 0
put = by["efactory", "update"]
assert put["paper_bytes"] is None and put["background"]["lines_flushed"] > 0 and put["background"]["fences"] == 1
assert put["lines_written"] > 2 and put["bytes_changed"] > 16
END
fi

ended
