/*
 * The page of any tree of results (report/tree.h), which stands in the page as JSON. What all views
 * share: elements, texts in which places lead to their lines of source, tables. A view says which
 * field a tree has that it can show; of another tree, fields and lists are shown as they are.
 */
const results = JSON.parse(document.getElementById('results').textContent);
const views = []; /* {of: a field, title(results), show(results): elements, after()} */

function make(e, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {}))
		if (value !== null && value !== undefined && value !== false) e.setAttribute(name, value === true ? '' : value);
	e.append(...children.flat(Infinity).filter(c => c || c === 0));
	return e;
}
/* An element; children are elements, texts and lists of them. Texts are never read as HTML. */
function h(tag, attributes, ...children) { return make(document.createElement(tag), attributes, children); }
function s(tag, attributes, ...children) {
	return make(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}
function plural(n, word) { return n + ' ' + word + (n === 1 ? '' : 's'); }
/* A part of the page with a heading. */
function section(id, title, ...content) { return h('section', {id}, h('h2', {}, title), content); }
/* Figures, each a number and what it counts; counted(): in the plural unless it is one. */
function figures(list) {
	return h('ul', {class: 'figures'}, list.map(([n, what]) => h('li', {}, h('b', {}, n), ' ' + what)));
}
function counted(n, word) { return [n, n === 1 ? word : word + 's']; }
function us(ns) { return (ns / 1000).toFixed(3); }

/* --- tables --- */

function row(cells, attributes) {
	return h('tr', attributes, cells.map(c => c instanceof HTMLTableCellElement ? c : h('td', {}, c)));
}
function table(heads, bodies, attributes) {
	const head = h('thead', {}, h('tr', {}, heads.map(c => c instanceof HTMLTableCellElement ? c : h('th', {}, c))));
	return h('div', {class: 'wide'}, h('table', attributes, head, bodies));
}
/* Names and what they are: lists of two. */
function facts(rows) { return h('table', {class: 'facts'}, rows.map(r => h('tr', {}, h('th', {}, r[0]), h('td', {}, r[1])))); }
function contractList(contracts) {
	return h('dl', {class: 'contracts'}, contracts.map(c => [h('dt', {}, c.name), h('dd', {}, c.what)]));
}

/* --- source --- */

const PLACE = /[\w.\/+=-]+\.(?:c|h|cc|hh|cpp|hpp|cxx):\d+/g;
const shownPlaces = new Set();

function placeId(prefix, place) { return prefix + place.replace(/[^A-Za-z0-9._]/g, '-'); }
/* A text; places of which lines are shown on the page are links. */
function linked(prefix, text) {
	const parts = [];
	let from = 0;
	for (const m of text.matchAll(PLACE)) {
		if (!shownPlaces.has(placeId(prefix, m[0]))) continue;
		parts.push(text.slice(from, m.index), h('a', {href: '#' + placeId(prefix, m[0])}, m[0]));
		from = m.index + m[0].length;
	}
	return [parts, text.slice(from)];
}
function expanded(text) {
	let out = '';
	for (const c of text) out += c === '\t' ? ' '.repeat(8 - out.length % 8) : c;
	return out;
}
/* Before anything is shown that may lead to them. */
function notePlaces(prefix, sources) {
	for (const file of sources)
		for (const line of file.places) shownPlaces.add(placeId(prefix, file.file + ':' + line));
}
function sourceOf(prefix, file) {
	const left = new Map(file.places.map(line => [line, placeId(prefix, file.file + ':' + line)]));
	const shown = [];
	let last = 0;
	for (const [number, text] of file.lines || []) {
		const line = [h('i', {}, String(number).padStart(5)), '  ' + expanded(text)];
		if (last && last + 1 < number) shown.push(h('i', {}, '    \u22ef'), '\n');
		shown.push(left.has(number) ? h('span', {class: 'named', id: left.get(number)}, line) : line, '\n');
		left.delete(number);
		last = number;
	}
	return [h('h3', {}, file.file), [...left.values()].map(id => h('span', {id})),
		file.why ? h('p', {class: 'dim'}, file.why) : h('pre', {class: 'source'}, shown)];
}

/* --- any tree --- */

function verdict(tree) {
	const kind = ['good', 'bad'][tree.status] || 'unsure';
	return tree.verdict && h('p', {class: 'verdict ' + kind}, tree.verdict);
}
function isList(value) { return Array.isArray(value) && value.length && typeof value[0] === 'object' && !Array.isArray(value[0]); }
/* What is there for the terminal's text alone is left out. */
function fieldsOf(object) { return Object.entries(object).filter(([name]) => name !== 'shown'); }
function asText(value) {
	if (Array.isArray(value)) return value.map(asText).join('\n');
	if (value && typeof value === 'object')
		return fieldsOf(value).filter(([, v]) => v !== '').map(([name, v]) => name + ' ' + asText(v)).join(', ');
	return typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(4) : String(value);
}
/* Each list of objects is a table, with a column for each of their fields. */
function anyTree(tree) {
	const fields = fieldsOf(tree).filter(([name]) => !['status', 'verdict', 'test_cases'].includes(name));
	return [facts(fields.filter(f => !isList(f[1])).map(f => [f[0], asText(f[1])])),
		fields.filter(f => isList(f[1])).map(([name, list]) => {
			const columns = [...new Set(list.flatMap(one => fieldsOf(one).filter(f => asText(f[1]) !== '').map(f => f[0])))];
			return h('section', {id: name}, h('h2', {}, name), table(columns, h('tbody', {}, list.map(one =>
				row(columns.map(c => c in one ? asText(one[c]) : '')))), {class: 'any'}));
		})];
}

function show() {
	const view = views.find(v => v.of in results);
	document.title = view ? view.title(results) : results.verdict || 'Tidemark';
	const title = h('h1', {}, results.complete === false ? 'No results' : 'Results');
	make(document.querySelector('main'), {}, [view ? view.show(results) : [title, verdict(results), anyTree(results)]]);
	if (view && view.after) view.after();
}
