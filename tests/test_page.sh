#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_page.sh PROGRAM TESTS
#
# The page of a replay, as a real browser lays it out: a script is put behind a copy of the
# page that measures it and writes what it finds into the document, which is then dumped.
# Without a browser (Debian: chromium) only the text of the page is looked at, and the test
# counts as skipped.
tidemark=$1 tests=$2
here=$(mktemp -d) || exit 70
trap 'rm -rf "$here"' EXIT
failures=0 pages=0
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

wrong() {
	failures=$((failures + 1))
	echo "FAILED: $*" >&2
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
		if (n.scrollWidth > n.clientWidth) say('name ' + n.textContent + ' is clipped');
		if (b.top < below - 0.5) say('lane ' + n.textContent + ' overlaps');
		below = b.bottom;
	});
	var svg = document.querySelector('svg').getBoundingClientRect(), boxes = [];
	document.querySelectorAll('.m').forEach(function (m) {
		var last = m.querySelector('title').previousElementSibling, r = last.getBoundingClientRect();
		if (r.left < svg.left || r.right > svg.right || r.top < svg.top || r.bottom > svg.bottom) say('a mark is clipped');
		boxes.forEach(function (o) {
			if (r.left < o.right - 1 && o.left < r.right - 1 && r.top < o.bottom - 1 && o.top < r.bottom - 1) say('marks overlap: ' + m.textContent);
		});
		boxes.push(r);
	});
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
	for word in "<title>" "${trace##*/}" "$(grep -m1 '^broken' "$here/story" | cut -d: -f1)" 'id=why' 'core/stores/'; do
		grep -qF -e "$word" "$page" || wrong "$name: no '$word' in the page"
	done
	grep -qE '(src|href)=|url\(|@import|https?:' "$page" && wrong "$name: the page refers to something outside"
	# Every client and every task of the server that the story names.
	for who in $(sed -n 's/^ *[0-9.]* us  \([a-z][^ ]*\) .*/\1/p' "$here/story" | sort -u | grep -v '/qp'); do
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
