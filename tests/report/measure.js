/*
 * Put behind a copy of a page of tidemark replay --html, this measures it as the browser has laid it out, presses its keys,
 * and writes what is wrong into the document, which is then dumped: see test_html_browser.sh.
 */
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
			if (y > box.top && y < box.bottom) return {lines: names[i].dataset.lane.split(' '), at: i, box: box};
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
	/* What became of a line stands in its lane, at its failure, and is what the table says. Of lines that share a lane it is
	 * the same, and stands there once. */
	var fates = document.querySelectorAll('.fate'), sign = {lost: '\u00d7', kept: '\u2713', torn: '~'}, counted = {};
	document.querySelectorAll('tr[data-line]').forEach(function (row) {
		var found = 0, at = -1, line = row.dataset.line, failure = row.cells[0].textContent;
		if (row.querySelector('.good') ? !/^kept/.test(row.cells[2].textContent) : !/^lost/.test(row.cells[2].textContent)) say('colour of ' + row.cells[2].textContent);
		names.forEach(function (n, i) { if (n.dataset.lane.split(' ').indexOf(line) >= 0) at = i; });
		if (at < 0) return;
		counted[at + ' ' + failure] = true;
		fates.forEach(function (f) {
			var r = f.querySelector('circle').getBoundingClientRect(), lane = laneAt(middle(r)), text = f.querySelector('text');
			var crash = crashes[failure - 1].getBoundingClientRect(), kind = f.getAttribute('class').split(' ')[1];
			if (!lane || lane.at != at || Math.abs((r.left + r.right) / 2 - crash.left) > 2) return;
			found++;
			if (!inside(text.getBoundingClientRect(), {left: r.left - 2, right: r.right + 2, top: r.top - 2, bottom: r.bottom + 2})) say('the sign at ' + line + ' leaves its circle');
			if (text.textContent != sign[kind] || (kind == 'kept') != (row.querySelector('.good') != null)) say('fate of ' + line + ': ' + text.textContent);
		});
		if (found != 1) say(found + ' fates of ' + line);
	});
	if (fates.length != Object.keys(counted).length) say(fates.length + ' fates, not ' + Object.keys(counted).length);
	if (document.documentElement.scrollWidth > window.innerWidth) say('the page is wider than the window');
	var m = document.querySelector('.m.cause'), row = m && document.getElementById('e' + m.dataset.e);
	if (m) m.dispatchEvent(new Event('click'));
	if (row && !row.classList.contains('hit')) say('a click marks nothing');
	/* Arrows begin and end in their lanes, at marks. */
	function tops() { return Array.prototype.map.call(lanes, function (l) { return middle(l.getBoundingClientRect()); }); }
	function checkArrows(when) {
		var at = tops(), left = document.querySelector('svg').getBoundingClientRect().left, seen = 0;
		document.querySelectorAll('.arrow').forEach(function (a) {
			var box = a.getBoundingClientRect(), d = a.dataset;
			if (getComputedStyle(a).display == 'none') return;
			seen++;
			if (Math.abs(box.top - Math.min(at[d.from], at[d.to])) > 1.5 || Math.abs(box.bottom - Math.max(at[d.from], at[d.to])) > 1.5 ||
				Math.abs(box.right - left - d.x2) > 1.5 || Math.abs(box.left - left - d.x1) > 1.5)
				say(when + ': an arrow from lane ' + d.from + ' to ' + d.to + ' is elsewhere');
		});
		return seen;
	}
	var arrows = checkArrows('at first');
	if (!arrows) say('no arrows');

	/* --- keys and the filter --- */
	function press(key, at) { (at || document.body).dispatchEvent(new KeyboardEvent('keydown', {key: key, bubbles: true, cancelable: true})); }
	function chosen() { var m = document.querySelector('.m.sel'); return m ? +m.dataset.e : -1; }
	function shown(what) { return Array.prototype.filter.call(document.querySelectorAll(what), function (x) { return x.getClientRects().length; }); }
	var filter = document.getElementById('filter'), now = document.getElementById('now');
	press('Escape');
	if (chosen() != -1 || document.querySelector('tr.hit')) say('Escape leaves something selected');
	press('ArrowRight');
	var first = chosen();
	press('ArrowRight');
	var second = chosen();
	press('ArrowLeft');
	if (first < 0 || second <= first || chosen() != first) say('arrow keys: ' + first + ', ' + second + ', ' + chosen());
	if (!/ us /.test(now.textContent)) say('what is selected is not said: ' + now.textContent);
	press('c');
	if (m && !document.querySelector('.m.cause.sel')) say('c does not select an event of the cause');
	press('Enter');
	var hit = document.querySelector('tr.hit');
	if (m && (!hit || !hit.getClientRects().length || hit.getBoundingClientRect().top > window.innerHeight)) say('Enter does not show the event in the list');
	press('/');
	if (document.activeElement != filter) say('/ does not go to the filter');
	press('c', filter);
	filter.value = 'c1 QP';
	filter.dispatchEvent(new Event('input'));
	shown('.name').forEach(function (n) { if (!/c1|qp/.test(n.textContent)) say('the filter leaves ' + n.textContent); });
	if (!shown('.name').length || shown('.name').length == names.length) say('the filter leaves ' + shown('.name').length + ' of ' + names.length);
	if (shown('rect.lane').length != shown('.name').length) say('the filter leaves lanes without names');
	names.forEach(function (n, i) {
		var a = n.getBoundingClientRect(), b = lanes[i].getBoundingClientRect();
		if (n.getClientRects().length && Math.abs(a.top - b.top) > 1) say('filtered, lane ' + n.textContent + ' is not beside its name');
	});
	shown('#events tr[id]').forEach(function (r) { if (!/c1|qp/.test(r.cells[1].textContent + r.cells[3].textContent)) say('the filter leaves in the list: ' + r.textContent); });
	if (checkArrows('filtered') >= arrows) say('the filter leaves all arrows');
	press('Escape', filter);
	if (shown('.name').length != names.length || filter.value) say('Escape does not bring all lanes back');
	if (checkArrows('again') != arrows) say('Escape does not bring all arrows back');
	var pm = document.querySelector('[data-group=pm]');
	pm.click();
	if (shown('.name.pm').length || !shown('.name.client').length) say('lines of PM cannot be left out');
	pm.click();
	press('a');
	if (shown('.arrow').length) say('a leaves arrows');
	press('a');
	if (shown('.arrow').length != arrows) say('a does not bring arrows back');
	press('ArrowRight', filter);
	if (chosen() != -1) say('keys in the filter select');
	var sum = shown('.sum')[0];
	if (sum) {
		if (shown('.group:not(.open) tr[id]').length) say('a closed group shows its rows');
		sum.click();
		if (!sum.nextElementSibling.getClientRects().length) say('a group does not open');
		sum.click();
		if (sum.nextElementSibling.getClientRects().length) say('a group does not close');
	}
	measureColours(say);
	var list = document.createElement('pre');
	list.id = 'measured';
	list.textContent = 'measured ' + boxes.length + ' marks; ' + (out.join('; ') || 'well');
	document.body.appendChild(list);
})();
