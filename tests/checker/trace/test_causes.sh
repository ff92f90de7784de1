#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_causes.sh TIDEMARK
#
# Stores break what they are expected to break for known causes only, whatever the seed; a bug that breaks nothing else is a
# surprise all the same, with a trace; a campaign without rows records them; and what is wrong with a file of rows is told
# with its line.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/../../cli/own.sh"

# The whole campaign takes too long for a quick test.
some=()
for workload in w wwr wd d-rr ww-r w1w2 wr-c; do
	some+=(--workload "$workload")
done
clean() { # STORE [OPTION...]: nothing is told of it
	for seed in 1 2 3; do
		run 0 tidemark crashtest "$@" "${some[@]}" --seed "$seed" --runs 20 --states 100 --no-traces --quiet
	done
}
hidden() { # STORE BUG CONTRACT WORKLOAD: a bug that breaks only what need not hold is told, with a trace that replays
	run 1 tidemark crashtest "$1" --variant "$2" --workload "$4" --workload w-r --workload wd --runs 200 --states 2000 --out traces --quiet
	grep -q "^  $3 .*BROKEN FOR ANOTHER CAUSE" out || fail "$1 $2"
	run 1 tidemark replay "$(echo traces/"$1"*-"$3".trace)"
}
for store in efactory erda rdmp_kv remotelog forca ca saw_imm redo_log pilaf rfp hydradb octopus herd nessie; do
	clean "$store"
done
hidden efactory entry_lazy DUR w

few=(--workload w --runs 30 --states 300 --no-traces --quiet)
printf '# kept\n\n* DUR value put open lost:log-a:nic:put:own\nsure/* LIVE - -\n' >rows
run 0 tidemark crashtest efactory "${few[@]}" --causes rows
head -1 rows | grep -q '^# kept$' || fail 'the comment is gone'
grep -q '^\* DUR value put lost:log-a:nic:put:own$' rows || fail "no row for what breaks: $(cat rows)"
! grep -q 'open lost' rows || fail 'a row that another one includes is still there'
grep -q '^sure/\* LIVE - -$' rows || fail 'a row of something else is gone'
cp rows before
run 0 tidemark crashtest efactory "${few[@]}" --causes rows
cmp rows before || fail 'the same campaign adds rows'

wrong() { # LINE WORDS: such a file is refused
	printf '# one\n%s\n' "$1" >rows
	bad 'rows:2: ' tidemark crashtest efactory "${few[@]}" --causes rows
	says "$2"
}
wrong '* DURABLE value put' 'a contract'
wrong '* DUR value put lost:log' 'expected parts'
bad 'needs one STORE' tidemark crashtest "${few[@]}" --causes rows

refused() { # OPTION...: shares are recorded of a whole campaign of one store only
	bad 'shares needs one STORE, all workloads and --budget whole' tidemark crashtest "$@" --no-traces --quiet --shares shares
	[ ! -e shares ] || fail "--shares $*: there is a file"
}
refused
refused ca --workload w
refused ca --runs 1999
refused ca --states 20001
refused ca --budget usual
refused ca --knob ddio=off
refused ca --causes rows

# What the variants of stores break for other causes than the default is recorded of each, and of what needs no rows of
# its own that it is compared.
printf 'crowded/* compared\n' >rows
tidemark crashtest efactory --variant born_durable "${few[@]}" --workload w-r --runs 600 --causes rows >out || [ $? = 1 ]
grep -q '^  RDA .*broken' out || fail "RDA is not broken, so nothing is seen of it: $(cat out)"
grep -q '^crowded/\* compared$' rows || fail "what is said of another variant is gone: $(cat rows)"
grep -q '^born_durable/\* DUR value put lost:log-a:nic:put:own$' rows || fail "no row of the variant: $(cat rows)"
! grep -q '^born_durable/\* RDA' rows || fail "a promise is among what need not hold: $(cat rows)"
printf '* DUR value put\n* DUR nothing put\n* BUF value get\n* BUF nothing get\n* DUR value get\n' >rows
tidemark crashtest efactory --variant tight "${few[@]}" --causes rows >/dev/null || [ $? = 1 ]
grep -q '^tight/\* compared$' rows || fail "nothing says that the variant is compared: $(cat rows)"
