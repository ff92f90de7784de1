/* As measure.js, of the page of tidemark images --html. */
(function () {
	var out = [], marks = document.querySelectorAll('.m');
	function say(what) { out.push(what); }
	measureLayout(say);
	document.querySelectorAll('.chart').forEach(function (chart) {
		var names = chart.querySelectorAll('.name'), lanes = chart.querySelectorAll('rect.lane');
		var svg = chart.querySelector('svg').getBoundingClientRect();
		if (!names.length || names.length != lanes.length) say('names and lanes differ');
		names.forEach(function (n, i) {
			var a = n.getBoundingClientRect(), b = lanes[i].getBoundingClientRect();
			if (Math.abs(a.top - b.top) > 1 || Math.abs(a.height - b.height) > 1) say('lane ' + n.textContent + ' is not beside its name');
			var boxes = [];
			lanes[i].parentNode.querySelectorAll('.m').forEach(function (m) {
				var r = m.querySelector('title').previousElementSibling.getBoundingClientRect();
				if (r.left < svg.left || r.right > svg.right) say('a mark is clipped');
				if (r.top < b.top - 0.5 || r.bottom > b.bottom + 0.5) say('a mark leaves its lane: ' + m.textContent);
				boxes.forEach(function (o) { if (r.left < o.right - 1 && o.left < r.right - 1) say('marks overlap: ' + m.textContent); });
				boxes.push(r);
			});
		});
		/* The words beside the failure can be read. */
		chart.querySelectorAll('text').forEach(function (t) {
			var r = t.getBoundingClientRect();
			if (r.right > svg.right + 1 || r.left < svg.left - 1) say('words are clipped: ' + t.textContent);
		});
	});
	document.querySelectorAll('rect.kept, rect.lost').forEach(function (r) {
		var a = r.getBoundingClientRect(), b = r.parentNode.getBoundingClientRect();
		if (a.width < 3 || a.left < b.left - 1 || a.right > b.right + 1) say('bytes are drawn beside their line');
	});
	measureColours(say);
	var list = document.createElement('pre');
	list.id = 'measured';
	list.textContent = 'measured ' + marks.length + ' marks; ' + (out.join('; ') || 'well');
	document.body.appendChild(list);
})();
