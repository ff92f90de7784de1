/* The crash images of a recording: what was recorded and who judges, then a section for each cause. Its chart has a lane for
 * each thread and each queue pair, and one for each line of PM of which something was lost; arrows lead from what was lost to
 * the flush and the fence that made it durable in the run, where the power did not fail. */
const IMAGE_COLUMN = 24, IMAGE_LANES = 32, IMAGE_LINES = 8, BYTE = 4, BYTES_HEIGHT = 14;
const IMAGE_CLASSES = {store: 'st', flush: 'fl', fence: 'fe', fetch: 'ld', 'return': 'su', survived: 'w'};

function hex(line) { return '+0x' + (line * LINE).toString(16); }
/* "put (store.c:12);main (main.c:3)", with links. */
function frames(c, source) {
	return (source || '').split(';').filter(Boolean).map((frame, i) => {
		const m = /^(.*\()([^(]+:\d+)\)$/.exec(frame), id = m && placeId(c.id + '-s-', m[2]);
		return [i ? ', of ' : '', m && shownPlaces.has(id) ? [m[1], h('a', {href: '#' + id}, m[2]), ')'] : frame];
	});
}
function eventLink(c, n) {
	return c.events.some(e => e.event === n) ? h('a', {href: `#${c.id}-e${n}`}, 'event ' + n) : 'event ' + n;
}

/* --- what was lost --- */

function fateOf(t, c, l) {
	const never = l.flush === undefined, late = !never && l.flush >= c.at;
	const flush = !never && [late ? 'In the run it was flushed after that, by ' : 'It was flushed, by ', eventLink(c, l.flush)];
	const no = t.threads ? ', and no fence of that thread ever follows.' : ', and no fence ever follows.';
	if (l.durable === undefined) return [flush, never ? 'Nothing ever flushes it.' : no];
	const when = never ? 'It was durable only with the ' : late ? ', and it was durable with the ' : '; the power failed before the ';
	return [flush, when + l.durable_with + ', ', eventLink(c, l.durable), never || late ? '.' : ', that waits for this.'];
}
function lostList(t, c) {
	if (!c.lost.length)
		return !t.one && h('p', {}, 'Nothing that was in flight is lost: it is the moment that matters.');
	const item = l => h('li', {class: 'fact'}, h('b', {class: 'bad'}, 'lost'), ': ' + l.what + ', ', eventLink(c, l.event),
		l.line > 0 && `, line ${l.line} of the log`,
		l.more_lines > 0 && `, and what is left out of ${plural(l.more_lines, 'more line')}`,
		l.source && [h('br'), l.noticed ? 'noticed at ' : 'by ', frames(c, l.source)], h('br'), fateOf(t, c, l));
	return [h('h3', {}, 'What was lost'), h('ul', {class: 'facts'}, c.lost.map(item))];
}
/* The 64 bytes of a line; what is lost is drawn over what is left. */
function bytesOf(l) {
	const width = LINE * BYTE, height = BYTES_HEIGHT;
	return s('svg', {class: 'bytes', width, height, role: 'img', 'aria-label': 'bytes of the line'},
		s('rect', {class: 'rest', width, height}), l.changes.map(v =>
			s('rect', {class: v.kept ? 'kept' : 'lost', x: v.at * BYTE, width: v.bytes * BYTE, height},
				s('title', {}, `${v.what}, event ${v.event}`))));
}
function flight(c) {
	const mark = kept => h('b', {class: kept ? 'good' : 'bad'}, kept ? '\u2713' : '\u00d7');
	return c.lines.length > 0 && [h('h3', {}, 'The lines in flight'),
		table(['line of PM', ['its 64 bytes: ', h('span', {class: 'good'}, 'left'), ', ', h('span', {class: 'bad'}, 'lost')], 'left',
			'its changes, in their order'], h('tbody', {}, c.lines.map(l => row([l.name + hex(l.line), bytesOf(l),
			h('td', {class: l.whole ? 'good' : 'bad'}, `${l.left} of ${l.versions}${l.how && ': ' + l.how}`),
			[l.changes.map((v, i) => [i ? ', ' : '', mark(v.kept), ' ', eventLink(c, v.event)]),
				l.versions > l.changes.length && `, and ${l.versions - l.changes.length} more`]]))), {class: 'flight'}),
		c.more && h('p', {class: 'dim'}, c.more)];
}

/* --- the chart --- */

/* Events that are left out have a column together. */
function imageColumns(c) {
	let columns = 0, cut = -1, last = -1;
	for (const e of c.events) {
		e.gap = e.event - last - 1;
		columns += e.gap > 0;
		if (cut < 0 && e.event >= c.at) cut = columns++;
		e.column = columns++;
		last = e.event;
	}
	c.cut = cut < 0 ? columns++ : cut;
	return columns;
}
function imageMiddle(column) { return column * IMAGE_COLUMN + IMAGE_COLUMN / 2; }
function imageArrow(c, threads, from, to, what) {
	const a = c.events.find(e => e.event === from), b = c.events.find(e => e.event === to);
	const k = a && threads.indexOf(a.whose), l = b && threads.indexOf(b.whose);
	if (!a || !b || k < 0 || l < 0) return null;
	const x1 = imageMiddle(a.column), x2 = imageMiddle(b.column), bend = Math.trunc((x2 - x1) / 3), rise = k === l ? 16 : 0;
	const y1 = middleOf(k), y2 = middleOf(l);
	return s('path', {class: 'arrow' + (to >= c.at ? ' taken' : ''), 'marker-end': 'url(#tip)',
		d: `M${x1} ${y1}C${x1 + bend} ${y1 - rise} ${x2 - bend} ${y2 - rise} ${x2} ${y2}`}, s('title', {}, what));
}
/* From what was lost to its flush, and on. */
function imageArrows(c, threads) {
	return c.lost.map(l => [imageArrow(c, threads, l.event, l.flush, 'its flush'),
		imageArrow(c, threads, l.flush === undefined ? l.event : l.flush, l.durable, 'with which it was durable in the run')]);
}
const imageLegend = [['st', '\u25a0', 'a store, or a landing'], ['fl', '\u25bc', 'a flush'],
	['fl', '\u275a', 'a fence, msync or RDMA FLUSH'], ['ld', '\u25cf', 'a READ after landings'],
	['su', '\u25c0', 'an acknowledgement'], ['w', '\u25c6', 'a marker'], ['ring', '\u25ef', 'is lost'],
	['line', '\u2192', 'to its flush, and to what made it durable; dashed: after the failure, in the run']];

function imageChart(t, c) {
	const threads = [...new Set(c.events.map(e => e.whose))].slice(0, IMAGE_LANES);
	const lines = c.lines.slice(0, IMAGE_LINES).filter(l => !l.whole), lanes = threads.length + lines.length;
	const columns = imageColumns(c), cut = imageMiddle(c.cut);
	const width = Math.max(columns * IMAGE_COLUMN, cut + 140 /* words beside the line */), height = HEAD + lanes * LANE + 8;
	const marksOf = events => events.map(e => mark(IMAGE_CLASSES[e.mark], e.mark, imageMiddle(e.column), e.lost,
		`event ${e.event}, ${e.whose}: ${e.what}`));
	const covers = (e, l) => e.file === l.file && e.first_line <= l.line && l.line <= e.last_line;
	const threadNames = threads.map(name => h('div', {class: 'name ' + c.events.find(e => e.whose === name).rank}, name));
	const lineNames = lines.map(l =>
		h('div', {class: 'name pm', title: l.name + hex(l.line)}, l.name.replace(/^.*\//, '') + hex(l.line)));
	const gaps = c.events.filter(e => e.gap > 0).map(e => s('g', {}, s('text', {class: 'phase', y: 28,
		x: (e.column - 1 - (c.cut === e.column - 1)) * IMAGE_COLUMN + 6}, '\u22ef'), s('title', {}, e.gap + ' more')));
	return [chart(threadNames.concat(lineNames), width, height, 'events by thread',
		threads.map((name, k) => lane(k, width, {}, marksOf(c.events.filter(e => e.whose === name)))),
		lines.map((l, k) => lane(threads.length + k, width, {}, marksOf(c.events.filter(e => covers(e, l))),
			fate('lost', cut, 'the line is not whole'))),
		imageArrows(c, threads), gaps, failure(cut, 14, height, t.kill ? 'the process dies' : 'power fails'),
		s('text', {class: 'phase', x: cut + 6, y: 28}, 'the run goes on')), c.id === 'c1' && legend(imageLegend)];
}

/* --- the lists --- */

function imageEvents(t, c) {
	const rows = [], failed = row(['', '', t.kill ? 'the process dies' : 'the power fails', ''], {class: 'failure'});
	for (const e of c.events) {
		if (e.event >= c.at && !failed.shown) failed.shown = rows.push(failed);
		if (e.gap > 0) rows.push(row([h('td', {class: 'dim'}, '\u22ef'), '', h('td', {class: 'dim'}, e.gap + ' more'), '']));
		rows.push(row([String(e.event), e.whose, h('td', {}, e.what, e.lost && [' ', h('b', {class: 'bad'}, 'lost')]),
			h('td', {class: 'src'}, e.source && e.noticed && 'noticed at ', frames(c, e.source))],
		{id: `${c.id}-e${e.event}`, 'class': e.lost && 'cause'}));
	}
	if (!failed.shown) rows.push(failed);
	return h('details', {open: true}, h('summary', {}, 'The events around it'),
		table(['event', 'whose', 'what', 'place in the program'], h('tbody', {}, rows), {class: 'events'}));
}
function operations(c) {
	return c.operations.length > 0 && h('details', {open: true}, h('summary', {}, 'What clients had announced'),
		table(['client', 'operation', 'answer'], h('tbody', {}, c.operations.map(o =>
			row([String(o.client), o.call, o.answer], {'class': o.named && 'cause'})))),
		c.operations_before > 0 && h('p', {class: 'dim'}, `and ${c.operations_before} before`));
}

/* --- all together --- */

function imageSection(t, c, images) {
	return h('section', {class: 'cause', id: c.id}, !t.one && h('h2', {}, `${c.id.slice(1)}. ${c.verdict}; ${plural(images, 'image')}`),
		h('p', {class: 'why'}, (t.one ? 'This image: ' : 'The smallest of these images: ') + c.moment), lostList(t, c), flight(c),
		h('h3', {}, 'What happened'), imageChart(t, c), imageEvents(t, c), operations(c),
		c.sources.length > 0 && [h('h3', {}, 'The source'), c.sources.map(file => sourceOf(c.id + '-s-', file))],
		!t.one && [h('h3', {}, 'Once more'), h('p', {class: 'again'}, h('code', {}, c.again))]);
}
function imagesTop(r, t) {
	const where = ` where the ${t.kill ? 'process died' : 'power failed'}`, places = counted(r.cuts, 'place');
	const list = figures([[places[0], places[1] + where], counted(r.images, 'different image'), [r.bad, 'bad'],
		counted(t.causes.length, 'cause')]);
	list.append(h('li', {}, 'at most ', h('b', {}, t.most), ' images of a place'));
	return [list, t.remarks.map(text => h('p', {class: 'remark'}, text))];
}
/* Of one image that was asked for. */
function imageTop(r, t) {
	return [h('p', {class: 'verdict ' + (r.good ? 'good' : 'bad')}, 'This image: ' + t.causes[0].verdict),
		t.remarks.map(text => h('p', {class: 'verdict bad'}, text))];
}
/* What was recorded, and who judges. */
function recorded(r, t) {
	const fails = t.kill ? 'the process: all that it had stored is left' :
		t.keeps ? 'the power; caches survive, so that all that CPUs stored is left' : 'the power; what is in caches is lost';
	const files = t.files.map(f => ['PM', `${f.name}, ${f.size} bytes${f.unseen && '; ' + f.unseen}`]);
	return [['recording', r.log], ...files, ['events', t.counts.join(', ')], ['order', t.order],
		...r.not_seen.map(line => ['not seen', line]), ['end', t.no_end && 'none: ' + t.no_end], ['fails', fails],
		['hardware', t.hardware], ['checker', t.checker], ['then', t.then], ['command', t.command],
		['version', 'tidemark ' + r.tidemark]].filter(line => line[1]);
}
function showImages(r) {
	const t = r.shown, one = t.one = !r.causes, causes = one ? [r.cause] : r.causes;
	t.causes.forEach((c, i) => {
		Object.assign(c, causes[i].shown, {id: 'c' + (i + 1)});
		c.lost.forEach((l, k) => Object.assign(l, causes[i].lost[k], causes[i].lost[k].shown));
		notePlaces(c.id + '-s-', c.sources);
	});
	const link = (c, i) => h('li', {}, h('a', {href: '#' + c.id}, c.verdict), '; ' + plural(causes[i].images, 'image'),
		c.lost.length > 0 && '; lost: ' + c.lost[0].what, c.lost.length > 1 && `, and ${c.lost.length - 1} more`);
	return [h('header', {}, h('h1', {}, 'Crash images of ' + r.log), one ? imageTop(r, t) : verdict(r),
		r.history.map(f => [h('p', {class: 'verdict bad'}, 'Without any power failure: ' + f.shown.words),
			f.shown.operations && h('pre', {}, f.shown.operations)]), !one && imagesTop(r, t)),
	h('section', {class: 'run'}, h('h2', {}, 'What was recorded, and who judges'), facts(recorded(r, t)),
		t.contracts.length > 0 && contractList(t.contracts)),
	s('svg', {class: 'tips', width: 0, height: 0, 'aria-hidden': 'true'}, tips()),
	!one && t.causes.length > 0 && section('causes', 'The causes', h('ol', {}, t.causes.map(link))),
	t.causes.map((c, i) => imageSection(t, c, causes[i].images))];
}
views.push({of: 'log', title: r => 'Crash images of ' + r.log, show: showImages});
