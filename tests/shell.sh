# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: BSD-3-Clause
#
# For tests that count what is wrong, sourced: a folder of their own, $here, which they are in. What the last command has said is
# in out and err there. `prefix`, if it is set, are words before those of each command that is run.
here=$(mktemp -d) || exit 70
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 70
: >out
: >err
failures=0 checks=0

wrong() {
	failures=$((failures + 1))
	echo "FAILED: $*" >&2
	for said in out err; do
		tail -n 30 "$here/$said" | cut -c 1-300 | sed "s/^/	std$said: /" >&2
	done
}
# run STATUS WORD...
run() {
	expected=$1
	shift
	called="$*"
	checks=$((checks + 1))
	# shellcheck disable=SC2086 # words
	$prefix "$@" >"$here/out" 2>"$here/err" </dev/null
	status=$?
	[ $status -eq "$expected" ] || wrong "exit status $status instead of $expected: $called"
}
# has TEXT [FILE], has_not: in out. says PATTERN: a line of it. complains TEXT: one line on stderr, with this.
has() { grep -qF -e "$1" "${2:-$here/out}" || wrong "no '$1' in ${2:-out}: $called"; }
has_not() { ! grep -qF -e "$1" "${2:-$here/out}" || wrong "'$1' in ${2:-out}: $called"; }
says() { grep -Eq -e "$1" "$here/out" || wrong "no line '$1': $called"; }
complains() {
	[ "$(wc -l <"$here/err")" -eq 1 ] || wrong "not one line on stderr: $called"
	grep -qF -e "$1" "$here/err" || wrong "no '$1' on stderr: $called"
}
# bad TEXT WORD...: refused so.
bad() {
	text=$1
	shift
	run 2 "$@"
	complains "$text"
}
# The test's last command.
ended() {
	echo "$checks commands, $failures failures"
	[ $failures -eq 0 ]
}
