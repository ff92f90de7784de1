#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_baseline.sh TIDEMARK
#
# A baseline accepts what needs attention, by its causes: the same cell with another cause, another variant and another
# contract still fail; what is not seen any more is named, and does not fail.
tidemark=$(realpath "$1")
prefix="$tidemark crashtest efactory --workload w-r --runs 60 --states 800 -q"
. "$(dirname "$0")/../shell.sh"
says() { tr '\n' ' ' <out | tr -s ' ' | grep -qF -e "$1" || wrong "no '$1': $called"; }
says_not() { ! tr '\n' ' ' <out | tr -s ' ' | grep -qF -e "$1" || wrong "'$1': $called"; }

# --- written, and accepted ---

run 1 --variant one_flush --write-baseline known --jobs 1
[ "$(head -n 1 known)" = 'tidemark-baseline 1' ] && [ "$(wc -l <known)" -gt 3 ] || wrong "the baseline: $(cat known)"
LC_ALL=C sort -cu <(sed 1d known) || wrong 'not sorted, or a line twice'
run 1 --variant one_flush --write-baseline jobs --jobs 3
cmp -s known jobs || wrong 'another baseline with another number of processes'
run 0 --variant one_flush --baseline known --json got.json --junit got.xml --sarif got.sarif --annotations
says 'Accepted by known: efactory one_flush'
says 'accepted by the baseline'
says 'Everything that was tried is as expected'
says_not 'No longer breaks'
says_not '::error'
says '::notice title=tidemark::Everything that was tried is as expected: '
grep -q '"verdict": "broken"' got.json && grep -q '"accepted": true' got.json && ! grep -q '"as_expected": false' got.json || wrong 'JSON: not broken, accepted and as expected'
! grep -q '<failure' got.xml || wrong 'JUnit: failures'
grep -q '"results": \[\]' got.sarif || wrong 'SARIF: results'
run 0 --variant one_flush --baseline known --fail-fast
says_not 'Left off'
# Other runs that show the same causes.
run 0 --variant one_flush --baseline known --seed 2
# Blanks, empty lines and comments do not matter, nor does the order.
{ head -n 1 known; echo; echo '# a comment'; sed 1d known | LC_ALL=C sort -r | sed 's/ /  /g'; } >loose
run 0 --variant one_flush --baseline loose
says_not 'No longer breaks'

# --- what it does not accept ---

# Another cause of the same cell.
sed -E '/ MONO /s/ (nothing|value) (get|put|load|delete)( .*)?$/ foreign \2\3/' known >other
! cmp -s known other || wrong 'the test changes no cause'
run 1 --variant one_flush --baseline other --json got.json --sarif got.sarif
says 'another cause than the baseline accepts'
says 'Not everything is as it should be: efactory one_flush MONO'
says 'No longer breaks: remove it from other: efactory one_flush default MONO foreign'
grep -q '"ruleId": "MONO"' got.sarif && ! grep -q '"ruleId": "RDA"' got.sarif || wrong 'SARIF: not this contract alone'
# One of several causes.
run 1 --variant get_no_fence --write-baseline two
[ "$(grep -c ' MONO ' two)" -eq 2 ] || wrong "expected two causes of one cell: $(cat two)"
for row in 2 3; do
	sed ${row}d two >one
	run 1 --variant get_no_fence --baseline one
	says 'another cause than the baseline accepts'
	says 'Not everything is as it should be: efactory get_no_fence MONO'
done
# A row that is about the same, but needs more.
sed -E '/ MONO /s/$/ death/' known >more
run 1 --variant one_flush --baseline more
# Another contract, variant, configuration, store.
grep -v ' MONO ' known >without
run 1 --variant one_flush --baseline without
says 'Not everything is as it should be: efactory one_flush MONO'
says 'A PROMISE IS BROKEN'
for change in 's/ one_flush / get_no_fence /' 's/^efactory one_flush default /efactory one_flush ddio=off /' 's/^efactory /erda /'; do
	sed "$change" known >elsewhere
	run 1 --variant one_flush --baseline elsewhere
	says_not 'Accepted by'
	says_not 'No longer breaks'
done
# Knobs are a configuration of their own, by its whole name.
run 1 --variant one_flush --knob ddio=off --knob transport=iwarp --write-baseline knobs
grep -q '^efactory one_flush [^ ]*,[^ ]* ' knobs || wrong "the configuration's name: $(sed -n 2p knobs)"
run 0 --variant one_flush --knob ddio=off --knob transport=iwarp --baseline knobs
run 1 --variant one_flush --knob ddio=off --baseline knobs

# --- what is not seen any more ---

sed 's/ one_flush / default /' known >gone
run 0 --baseline gone --write-baseline again
[ "$(grep -c '^No longer breaks: remove it from gone: efactory default ' out)" -eq $(($(wc -l <gone) - 1)) ] || wrong 'not each row that is not seen is named'
says 'Everything that was tried is as expected'
[ "$(cat again)" = 'tidemark-baseline 1' ] || wrong "they are written again: $(cat again)"
# What was not tested is not judged, and is kept.
run 0 --baseline known --write-baseline again
says_not 'No longer breaks'
cmp -s known again || wrong 'rows of another variant are not kept'
# New ones are added.
run 1 --variant get_no_fence --baseline known --write-baseline both
run 0 --variant get_no_fence --variant one_flush --baseline both
says_not 'No longer breaks'

# --- files ---

{ cat known; echo 'efactory one_flush default MONO'; } >short
bad "short:$(wc -l <short): " --baseline short
sed '2s/MONO\|RDA\|KEEP\|DUR/XYZ/' known >contract
bad 'contract:2: ' --baseline contract
sed 1d known >headless
bad 'headless:1: expected "tidemark-baseline 1"' --baseline headless
{ cat known; echo 'efactory one_flush'; } >half
bad "half:$(wc -l <half): expected STORE VARIANT CONFIG CONTRACT SAW AGAINST [PART...]" --baseline half
cmp -s known jobs || wrong 'a file was changed'

ended
