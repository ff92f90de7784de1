#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_defaults.sh TIDEMARK SOURCES: --help prints the defaults that the program uses, and docs/ say the same.
#
# --help takes a default from where the program does ("(=" in cli/*.c). So no help text has a number of its own, a command
# does the same without an option and with the value that is shown, and what stands in tables of docs/ stands in --help.
set -u
tidemark=$1 checks=0 failed=0
cd "$2" || exit 70
work=$(mktemp -d) || exit 70
trap 'rm -rf "$work"' EXIT
wrong()
{
	echo "$*" >&2
	failed=1
}

# --- the sources ---

if grep -nE '^[^/]*"[^"]*\([0-9]+[a-zA-Z]?[);:]' cli/*.c cli/*/*.c cli/*.h >"$work/copies"; then
	wrong "a default is written in a help text; \"(=\" prints the one that the program uses: $(cat "$work/copies")"
fi

# --- what the program does ---

# shown COMMAND OPTION: the default of it in --help.
shown()
{
	"$tidemark" "$1" --help | sed -nE "/^  (-[a-z], )?--$2 /,/^  -/p" | tr '\n' ' ' | sed -E 's/^([^(]*)\(([^);]*)[);].*/\2/'
}

# same OPTION... -- COMMAND WORD...: it prints the same if each option is given as it is shown.
same()
{
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	given=
	for option in $options; do
		value=$(shown "$1" "$option")
		[ -n "$value" ] || wrong "tidemark $1 --help shows no default of --$option"
		for one in $(echo "$value" | tr ',' ' '); do
			given="$given --$option $one"
		done
	done
	"$tidemark" "$@" 2>"$work/err" | grep -v ' in [0-9.]* s' >"$work/without"
	# shellcheck disable=SC2086
	"$tidemark" "$@" $given 2>>"$work/err" | grep -v ' in [0-9.]* s' | cmp -s - "$work/without" ||
		wrong "tidemark $* differs with$given: $(cat "$work/err")"
	[ -s "$work/without" ] || wrong "tidemark $* prints nothing"
	checks=$((checks + 1))
}
same runs states seed -- crashtest erda --workload w --no-traces
same preemptions faults -- crashtest erda --workload w --exhaustive --no-traces
same value key -- count erda
same runs states seed -- ablate erda --workload w --place rt_check --no-traces

# --- the docs ---

# Each row of a table that says a default, as COMMAND|DEFAULT|PLACE.
for page in docs/cli.md docs/count.md docs/nic/guide.md; do
	awk -v command="$(case $page in */count.md) echo count ;; */guide.md) echo run ;; esac)" '
	FILENAME ~ /cli\.md$/ && /^###? / { command = $2; sub(",", "", command) }
	/^\| *`--/ {
		text = $0
		gsub(/ minutes by default/, "m by default", text)
		gsub(/ s by default/, "s by default", text)
		while (match(text, /(`[^` ]+`|[0-9][0-9A-Za-z]*) by default|\([0-9]+\)/)) {
			word = substr(text, RSTART, RLENGTH)
			text = substr(text, RSTART + RLENGTH)
			sub(/ by default/, "", word)
			gsub(/[`()]/, "", word)
			print command "|" word "|" FILENAME ":" FNR
		}
	}' "$page"
done >"$work/defaults"
while IFS='|' read -r command value place; do
	"$tidemark" "$command" --help | tr -s ' \n' ' ' >"$work/help"
	grep -qE "\\(($value|[^()]*[, ]$value)[),;]" "$work/help" || wrong "$place: tidemark $command --help has no default $value"
	checks=$((checks + 1))
done <"$work/defaults"

[ $checks -ge 12 ] || wrong "only $checks defaults were compared: are the patterns right?"
echo "$checks comparisons"
exit $failed
