#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_completion_bash.sh TIDEMARK FILE: what bash's completion (FILE) offers for a command line.
set -u
tidemark=$1 failed=0
# shellcheck source=/dev/null
. "$2"

# offers EXPECTED WORD...: of a command line whose last word is to be completed, all of these words are offered, and each that
# is offered begins with that word. EXPECTED may be empty: nothing is offered.
offers() {
	local expected=$1 word
	shift
	COMP_WORDS=("$tidemark" "$@") COMP_CWORD=$# COMPREPLY=()
	_tidemark
	for word in $expected; do
		[[ " ${COMPREPLY[*]} " = *" $word "* ]] || {
			echo "completion of '$*': $word is not offered, but ${COMPREPLY[*]}" >&2
			failed=1
		}
	done
	for word in "${COMPREPLY[@]}"; do
		if [ -z "$expected" ] || { [ "${!#}" != = ] && [[ $word != "${!#}"* ]]; }; then
			echo "completion of '$*': $word is offered" >&2
			failed=1
		fi
	done
}

complete -p tidemark | grep -q -- '-F _tidemark ' || {
	echo 'no completion is registered' >&2
	failed=1
}
offers '--help --version' --
offers crashtest cr
offers '' no-such-command-
offers 'efactory erda' crashtest e
offers 'efactory erda' crashtest --runs 20 e
offers '--variant --workload --jobs -q' crashtest -
offers --variant crashtest --va
offers 'default one_flush' crashtest --variant ''
offers one_flush crashtest efactory --variant one_
offers ww crashtest --workload w
offers 'ddio= domain=' crashtest --knob d
offers 'on off' crashtest --knob ddio =
offers on crashtest --knob ddio = on
offers '' crashtest --runs ''
offers '' crashtest --json x
offers /usr crashtest --out /u
offers 'shm udp' run --link ''
offers '--dropin' run --d
offers sh run --link shm -- sh
offers '' run -- sh ''
offers 'stores variants bugs knobs workloads contracts failures' list ''
offers write-no-lkey verbs wr
offers P1 claims P
offers 'one_flush' mutants one_
offers efactory mutants ef
offers efactory serve --pm x ef

# Every command and option that --help has is offered: nothing depends on a list here or there.
mapfile -t commands < <("$tidemark" --help | awk '/^  [a-z]/ { print $1 }')
offers "${commands[*]}" ''
for command in "${commands[@]}"; do
	offers "$("$tidemark" "$command" --help | sed -nE 's/^  (-[a-z], )?(--[a-z-]+).*/\2/p')" "$command" --
done
exit $failed
