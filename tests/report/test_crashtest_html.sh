#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_crashtest_html.sh PROGRAM TESTS
#
# The pages of a campaign: the index is well-formed, its matrix is that of the text, each cell that breaks leads to a page,
# and the pages are those of tidemark replay --html. They are looked at as a browser shows them; how they are laid out: test_html_browser.sh.
tidemark=$(realpath "$1") tests=$(realpath "$2")
. "$(dirname "$0")/../shell.sh"
. "$tests/report/browser.sh"

# refused STATUS WORDS OPTION...: crashtest says so in one line, and leaves nothing.
refused() {
	local status=$1 words=$2
	shift 2
	"$tidemark" crashtest efactory --runs 1 --states 1 --workload w -q "$@" >out 2>err
	[ $? -eq "$status" ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -e "$words" err || wrong "$*: $(head -n 3 err)"
}

# A bug, so that something needs attention; the same with another number of processes.
"$tidemark" crashtest efactory --variant get_no_fence --workload w-r --runs 100 --states 800 --jobs 1 --verbose -q --html pages >text 2>err
[ $? -eq 1 ] && [ ! -s err ] || wrong "status, or messages: $(head -n 3 err)"
mv pages once
"$tidemark" crashtest efactory --variant get_no_fence --workload w-r --runs 100 --states 800 --jobs 3 --html pages >text3 2>err
sed -i 's/"seconds":[^,]*/"seconds":0/; s/"jobs":[0-9]*/"jobs":0/' once/index.html pages/index.html
diff -rq once pages >out || wrong "with other jobs: $(head -n 3 out)"
shown pages/index.html >pages/index.shown
python3 "$tests/report/page_check.py" index pages/index.shown >checked || wrong "index: $(grep WRONG checked)"
sed -n 's/.* \([0-9]*\), links \([0-9]*\)$/\1 \2/p' checked | { read -r cells links; [ "$cells" -ge 10 ] && [ "$links" -ge 2 ]; } || wrong "cells, links: $(tail -n 1 checked)"

# What the text says is broken is what leads somewhere; what needs attention stands out.
broken=$(grep -cE '^  [A-Z]+ +(promised|-) +broken ' text) traces=$(find traces -name '*.trace' | wc -l)
[ "$broken" -ge 2 ] && [ "$(sed -n 's/.*links //p' checked)" -eq "$broken" ] || wrong "$broken broken in the text, $(tail -n 1 checked)"
attention=$(grep -cE '^  [A-Z]+ .*(A PROMISE IS BROKEN|NOT AS EXPECTED|BROKEN F)' text)
[ "$attention" -ge 1 ] && [ "$(grep -c '^cell attention' checked)" -eq "$attention" ] && [ "$(grep -c '<article class=attention>' pages/index.shown)" -eq "$attention" ] ||
	wrong "$attention surprises in the text, $(grep -c '^cell attention' checked) cells stand out"
grep -qF "<p class=\"verdict bad\">$(tail -n 1 text)</p>" pages/index.shown || wrong "the verdict: $(grep 'class="verdict' pages/index.shown)"

# A page for each trace, as tidemark replay --html writes it.
[ "$(find pages -name '*.html' | wc -l)" -eq $((traces + 1)) ] || wrong "$traces traces, $(find pages -name '*.html' | wc -l) pages"
for trace in traces/*.trace; do
	"$tidemark" replay -q "$trace" --html one.html >out 2>&1
	cmp one.html "pages/$(basename "$trace" .trace).html" || wrong "the page of $trace differs"
	grep -qF "<code>tidemark replay $trace</code>" pages/index.shown || wrong "the index does not say how to replay $trace"
done
find . -name '*.tmp*' | grep . && wrong 'something is left'

# Rows for the hardware, and shapes in which all is as expected.
"$tidemark" crashtest efactory --runs 3 --states 30 --out shaped --html shaped -q >text 2>err
shown shaped/index.html >shaped/index.shown
python3 "$tests/report/page_check.py" index shaped/index.shown >checked || wrong "index: $(grep WRONG checked)"
for words in '<th scope=row>efactory (ddio=off)<' '<th scope=row>efactory (sizes)<' ' shapes in which all is as expected' 'Everything that was tried is as expected: 3 of the usual 450 runs of a workload, 30 of the usual 4500 crash states of a workload.' '<dt>KEEP<dd>a version that was durable'; do
	grep -qF -e "$words" shaped/index.shown || wrong "the index does not say $words"
done

refused 2 'expected no --no-traces' --no-traces --html none
[ ! -e none ] || wrong '--no-traces: a folder is left'
refused 2 'expected the name of a folder' --html ''
refused 2 'not a folder; --html wants one' --html text
refused 2 'the folder cannot be made' --html no/where
mkdir -p full/index.html
refused 2 'full/index.html' --html full
if [ -w /dev/full ]; then
	mkdir -p disk && ln -s /dev/full disk/index.html
	refused 2 'disk/index.html' --html disk
fi
echo "$traces pages, $failures failures"
[ $failures -eq 0 ]
