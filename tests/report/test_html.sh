#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_page.sh PROGRAM TESTS
#
# The page of a replay, as a real browser lays it out: a script is put behind a copy of the
# page that measures it and writes what it finds into the document, which is then dumped.
# What the page says is compared with what the story says: verdict, cause, events, lines in
# flight. Without a browser (Debian: chromium) only that is looked at, and the test counts as
# skipped.
tidemark=$1 tests=$2
here=$(mktemp -d) || exit 70
trap 'rm -rf "$here"' EXIT
failures=0 pages=0
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

wrong() {
	failures=$((failures + 1))
	echo "FAILED: $*" >&2
}

# Text of the page, as it is read.
plain() {
	sed "s/&#39;/'/g; s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&amp;/\&/g"
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

cat >"$here/measure.html" <<'SCRIPT'
<script>
(function () {
	var out = [], names = document.querySelectorAll('.name'), lanes = document.querySelectorAll('rect.lane');
	function say(what) { out.push(what); }
	if (window.pageErrors.length) say('script error: ' + window.pageErrors.join(' '));
	if (performance.getEntriesByType('resource').length) say('requests something');
	if (!names.length || names.length != lanes.length) say('names and lanes differ');
	var below = -1;
	names.forEach(function (n, i) {
		var a = n.getBoundingClientRect(), b = lanes[i].getBoundingClientRect();
		if (Math.abs(a.top - b.top) > 1 || Math.abs(a.height - b.height) > 1) say('lane ' + n.textContent + ' is not beside its name');
		if (n.scrollWidth > n.clientWidth || n.scrollHeight > n.clientHeight) say('name ' + n.textContent + ' is clipped');
		if (b.top < below - 0.5) say('lane ' + n.textContent + ' overlaps');
		below = b.bottom;
	});
	var svg = document.querySelector('svg').getBoundingClientRect(), boxes = [];
	function inside(a, b) {
		return a.left >= b.left - 0.5 && a.right <= b.right + 0.5 && a.top >= b.top - 0.5 && a.bottom <= b.bottom + 0.5;
	}
	function overlap(a, b) {
		return a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
	}
	function middle(r) { return (r.top + r.bottom) / 2; }
	function laneAt(y) {
		for (var i = 0; i < lanes.length; i++) {
			var box = lanes[i].getBoundingClientRect();
			if (y > box.top && y < box.bottom) return {name: names[i].textContent, box: box};
		}
	}
	document.querySelectorAll('.m').forEach(function (m) {
		var last = m.querySelector('title').previousElementSibling, r = last.getBoundingClientRect();
		if (!inside(r, svg)) say('a mark is clipped');
		var lane = laneAt(middle(r));
		if (!lane || r.top < lane.box.top - 0.5 || r.bottom > lane.box.bottom + 0.5) say('a mark leaves its lane: ' + m.textContent);
		boxes.forEach(function (o) {
			if (r.left < o.right - 1 && o.left < r.right - 1 && r.top < o.bottom - 1 && o.top < r.bottom - 1) say('marks overlap: ' + m.textContent);
		});
		boxes.push(r);
	});
	/* Labels: above the lanes, in the picture, none over another. */
	var labels = [], crashes = document.querySelectorAll('.crash path');
	document.querySelectorAll('.phase, .crash text').forEach(function (t) {
		var r = t.getBoundingClientRect();
		if (!t.textContent || !r.width || !inside(r, svg)) say('label ' + t.textContent + ' is clipped');
		if (r.bottom > lanes[0].getBoundingClientRect().top + 0.5) say('label ' + t.textContent + ' is over a lane');
		labels.forEach(function (o) { if (overlap(r, o.box)) say('labels ' + o.text + ' and ' + t.textContent + ' overlap'); });
		labels.push({box: r, text: t.textContent});
	});
	/* Paragraphs, items, cells: no text outside of its box. */
	document.querySelectorAll('h1, h2, p, li, td, th').forEach(function (t) {
		if (t.scrollWidth > t.clientWidth + 1 || t.scrollHeight > t.clientHeight + 4) say('text leaves its box: ' + t.textContent.substr(0, 60));
	});
	/* Tables: a cell for each head; a mark of the cause for each event of the cause. */
	document.querySelectorAll('table').forEach(function (t) {
		for (var i = 0; i < t.rows.length; i++)
			if (t.rows[i].cells.length != t.rows[0].cells.length) say('row ' + i + ' has ' + t.rows[i].cells.length + ' cells');
	});
	document.querySelectorAll('tr.cause').forEach(function (t) {
		var m = document.querySelector('.m.cause[data-e="' + t.id.substr(1) + '"]');
		if (!m || !m.querySelector('.halo')) say('no mark of the cause for event ' + t.id);
	});
	/* What became of a line stands in its lane, at its failure, and is what the table says. */
	var fates = document.querySelectorAll('.fate'), sign = {lost: '\u00d7', kept: '\u2713', torn: '~'}, expected = 0;
	var rows = document.querySelectorAll('tr[data-line]');
	rows.forEach(function (row, i) {
		var found = 0, has = false;
		if (row.querySelector('.good') ? !/^kept/.test(row.cells[2].textContent) : !/^lost/.test(row.cells[2].textContent)) say('colour of ' + row.cells[2].textContent);
		if (i && rows[i - 1].dataset.line == row.dataset.line && rows[i - 1].cells[0].textContent == row.cells[0].textContent) return;
		names.forEach(function (n) { has = has || n.textContent == row.dataset.line; });
		if (!has) return;
		expected++;
		fates.forEach(function (f) {
			var r = f.querySelector('circle').getBoundingClientRect(), lane = laneAt(middle(r)), text = f.querySelector('text');
			var crash = crashes[row.cells[0].textContent - 1].getBoundingClientRect(), kind = f.getAttribute('class').split(' ')[1];
			if (!lane || lane.name != row.dataset.line || Math.abs((r.left + r.right) / 2 - crash.left) > 2) return;
			found++;
			if (!inside(text.getBoundingClientRect(), {left: r.left - 2, right: r.right + 2, top: r.top - 2, bottom: r.bottom + 2})) say('the sign at ' + lane.name + ' leaves its circle');
			if (text.textContent != sign[kind] || (kind == 'kept') != (row.querySelector('.good') != null)) say('fate of ' + lane.name + ': ' + text.textContent);
		});
		if (found != 1) say(found + ' fates of ' + row.dataset.line);
	});
	if (fates.length != expected) say(fates.length + ' fates, not ' + expected);
	if (document.documentElement.scrollWidth > window.innerWidth) say('the page is wider than the window');
	var m = document.querySelector('.m.cause'), row = m && document.getElementById('e' + m.dataset.e);
	if (m) m.dispatchEvent(new Event('click'));
	if (row && !row.classList.contains('hit')) say('a click marks nothing');
	var list = document.createElement('pre');
	list.id = 'measured';
	list.textContent = 'measured ' + boxes.length + ' marks; ' + (out.join('; ') || 'well');
	document.body.appendChild(list);
})();
</script>
SCRIPT

for trace in "$tests"/traces/{efactory-DUR,efactory-LIN,efactory-recover_clears-KEEP,erda-KEEP-two-writers,erda-line_torn=on-DUR}.trace "$tests"/causes/efactory-get_no_fence-MONO.trace; do
	name=$(basename "$trace" .trace)
	page=$here/$name.html
	pages=$((pages + 1))
	"$tidemark" replay "$trace" --html "$page" >"$here/story"
	"$tidemark" replay -q "$trace" --html "$here/again.html" >"$here/out"
	cmp -s "$page" "$here/again.html" || wrong "$name: two pages differ"
	for word in "<title>" "${trace##*/}" 'core/stores/'; do
		grep -qF -e "$word" "$page" || wrong "$name: no '$word' in the page"
	done
	grep -qE '(src|href)=|url\(|@import|https?:' "$page" && wrong "$name: the page refers to something outside"
	sed -n '/^== verdict/,/^== why/p' "$here/story" | grep 'broken' | sort >"$here/told"
	sed -n 's|^<p class=rule>\(.*\)</p>$|\1|p' "$page" | plain | sort >"$here/shown"
	same "verdict"
	sed -n '/^== why/,$p' "$here/story" | sed '1d;$d' | flat >"$here/told"
	{ sed -n 's|.*<li>\(.*\)</li>$|\1|p' "$page"; sed -n 's|^<p class=why id=why>\(.*\)</p>$|\1|p' "$page"; } | plain | flat >"$here/shown"
	same "cause"
	# Each event: when, who, and the words.
	sed '/^== verdict/,$d' "$here/story" | sed -n 's/^ *\([0-9.]* us\) /\1 /p' | tr -d ' ' >"$here/told"
	sed -n 's|^<tr id=e[0-9]*[^>]*><td>\(.*\)</tr>$|\1|p' "$page" | sed 's|<td>| us|; s|<td[^>]*>| |g' | plain | tr -d ' ' >"$here/shown"
	same "events"
	# Each line in flight, what survived of it, and its versions.
	sed -n 's/^  \([a-z-]*+0x[0-9a-f]*\) *survived as \(version.*\)/\1 \2/p' "$here/story" | sed 's/ *(nobody.*//' | sort -u >"$here/told"
	sed -n 's|^<tr data-line="[^"]*"><td>[0-9]*<td>\([^<]*\)<td class="[a-z]*">[a-z]*: \([^<]*\)<td>.*|\1 \2|p' "$page" | plain | sort -u >"$here/shown"
	[ ! -s "$here/told" ] || { same "lines in flight"; grep -q '<th>line<th>survived as<th>' "$page" || wrong "$name: no column 'survived as'"; }
	[ "$(grep -c '^ *version [0-9]*: ' "$here/story")" -eq "$(grep -c '^<tr data-line' "$page")" ] || wrong "$name: not as many versions as in the story"
	# Each client, task and queue pair that the story names, and each line in flight or of the cause.
	for who in $(sed -n 's/^ *[0-9.]* us  \([a-z][^ ]*\) .*/\1/p' "$here/story" | sort -u) $(cut -d' ' -f1 "$here/told") \
		$(sed -n 's/^  \(lost\|early\|kept\|before it\|unfinished\): *\(.* wrote \)*\([a-z-]*+0x[0-9a-f]*\).*/\3/p' "$here/story"); do
		case $who in *+0x*) who=$(printf '%s+0x%x' "${who%+*}" $((${who#*+} / 64 * 64))) ;; esac
		grep -qF "data-lane=\"$who\"" "$page" || wrong "$name: no lane of $who"
	done
	failed=$(grep -c '^== the power fails' "$here/story") crashes=$(grep -c '<g class=crash>' "$page")
	[ "$failed" -eq "$crashes" ] || wrong "$name: $failed power failures in the story, $crashes in the page"
	[ -n "$browser" ] || continue
	{
		sed 's|<head>|<head><script>window.pageErrors=[];window.onerror=function(m){pageErrors.push(m)}</script>|' "$page"
		cat "$here/measure.html"
	} >"$here/measured.html"
	for width in 1400 700; do
		timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$here/profile" \
			--window-size=$width,900 --virtual-time-budget=2000 --dump-dom "file://$here/measured.html" >"$here/dom" 2>"$here/err"
		grep -q '<pre id="measured">measured [1-9][0-9]* marks; well</pre>' "$here/dom" ||
			wrong "$name, $width wide: $(grep -o '<pre id="measured">.*' "$here/dom" | cut -c1-400)"
	done
done
# Names and values are text, whatever is in them.
sed 's/\bk1\b/<b>\&"k/g' "$tests/traces/efactory-DUR.trace" >"$here/odd.trace"
"$tidemark" replay -q "$here/odd.trace" --html "$here/odd.html" >"$here/out" 2>&1
if [ -e "$here/odd.html" ]; then
	grep -qF '<b>&"k' "$here/odd.html" && wrong "a key's name is not escaped"
	grep -qF '&lt;b&gt;&amp;&quot;k' "$here/odd.html" || wrong "a key's name is missing"
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
[ $failures -eq 0 ] || exit 1
[ -n "$browser" ] || { echo "no chromium: the layout of the pages is not measured" >&2; exit 77; }
