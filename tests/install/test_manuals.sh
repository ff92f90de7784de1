#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_manuals.sh TIDEMARK FOLDER: the manual pages in FOLDER are clean, there is one for each command, and it has each of the
# command's options.
set -u
tidemark=$1 pages=$2 failed=0
wrong() {
	echo "$*" >&2
	failed=1
}

if command -v mandoc >/dev/null; then
	mandoc -Tlint -W style "$pages"/man*/* >&2 || wrong "mandoc has something to say"
else
	echo 'no mandoc: it is not asked'
fi
if command -v man >/dev/null && command -v groff >/dev/null; then
	for page in "$pages"/man*/*; do
		said=$(MANROFFSEQ='' MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
		[ -z "$said" ] || wrong "man --warnings: $said"
	done
else
	echo 'no man or groff: they are not asked'
fi

mapfile -t commands < <("$tidemark" --help | awk '/^  [a-z]/ { print $1 }')
[ ${#commands[@]} -gt 15 ] || wrong "tidemark --help names hardly any command: is the pattern right?"
for command in "${commands[@]}"; do
	page=$pages/man1/tidemark-$command.1
	if [ ! -e "$page" ]; then
		wrong "there is no tidemark-$command(1)"
		continue
	fi
	grep -qF "\\fB${command//-/\\-}\\fR" "$pages/man1/tidemark.1" || wrong "tidemark(1) does not have $command"
	for section in NAME SYNOPSIS DESCRIPTION 'SEE ALSO'; do
		grep -qE "^\.SH \"?$section\"?\$" "$page" || wrong "tidemark-$command(1) has no section $section"
	done
	while read -r option; do
		grep -qF "\\fB${option//-/\\-}\\fR" "$page" || wrong "tidemark-$command(1) has no $option"
	done < <("$tidemark" "$command" --help | sed -nE 's/^  (-[a-z], )?(--[a-z-]+).*/\2/p')
done
grep -q 'struct tm_store {' "$pages/man3/tidemark-store.3" || wrong "tidemark-store(3) does not have the interface"
exit $failed
