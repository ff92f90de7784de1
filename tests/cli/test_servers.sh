#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_servers.sh TIDEMARK SOURCES
#
# Servers that fail one at a time. Two, with the store mojim: it keeps what it promises; each way of failing finds its bugs, which
# replay and shrink; what breaks after a server's failure is DUR or DURN and not LIN; the hardware that M-sync relies on.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

few=(--runs 100 --states 60)
put=(--workload w --workload w-r)
run 0 tidemark crashtest mojim "${put[@]}" "${few[@]}" --knob domain=dmp --no-traces --doublecheck --json right.json
run 0 tidemark crashtest mojim "${put[@]}" "${few[@]}" --knob store_buffer=4 --no-traces # what is in them is lost, too
# What is known of an image is known of those with the same lines that began with the same configuration.
run 0 tidemark crashtest mojim "${put[@]}" "${few[@]}" --knob domain=dmp --no-traces --no-tree --json whole.json
same right.json whole.json || fail 'without the tree of recoveries there are other results'
grep -q '"contract": "DURN"' right.json || fail 'no cell for DURN'
run 0 tidemark crashtest herd --workload w --runs 1 --states 1 --no-traces --json one.json
! grep -q DURN one.json || fail 'DURN is judged of a store of one server'

# found VARIANT: the bug is found, and as one against LIN only where a server was cut off; its trace replays, and is as short as
# it gets.
found() {
	local trace
	rm -rf traces
	run 1 tidemark crashtest mojim --variant "$1" --knob domain=dmp --fail-fast --runs 2000 --states 1
	for trace in traces/*-LIN.trace; do
		[ ! -e "$trace" ] || grep -q 'is cut off' "$trace" || fail "$trace: broken LIN"
	done
	trace=$(find traces -name "mojim-$1-*.trace" | LC_ALL=C sort -r | head -n 1)
	[ -n "$trace" ] || fail "$1: no trace"
	run 1 tidemark replay "$trace"
	says 'it takes this to happen: '
	run 0 tidemark shrink "$trace" --output shrunk.trace
	run 1 tidemark replay shrunk.trace
}
found posted_only
found not_fenced
found log_forgotten
run 0 tidemark crashtest mojim --variant literal --knob domain=dmp --workload w --runs 1 --states 1000
says 'RDA    promised  broken' 'DURN   promised  holds'
run 1 tidemark replay traces/mojim-literal-RDA.trace
run 0 tidemark crashtest mojim --variant literal --knob domain=wsp --workload w --runs 100 --states 400 --no-traces

# All contracts have room on 80 columns, and each name its mark below it.
run 0 tidemark crashtest mojim octopus_tx rfp --workload w --runs 1 --states 1 --no-traces
[ "$(sed '/docs.contracts.md/q' out | awk 'length > 80')" = '' ] || fail 'a row of more than 80 columns'
grep -qE '^ {12}RDA   DUR   MONO  NORES ATOM  DURN  LIVE  AGREE$' out && grep -qE '^ {15}LIN   BUF   KEEP  OK    SSER  FENCE FSCK +states$' out &&
	grep -qE '^  rfp         [.x?]  [.x?]  [.x?]  [.x?]  [.x?]  [.x?]  [.x?]  [.x?] {14}[.x?]  [.x?] ' out || fail 'another head or row'

# A client that asks who is the primary, is slow, and connects when it is another server: nobody is to blame.
cat >moved.trace <<'END'
tidemark-trace 1
store mojim
variant default
config domain=dmp
keys k1 8
client 1: leave, put k1 8
client 2: put k1 8
deviate c2 c2.put1 before post 1: server 1 is lost
deviate c1 c1.open1 before completion 1: delay 200us
broken OK
END
run 4 tidemark replay -q moved.trace

# A server that is cut off from the service, and goes on: one that does not look at its lease answers with old values.
cat >cut.trace <<'END'
tidemark-trace 1
store mojim
variant serves_on
config domain=dmp
keys k1 8, k2 8
client 1: put k1 8
client 2: get k2, get k1
deviate c1 c1.put1 before begin 1: delay until quiescence
deviate c2 c2.get2 before begin 1: delay until quiescence
deviate s2/applier - before load 35: server 1 is cut off
broken LIN
END
run 1 tidemark replay cut.trace
says 'server 1 is cut off' 'the service hears server 1 again' "client 1's PUT k1 was acknowledged; then client 2 read load k1"
sed 's/serves_on/default/; s/^broken.*/broken none/' cut.trace >kept.trace
run 0 tidemark replay kept.trace
says 'returns EHOSTDOWN'
# Outages of other lengths, words for them, and a clock that is ahead.
sed '/^deviate/d; s/^broken/deviate c1 c1.put1 before post 1: server 1 loses power EVENT\n&/' kept.trace >event.trace
for event in '' briefly 'for long'; do
	sed "s/power EVENT/power $event/; s/power $/power/" event.trace >this.trace
	run 0 tidemark replay this.trace
	says "server 1 loses power${event:+ $event}" 'server 1 has power again'
done
sed 's/loses power EVENT/is cut off for ever/; s/domain=dmp/domain=dmp clocks=10us/; s/^broken/deviate s1 - clock: ahead\n&/' event.trace >this.trace
run 0 tidemark replay this.trace
says 'is cut off for ever' 'the clock is 10 us ahead'

# One kind of failure alone says which contract a bug breaks; without the failure nothing breaks.
alone=(--variant not_fenced --knob domain=dmp --workload w --workload w-r --runs 2000 --no-traces)
for only in lost:DURN power:DUR cut:LIN; do
	run 1 tidemark crashtest mojim "${alone[@]}" --fail-fast --only ${only%:*}
	grep -qE "^  ${only#*:} +promised +broken" out || fail "--only ${only%:*}: ${only#*:} holds"
done
run 0 tidemark crashtest mojim "${alone[@]}" --only death
# What the structural check reads first has been lost as often as what a client reads first.
tidemark crashtest mojim --variant literal --workload ww --only power --runs 1000 --knob domain=dmp --no-traces >out || :
grep -qE '^  DUR +promised +broken' out || fail 'a server that has lost its power has lost nothing'
says 'not all that can'
run 2 tidemark crashtest mojim --only cuts
says '--only: "cuts"; expected one of: all death power lost cut'
run 2 tidemark crashtest mojim --only cut --exhaustive

# Without copies no server is lost, and nothing is said of DURN. What a server has committed is there when it is back.
run 0 tidemark crashtest octopus_tx --workload w --workload T "${few[@]}" --knob domain=dmp --no-traces --json tx.json
grep -q '"contract": "ATOM"' tx.json || fail 'no cell for ATOM'
! grep -q DURN tx.json || fail 'DURN is judged of a store that does not promise it'
rm -rf traces
run 1 tidemark crashtest octopus_tx --variant orphans_kept --knob domain=dmp --workload w --fail-fast --runs 2000 --states 1
run 1 tidemark replay traces/octopus_tx-orphans_kept-LIVE.trace
says ': server 2 loses power'

# Three servers with transactions over all of them.
txn=(--workload T-T --workload T-xT --workload T-T-skew)
run 0 tidemark crashtest farm "${txn[@]}" --runs 100 --states 100 --knob domain=dmp --no-traces
run 0 tidemark crashtest farm --variant literal --workload T-T --runs 60 --states 60 --knob domain=wsp --no-traces
says 'DUR    promised  holds' 'SSER   promised  holds'
run 1 tidemark crashtest farm --variant serve_early --workload w-r --knob domain=dmp --runs 1000 --states 1 --fail-fast --no-traces
says 'farm' 'broken'

# Regions of HTM: what is committed survives where caches are saved.
run 0 tidemark crashtest drtm --variant saved "${txn[@]}" --runs 60 --states 100 --no-traces
run 1 tidemark crashtest drtm --variant undone --workload T --runs 20 --states 400 --fail-fast --no-traces
says 'ATOM   promised  broken'

# All of it, within bounds; which are told.
all=(--exhaustive --workload w --preemptions 0 --knob domain=dmp --no-traces)
run 0 tidemark crashtest octopus_tx "${all[@]}" --faults 1
says '517 runs' 'exhaustive' 'A fault is also a server of several that fails alone: it loses its power'
run 0 tidemark crashtest octopus_tx "${all[@]}"
says '1 run;' 'No server of several fails alone: that is a fault (--faults).'
run 0 tidemark crashtest nvfs --exhaustive --knob domain=dmp --no-traces
says 'at most 0 preemptions' 'wr (with at most 1 fault), w-r (with at most 1 fault). A fault is also a server'
run 0 tidemark crashtest herd "${all[@]}"
! grep -q 'of several' out || fail 'words of several servers for a store of one'

# What a server does after it was left out, and a member whose copy is not the newest.
cat >fence.trace <<'END'
tidemark-trace 1
store mojim
variant not_fenced
config domain=dmp
keys k1 8
client 1: get k1
client 2: put k1 8
deviate c1 c1.get1 before post 1: server 1 is cut off for ever
deviate c2 c2.put1 before post 1: delay 200us
deviate c2 c2.put1 power after return 1: fails
broken FENCE
END
run 1 tidemark replay fence.trace
says "client 2's PUT k1 reached only a server that was left out of the configuration; then a reader after recovery read c2.put1"
cat >agree.trace <<'END'
tidemark-trace 1
store mojim
variant joins_blind
config domain=dmp
keys k1 160
client 1: put k1 160
deviate c1 c1.put1 before begin 1: delay until quiescence
deviate s2/applier - before load 15: server 1 loses power
deviate s1.2/qp6 -#2 message 3 ack 1 try 1: delay 5ms
broken AGREE
END
run 1 tidemark replay agree.trace
says 'k1: server 1 has the value of load k1, version 1; server 2 has the value of c1.put1, version 2'
for trace in fence agree; do
	sed 's/^variant .*/variant default/' $trace.trace >right.trace
	run 4 tidemark replay -q right.trace
done

# Each server has a domain of its own. A record is torn at a mirror that loses its NIC's buffers, and not at one that keeps them;
# what the primary has not flushed is lost as its own domain says. So one server of each kind breaks neither what both of one
# kind break, nor what both of the other do.
cat >torn.trace <<'END'
tidemark-trace 1
store mojim
variant no_crc
config domain=dmp
keys k1 128
client 1:
deviate - - power at end: fails
deviate c2 - life 1: put key 1
deviate c2 - life 2: put key 1
deviate c2 c2.put2 power after return 1: fails
deviate line s2/log+0x80 at crash 2: version 0 of 1
broken FSCK
END
cat >unflushed.trace <<'END'
tidemark-trace 1
store mojim
variant literal
config domain=dmp
keys k1 8
client 1: put k1 8
deviate c1 c1.put1 power after return 1: fails
deviate line s1/area+0x40: version 0 of 1
broken RDA
END
while read -r torn unflushed config; do
	for trace in torn unflushed; do
		sed "s/^config .*/config $config/" $trace.trace >own.trace
		run "${!trace}" tidemark replay -q own.trace
	done
done <<'END'
1 1 domain=dmp
4 1 domain=dmp domain.2=wsp
4 1 domain=dmp domain.2=wsp domain.1=dmp
1 4 domain=wsp domain.2=dmp
4 4 domain=wsp
END
# And a NIC of its own. What the mirror's has acknowledged lands late, so the old primary's record comes after the mirror has taken
# over; and the last line of a record lands first, so the mirror applies it before it has come. Only the mirror's NIC lands records.
cat >late.trace <<'END'
tidemark-trace 1
store mojim
variant not_fenced
config
keys k1 8
client 1: put k1 8
deviate s2/qp3 c1.put1 landing message 1 packet 1 line 3: delay 200us
deviate c1 c1.put1 before completion 2: server 1 is lost
broken DURN
END
cat >order.trace <<'END'
tidemark-trace 1
store mojim
variant no_crc
config
keys k1 8
client 1: put k1 8, put k1 8
deviate s2/qp3 c1.put2 order message 1 packet 1 landed 0: 3 ahead
deviate s2/qp3 c1.put2 landing message 1 packet 1 line 2: delay 30us
broken AGREE
END
while read -r status trace config; do
	sed "s/^config.*/config domain=dmp $config/" $trace.trace >own.trace
	run "$status" tidemark replay -q own.trace
done <<'END'
1 late
4 late ack_early=off
4 late ack_early.2=off
1 late ack_early.1=off
1 late ack_early=off ack_early.2=on
1 order dma_order=any
1 order dma_order.2=any
2 order dma_order.1=any
2 order dma_order=any dma_order.2=left
END
says 'own.trace:7: this deviation does not apply'
sed 's/^config.*/config dma_order.2=any dma_order.2=left/' order.trace >own.trace
run 2 tidemark replay -q own.trace
says 'own.trace:4: config dma_order.2 twice'
sed 's/^config .*/config domain.3=wsp/' torn.trace >own.trace
run 2 tidemark replay -q own.trace
says 'own.trace:4'
# How many there are is a matter of knobs, which come later.
cat >third.trace <<'END'
tidemark-trace 1
store mojim
config domain.3=wsp
knob mode=syncsec
keys k1 8
client 1: put k1 8
broken none
END
run 0 tidemark replay -q third.trace
sed 's/syncsec/sync/' third.trace >own.trace
run 2 tidemark replay -q own.trace
says 'own.trace:3: a knob of server 3; expected one that the store has'
run 0 tidemark crashtest mojim --knob mode=syncsec --knob ack_early.3=off --workload w --runs 1 --states 1 --no-traces
run 2 tidemark crashtest mojim --knob ack_early.3=off --workload w --runs 1 --states 1 --no-traces
says 'mojim has 2 servers with these knobs, and a knob is of server 3'
run 2 tidemark crashtest rfp --knob domain.2=wsp
says 'rfp has no knob "domain.2"'
run 2 tidemark crashtest mojim --knob domain.2=x
says 'knob "domain.2=x": expected one of: dmp mhp wsp'

# Words of several servers in a trace that has them, and in one that has not.
cat >lost.trace <<'END'
tidemark-trace 1
store mojim
variant default
config domain=dmp
keys k1 8
client 1: put k1 8
deviate c1 c1.put1 before post 1: server 3 is lost
broken none
END
run 2 tidemark replay lost.trace
says 'lost.trace:7' 'server 3 of a store that has 2; expected one of these'
sed -i 's/server 3 is lost/server 9 is lost/' lost.trace
run 2 tidemark replay lost.trace
says 'lost.trace:7'
run 2 tidemark serve mojim --pm pool
says 'mojim has several servers; expected --members ADDRESS:PORT, and --number from 1 to 3'
