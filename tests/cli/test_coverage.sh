#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_coverage.sh TIDEMARK SOURCES
#
# crashtest --coverage of a store outside the tree: it names the lines of recovery that never ran, and the flushes and fences
# at which power was never cut, and no others; says what ran in which phase; and is the same for any number of processes.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
few=(--runs 40 --states 400 --workload ww --workload w-r --workload wd --no-traces -q)

run 0 tidemark new-store mine
cd mine
# A branch of recovery for what no workload has; a flush of what has long been durable; a fence after nothing; a function that
# nobody calls.
sed -i -e '/^static int recover(/,/^}/s|^\treturn 0;|\tif (record_at(env, 0)->klen > TM_MAX_KEY) {\n\t\tpmem_persist(env->pm, 8); /* UNREACHED */\n\t\treturn -EIO; /* NEVER */\n\t}\n\treturn 0;|' \
	-e '/^static void fsck(/i static void nobody(struct tm_fsck *fsck)\n{\n\tfsck->bad(fsck, "NOBODY");\n}\n' \
	-e '/^static void fsck(/,/^}/s|^\tfor|\tif (record_at(env, 0)->klen > TM_MAX_KEY)\n\t\tnobody(fsck);\n\tfor|' \
	-e 's|^\t\treply->vlen = r->vlen;|\t\tpmem_flush(r, 8); /* IDLE-FLUSH */\n\t\tpmem_drain(); /* IDLE-FENCE */\n&|' mine.c
# line TEXT: the number of the line that has it; with a number after it, so many lines below.
line() { echo $(($(grep -n -m1 -F -- "$1" mine.c | cut -d: -f1) + ${2-0})); }
run 0 tidemark cc --coverage -g -o mine.so mine.c
run 0 tidemark crashtest ./mine.so "${few[@]}" --jobs 1 --json plain.json
run 0 tidemark crashtest ./mine.so "${few[@]}" --jobs 1 --json covered.json --coverage=one
same plain.json covered.json || fail "coverage has changed the results"
sed -n '/^coverage of mine/,$p' out >one.txt
# told WHAT: what the text says after "WHAT: ", in one line.
told() { awk -v what="  $1: " 'index($0, what) == 1 { on = 1; print substr($0, length(what) + 1); next } on && /^  [^ ]/ && !/^  [a-z]+( [a-z]+)*: / { print; next } { on = 0 }' one.txt | sed 's/^ *//' | tr '\n' ' ' | sed 's/ $//'; }

# --- lines ---

expected="mine.c:$(line UNREACHED)-$(line NEVER), $(line 'nobody(fsck);'), $(line 'fsck->bad(fsck, "record')"
[ "$(told 'never ran in recovery')" = "$expected" ] || fail "not recovered: $(told 'never ran in recovery'), not $expected"
expected="$(line 'static void nobody' 1)-$(line 'NOBODY' 1)"
[[ ", $(told 'never ran')," == *", $expected,"* ]] || fail "a function that is never called is not $expected: $(told 'never ran')"

# count TEST LINE: how often the tracefile says that the line ran there; "-": nothing.
count() { awk -F '[:,]' -v "test=$1" -v "line=$2" '$1 == "TN" { on = $2 == test } on && $1 == "DA" && $2 == line { n = $3; found = 1 } END { print found ? n : "-" }' one/coverage.info; }
# ran LINE RUN RECOVERY SECOND-LIFE: each y, n or -.
ran() {
	local test said=''
	for test in run recovery second_life; do
		case $(count $test "$1") in
		0) said+=" n" ;;
		-) said+=" -" ;;
		*) said+=" y" ;;
		esac
	done
	[ "$said" = " $2 $3 $4" ] || fail "line $1 ran: $said, not $2 $3 $4"
}
ran "$(line 'for (size_t i = 0; record_at(env, i)->used; i++)')" y y y # recover
ran "$(line 'const struct record *r = record_at(env, i);')" y y y # fsck; in a run, once its process has died
ran "$(line 'r->used = 1;')" y - y				       # append
ran "$(line 'NEVER')" n n n
ran "$(line 's->records++;' 0)" y - y # serve
ran "$(line 'pmem_persist(env->pm, env->pm_len)')" y - n
[ "$(count run "$(line 'r->used = 1;')")" -gt 1 ] || fail "it ran in one workload alone"

# --- cuts ---

# What recovery flushes is durable already once the power has failed, and that it fails where only the process died is rare.
told_cuts() {
	tr '\n' ' ' <one.txt | grep -o 'never cut: *mine.c:[0-9]*, [a-z]*' | sed 's/never cut: *//' |
		grep -v ":$(line 'pmem_persist(&record_at')," | tr '\n' ';'
}
expected="mine.c:$(line UNREACHED), flush;mine.c:$(line UNREACHED), fence;mine.c:$(line 'IDLE-FLUSH'), flush;mine.c:$(line 'IDLE-FENCE'), fence;"
[ "$(told_cuts)" = "$expected" ] || fail "never cut: $(told_cuts), not $expected"
# --- the same for any number of processes ---

run 0 tidemark crashtest ./mine.so "${few[@]}" --jobs 2 --coverage=two
diff one/coverage.info two/coverage.info >out 2>&1 || fail "it depends on the number of processes"

# --- with the other compiler: blocks that it need not look at are looked at ---

TIDEMARK_CC=clang run 0 tidemark cc --coverage -g -o clang.so mine.c
before=$(told 'never ran in recovery')
run 0 tidemark crashtest ./clang.so "${few[@]}" --coverage
sed -n '/^coverage of mine/,$p' out >one.txt
[ "$(told 'never ran in recovery')" = "$before" ] || fail "clang: $(told 'never ran in recovery'), not $before"

# --- a store of the tree, whose clients write to persistent memory by themselves ---

bad 'remotelog is built in' tidemark crashtest remotelog "${few[@]}" --coverage
run 0 tidemark cc --coverage -g "-I$sources" -o log.so "$sources"/core/stores/remotelog/*.c "$sources"/core/stores/*.c
run 0 tidemark crashtest ./log.so "${few[@]}" --coverage
says 'landings         1 of     1 places cut' stores/remotelog/

# --- C++ ---

cp "$sources/examples/bank/bank.cc" .
run 0 tidemark c++ --coverage -std=c++20 -g -o bank.so bank.cc
run 0 tidemark crashtest ./bank.so --knob domain=dmp --runs 4 --states 40 --no-traces -q --coverage
sed -n '/^coverage of bank/,$p' out >one.txt
[[ "$(told 'never ran in recovery')" == bank.cc:* ]] || fail "C++: $(told 'never ran in recovery')"

# --- files, and what is refused ---

if command -v genhtml >/dev/null; then
	[ -s one/index.html ] || fail "there are no pages"
else
	run 0 tidemark crashtest ./mine.so "${few[@]}" --coverage=one
	says 'one has no pages: genhtml is not installed (package lcov)'
fi
echo >file
bad '--coverage' tidemark crashtest ./mine.so "${few[@]}" --coverage=file
strip -o stripped.so mine.so
bad 'no debug information' tidemark crashtest ./stripped.so "${few[@]}" --coverage=none
[ ! -e none ] || fail "it leaves an empty folder"
run 0 tidemark cc -g -o plain.so mine.c
bad 'no hooks of coverage' tidemark crashtest ./plain.so "${few[@]}" --coverage
