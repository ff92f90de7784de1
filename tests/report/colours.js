/* Can all text be told from what is behind it? WCAG 2.1, 1.4.3: a contrast of 4.5 to 1. */
function measureColours(say) {
	function channels(colour) { return colour.match(/[\d.]+/g).map(Number); }
	function luminance(c) {
		var v = c.slice(0, 3).map(function (x) { x /= 255; return x <= 0.03928 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4); });
		return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
	}
	function behind(e) {
		for (; e; e = e.parentElement) {
			var c = channels(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0.99) return c;
		}
		return [255, 255, 255];
	}
	var dark = window.matchMedia('(prefers-color-scheme: dark)').matches, told = {};
	if (dark != luminance(behind(document.body)) < 0.2) say('the background is not that of the scheme');
	document.querySelectorAll('h1, h2, h3, p, li, td, th, td a, td span, dt, dd, .name, label, kbd, code, pre, pre i, b, summary').forEach(function (e) {
		if (!e.textContent.trim() || !e.getClientRects().length) return;
		var a = luminance(channels(getComputedStyle(e).color)), b = luminance(behind(e));
		var contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		var what = e.tagName + '.' + e.className;
		if (contrast < 4.5 && !told[what]) say((dark ? 'dark: ' : 'light: ') + what + ' has a contrast of ' + contrast.toFixed(1));
		told[what] = told[what] || contrast < 4.5;
	});
}
