/* Where the time of operations goes, a bar for each; and what guarantees cost: a picture and a table. */
const hue = p => `hsl(${47 * p} 55% 55%)`;

function bar(op) {
	const parts = op.parts.map((part, p) => ({...part, p})).filter(part => Math.abs(part.percent) >= 0.05);
	return [h('h3', {}, `${op.operation}: median ${op.median_us.toFixed(2)} us, 99 % ${op.p99_us.toFixed(2)} us, mean ${op.mean_us.toFixed(2)} us`),
		h('div', {class: 'bar'}, parts.filter(part => part.percent > 0).map(part =>
			h('span', {style: `flex:${part.percent};background:${hue(part.p)}`, title: `${part.part} ${part.us.toFixed(2)} us`}))),
		table(['part', 'us', '%', ''], h('tbody', {}, parts.map(part => row([
			[h('b', {style: `color:${hue(part.p)}`}, '\u25a0 '), part.part], part.us.toFixed(2), part.percent.toFixed(1), part.what]))))];
}
function showTimes(all) {
	return [h('h1', {}, 'Where the time goes'), all.times.map(t => section(t.store, `${t.store} ${t.variant === 'default' ? '' : t.variant}`,
		h('p', {class: 'dim'}, `profile ${t.profile}, YCSB ${t.workload}: ${plural(t.clients, 'client')}, ${plural(t.keys, 'key')}, ` +
			`values of ${plural(t.value, 'byte')}: ${Math.round(t.per_second)} operations/s`), t.operations.map(bar)))];
}
views.push({of: 'times', title: () => 'Times', show: showTimes});

function scatter(all, rows) {
	const W = 1000, H = 440, log = rows.map(r => Math.log2(r.put_us)), from = Math.floor(Math.min(...log)), to = Math.ceil(Math.max(...log) + 0.01);
	const x = us => 40 + (W - 140) * (Math.log2(us) - from) / (to - from), y = kept => H - 30 - (H - 120) * kept / all.kept_of;
	return h('div', {class: 'scroll'}, s('svg', {width: W, height: H, role: 'img', 'aria-label': 'what a PUT takes, and how many contracts hold'},
		Array.from({length: to - from + 1}, (_, i) => 2 ** (from + i)).map(us =>
			[s('path', {class: 'grid', d: `M${x(us)} 60V${H - 30}`}), s('text', {class: 'tick', x: x(us), y: H - 12}, us + ' us')]),
		Array.from({length: all.kept_of + 1}, (_, kept) => s('text', {class: 'tick', x: 8, y: y(kept) + 4}, kept)),
		rows.map(r => s('g', {class: 'point' + (r.best ? ' best' : ''), transform: `translate(${x(r.put_us)},${y(r.kept)})`},
			s('circle', {r: 4}), s('text', {transform: 'rotate(-50)', x: 8, y: 4}, r.name),
			s('title', {}, `${r.name}: ${r.put_us.toFixed(2)} us`)))));
}
function showGuarantees(all) {
	const rows = all.rows.filter(r => 'put_us' in r), names = all.shown.contracts.split(' ');
	const cell = c => h('td', {class: !c ? '' : c.verdict === 'holds' ? 'holds' : c.verdict === 'broken' ? 'breaks' : 'unsure',
		title: c && c.verdict}, c ? c.mark : '');
	return [h('h1', {}, 'What guarantees cost'), h('p', {class: 'dim'}, `profile ${all.profile}, YCSB ${all.workload}: ` +
		`${plural(all.clients, 'client')}, ${plural(all.keys, 'key')}, values of ${plural(all.value, 'byte')}; ${all.config}`),
	section('picture', `Contracts that hold, of the ${all.kept_of} by which all are judged, and what a PUT takes`, scatter(all, rows)),
	section('rows', 'By what a PUT takes', table(['', 'store', 'PUT us', 'trips', 'lines', 'fences', 'GET us', 'trips', 'server us', ...names],
		h('tbody', {}, all.rows.map(r => row(['put_us' in r ? [r.best ? '*' : '', r.name, r.put_us.toFixed(2), r.put_trips, r.lines_flushed, r.fences,
			r.get_us.toFixed(2), r.get_trips, r.server_us.toFixed(2)] : ['', r.name, h('td', {colspan: 7}, r.error)],
		names.map(name => cell(r.contracts.find(c => c.contract === name)))].flat()))), {class: 'matrix'})),
	h('p', {class: 'dim'}, '*: no other row keeps as much and takes no longer. .: holds; x: broken, X: though it is promised; ' +
		'?: may break; p: promised, and nothing else is known; -: not promised, and nothing is known.')];
}
views.push({of: 'kept_of', title: () => 'What guarantees cost', show: showGuarantees});
