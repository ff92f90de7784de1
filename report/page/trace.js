/*
 * A replay. On top stands what broke, why, what was run and what went differently; then a chart: a lane for each client, each
 * task of the server, each queue pair that did something, and each line of PM that matters. Time is that of the events, not of
 * the clock: each moment at which something happens has a column of its own, so that nothing is hidden in a nanosecond or
 * stretched over a pause. Arrows lead from a posted request to where it lands, and on to the task that takes its completion. A
 * power failure is a line across all lanes, and the machine that boots after it goes on to the right of it. Below are the source
 * around the places that the cause names, the lines in flight and every event. Lanes can be filtered, events selected by key
 * and click, and rows folded.
 */
const LINE = 64, COLUMN = 16, COLUMNS = 1200 /* of more, the chart shows the last */,
	MACHINE = 12 /* columns of a machine at least */,
	PM_LINES = 256 /* of a run that writes more, the last are only in the list */;
const KINDS = {words: 'w', call: 'call', 'return': 'ret', store: 'st', load: 'ld', flush: 'fl', fence: 'fe', land: 'st', fetch: 'ld',
	survived: 'su', post: 'po', check: 'w', refused: 're', failed: 're', effect: 'fl', drain: 'fe'};
const RANKS = ['client', 'task', 'nic', 'pm'];

function writes(e) { return e.kind === 'store' || e.kind === 'land'; }
function overlaps(e, off, bytes) { return e.bytes && off < e.off + e.bytes && e.off < off + bytes; }
function wordsOf(e) {
	return `${us(e.at_ns)} us ${e.who || ''}${e['for'] ? ' for ' + e['for'] : ''}: ${e.what}${e.source ? ', ' + e.source : ''}`;
}

/* --- lanes --- */

function regionOf(t, off) { return t.regions.findIndex(r => off >= r.off && off < r.off + r.bytes); }
function nameOf(t, off) {
	const region = t.regions[regionOf(t, off)];
	return (region ? region.name : 'pm') + '+0x' + (off - (region ? region.off : 0)).toString(16);
}
function nameOfLines(t, l) {
	const name = nameOf(t, l.line * LINE), at = parseInt(name.slice(name.lastIndexOf('+') + 1), 16);
	return l.lines > 1 ? name + '..0x' + (at + l.lines * LINE - 1).toString(16) : name;
}
function rankOf(who) { return who.includes('/qp') ? 'nic' : who[0] === 'c' ? 'client' : 'task'; }
function compareLanes(a, b) {
	if (a.rank !== b.rank) return RANKS.indexOf(a.rank) - RANKS.indexOf(b.rank);
	if (a.rank === 'pm') return a.line - b.line;
	return (a.rank !== 'task' && a.name.length - b.name.length) || (a.name < b.name ? -1 : 1);
}
/* Lines of the cause first, then those in flight at a failure, then those that are written, while there is room. */
function linesOf(t) {
	const lines = new Set();
	function add(line) { if (lines.size < PM_LINES) lines.add(line); }
	for (const e of t.events.filter(e => e.cause && e.bytes))
		for (let l = Math.floor(e.off / LINE); l <= Math.floor((e.off + e.bytes - 1) / LINE); l++) add(l);
	t.flight.forEach(l => add(l.line));
	t.events.filter(e => writes(e) && !e.machine).forEach(e => add(Math.floor(e.off / LINE)));
	return [...lines];
}
/* What is written to the line, in which order, and what survived of it: equal for lines of one copy. Of one message, or of
 * stores of one place in the code, it does not matter how many. */
function storyOf(t, line) {
	const story = [];
	for (const e of t.written) {
		if (!overlaps(e, line * LINE, LINE)) continue;
		const writer = e.message ? 'message ' + e.message : [e.source, e.who, e['for'], e.machine].join();
		if (story[story.length - 1] !== writer) story.push(writer);
	}
	return story.concat(t.flight.filter(l => l.line === line).map(l => l.machine + ' ' + l.survived)).join('\n');
}
/* Lines that lie behind each other, are written by the same copies and messages and of which the same survived share a lane. */
function joinLines(t, lanes) {
	const joined = [];
	let story = '';
	for (const l of lanes) {
		const last = joined[joined.length - 1], its = l.rank === 'pm' && storyOf(t, l.line);
		if (l.rank === 'pm' && last && last.rank === 'pm' && its === story && last.line + last.lines === l.line &&
			regionOf(t, last.line * LINE) === regionOf(t, l.line * LINE)) {
			last.lines++;
			continue;
		}
		story = its;
		joined.push(l);
	}
	for (const l of joined.filter(l => l.rank === 'pm')) {
		l.names = Array.from({length: l.lines}, (_, i) => nameOf(t, (l.line + i) * LINE));
		l.name = nameOfLines(t, l);
	}
	return joined;
}
function makeLanes(t) {
	const actors = new Set(t.events.filter(e => e.who && !(e.kind === 'words' && e.quiet)).map(e => e.who));
	t.takings.filter(k => k.who).forEach(k => actors.add(k.who));
	const lanes = [...actors].map(name => ({name, names: [name], rank: rankOf(name)}))
		.concat(linesOf(t).map(line => ({line, lines: 1, rank: 'pm'})));
	t.lanes = joinLines(t, lanes.sort(compareLanes));
	t.laneOf = new Map(t.lanes.map((l, k) => [l.rank === 'pm' ? null : l.name, k]));
}

/* --- columns: which event, and which completion that is taken, stands where --- */

/* Adjacent stores of one task to one line share a column, and so do pieces of one message. */
function shares(a, b) {
	if (b.cause || a.machine !== b.machine || a.who !== b.who || a.kind !== b.kind || a.message !== b.message) return false;
	return writes(a) ? Math.floor(a.off / LINE) === Math.floor(b.off / LINE) : a.kind === 'load';
}
function isAgain(t, n) { return t.again.some(r => r[0] < n && n <= r[1]); }
function makeColumns(t) {
	const loads = t.events.filter(e => e.kind === 'load').length;
	let columns = 1, taking = 0;
	function placeTakings(m, at) {
		const from = taking;
		for (; taking < t.takings.length && t.takings[taking].before <= at && t.takings[taking].machine === m; taking++)
			t.takings[taking].column = isAgain(t, t.takings[taking].before) ? -1 : ++columns;
		return taking > from;
	}
	/* A store that polls would fill the chart with nothing else. */
	function isCharted(e) {
		return e.cause || (e.kind !== 'check' && !isAgain(t, e.n) && (e.kind !== 'load' || loads <= COLUMNS / 4));
	}
	t.cut = t.list.map((_, m) => {
		const before = columns;
		let last = null;
		for (const e of t.events.filter(e => e.machine === m)) {
			e.column = -1;
			if (!isCharted(e)) continue;
			if (placeTakings(m, e.n) || !last || !shares(last, e)) columns++;
			e.column = columns;
			last = e;
		}
		placeTakings(m, Infinity);
		columns = Math.max(columns + 2, before + MACHINE);
		return columns;
	});
	columns += 2;
	/* Too long for one picture: what comes before this is only in the list. */
	const first = Math.max(columns - COLUMNS, 0);
	t.skipped = t.events.filter(e => e.column >= 0 && e.column < first).length;
	for (const x of t.events.concat(t.takings)) x.column = x.column < first ? -1 : x.column - first;
	t.cut = t.cut.map(c => c - first);
	t.columns = columns - first;
}
function middle(column) { return column * COLUMN + COLUMN / 2; }

/* --- arrows: from a posted request to where its data lands or is read, or where it takes effect, from there to the task that
 * takes the completion; and of a SEND, which touches no PM, from the post to the task that receives it --- */

function makeArrows(t) {
	const arrows = [], of = new Map(), key = x => x.machine + ' ' + x.message;
	for (const e of t.events.filter(e => e.message && e.column >= 0 && !['post', 'drain', 'failed'].includes(e.kind)))
		of.set(key(e), (of.get(key(e)) || []).concat(e));
	function add(kind, post, from, to) {
		const a = t.laneOf.get(from.who), b = t.laneOf.get(to.who);
		if (a === undefined || b === undefined || from.column < 0 || to.column < 0) return;
		arrows.push({kind, post, from: a, to: b, x1: middle(from.column), x2: middle(to.column),
			reply: t.lanes[t.laneOf.get(post.who)].rank === 'task'});
	}
	for (const post of t.events.filter(e => e.kind === 'post' && e.message && e.column >= 0)) {
		const landings = (of.get(key(post)) || []).filter(e => e.n > post.n);
		let last = -1;
		for (const e of landings) { /* lines that follow each other have one arrow */
			if (last < 0 || e.column > last + 1 || e.cause) add('lands', post, post, e);
			last = e.column;
		}
		for (const k of t.takings.filter(k => k.message === post.message && k.machine === post.machine)) {
			const from = landings.filter(e => e.n < k.before).pop() || post;
			/* Acknowledged, and nothing has landed yet: the task need not point at itself. */
			if (from !== post || k.received) add(from === post ? 'arrives' : 'taken', post, from, k);
		}
	}
	return arrows;
}

/* --- the chart --- */

/* If several are in one place, the last is drawn, and one that matters before all others. */
function marksOf(t, l) {
	const shown = new Map();
	for (const e of t.events) {
		const inLane = l.rank === 'pm' ? e.kind !== 'survived' && overlaps(e, l.line * LINE, l.lines * LINE) : e.who === l.name;
		if (e.column >= 0 && inLane && !(shown.has(e.column) && shown.get(e.column).cause)) shown.set(e.column, e);
	}
	return [...shown.values()].map(e => mark(KINDS[e.kind], e.kind, middle(e.column), e.cause, wordsOf(e), {'data-e': e.n}));
}
function takingsOf(t, l) {
	return t.takings.filter(k => k.who === l.name && k.column >= 0).map(k => s('g', {class: 'tk'},
		s('circle', {cx: middle(k.column), cy: LANE / 2, r: 3}), s('title', {}, `${us(k.at_ns)} us ${k.who}: ` +
			(k.received ? 'takes what has been received' : 'takes the completion of its request'))));
}
function fatesOf(t, l) {
	return t.flight.filter(f => f.line === l.line).map(f => fate(f.fate, t.cut[f.machine] * COLUMN, f.fate + ': ' + f.survived));
}
function arrowOf(a) {
	const y1 = middleOf(a.from), y2 = middleOf(a.to), bend = Math.trunc((a.x2 - a.x1) / 2);
	return s('path', {class: `arrow ${a.kind}${a.reply ? ' reply' : ''}`, 'data-post': a.post.n, 'data-from': a.from, 'data-to': a.to,
		'data-x1': a.x1, 'data-x2': a.x2, 'marker-end': `url(#${a.reply ? 'tip-reply' : 'tip'})`,
		d: `M${a.x1} ${y1}C${a.x1 + bend} ${y1} ${a.x2 - bend} ${y2} ${a.x2} ${y2}`}, s('title', {}, wordsOf(a.post)));
}
function keys() {
	const kbd = ([key, what]) => [h('kbd', {}, key), ' ' + what + ' \u00a0 '];
	return h('span', {class: 'keys'}, h('kbd', {}, '\u2190'), ' ', [['\u2192', 'event before, after'], ['c', 'next of the cause'],
		['Enter', 'in the list'], ['/', 'lanes'], ['a', 'arrows'], ['Esc', 'all again']].map(kbd));
}
function controls() {
	return h('div', {class: 'controls'},
		h('label', {}, 'lanes ', h('input', {id: 'filter', type: 'search', size: 22, placeholder: 'server log-a',
			'aria-label': 'show lanes whose names have one of these words'})),
		[['client', 'clients'], ['task', 'server'], ['nic', 'queue pairs'], ['pm', 'lines of PM']].map(([group, what]) =>
			h('label', {}, h('input', {type: 'checkbox', 'data-group': group, checked: true}), ' ' + what)),
		h('label', {}, h('input', {type: 'checkbox', id: 'arrows', checked: true}), ' arrows'), keys());
}
const traceLegend = [['call', '\u25b6', 'an operation is called'], ['call', '\u25c0', 'it returns'],
	['po', '\u279c', 'a request is posted'],
	['st', '\u25a0', 'PM is written'], ['ld', '\u25cf', 'PM is read'], ['fl', '\u25bc', 'a flush'], ['fl', '\u275a', 'a fence'],
	['w', '\u25a0', 'anything else'], ['tk', '\u25cb', 'a completion is taken'],
	['line', '\u2192', 'request: to where it lands, and to who takes it'], ['rep', '\u2192', 'the same of what the server sends'],
	['su', '\u25c6', 'first touch of a line after a failure'], ['ring', '\u25ef', 'belongs to the cause'],
	['lost', '\u00d7', 'the newest version is lost'], ['kept', '\u2713', 'it is kept'], ['lost', '~', 'the line is torn']];

function traceChart(t) {
	const width = t.columns * COLUMN, height = HEAD + t.lanes.length * LANE + 8, last = t.list.length - 1;
	const names = t.lanes.map(l => h('div', {class: 'name ' + l.rank, 'data-lane': l.names.join(' '),
		title: l.name + (l.lines > 1 ? `: ${l.lines} lines of one copy or message` : '')}, l.name));
	const repeated = t.list.flat().reduce((n, item) => n + item.repeats, 0);
	return section('chart', 'What happened', controls(),
		chart(names, width, height, 'events by lane and time', tips(),
			t.lanes.map((l, k) => lane(k, width, {'class': 'row' + (l.rank === 'pm' ? ' pmrow' : '')}, marksOf(t, l),
				l.rank === 'pm' ? fatesOf(t, l) : takingsOf(t, l))),
			makeArrows(t).map(arrowOf),
			t.list.map((_, m) => [s('text', {class: 'phase', x: m ? Math.max(t.cut[m - 1] * COLUMN, 0) + 8 : 8, y: 14},
				m ? 'recovery, and what is read' : 'the run'),
				m < last && failure(t.cut[m] * COLUMN, 28, height, 'power fails')])),
		h('p', {class: 'now', id: 'now', 'aria-live': 'polite'}),
		t.skipped > 0 && h('p', {}, `The chart shows the end of a long run; ${t.skipped} earlier events are only in the list.`),
		repeated > 0 && h('p', {}, repeated + ' events that repeat those before them are only in the list.'),
		width + NAMES > 2200 && h('p', {class: 'cut'},
			'The chart is longer than the paper is wide: its beginning is shown. All events are in the list.'),
		legend(traceLegend));
}

/* --- tables: what one copy or message did is a group, of which one row is shown; it unfolds --- */

function group(sum, rows) { return h('tbody', {class: sum && 'group'}, sum, rows); }
function lineRows(l) {
	const lost = l.fate !== 'kept';
	return l.versions.map((v, i) => row([String(l.machine + 1), l.name,
		h('td', {class: lost ? 'bad' : 'good'}, `${lost ? 'lost' : 'kept'}: ${l.survived}`),
		`version ${i + 1}: ${v.by} for ${v['for']}`, `${v.bytes} at +0x${v.off.toString(16).padStart(2, '0')}`,
		h('td', {class: 'src'}, v.source)], {'data-line': l.name}));
}
function flightTable(t) {
	return t.lines.length > 0 && section('lines', 'Lines of PM in flight when the power failed',
		table(['failure', 'line', 'survived as', 'written by', 'bytes', 'source'], t.lines.map(g => {
			const lost = g.lines[0].fate !== 'kept';
			return group(g.by && row([String(g.lines[0].machine + 1), g.name, h('td', {class: lost ? 'bad' : 'good'},
				`${lost ? 'lost' : 'kept'}: ${plural(g.lines.length, 'line')}`), 'one ' + g.by, '', ''], {class: 'sum'}),
				g.lines.map(lineRows));
		})));
}
function eventRow(e) {
	return row([us(e.at_ns), e.who || '', e['for'] || '', e.what, h('td', {class: 'src'}, e.source)],
		{id: 'e' + e.n, 'class': e.cause && 'cause' + (e.quiet ? ' quiet' : '')});
}
function eventTables(t) {
	const listed = t.events.filter(e => e.cause || !e.quiet);
	return h('section', {id: 'events'}, t.list.map((items, m) => [h('h2', {}, m ? 'Recovery, and what is then read' : 'The run'),
		table(['us', 'who', 'for', 'what', 'source'], items.map(item => {
			const events = listed.filter(e => item.first <= e.n && e.n <= item.last), e = events[0];
			const of = item.repeats ? ['', '', ''] : [e.who || '', e['for'] || '', e.source];
			return group(item.what && row([us(e.at_ns), of[0], of[1], item.what, h('td', {class: 'src'}, of[2])], {class: 'sum'}),
				events.map(eventRow));
		}))]));
}

/* --- the top, and all together --- */

function traceTop(t) {
	const broken = t.contracts.filter(c => c.broken), named = t.contracts.find(c => c.name === t.contract);
	const says = !named ? ': the trace names no broken contract' : (named.broken ? ' breaks ' : ': no longer breaks ') + named.name;
	return [h('header', {}, h('h1', {}, t.store + (t.variant !== 'default' ? ', variant ' + t.variant : '') + says),
		broken.map(c => h('p', {class: 'rule'}, `${c === named ? '' : 'also '}broken ${c.name}: ${c.how}`)), contractList(t.contracts),
		t.why && h('p', {class: 'why', id: 'why'}, linked('s-', t.why))),
	h('div', {class: 'top'}, h('section', {class: 'run'}, h('h2', {}, 'What was run'),
		facts(t.setup.concat([['version', 'tidemark ' + t.tidemark]]))),
	h('section', {class: 'differs'}, h('h2', {}, (t.deviations.length ? 'What goes' : 'Nothing goes') + ' differently from a plain run'),
		t.deviations.length > 0 && h('ol', {}, t.deviations.map(d => h('li', {class: 'deviation'}, d))))),
	t.facts.length > 0 && h('section', {id: 'facts'}, h('h2', {}, 'Why, step by step'),
		h('ul', {class: 'facts'}, t.facts.map(f => h('li', {class: 'fact'}, linked('s-', f)))))];
}
function showTrace(t) {
	t.flight = t.lines.flatMap(g => g.lines);
	t.written = t.events.filter(writes);
	t.again = t.list.flatMap(items => items.flatMap((item, k) => item.repeats ? [[items[k - 1].last, item.last]] : []));
	notePlaces('s-', t.sources);
	makeLanes(t);
	makeColumns(t);
	return [traceTop(t), traceChart(t),
		t.sources.length > 0 && section('source', 'The source around the cause', t.sources.map(file => sourceOf('s-', file))),
		flightTable(t), eventTables(t),
	h('details', {id: 'trace'}, h('summary', {}, 'The trace: save these lines as a file, and tidemark replay runs it again'),
		h('pre', {}, t.trace))];
}

/* --- what is done with the page --- */

function followTrace() {
	const doc = document, all = what => [...doc.querySelectorAll(what)];
	const svg = doc.querySelector('svg'), filter = doc.getElementById('filter'), now = doc.getElementById('now'),
		scroll = doc.querySelector('.scroll'), names = all('.name'), rows = all('svg .row'), paths = all('.arrow'),
		boxes = all('[data-group]'), showArrows = doc.getElementById('arrows');
	let selected = null;

	/* --- the event that is selected: in the chart and in the list --- */

	function select(mark, follow) {
		all('.sel, tr.hit').forEach(x => x.classList.remove('sel', 'hit'));
		selected = mark;
		now.textContent = mark ? mark.querySelector('title').textContent : '';
		if (!mark) return;
		all(`.m[data-e="${mark.dataset.e}"], .arrow[data-post="${mark.dataset.e}"]`).forEach(x => x.classList.add('sel'));
		const row = doc.getElementById('e' + mark.dataset.e);
		if (row) row.classList.add('hit');
		if (row && row.parentNode.classList.contains('group')) row.parentNode.classList.add('open');
		if (row && follow) row.scrollIntoView({block: 'center'});
		const at = mark.getBoundingClientRect(), box = scroll.getBoundingClientRect();
		if (at.left < box.left + 20 || at.right > box.right - 20) scroll.scrollLeft += at.left - box.left - box.width / 2;
	}
	/* The marks that are seen, in the order of their events; an event in several lanes once. */
	function seen(what) {
		let last = null;
		return all('svg .row:not([hidden]) ' + what).map(m => ({at: +m.dataset.e, mark: m})).sort((a, b) => a.at - b.at)
			.filter(x => { const other = x.at !== last; last = x.at; return other; });
	}
	function step(what, by) {
		const list = seen(what), at = selected ? +selected.dataset.e : by > 0 ? -1 : Infinity;
		const next = list.filter(x => by > 0 ? x.at > at : x.at < at);
		if (next.length) select(next[by > 0 ? 0 : next.length - 1].mark);
		else if (what !== '.m' && list.length) select(list[0].mark); /* round again */
	}

	/* --- which lanes are shown --- */

	function has(text, list) { return !list.length || list.some(w => text.toLowerCase().includes(w)); }
	function layOut() {
		const list = filter.value.toLowerCase().split(/\s+/).filter(Boolean), place = [], off = {}, hidden = {};
		let y = HEAD;
		boxes.forEach(b => { off[b.dataset.group] = !b.checked; });
		names.forEach((n, k) => {
			const rank = n.className.split(' ')[1], hide = off[rank] || !has(n.dataset.lane + ' ' + n.textContent, list);
			n.hidden = hide;
			rows[k].toggleAttribute('hidden', hide);
			rows[k].setAttribute('transform', `translate(0,${y})`);
			place[k] = hide ? -1 : y + LANE / 2;
			if (hide && rank !== 'pm') hidden[n.textContent] = true;
			if (!hide) y += LANE;
		});
		paths.forEach(p => {
			const d = p.dataset, y1 = place[d.from], y2 = place[d.to], bend = (d.x2 - d.x1) / 2;
			p.style.display = showArrows.checked && y1 >= 0 && y2 >= 0 ? '' : 'none';
			p.setAttribute('d', `M${d.x1} ${y1}C${+d.x1 + bend} ${y1} ${d.x2 - bend} ${y2} ${d.x2} ${y2}`);
		});
		svg.setAttribute('height', y + 8);
		all('.crash path').forEach(p => p.setAttribute('d', p.getAttribute('d').replace(/V.*/, 'V' + (y + 8))));
		/* The list: of whom there is a lane; or what names one of the words. */
		all('#events tr[id]').forEach(r => {
			r.hidden = hidden[r.cells[1].textContent] && !(list.length && has(r.cells[3].textContent, list));
		});
		all('#events .sum').forEach(r => { r.hidden = r.nextElementSibling.hidden; });
		if (selected && selected.closest('[hidden]')) select(null);
	}
	function everything() {
		filter.value = '';
		boxes.concat(showArrows).forEach(b => { b.checked = true; });
		select(null);
		layOut();
	}

	/* --- keys and clicks --- */

	all('.m').forEach(m => m.addEventListener('click', () => select(m, true)));
	all('.sum').forEach(r => r.addEventListener('click', () => r.parentNode.classList.toggle('open')));
	filter.addEventListener('input', layOut);
	boxes.concat(showArrows).forEach(b => b.addEventListener('change', layOut));
	const keys = {
		ArrowRight: () => step('.m', 1),
		ArrowLeft: () => step('.m', -1),
		c: () => step('.m.cause', 1),
		C: () => step('.m.cause', -1),
		Enter: () => { if (selected) select(selected, true); },
		'/': () => { filter.focus(); filter.select(); },
		a: () => { showArrows.checked = !showArrows.checked; layOut(); },
		Escape: everything
	};
	doc.addEventListener('keydown', e => {
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
}
function traceTitle(t) {
	return `${t.store}${t.variant !== 'default' ? ' ' + t.variant : ''} breaks ${t.contract || 'no contract'} (${t.replayed})`;
}
views.push({of: 'replayed', title: traceTitle, show: showTrace, after: followTrace});
