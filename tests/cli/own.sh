# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# For tests that end with the first thing that is wrong, sourced: test_NAME.sh TIDEMARK [SOURCES]. They run in a folder of their
# own, where `tidemark` is the program.
set -eu
tidemark=$(realpath "$1") sources=$(realpath "${2:-.}")
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
export PATH=$here/bin:$PATH
mkdir bin
ln -s "$tidemark" bin/tidemark

fail() {
	echo "FAILED: $*" >&2
	tail -n 30 out >&2
	exit 1
}
# run STATUS COMMAND...: its output goes to out.
run() {
	local expected=$1 status=0
	shift
	"$@" >out 2>&1 </dev/null || status=$?
	[ $status -eq "$expected" ] || fail "exit status $status instead of $expected: $*"
}
# same FILE FILE: results that differ in how long they took, at most.
same() { cmp <(grep -v '"seconds"' "$1") <(grep -v '"seconds"' "$2"); }
# says TEXT...: out has each, wherever its lines are wrapped.
says() {
	local text
	for text; do
		grep -qF -- "$text" out || tr -s ' \n' ' ' <out | grep -qF -- "$text" || fail "not a word of: $text"
	done
}
# inlined FILE: a source with <tidemark/serve.h> in it, so that this can be changed, too.
inlined() { sed -e "/^#include <tidemark.serve.h>/{r $(dirname "$tidemark")/sdk/include/tidemark/serve.h" -e 'd}' "$1"; }
# compile NAME[.so] [OPTION...]: NAME.c, with the headers in program.h.
prelude=$sources/tests/cli/program.h
compile() { run 0 gcc -g -O1 -Wall -Wextra -Werror -include "$prelude" -o "$1" "${1%.so}.c" "${@:2}"; }
# log NAME TOKEN...: as pmemcheck logs what happens to $pool. There is a flag at 0, and data at 64.
pool=$here/pool flush_flag='FLUSH;0x10000000;0x40' flush_data='FLUSH;0x10000040;0x40'
log() { (IFS='|'; echo "START|REGISTER_FILE;$pool;0x10000000;0x1000;0x0|${*:2}") >"$1"; }
# For sources that include core/verbs_compat.h: what <infiniband/verbs.h> has already.
verbs_flags() {
	if echo '#include <infiniband/verbs.h>' | gcc -E - | grep -q ibv_wr_flush; then
		echo -DTM_VERBS_FLUSH
	fi
}
one_line() { [ "$(wc -l <out)" -eq 1 ] || fail "more than one line"; }
# bad TEXT COMMAND...: refused so.
bad() {
	run 2 "${@:2}"
	one_line
	says "$1"
}
