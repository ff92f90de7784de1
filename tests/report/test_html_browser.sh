#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_html_browser.sh PROGRAM TESTS
#
# The pages of tidemark replay --html, crashtest --html and images --html in a real browser: a script is put behind a copy of the page that
# measures how it is laid out, presses its keys, uses its filter, and writes what is wrong into the document, which is then
# dumped. Wide and narrow, light and dark; and printed. Of other commands' pages: there are tables. Skipped where there is no browser (Debian: chromium).
tidemark=$1 tests=$2
. "$(dirname "$0")/../shell.sh"
looks=0
. "$tests/report/browser.sh"

# measure NAME PAGE SCRIPT UNIT
measure() {
	{
		sed '0,/<head>/s|<head>|<head><script>window.pageErrors=[];window.onerror=function(m){pageErrors.push(m)}</script>|' "$2"
		echo '<script>'
		cat "$tests"/report/{colours,layout}.js "$tests/report/$3"
		echo '</script>'
	} >"$here/measured.html"
	for look in 1400,900:1 800,900:1 700,900:0; do
		browse --window-size=${look%:*} --blink-settings=preferredColorScheme=${look#*:} --dump-dom "file://$here/measured.html"
		looks=$((looks + 1))
		grep -q "<pre id=\"measured\">measured [1-9][0-9]* $4; well</pre>" "$here/dom" ||
			wrong "$1, ${look%,*} wide: $(grep -o '<pre id="measured">.*' "$here/dom" | cut -c1-400)"
		grep -q 'CONSOLE' "$here/messages" && wrong "$1: $(grep CONSOLE "$here/messages" | head -n 2 | cut -c1-300)"
	done
	browse --no-pdf-header-footer --print-to-pdf="$here/page.pdf" "file://$2"
	head -c 5 "$here/page.pdf" 2>/dev/null | grep -q '%PDF-' || wrong "$1: it is not printed"
	rm -f "$here/page.pdf"
}

for trace in "$tests"/traces/{efactory-DUR,efactory-LIN,efactory-recover_clears-KEEP,erda-KEEP-two-writers,erda-line_torn=on-DUR}.trace \
	"$tests"/causes/{efactory-get_no_fence-MONO,erda-crc_unchecked-RDA}.trace; do
	name=$(basename "$trace" .trace)
	"$tidemark" replay -q "$trace" --html "$here/page.html" >"$here/out"
	measure "$name" "$here/page.html" measure.js marks
done
# A bug that nobody expects, so that something needs attention.
"$tidemark" crashtest efactory --variant get_no_fence --runs 60 --states 600 --out "$here/traces" --html "$here/pages" >"$here/out" 2>&1
[ $? -eq 1 ] || wrong "crashtest: $(tail -n 1 "$here/out")"
measure index "$here/pages/index.html" measure_index.js cells
# The crash images of a log: two lost stores, a long run before, and a name that is longer than a lane's.
{
	printf 'START|REGISTER_FILE;%s/a-pool-whose-name-is-long;0x10000000;0x1000;0x0' "$here"
	printf '|STORE;0x10000040;0x2a;0x8;set_data (data.c:5)|STORE;0x100000bf;0x1;0x1;count (data.c:9)|PUT.BEGIN'
	for at in $(seq 100 140); do printf '|STORE;0x10000%s;0x%s;0x4|FLUSH;0x10000%s;0x40|FENCE' "${at}" "$at" "${at}"; done
	printf '|STORE;0x10000000;0x1;0x8;set_flag (flag.c:3)|FLUSH;0x10000000;0x40|FENCE|FLUSH;0x10000040;0x40|FENCE|STOP\n'
} >"$here/store.log"
cat >"$here/check.sh" <<'END'
[ $(($(od -An -tu8 -N8 "$1"))) -ne 1 ] || { [ $(($(od -An -tu8 -j64 -N8 "$1"))) -eq 42 ] && [ $(($(od -An -tu1 -j191 -N1 "$1"))) -eq 1 ]; }
END
"$tidemark" images -q "$here/store.log" --pool zero --most 40 --recover "sh $here/check.sh {}" --html "$here/images.html" >"$here/out" 2>&1
[ $? -eq 1 ] || wrong "images: $(tail -n 1 "$here/out")"
measure images "$here/images.html" measure_images.js marks
# Of any other tree the fields are tables, without those that are there for the terminal's text alone.
printf '1 call put k 5\n1 return ok\n2 call get k\n2 return value 9\n' >"$here/history"
"$tidemark" judge -q "$here/history" --html "$here/judge.html" >"$here/out"
"$tidemark" litmus -q "$tests/../scenarios/litmus/eadr_sb.litmus" --html "$here/litmus.html" >"$here/out"
"$tidemark" count erda --html "$here/count.html" >"$here/out"
for name in judge litmus count; do
	shown "$here/$name.html" >"$here/shown" 2>"$here/said"
	grep -q '^<table class=any>' "$here/shown" || wrong "$name: there is no table: $(cat "$here/said")"
	grep -q '<th>shown' "$here/shown" && wrong "$name: what is there for the text is shown"
done
# Bars of what time is made of; a point for each store and its marks.
"$tidemark" times herd erda -q --html "$here/times.html" >"$here/out"
shown "$here/times.html" >"$here/shown" 2>"$here/said"
[ "$(grep -o '<div class=bar>' "$here/shown" | wc -l)" -eq 4 ] || wrong "times: not four bars: $(cat "$here/said")"
"$tidemark" times --contracts herd erda pilaf -q --html "$here/times.html" >"$here/out"
shown "$here/times.html" >"$here/shown" 2>"$here/said"
[ "$(grep -o '<circle' "$here/shown" | wc -l)" -eq 3 ] || wrong "times: not three points: $(cat "$here/said")"
grep -q '<td class=breaks title="broken">X' "$here/shown" || wrong "times: nothing breaks: $(cat "$here/said")"
echo "$looks looks with $browser, $failures failures"
[ $failures -eq 0 ]
