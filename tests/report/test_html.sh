#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_html.sh PROGRAM TESTS
#
# The page of a replay: what it says is compared with what the event trace says (what was run, what
# went differently, verdict, cause, events, lines in flight, lines of source), and its structure is
# checked (page_check.py), as a browser shows it. How it is laid out: test_html_browser.sh.
tidemark=$1 tests=$2
. "$(dirname "$0")/../shell.sh"
cd "$tests/.." || exit 70
. "$tests/report/browser.sh"
pages=0 places=0

# Text of the page, as it is read.
plain() {
	sed "s/<a href=\"#[^\"]*\">//g; s/<\/a>//g; s/&#39;/'/g; s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&amp;/\&/g"
}

# Words behind each other, wherever lines are wrapped.
flat() {
	tr '\n' ' ' | tr -s ' ' | sed 's/^ //; s/ $//'
}

# same WHAT: the files `told` (by the story) and `shown` (by the page) are equal.
same() {
	[ -s "$here/told" ] && cmp -s "$here/told" "$here/shown" ||
		wrong "$name: $1: $(diff "$here/told" "$here/shown" | head -n 4 | flat | cut -c1-300)"
}

for trace in "$tests"/traces/{efactory-DUR,efactory-LIN,efactory-recover_clears-KEEP,erda-KEEP-two-writers,erda-line_torn=on-DUR}.trace "$tests"/causes/{efactory-get_no_fence-MONO,erda-crc_unchecked-RDA}.trace; do
	name=$(basename "$trace" .trace)
	page=$here/$name.html
	pages=$((pages + 1))
	"$tidemark" replay --all "$trace" >"$here/story"
	"$tidemark" replay "$trace" --html "$page" >"$here/out"
	"$tidemark" replay -q "$trace" --html "$here/again.html" >"$here/out"
	cmp -s "$page" "$here/again.html" || wrong "$name: two pages differ"
	shown "$page" >"$here/$name.shown"
	page=$here/$name.shown
	grep -q "<title>.*${trace##*/}" "$here/dom" || wrong "$name: the title does not name the trace"
	grep -qF 'core/stores/' "$page" || wrong "$name: no place"
	grep -v '^\(<span class=named[^>]*>\)\?<i>' "$page" | sed 's/href="#//g; s/url(#tip[a-z-]*)//g' |
		grep -qE '(src|href)=|url\(|@import|https?:' && wrong "$name: the page refers to something outside"
	# What was run, and what went differently.
	sed -n '/^== /q; s/^\(hardware\|loaded\|client [0-9]*\) *//p; s/^   *//p' "$here/story" | tr ' ' '\n' | sort >"$here/told"
	sed -n 's#^<tr><th>\(hardware\|loaded\|client [0-9]*\)<td>\(.*\)</tr>$#\2#p' "$page" | plain | tr ' ' '\n' | sort >"$here/shown"
	same "what was run"
	sed -n '/^== what goes differently/,/^$/p' "$here/story" | sed -n 's/^  //p' >"$here/told"
	sed -n 's|^<li class=deviation>\(.*\)</li>$|\1|p' "$page" | plain >"$here/shown"
	same "what goes differently"
	sed -n '/^== verdict/,/^== why/p' "$here/story" | grep 'broken' | sort >"$here/told"
	sed -n 's|^<p class=rule>\(.*\)</p>$|\1|p' "$page" | plain | sort >"$here/shown"
	same "verdict"
	sed -n '/^== why/,$p' "$here/story" | sed '1d;$d' | flat >"$here/told"
	{ sed -n 's|^<li class=fact>\(.*\)</li>$|\1|p' "$page"; sed -n 's|^<p class=why id=why>\(.*\)</p>$|\1|p' "$page"; } | plain | flat >"$here/shown"
	same "cause"
	cp "$here/shown" "$here/shown.cause"
	# Each event: when, who, and the words.
	sed '/^== verdict/,$d' "$here/story" | sed -n 's/^ *\([0-9.]* us\) /\1 /p' | tr -d ' ' >"$here/told"
	grep -v '^<tr id=e[0-9]* class="cause quiet">' "$page" | sed -n 's|^<tr id=e[0-9]*[^>]*><td>\(.*\)</tr>$|\1|p' | sed 's|<td>| us|; s|<td[^>]*>| |g' | plain | tr -d ' ' >"$here/shown"
	same "events"
	# Each line in flight, what survived of it, and its versions.
	sed -n 's/^  \([a-z-]*+0x[0-9a-f]*\) *survived as \(version.*\)/\1 \2/p' "$here/story" | sed 's/ *(nobody.*//' | sort -u >"$here/told"
	sed -n 's|^<tr data-line="[^"]*"><td>[0-9]*<td>\([^<]*\)<td class=[a-z]*>[a-z]*: \([^<]*\)<td>.*|\1 \2|p' "$page" | plain | sort -u >"$here/shown"
	[ ! -s "$here/told" ] || { same "lines in flight"; grep -q '<th>line<th>survived as<th>' "$page" || wrong "$name: no column 'survived as'"; }
	[ "$(grep -c '^ *version [0-9]*: ' "$here/story")" -eq "$(grep -c '^<tr data-line' "$page")" ] || wrong "$name: not as many versions as in the story"
	# Lines of source are those of the files, as far as a place's own line goes.
	for place in $(grep -o 'core/stores/[a-z_/]*\.c:[0-9]*' "$here/shown.cause" | sort -u); do
		line=$(sed -n "${place##*:}s/^[ \t]*//p" "${place%:*}" | flat)
		sed -n "s|^<span class=named id=\"s-$(echo "${place%:*}" | tr / -)-${place##*:}\"><i>[ 0-9]*</i> *\(.*\)</span>\$|\1|p" "$page" | plain | flat |
			grep -qxF -e "$line" || wrong "$name: line $place is not shown as it is: $line"
		places=$((places + 1))
	done
	# Each client, task and queue pair that the story names, and each line in flight or of the cause.
	for who in $(sed -n 's/^ *[0-9.]* us  \([a-z][^ ]*\) .*/\1/p' "$here/story" | sort -u) $(cut -d' ' -f1 "$here/told") \
		$(sed -n 's/^  \(lost\|early\|kept\|before it\|unfinished\): *\(.* wrote \)*\([a-z-]*+0x[0-9a-f]*\).*/\3/p' "$here/story"); do
		case $who in *+0x*) who=$(printf '%s+0x%x' "${who%+*}" $((${who#*+} / 64 * 64))) ;; esac
		grep -o 'data-lane="[^"]*"' "$page" | cut -d'"' -f2 | tr ' ' '\n' | grep -qxF -e "$who" || wrong "$name: no lane of $who"
	done
	failed=$(grep -c '^== the power fails' "$here/story") crashes=$(grep -c '<g class=crash>' "$page")
	[ "$failed" -eq "$crashes" ] || wrong "$name: $failed power failures in the story, $crashes in the page"
	# Well-formed, explained, and arrows from each post to its landing.
	python3 "$tests/report/page_check.py" page "$page" >"$here/checked" || wrong "$name: $(grep WRONG "$here/checked" | flat | cut -c1-300)"
	[ "$name" != efactory-DUR ] || cp "$here/checked" "$here/arrows"
done
[ $places -ge 4 ] || wrong "lines of source: $places places only"
# A PUT, from the client's first request to the end: the server is asked, handles it and replies; the value lands, and that is
# seen.
for arrow in 'arrives c1>server/server' 'arrives server/server>c1' 'lands c1>server/qp2' 'taken server/qp2>c1'; do
	grep -qxF "arrow $arrow" "$here/arrows" || wrong "no arrow $arrow: $(grep c1 "$here/arrows" | flat)"
done
# Lines of one message share a lane: a value of 160 bytes.
grep -qF 'data-lane="log-a+0x180 log-a+0x1c0 log-a+0x200" title="log-a+0x180..0x23f: 3 lines' "$here/efactory-LIN.shown" ||
	wrong "the lines of one message have lanes of their own: $(grep -o 'data-lane="log-a[^"]*"' "$here/efactory-LIN.shown" | flat)"
# Rounds that repeat are one row, and not in the chart.
"$tidemark" replay -q "$tests/traces/pilaf-unbounded-LIVE.trace" --html "$here/rounds.html" >"$here/out"
shown "$here/rounds.html" >"$here/rounds.shown"
grep -q '^<tr class=sum>.*the 8 lines above again, 264 more times, until' "$here/rounds.shown" || wrong "rounds are told one by one"
marks=$(grep -c '^<g class="m ' "$here/rounds.shown")
[ "$marks" -lt 150 ] || wrong "$marks marks in the chart of a loop"
python3 "$tests/report/page_check.py" page "$here/rounds.shown" >"$here/checked" || wrong "rounds: $(grep WRONG "$here/checked" | flat | cut -c1-300)"
# The trace in the page is a trace: it breaks in the same way.
sed -n '/^<pre>tidemark-trace/,/^<\/pre>/p' "$here/efactory-DUR.shown" | sed 's/^<pre>//; $d' | plain >"$here/copy.trace"
"$tidemark" replay -q "$here/copy.trace" >"$here/out" 2>&1
[ $? -eq 1 ] && grep -q 'broken DUR$' "$here/out" || wrong "the trace in the page: $(cat "$here/out")"
# Names and values are text, whatever is in them.
sed 's/\bk1\b/<b>\&"k/g' "$tests/traces/efactory-DUR.trace" >"$here/odd.trace"
"$tidemark" replay -q "$here/odd.trace" --html "$here/odd.html" >"$here/out" 2>&1
if [ -e "$here/odd.html" ]; then
	grep -qF '<b>&"k' "$here/odd.html" && wrong "a key's name is not escaped"
	shown "$here/odd.html" | grep -qF '&lt;b&gt;&amp;"k' || wrong "a key's name is missing"
else
	wrong "no page of a trace with an odd key: $(cat "$here/out")"
fi
# Files that cannot be written.
"$tidemark" replay -q "$trace" --html "$here/none/x.html" >"$here/out" 2>"$here/err"
[ $? -eq 2 ] && [ "$(wc -l <"$here/err")" -eq 1 ] || wrong "unwritable: exit status or message"
if [ -w /dev/full ]; then
	"$tidemark" replay -q "$trace" --html /dev/full >"$here/out" 2>"$here/err"
	[ $? -eq 2 ] && [ "$(wc -l <"$here/err")" -eq 1 ] || wrong "full disk: exit status or message"
fi
(ulimit -f 1; "$tidemark" replay -q "$trace" --html "$here/big.html" >/dev/null 2>&1)
[ $? -eq 2 ] && [ -z "$(ls "$here"/big.html* 2>/dev/null)" ] || wrong "too large a page: exit status, or something is left"
echo "$pages pages, $failures failures"
[ $failures -eq 0 ]
