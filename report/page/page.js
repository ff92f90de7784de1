(function () {
	'use strict';
	var doc = document, svg = doc.querySelector('svg'), filter = doc.getElementById('filter');
	var now = doc.getElementById('now'), scroll = doc.querySelector('.scroll');
	function all(what) { return Array.prototype.slice.call(doc.querySelectorAll(what)); }
	var names = all('.name'), rows = all('svg .row'), paths = all('.arrow'), boxes = all('[data-group]');
	var showArrows = doc.getElementById('arrows'), selected = null;
	doc.documentElement.classList.add('js');
	doc.querySelector('.controls').hidden = false;

	/* --- the event that is selected: in the chart and in the list --- */

	function rowOf(mark) { return doc.getElementById('e' + mark.dataset.e); }
	function select(mark, follow) {
		all('.sel, tr.hit').forEach(function (x) { x.classList.remove('sel', 'hit'); });
		selected = mark;
		now.textContent = mark ? mark.querySelector('title').textContent : '';
		if (!mark) return;
		all('.m[data-e="' + mark.dataset.e + '"], .arrow[data-post="' + mark.dataset.e + '"]')
			.forEach(function (x) { x.classList.add('sel'); });
		var row = rowOf(mark);
		if (row) row.classList.add('hit');
		if (row && row.parentNode.classList.contains('group')) row.parentNode.classList.add('open');
		if (row && follow) row.scrollIntoView({block: 'center'});
		var at = mark.getBoundingClientRect(), box = scroll.getBoundingClientRect();
		if (at.left < box.left + 20 || at.right > box.right - 20)
			scroll.scrollLeft += at.left - box.left - box.width / 2;
	}
	/* The marks that are seen, in the order of their events; an event in several lanes once. */
	function seen(what) {
		var last = null;
		return all('svg .row:not([hidden]) ' + what).map(function (m) { return {at: +m.dataset.e, mark: m}; })
			.sort(function (a, b) { return a.at - b.at; })
			.filter(function (x) { var other = x.at !== last; last = x.at; return other; });
	}
	function step(what, by) {
		var list = seen(what), at = selected ? +selected.dataset.e : by > 0 ? -1 : Infinity;
		var next = list.filter(function (x) { return by > 0 ? x.at > at : x.at < at; });
		if (next.length) select(next[by > 0 ? 0 : next.length - 1].mark);
		else if (what !== '.m' && list.length) select(list[0].mark); /* round again */
	}

	/* --- which lanes are shown --- */

	function words() { return filter.value.toLowerCase().split(/\s+/).filter(Boolean); }
	function has(text, list) {
		return !list.length || list.some(function (w) { return text.toLowerCase().indexOf(w) >= 0; });
	}
	function layOut() {
		var list = words(), y = HEAD, place = [], off = {}, hidden = {};
		boxes.forEach(function (b) { off[b.dataset.group] = !b.checked; });
		names.forEach(function (n, k) {
			var group = n.className.split(' ')[1];
			var hide = off[group] || !has(n.dataset.lane + ' ' + n.textContent, list);
			n.hidden = hide;
			rows[k].toggleAttribute('hidden', hide);
			rows[k].setAttribute('transform', 'translate(0,' + y + ')');
			place[k] = hide ? -1 : y + LANE / 2;
			if (hide && group !== 'pm') hidden[n.textContent] = true;
			if (!hide) y += LANE;
		});
		paths.forEach(function (p) {
			var d = p.dataset, y1 = place[d.from], y2 = place[d.to], bend = (d.x2 - d.x1) / 2;
			p.style.display = showArrows.checked && y1 >= 0 && y2 >= 0 ? '' : 'none';
			p.setAttribute('d', 'M' + d.x1 + ' ' + y1 + 'C' + (+d.x1 + bend) + ' ' + y1 + ' ' +
				(d.x2 - bend) + ' ' + y2 + ' ' + d.x2 + ' ' + y2);
		});
		svg.setAttribute('height', y + 8);
		all('.crash path').forEach(function (p) {
			p.setAttribute('d', p.getAttribute('d').replace(/V.*/, 'V' + (y + 8)));
		});
		/* The list: of whom there is a lane; or what names one of the words. */
		all('#events tr[id]').forEach(function (r) {
			r.hidden = hidden[r.cells[1].textContent] && !(list.length && has(r.cells[3].textContent, list));
		});
		all('#events .sum').forEach(function (r) { r.hidden = r.nextElementSibling.hidden; });
		if (selected && selected.closest('[hidden]')) select(null);
	}
	function everything() {
		filter.value = '';
		boxes.concat(showArrows).forEach(function (b) { b.checked = true; });
		select(null);
		layOut();
	}

	/* --- what is done with the page --- */

	all('.m').forEach(function (m) { m.addEventListener('click', function () { select(m, true); }); });
	all('.sum').forEach(function (r) {
		r.addEventListener('click', function () { r.parentNode.classList.toggle('open'); });
	});
	filter.addEventListener('input', layOut);
	boxes.concat(showArrows).forEach(function (b) { b.addEventListener('change', layOut); });
	var keys = {
		ArrowRight: function () { step('.m', 1); },
		ArrowLeft: function () { step('.m', -1); },
		c: function () { step('.m.cause', 1); },
		C: function () { step('.m.cause', -1); },
		Enter: function () { if (selected) select(selected, true); },
		'/': function () { filter.focus(); filter.select(); },
		a: function () { showArrows.checked = !showArrows.checked; layOut(); },
		Escape: everything
	};
	doc.addEventListener('keydown', function (e) {
		if (e.ctrlKey || e.altKey || e.metaKey || !keys[e.key]) return;
		if (e.target === filter && e.key !== 'Escape') {
			if (e.key === 'Enter') filter.blur();
			return;
		}
		if (e.key === 'Enter' && e.target.closest && e.target.closest('a, input, summary')) return;
		e.preventDefault();
		if (e.key === 'Escape') filter.blur();
		keys[e.key]();
	});
})();
