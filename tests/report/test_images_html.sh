#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_images_html.sh TIDEMARK SOURCES
#
# The page of tidemark images --html: each cause of --json is there with its verdict, what it lost, its lines and the command
# that makes it again (page_check.py); what the run went on to do about a lost store is told as it was; the source is that of
# the files; names are text. What a browser makes of it: test_html_browser.sh.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/../cli/own.sh"
# shellcheck source=tests/report/browser.sh
. "$sources/tests/report/browser.sh"

# A flag at 0 says that there is data at 64.
cat >check.sh <<'END'
flag=$(od -An -tu8 -N8 "$1") data=$(od -An -tu8 -j64 -N8 "$1")
[ $((flag)) -ne 1 ] || [ $((data)) -eq 42 ]
END
for line in $(seq 12); do
	printf '\tline %d <&> of app.c;\n' "$line"
done >app.c
touch -d '2001-01-01' app.c
pool=$here/'<b>&"pool'
truncate -s 4096 "$pool"
flag='STORE;0x10000000;0x1;0x8;set_flag (app.c:9);main (app.c:11)'
data='STORE;0x10000040;0x2a;0x8;operator| (app.c:11);main (app.c:5);start (none.c:3)'
# Text of the page, as it is read, without its tags.
plain() { sed "s/<[^>]*>//g; s/&#39;/'/g; s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&amp;/\&/g" page.shown; }
# shows TEXT...: the page, in a line of its own or within one.
shows() {
	local text
	shown page.html >page.shown
	plain >out
	for text; do
		grep -qF -- "$text" out || fail "the page does not say: $text"
	done
}
# page STATUS LOG [OPTION...]: the page of all images; what holds for each.
page() {
	local status=$1 name=$2
	shift 2
	rm -f page.html again.html
	run "$status" tidemark images -q "$name" --recover 'sh check.sh {}' --json all.json --html page.html --jobs 1 "$@"
	run "$status" tidemark images -q "$name" --recover 'sh check.sh {}' --jobs 3 --html=again.html "$@"
	cmp page.html again.html >out || fail "$name: another page with other jobs"
	shown page.html >page.shown
	sed 's/href="#//g; s/url(#tip)//g' page.shown | grep -E '(src|href)=|url\(|@import|https?:' >out && fail "$name: the page refers to something outside"
	run 0 python3 "$sources/tests/report/page_check.py" images page.shown all.json
}

# --- what the run did about what was lost ---

log bad.log "$data" "$flag" "$flush_data" "$flush_flag" FENCE STOP
page 1 bad.log
shows '1 of 4 images is bad, of 1 cause' '2 stores, 2 flushes, 1 fence' 'sh check.sh {}' 'domain=dmp ddio=on' \
	"the store of 8 bytes at $pool+0x40, event 0, line 1 of the log" 'by operator| (app.c:11), of main (app.c:5), of start (none.c:3)' \
	'It was flushed, by event 2; the power failed before the fence, event 4, that waits for this.' \
	'the power failed before the fence, event 4, line 1 of the log; of 2 lines in flight 1 is not whole'
# The source around them, as it is.
shows '    5          line 5 <&> of app.c;' '    2          line 2 <&> of app.c;' '   11          line 11 <&> of app.c;' \
	'this file is not on this machine'
[ "$(grep -c '^<span class=named' page.shown)" -eq 2 ] || fail 'not the lines that are named'
grep -qF '<b>&"pool' page.html && fail 'the name of the pool is not escaped'
# The command that is shown makes that image, and nothing else.
again=$(sed -n 's/.*<p class=again><code>\(.*\)<\/code>.*/\1/p' page.shown | sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g')
run 1 sh -c "$again"
says 'its change in flight is not left'
case $again in *json* | *html* | *jobs*) fail "the command writes files: $again" ;; esac
# Arrows: to the flush, and, when the power has failed, on to the fence.
[ "$(grep -c 'class=arrow ' page.shown)" -eq 1 ] && [ "$(grep -c 'class="arrow taken"' page.shown)" -eq 1 ] || fail 'other arrows than two'

log late.log "$data" "$flag" "$flush_flag" FENCE "$flush_data" FENCE STOP
page 1 late.log
shows 'In the run it was flushed after that, by event 4, and it was durable with the fence, event 5.'
log never.log "$data" "$flag" "$flush_flag" FENCE STOP
page 1 never.log
shows 'Nothing ever flushes it.'
log unfenced.log "$data" "$flag" "$flush_flag" FENCE "$flush_data" STOP
page 1 unfenced.log
shows 'by event 4, and no fence ever follows.'
log sync.log "$data" "$flag" 'DEEP_SYNC;0x10000000;0x80' STOP
page 1 sync.log
shows 'It was durable only with the msync, event 2.'
# Of several versions of a line, far from the failure, with a marker in between.
mapfile -t noise < <(for _ in $(seq 40); do printf 'STORE;0x10000100;0x0;0x8\n'; done)
log far.log "$data" 'STORE;0x10000048;0x1;0x8;count (app.c:2)' PUT.BEGIN "${noise[@]}" "$flag" "$flush_flag" FENCE STOP
page 1 far.log --most 64
shows 'after PUT.BEGIN' '0 of 2' 'more' 'Nothing ever flushes it.' 'and 8 more' 'of these places there are more images than were tried'

# --- nothing is lost, one image, all are good ---

log flag-first.log "$flag" "$data" "$flush_data" "$flush_flag" FENCE STOP
page 1 flag-first.log
page 1 flag-first.log --model kill
shows 'the process: all that it had stored is left' 'it is the moment that matters' 'the process died before the store by operator| (app.c:11), called by '
log good.log "$data" "$flush_data" FENCE "$flag" "$flush_flag" FENCE STOP
page 0 good.log
shows 'Every image is good.' '3 different images'
run 1 tidemark images bad.log --recover 'sh check.sh {}' --image 4:0+0x40=0 --html page.html
shows 'This image: exit status 1' 'It was flushed, by event 2' "$pool+0x40"
run 0 tidemark images bad.log --recover 'sh check.sh {}' --image 4:0+0x0=0 --html page.html
shows 'This image: good' 'set_flag (app.c:9)'
# A file that has been changed since is not shown.
touch -d '2999-01-01' app.c
page 1 bad.log
shows 'this file is newer than the program'
grep -qF 'line 5' page.shown && fail 'lines of a newer file are shown'

# --- a recorded program, of which the source is somewhere else ---

mkdir include src
ln -s "$sources/core/record" include/tidemark
cat >src/put.c <<'END'
#include <libpmem.h>
#include <stdio.h>
#include <string.h>
#include <tidemark/record.h>

int main(int argc, char **argv)
{
	char *pool = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
	if (!pool)
		return 1;
	if (argc > 2)
		return *pool ? printf("x %s\n", pool) < 0 : 0;
	tidemark_record_call(1, "put x <one>");
	strcpy(pool, "<one>");
	tidemark_record_return(1, "ok");
	pmem_persist(pool, 64);
	tidemark_record_call(2, "put x two");
	strcpy(pool, "two");
	pmem_persist(pool, 64);
	tidemark_record_return(2, "ok");
	return 0;
}
END
run 0 gcc -g -O1 -Wall -Wextra -Werror -Iinclude -o put "$here/src/put.c" -lpmem
touch -d '2001-01-01' src/put.c
run 0 tidemark record -q --pm pool --out put.rec -- ./put pool
run 1 tidemark images -q put.rec --recover './put {} dump' --contracts DUR,MONO --json all.json --html page.html
shown page.html >page.shown
run 0 python3 "$sources/tests/report/page_check.py" images page.shown all.json
early=$(sed -n '/tidemark_record_return(1/=' src/put.c)
shows 'an acknowledged PUT or DELETE survives' 'DUR: x is absent' "main (put.c:$((early + 1)))" \
	"   $((early + 1))          pmem_persist(pool, 64);" 'client 1 is answered: ok' \
	'It was flushed, by event 2; the power failed before the fence, event 3, that waits for this.'
# Of the operations the one that is missing stands out; the second has not begun.
grep -qF '<tr class=cause><td>1<td>put x &lt;one&gt;<td>ok</tr>' page.shown || fail 'the operation that is contradicted does not stand out'
sed '/id=c2/,$d' page.shown | grep -qF '<td>put x two<td>' && fail 'an operation that had not begun is shown'

# --- what does not go ---

refused() { bad "$1" tidemark images -q bad.log --recover 'sh check.sh {}' "${@:2}"; }
if [ -w /dev/full ]; then
	refused '/dev/full' -o report --html /dev/full
fi
find . -name '*.tmp*' >out
[ ! -s out ] || fail 'something is left'
