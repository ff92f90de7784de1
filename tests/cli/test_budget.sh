#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_budget.sh TIDEMARK
#
# The budgets of tidemark crashtest: what they are, what overrides them, and that the number of processes changes nothing. A
# surprise is named at once, and what is expected to break and was not seen to is told.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

one='tidemark crashtest erda --workload w --no-traces --quiet'
run 0 $one --json default.json
run 0 $one --budget usual --json usual.json
same default.json usual.json || fail 'it is not what is usual'
run 0 $one --budget whole --json whole.json
run 0 $one --runs 2000 --states 20000 --json numbers.json
same whole.json numbers.json || fail 'whole is another campaign than before'
same whole.json usual.json >/dev/null && fail 'whole is no more than usual'
run 0 $one --budget quick --runs 7 --states 60
says '7 of the usual 450 runs of a workload, 60 of the usual 4500 crash states'

# A few small workloads are searched systematically. What a store breaks by design it breaks there, too.
run 0 tidemark crashtest saw_imm --budget whole --runs 3 --states 30 --no-traces --quiet --json searched.json
grep -A9 '"config": "exhaustive"' searched.json >row
for one in '"verdict": "broken"' '"exhaustive": true'; do
	grep -q "$one" row || fail "no $one in the row that is searched"
done
grep -q '"as_expected": false' searched.json && fail 'a cell is not as expected'
run 0 tidemark crashtest saw_imm --budget usual --runs 3 --states 30 --no-traces --quiet --json random.json
grep -q '"config": "exhaustive"' random.json && fail 'usual has the row, too'

# Of several servers, two fail in some more runs.
run 0 tidemark crashtest mojim --workload w --budget whole --no-traces --quiet --json twice.json
grep -q '"runs": 2500' twice.json || fail 'there are no runs with two events'

few='tidemark crashtest erda --budget quick --no-traces --quiet --workload w --workload w-r --workload w-w'
run 0 $few --jobs 1 --json one.json
run 0 $few --jobs 3 --json three.json
same <(grep -v '"jobs"' one.json) <(grep -v '"jobs"' three.json) || fail 'another number of processes, another result'

run 0 tidemark crashtest efactory --budget quick --no-traces --quiet
says 'is as expected: 50 of the usual 450 runs of a workload' 'expected to break, and not seen to with so small a budget: efactory ('

bad '--budget: "all"; expected one of: quick usual whole' tidemark crashtest erda --budget all
bad 'expected no --exhaustive' tidemark crashtest erda --budget quick --exhaustive

bug='tidemark crashtest efactory --variant born_durable --runs 20 --states 300 --no-traces'
run 1 $bug
told='efactory born_durable .* needs attention; the end of this campaign says why'
grep -q "$told" out || fail 'a surprise is not named at once'
run 1 $bug --quiet
grep -q "$told" out && fail '--quiet is not'
exit 0
