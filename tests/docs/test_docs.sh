#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# What README.md and docs/ name exists: files and folders of the tree, links between pages, commands
# and options of tidemark, targets of make, enumerators and types, and functions.
#
#	test_docs.sh TIDEMARK SOURCES
set -u
tidemark=$1
cd "$2" || exit 70
work=$(mktemp -d) || exit 70
trap 'rm -rf "$work"' EXIT
pages="README.md $(find docs -name '*.md' | sort)"
failed=0
wrong()
{
	echo "$*" >&2
	failed=1
}

# All words between backquotes, each as PAGE:LINE:WORDS.
grep -no '`[^`]*`' $pages /dev/null | tr -d '`' >"$work/quoted"
# Commands: what stands between backquotes, and lines of examples.
{
	cat "$work/quoted"
	grep -n '^    ' $pages /dev/null
} >"$work/commands"

# --- files and folders ---

rooms='core|checker|cli|cmake|docs|examples|faultinject|fuzz|report|scenarios|scripts|tests|vm'
grep -noE "(^|[^A-Za-z0-9_./<-])($rooms)/[A-Za-z0-9_./*-]*" $pages /dev/null |
	sed -E "s/^([^:]*:[0-9]+:)[^A-Za-z]*/\1/" | sort -u >"$work/paths"
[ "$(wc -l <"$work/paths")" -gt 100 ] || wrong "the docs name hardly any file: is the pattern right?"
while IFS=: read -r page line path; do
	path=${path%.}
	case $path in
	*NAME* | *COMMAND*) continue ;; # to be filled in
	esac
	set -- $path
	[ -e "$1" ] || wrong "$page:$line: there is no $path"
done <"$work/paths"

# What the code says of docs/ is there, too.
grep -rnoE --include='*.[ch]' --include='*.sh' --include='*.txt' --include='*.md' --include=Makefile 'docs/[a-z/-]+\.md' \
	core checker cli cmake faultinject fuzz report scenarios scripts tests vm Makefile >"$work/mentions"
[ "$(wc -l <"$work/mentions")" -gt 20 ] || wrong "the code names hardly any page: is the pattern right?"
while IFS=: read -r file line page; do
	[ -e "$page" ] || wrong "$file:$line: there is no $page"
done <"$work/mentions"

# --- links ---

grep -noE '\]\([^)#]*' $pages /dev/null | sed 's/](//' >"$work/links"
while IFS=: read -r page line to; do
	case $to in http*) continue ;; esac
	[ -e "$(dirname "$page")/$to" ] || wrong "$page:$line: there is no $to"
done <"$work/links"

# --- commands and their options ---

"$tidemark" --help >"$work/help" 2>&1 || wrong "tidemark --help fails"
sed -nE 's/.*tidemark ([a-z][a-z+-]*).*/\1/p' "$work/commands" | sort -u >"$work/names"
[ "$(wc -l <"$work/names")" -gt 15 ] || wrong "the docs name hardly any command: is the pattern right?"
grep -oE 'tidemark [a-z][a-z+-]*( [^|<>&#`]*)?' "$work/commands" | sort -u >"$work/calls"
while read -r name; do
	grep -qE "^ +(tidemark )?${name%++}(\+\+)?( |$)" "$work/help" || continue
	"$tidemark" "$name" --help >"$work/help.$name" 2>&1 || wrong "tidemark $name --help fails"
done <"$work/names"
# A command that --help does not list is a word of a sentence, unless options follow it.
grep -noE 'tidemark [a-z][a-z+-]*( [^|<>&#`]*)?' "$work/commands" | sed 's/^[0-9]*://' | sort -u |
while read -r program name rest; do
	[ "$program" = tidemark ] || continue
	if [ ! -e "$work/help.$name" ]; then
		case $rest in
		--* | *' --'*) echo "tidemark $name: there is no such command: '$rest'" ;;
		esac
		continue
	fi
	for option in $rest; do
		case $option in
		--) break ;;
		--[a-z]*)
			option=$(echo "$option" | sed -E 's/^(--[a-z-]+).*/\1/')
			grep -qE -- "$option([^a-z-]|$)" "$work/help.$name" ||
				echo "tidemark $name has no option $option (tidemark $name $rest)"
			;;
		esac
	done
done >"$work/wrong"
while read -r text; do wrong "$text"; done <"$work/wrong"
# Between backquotes, or at the start of an example, it is a command.
{
	sed -nE 's/^[^:]*:[0-9]*:(build\/)?tidemark ([a-z][a-z+-]*).*/\2/p' "$work/quoted"
	sed -nE 's/^[^:]*:[0-9]*:    +(build\/)?tidemark ([a-z][a-z+-]*).*/\2/p' "$work/commands"
} | sort -u >"$work/named"
while read -r name; do
	[ -e "$work/help.$name" ] || wrong "tidemark $name: there is no such command"
done <"$work/named"

# Tables of options: of which command is the page's subject, in docs/cli.md the heading's.
table()
{
	grep -oE -- '^\| [^|]*`--[^|]*' | grep -oE -- '`--[a-z-]+' | tr -d '`' | sort -u
}
table_of()
{
	name=$1 page=$2 found=0
	[ -e "$work/help.$name" ] || "$tidemark" "$name" --help >"$work/help.$name" 2>&1
	for option in $(table); do
		found=$((found + 1))
		grep -qE -- "$option([^a-z-]|$)" "$work/help.$name" || wrong "$page: tidemark $name has no option $option"
	done
	[ $found -gt 1 ] || wrong "$page: no table of tidemark $name's options: is the pattern right?"
}
for of in examine:docs/examine.md count:docs/count.md \
	litmus:docs/litmus.md run:docs/nic/guide.md; do
	table_of "${of%:*}" "${of#*:}" <"${of#*:}"
done
for name in crashtest cut; do
	awk -v name="$name" '/^#/ { on = 0 } $0 ~ "^### " name "(,|$)" { on = 1 } on' docs/cli.md >"$work/section"
	table_of "$name" docs/cli.md <"$work/section"
done

# The other way round: each command and each option that --help names is somewhere in the docs.
sed -nE 's/^  ([a-z][a-z+-]*) .*/\1/p' "$work/help" | sort -u >"$work/listed"
[ "$(wc -l <"$work/listed")" -gt 15 ] || wrong "tidemark --help lists hardly any command: is the pattern right?"
while read -r name; do
	grep -qE "^\|.*\`$name[ \`].*\|.*\|\$" docs/cli.md || wrong "docs/cli.md: no command $name"
	"$tidemark" "$name" --help 2>&1 | grep -oE -- '--[a-z][a-z-]*' | sort -u >"$work/options"
	while read -r option; do
		grep -qE -- "$option([^a-z-]|$)" $pages || wrong "no page names tidemark $name $option"
	done <"$work/options"
done <"$work/listed"

# --- targets of make, here or in the folder that new-store makes ---

grep -ohE '(`|^    )make [a-z-]+' $pages | awk '{print $NF}' | sort -u >"$work/targets"
while read -r target; do
	grep -qE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile scripts/sdk/new/Makefile ||
		wrong "make has no target $target"
done <"$work/targets"

# --- names in the code ---

find core checker cli faultinject fuzz report scenarios -name '*.[ch]' >"$work/sources"
xargs cat <"$work/sources" | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$work/identifiers"
own='docs/architecture.md docs/contributing.md docs/glossary.md'
grep -noE '`[a-z_]+\(\)|`(enum|struct) [a-z_]+|`[A-Z]+_[A-Z_]+`' $own /dev/null | tr -d '`()' |
	sed -E 's/(enum|struct) //' >"$work/code"
[ "$(wc -l <"$work/code")" -gt 30 ] || wrong "the docs name hardly any function: is the pattern right?"
while IFS=: read -r page line name; do
	grep -qx "$name" "$work/identifiers" || wrong "$page:$line: the code has no $name"
done <"$work/code"

exit $failed
