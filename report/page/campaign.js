/* A campaign: what needs attention, a matrix of stores and hardware against contracts whose broken cells lead to the pages of
 * their traces, what each contract says, and of each broken cell how it breaks, why that was expected, and the command that
 * replays it. */
const MARKS = [['.', 'holds', '\u2713', 'holds: no failure was found'],
	['x', 'breaks', '\u00d7', 'broken as the design says: the store does not promise it'],
	['X', 'breaks flaw', '\u2716', 'broken and promised: a known flaw'],
	['a', 'breaks', '\u2248', 'broken, and accepted by the baseline'],
	['-', 'unsure', '-', 'nothing broken until now: not finished'], ['?', 'unsure', '?', 'could not tell'],
	['!', 'attention', '!', 'surprise: needs attention']];

function keyOf(cell) { return [cell.store, cell.variant, cell.config, cell.contract].join('\n'); }
function pageOf(trace) { return encodeURIComponent(trace.replace(/^.*\//, '').replace(/(.)\.trace$/, '$1') + '.html'); }

function matrixCell(config, cell) {
	const is = cell && MARKS.find(m => m[0] === cell.shown.mark);
	if (!is) return h('td', {});
	const title = `${config.name}, ${cell.contract}: ${is[3]}${cell.verdict === 'broken' ? ', in ' + cell.shown.broken_in : ''}`;
	return h('td', {class: is[1]}, cell.trace ? h('a', {href: pageOf(cell.trace), title}, is[2]) : h('span', {title}, is[2]));
}
function matrix(c, configs) {
	const heads = c.contracts.map(k => h('th', {scope: 'col'}, h('abbr', {title: k.what}, k.name)));
	const figure = (tag, text) => h(tag, {class: 'figure'}, text);
	const rows = configs.map(one => h('tr', {}, h('th', {scope: 'row'}, one.name),
		c.contracts.map(k => matrixCell(one, c.cellOf.get(keyOf({...one, contract: k.name})))),
		figure('td', one.runs), figure('td', one.states)));
	return configs.length > 0 && table(['store, hardware', ...heads, figure('th', 'runs'), figure('th', 'states')],
		h('tbody', {}, rows), {class: 'matrix'});
}
function caseText(one) {
	return h('p', {}, one.how, one.takes && [h('br'), 'it takes ' + one.takes], one.trace && [h('br'),
		h('a', {class: 'page', href: pageOf(one.trace)}, 'the page of the trace'), ` (${plural(one.operations, 'operation')}, ${
			plural(one.deviations, 'deviation')}${one.whole ? '; could not be shrunk' : ''}) `, h('code', {}, one.replay)]);
}
function article(c, cell) {
	const more = cell.shown, name = c.configs.find(one => keyOf({...one, contract: cell.contract}) === keyOf(cell)).name;
	return h('article', {class: more.surprise ? 'attention' : 'breaks'}, h('h3', {}, `${name} ${cell.contract}`,
		more.surprise && [': ', h('strong', {}, more.surprise)],
		cell.verdict === 'broken' ? ', in ' + more.broken_in : ', it holds in ' + plural(cell.states, 'state')),
	more.holds_on && h('p', {}, 'holds on: ' + more.holds_on), more.cases.map(caseText),
	more.left > 0 && h('p', {}, more.left + (more.left === 1 ? ' more way of breaking it was' : ' more ways of breaking it were') +
		' not looked at'),
	more.cause && h('p', {}, more.cause), more.why && h('p', {class: 'dim'}, more.why));
}
function articles(c, id, title, cells) { return cells.length > 0 && section(id, title, cells.map(cell => article(c, cell))); }
function sum(list, field) { return list.reduce((n, one) => n + one[field], 0); }

function campaignFigures(c) {
	const b = c.bounds, bold = n => h('b', {}, n);
	const list = figures([counted(c.configs.length, 'configuration'), counted(b.workloads, 'workload'),
		counted(sum(c.configs, 'runs'), 'run'), counted(sum(c.configs, 'states'), 'crash state'), counted(b.traces, 'trace')]);
	list.append(b.all_runs ?
		h('li', {}, 'all runs with at most ', bold(b.preemptions), b.preemptions === 1 ? ' preemption' : ' preemptions') :
		h('li', {}, 'seed ', bold(c.seed), ', at most ', bold(b.runs), ' runs and ', bold(b.states), ' states of a workload'),
	h('li', {}, 'tidemark ' + c.tidemark));
	return list;
}
function showCampaign(c) {
	const shapes = c.configs.filter(one => one.in_short), shown = c.cells.filter(cell => cell.shown.cases && !cell.shown.folded);
	const marks = MARKS.filter(m => m[0] !== 'a' || c.bounds.baseline);
	c.cellOf = new Map(c.cells.map(cell => [keyOf(cell), cell]));
	return [h('h1', {}, 'Crash test'), verdict(c), campaignFigures(c),
		c.configs.filter(one => one.not_run).map(one => h('p', {}, one.not_run + '.')),
		articles(c, 'attention', 'What needs attention', shown.filter(cell => cell.shown.surprise)),
		section('matrix', 'Which contract holds where', matrix(c, c.configs.filter(one => !one.in_short)),
			h('ul', {class: 'marks'}, marks.map(m => h('li', {}, h('b', {class: m[1]}, m[2]), ' ' + m[3]))),
			h('p', {class: 'dim'}, 'A cell that breaks leads to the page of its smallest trace.'),
			shapes.length > 0 && h('details', {}, h('summary', {},
				plural(shapes.length, 'shape') + ' in which all is as expected (no traces are written of these)'), matrix(c, shapes))),
		section('contracts', 'What each contract says', contractList(c.contracts)),
		articles(c, 'expected', 'What breaks as expected', shown.filter(cell => !cell.shown.surprise))];
}
views.push({of: 'bounds', title: () => 'Crash test', show: showCampaign});
