# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What a browser (Debian: chromium) shows of a page. $here is a folder of the test's own. Without a browser: status 77.
browser=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
	# Where chromium is a snap, there is a program of the name that only says so.
	if timeout 60 "$name" --version 2>/dev/null | grep -qiE 'chrom(e|ium) [0-9]'; then
		browser=$name
		break
	fi
done
[ -n "$browser" ] || { echo "no browser: chromium is not installed" >&2; exit 77; }

# browse OPTION... FILE: of one page, without anything of the user's. The document goes to dom, messages to messages.
browse() {
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$here/profile" \
		--virtual-time-budget=5000 --enable-logging=stderr "$@" >"$here/dom" 2>"$here/messages"
}
# shown PAGE: what the script made of it, an element a line, as one would write it by hand.
shown() {
	browse --dump-dom "file://$(realpath "$1")"
	grep CONSOLE "$here/messages" >&2 || true
	sed -E 's/<\/(td|th|dt|dd)>//g; s/<(main|section|tbody|tr|table|h1|h2|h3|p|ul|ol|li|dl|dt|details|article|pre|div|g|path|header)[ >]/\n&/g; s/<\/(section|main|header|ul|ol|dl|details|table|tbody|article)>/\n&/g; s/<span class="named"/\n&/g; s/ (class|id|scope)="([a-z0-9-]+)"/ \1=\2/g' "$here/dom" |
		sed -n '/^<main[ >]/,/^<\/main>/p' | sed 's/^<\/main>.*/<\/main>/'
}

echo '<main id=here></main>' >"$here/try.html"
shown "$here/try.html" | grep -q 'id=here' || browse --dump-dom "file://$here/try.html"
grep -q 'id="here"' "$here/dom" || { echo "$browser does not run here: $(tail -n 1 "$here/messages")" >&2; exit 77; }
