/* Charts of events: a lane for each actor and line of PM, time to the right. Each lane is a group at its own height, so that
 * lanes can be hidden and the others moved up. */
const LANE = 26, NAMES = 190, HEAD = 34; /* pixels; page.css has them, too */

/* The mark of an event, in the middle of its lane. */
function shape(kind, x) {
	const y = LANE / 2;
	switch (kind) {
	case 'load': case 'fetch': return s('circle', {cx: x, cy: y, r: 3.5});
	case 'flush': case 'effect': return s('path', {d: `M${x - 4} ${y - 4}h9l-4.5 9z`});
	case 'fence': case 'drain': return s('path', {d: `M${x - 1} ${y - 7}h3v14h-3z`});
	case 'call': return s('path', {d: `M${x - 4} ${y - 5}l8 5l-8 5z`});
	case 'return': return s('path', {d: `M${x + 4} ${y - 5}l-8 5l8 5z`});
	case 'survived': return s('path', {d: `M${x} ${y - 5}l5 5l-5 5l-5-5z`});
	case 'post': return s('path', {d: `M${x - 5} ${y - 3}h4v-3l5 6l-5 6v-3h-4z`});
	default: return s('rect', {x: x - 4, y: y - 4, width: 8, height: 8});
	}
}
function mark(classes, kind, x, cause, title, attributes) {
	return s('g', {class: 'm ' + classes + (cause ? ' cause' : ''), ...attributes},
		cause && s('circle', {class: 'halo', cx: x, cy: LANE / 2, r: 9}), shape(kind, x), s('title', {}, title));
}
/* What became of a lane's line at a power failure. */
function fate(kind, x, title) {
	const y = LANE / 2, sign = {kept: '\u2713', lost: '\u00d7', torn: '~'}[kind];
	return s('g', {class: 'fate ' + kind}, s('circle', {cx: x, cy: y, r: 8}), s('text', {x, y: y + 4}, sign), s('title', {}, title));
}
function lane(k, width, attributes, ...content) {
	return s('g', {transform: `translate(0,${HEAD + k * LANE})`, ...attributes},
		s('rect', {class: 'lane' + (k % 2 ? ' odd' : ''), x: 0, y: 0, width, height: LANE}), content);
}
function middleOf(k) { return HEAD + k * LANE + LANE / 2; }
/* A power failure: a line across all lanes, with words beside it. */
function failure(x, y, height, words) {
	return s('g', {class: 'crash'}, s('path', {d: `M${x} 4V${height}`}), s('text', {x: x + 6, y}, words));
}
function tips() {
	return s('defs', {}, ['tip', 'tip-reply'].map(id => s('marker', {id, viewBox: '0 0 8 8', refX: 10, refY: 4, markerWidth: 7,
		markerHeight: 7, orient: 'auto'}, s('path', {d: 'M0 0l8 4l-8 4z'}))));
}
function chart(names, width, height, label, ...content) {
	const all = width + NAMES; /* on paper, about 1000 pixels are the width */
	return h('div', {class: 'chart' + (all > 2200 ? ' long' : ''), style: '--fit:' + (all > 1000 ? 1000 / all : 1).toFixed(3)},
		h('div', {class: 'names'}, names), h('div', {class: 'scroll', tabindex: 0},
			s('svg', {width, height, role: 'img', 'aria-label': label}, content)));
}
/* [class, sign, meaning] */
function legend(rows) {
	return h('ul', {class: 'legend'}, rows.map(r => h('li', {}, h('b', {class: 'k ' + r[0]}, r[1]), ' ' + r[2])));
}
