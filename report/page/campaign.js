/* A campaign: what needs attention, a matrix of stores and hardware against contracts whose broken cells lead to the pages of
 * their traces, what each contract says, and of each broken cell how it breaks, why that was expected, and the command that
 * replays it. */
const MARKS = [['.', 'holds', '\u2713', 'holds: no failure was found'],
	['x', 'breaks', '\u00d7', 'broken as the design says: the store does not promise it'],
	['X', 'breaks flaw', '\u2716', 'broken and promised: a known flaw'], ['a', 'breaks', '\u2248', 'broken, and accepted by the baseline'],
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
	return configs.length > 0 && h('div', {class: 'wide'}, h('table', {class: 'matrix'}, h('thead', {}, h('tr', {}, h('th', {}, 'store, hardware'),
		c.contracts.map(k => h('th', {scope: 'col'}, h('abbr', {title: k.what}, k.name))), h('th', {class: 'figure'}, 'runs'),
		h('th', {class: 'figure'}, 'states'))),
	h('tbody', {}, configs.map(one => h('tr', {}, h('th', {scope: 'row'}, one.name),
		c.contracts.map(k => matrixCell(one, c.cellOf.get(keyOf({...one, contract: k.name})))),
		h('td', {class: 'figure'}, one.runs), h('td', {class: 'figure'}, one.states))))));
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
	more.left > 0 && h('p', {}, `${more.left} more ${more.left === 1 ? 'way of breaking it was' : 'ways of breaking it were'} not looked at`),
	more.cause && h('p', {}, more.cause), more.why && h('p', {class: 'dim'}, more.why));
}
function articles(c, id, title, cells) {
	return cells.length > 0 && h('section', {id}, h('h2', {}, title), cells.map(cell => article(c, cell)));
}
function figures(list) { return h('ul', {class: 'figures'}, list.map(([n, what]) => h('li', {}, h('b', {}, n), ' ' + what))); }
function sum(list, field) { return list.reduce((n, one) => n + one[field], 0); }

function showCampaign(c) {
	const shapes = c.configs.filter(one => one.in_short), shown = c.cells.filter(cell => cell.shown.cases && !cell.shown.folded), b = c.bounds;
	const count = (n, word) => [n, plural(n, word).slice(String(n).length + 1)];
	c.cellOf = new Map(c.cells.map(cell => [keyOf(cell), cell]));
	const bounds = b.all_runs ? h('li', {}, 'all runs with at most ', h('b', {}, b.preemptions), b.preemptions === 1 ? ' preemption' : ' preemptions') :
		h('li', {}, 'seed ', h('b', {}, c.seed), ', at most ', h('b', {}, b.runs), ' runs and ', h('b', {}, b.states), ' states of a workload');
	const list = figures([count(c.configs.length, 'configuration'), count(b.workloads, 'workload'), count(sum(c.configs, 'runs'), 'run'),
		count(sum(c.configs, 'states'), 'crash state'), count(b.traces, 'trace')]);
	list.append(bounds, h('li', {}, 'tidemark ' + c.tidemark));
	return [h('h1', {}, 'Crash test'), verdict(c), list, c.configs.filter(one => one.not_run).map(one => h('p', {}, one.not_run + '.')),
		articles(c, 'attention', 'What needs attention', shown.filter(cell => cell.shown.surprise)),
		h('section', {id: 'matrix'}, h('h2', {}, 'Which contract holds where'), matrix(c, c.configs.filter(one => !one.in_short)),
			h('ul', {class: 'marks'}, MARKS.filter(m => m[0] !== 'a' || b.baseline).map(m => h('li', {}, h('b', {class: m[1]}, m[2]), ' ' + m[3]))),
			h('p', {class: 'dim'}, 'A cell that breaks leads to the page of its smallest trace.'),
			shapes.length > 0 && h('details', {}, h('summary', {},
				plural(shapes.length, 'shape') + ' in which all is as expected (no traces are written of these)'), matrix(c, shapes))),
		h('section', {id: 'contracts'}, h('h2', {}, 'What each contract says'), contractList(c.contracts)),
		articles(c, 'expected', 'What breaks as expected', shown.filter(cell => !cell.shown.surprise))];
}
views.push({of: 'configs', title: () => 'Crash test', show: showCampaign});
