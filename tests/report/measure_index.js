/* As measure.js, of the index of tidemark crashtest --html. */
(function () {
	var out = [], cells = document.querySelectorAll('.matrix td:not(.figure)');
	function say(what) { out.push(what); }
	measureLayout(say);
	document.querySelectorAll('.matrix td a').forEach(function (a) {
		var box = a.getBoundingClientRect();
		if (box.width < 12 || box.height < 12) say('a link is too small to be hit');
	});
	/* What needs attention stands out: nothing else is on a background of its own. */
	cells.forEach(function (td) {
		var plain = /, 0\)|transparent/.test(getComputedStyle(td).backgroundColor), attention = td.classList.contains('attention');
		if (plain == attention) say('a cell ' + (attention ? 'of attention is plain' : 'stands out: ' + td.className));
	});
	/* Without colours, in one letter: each mark is another one. Crosses are alike. */
	var looks = {};
	document.querySelectorAll('.marks b').forEach(function (b) {
		var style = getComputedStyle(b), sign = b.textContent.replace(/[\u00d7\u2715-\u2718x]/i, 'cross');
		var look = [sign, style.borderTopWidth, /, 0\)|transparent/.test(style.backgroundColor)].join();
		if (looks[look]) say('two marks look alike: ' + b.parentElement.textContent);
		looks[look] = true;
	});
	measureColours(say);
	var list = document.createElement('pre');
	list.id = 'measured';
	list.textContent = 'measured ' + cells.length + ' cells; ' + (out.join('; ') || 'well');
	document.body.appendChild(list);
})();
