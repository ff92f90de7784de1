/* What holds for all pages, wide or narrow. */
function measureLayout(say) {
	if (window.pageErrors.length) say('script error: ' + window.pageErrors.join(' '));
	if (performance.getEntriesByType('resource').length) say('requests something');
	if (document.documentElement.scrollWidth > window.innerWidth) say('the page is wider than the window');
	document.querySelectorAll('h1, h2, h3, p, li, dd').forEach(function (t) {
		if (t.scrollWidth > t.clientWidth + 1) say('text leaves its box: ' + t.textContent.substr(0, 60));
	});
}
