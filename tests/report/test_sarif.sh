#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_sarif.sh TIDEMARK SOURCES
#
# What needs attention, for code scanning: SARIF with a result for each way of breaking a contract, at the line that replay
# names, with a fingerprint that other seeds share; and the same as annotations.
tidemark=$(realpath "$1") sources=$(realpath "$2")
command -v python3 >/dev/null || exit 77
. "$(dirname "$0")/../shell.sh"
cd "$sources" || exit 70
# A small campaign.
prefix="$tidemark crashtest efactory --workload w-r --runs 60 --states 800 -q --out $here/traces"

# checked NAME [TOP]: the file NAME.sarif is SARIF; its results are in NAME.
checked() { python3 "$sources/tests/report/sarif_check.py" "$here/$1.sarif" "${2:-$sources}" >"$here/$1" 2>"$here/err" || wrong "$1: no good SARIF"; }

# --- results and their lines ---

run 1 --variant one_flush --jobs 1 --sarif "$here/flush.sarif" --json "$here/flush.json" --annotations
cp "$here/out" "$here/annotated"
checked flush
python3 - "$here/flush.json" "$here/flush" <<'END' || wrong 'results are not the cells that need attention, with their other ways'
import json, sys
cells = json.load(open(sys.argv[1]))["cells"]
expected = [c["contract"] for c in cells if not c["as_expected"] for _ in range(1 + len(c["others"]))]
assert len(expected) >= 3 and len(set(expected)) < len(expected), expected
assert sorted(expected) == sorted(line.split()[0] for line in open(sys.argv[2])), expected
END
# The place to look at first, as the event trace says.
for contract in KEEP MONO RDA; do
	"$tidemark" replay --brief "$here/traces/efactory-one_flush-$contract.trace" >"$here/replayed"
	first=$(tr '\n' ' ' <"$here/replayed" | tr -s ' ' | grep -o 'Look first at [a-z_]*() at [^,]*' | sed 's/.* //')
	at=$(grep -m 1 "^$contract " "$here/flush" | cut -d ' ' -f 3)
	[ -n "$first" ] && [ "$first" = "$at" ] || wrong "$contract is told at '$at', and to look first at '$first'"
done
grep -q '"text": ".*: MONO is broken: .*\\nWhy: .*\\nTo see it: tidemark replay .*MONO.trace"' "$here/flush.sarif" || wrong 'a message lacks the sentence, the cause or the command'

# --- the same for any number of processes; other seeds and runs: the same fingerprints ---

run 1 --variant one_flush --jobs 3 --sarif "$here/jobs.sarif"
cmp -s "$here/flush.sarif" "$here/jobs.sarif" || wrong 'other bytes with another number of processes'
prints() { cut -d ' ' -f 1,2 "$here/$1" | sed 's/:[0-9]*$//' | sort -u; }
for seed in 2 3; do
	run 1 --variant one_flush --seed $seed --sarif "$here/seed.sarif"
	checked seed
	cmp -s "$here/flush.sarif" "$here/seed.sarif" && wrong 'another seed makes no difference at all: the test shows nothing'
	# A seed may find a contract more.
	comm -23 <(prints flush) <(prints seed) >"$here/err"
	[ ! -s "$here/err" ] || wrong "other fingerprints with seed $seed"
done
run 1 --variant get_no_fence --sarif "$here/fence.sarif"
checked fence
[ -z "$(comm -12 <(prints flush) <(prints fence))" ] || wrong 'two bugs have one fingerprint'
# The same cause, of another variant, and under another configuration.
causes() { cut -d ' ' -f 4- "$here/$1" | sort -u; }
for other in '--variant born_durable' '--variant get_no_fence --knob mtu=256'; do
	# shellcheck disable=SC2086
	run 1 $other --sarif "$here/other.sarif"
	checked other
	[ -n "$(comm -12 <(causes fence) <(causes other))" ] || wrong "no cause in common: the test shows nothing: $other"
	[ -z "$(comm -12 <(prints fence) <(prints other))" ] || wrong "one fingerprint of two: $other"
done

# --- annotations ---

grep -qx '::error title=tidemark::Not everything is as it should be: efactory one_flush .*' "$here/annotated" || wrong 'no annotation says what it comes to'
grep '^::.* of ' "$here/annotated" >"$here/commands"
[ "$(wc -l <"$here/commands")" -eq "$(wc -l <"$here/flush")" ] || wrong "$(wc -l <"$here/commands") annotations"
sed -nE 's/^::error file=([^,:]*),line=([0-9]+),title=([A-Z]+) of [^:,]*::.*%0AWhy: .*%0ATo see it: tidemark replay .*/\3 \1:\2/p' "$here/commands" |
	diff - <(cut -d ' ' -f 1,3 "$here/flush") >"$here/err" || wrong 'annotations stand elsewhere'

# --- nothing, to standard output ---

run 0 --sarif -
cp "$here/out" "$here/none.sarif"
checked none
[ ! -s "$here/none" ] || wrong 'what breaks as expected has a result'

# --- a store of one's own, in a folder of a repository ---

mkdir -p "$here/repository/.git" "$here/repository/stores"
cd "$here/repository/stores" || exit 70
"$tidemark" new-store mine >"$here/out" 2>&1 && cd mine && "$tidemark" cc -g -o mine.so mine.c >"$here/out" 2>"$here/err" || wrong 'no store of its own'
"$tidemark" crashtest ./mine.so --variant flag_only --runs 40 --states 800 -q --sarif "$here/mine.sarif" >"$here/out" 2>"$here/err"
[ $? -eq 1 ] || wrong 'the bug of the new store is not found'
checked mine "$here/repository"
grep -q ' stores/mine/mine.c:[0-9]* ' "$here/mine" || wrong "not from the top of the repository: $(cat "$here/mine")"

ended
