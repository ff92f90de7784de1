/* The taxonomy: the verdict of each method on each hardware, a matrix for each transport. */
const VERDICTS = {ok: 'holds', '': 'unsure'};

function taxonomyMatrix(t, transport) {
	const cells = t.cells.filter(c => c.config.includes('transport=' + transport));
	const short = c => c.config.replace(/ ?transport=\S+/, ''), of = new Map(cells.map(c => [c.variant + short(c), c]));
	const columns = [...new Set(cells.map(short))], methods = [...new Set(cells.map(c => c.variant))];
	const cheapest = new Set(t.choices.map(c => c.cheapest + c.config));
	function verdictCell(c) {
		if (!c) return h('td', {});
		const title = c.breaks.map(b => `${b.contract}: ${b.how}`).join('; ') || c.compared;
		return h('td', {class: c.compared === 'differs' ? 'attention' : VERDICTS[c.verdict] || 'breaks'},
			h('span', {title}, cheapest.has(c.variant + c.config) ? h('u', {}, c.verdict) : c.verdict || '?'));
	}
	return section(transport, 'Which method is sound where: ' + transport,
		table(['method', ...columns.map(c => h('th', {scope: 'col'}, c.split(' ').map(knob => [knob, h('br')])))],
			h('tbody', {}, methods.map(name => h('tr', {}, h('th', {scope: 'row'}, name),
				columns.map(column => verdictCell(of.get(name + column)))))), {class: 'matrix'}));
}
function showTaxonomy(t) {
	return [h('h1', {}, 'Ways of making a remote update durable'), verdict(t), h('p', {class: 'dim'},
		'ok: sound; L: an update that was reported durable can be lost; O: b can be durable without a; LO: both. ' +
		'Underlined: the cheapest that is sound, of its primitive.'),
	[...new Set(t.cells.map(c => /transport=(\S+)/.exec(c.config)[1]))].map(transport => taxonomyMatrix(t, transport))];
}
views.push({of: 'choices', title: () => 'Taxonomy', show: showTaxonomy});
