#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_pmreorder.sh TIDEMARK SOURCES
#
# pmreorder's engines, markers and command line: the states are its own, one by one, as its procedure makes them that is written
# down in Python (tests/bench/pmreorder_procedure.py); what these states miss, Tidemark's own images show; tidemark-pmreorder
# takes pmreorder's words; what is wrong is one line.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
ln -s "$(dirname "$tidemark")/tidemark-pmreorder" bin/tidemark-pmreorder

# The flag at 0 says that the data at 64 is there. With $STATES, what each state is goes there.
cat >checker.c <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int check(const char *path)
{
	unsigned char b[4096];
	int fd = open(path, O_RDWR);
	if (fd < 0 || pread(fd, b, sizeof(b), 0) != sizeof(b))
		return 9;
	if (getenv("STATES")) {
		FILE *out = fopen(getenv("STATES"), "a");
		for (int i = 0; i < 320; i++)
			fprintf(out, "%02x", b[i]);
		fputc('\n', out);
		fclose(out);
	}
	int bad = b[0] == 1 && b[64] != 42;
	if (getenv("SCRIBBLE") && pwrite(fd, "\377\377\377", 3, 64) != 3)
		return 8;
	close(fd);
	return bad;
}
int main(int argc, char **argv)
{
	return check(argv[argc - 1]);
}
END
cc=${CC:-cc}
"$cc" -o checker checker.c
"$cc" -shared -fPIC -o checker.so checker.c
truncate -s 4096 pool
head="START|REGISTER_FILE;$here/pool;0x10000000;0x1000;0x0"
flag='STORE;0x10000000;0x1;0x8;set_flag (app.c:20)' data='STORE;0x10000040;0x2a;0x8;set_data (app.c:10)'
flush_flag='FLUSH;0x10000000;0x40' flush_data='FLUSH;0x10000040;0x40'
# log NAME TOKEN...
log() {
	local name=$1
	shift
	(IFS='|'; echo "$head|$*") >"$name"
}
# states STATUS TEXT LOG OPTION...: of pmreorder's engine.
states() {
	local status=$1 text=$2 log=$3
	shift 3
	run "$status" tidemark images --engine pmreorder -l "$log" -p ./checker "$@"
	says "$text"
}
log good.log "$data" "$flush_data" FENCE "$flag" "$flush_flag" FENCE STOP
log swapped.log "$flag" "$flush_flag" FENCE "$data" "$flush_data" FENCE STOP
log bad.log "$data" "$flag" "$flush_data" "$flush_flag" FENCE STOP
log early.log "$flag" "$data" "$flush_data" FENCE "$flush_flag" FENCE STOP
log three.log STORE\;0x10000080\;3\;1 "$data" "$flag" FLUSH\;0x10000000\;0x100 FENCE STOP

# --- how many states, and which are bad ---

states 0 '2 barriers, 2 of them checked: 4 states as pmreorder makes them, of which 0 are bad' good.log -r ReorderFull
states 1 ': 4 states as pmreorder makes them, of which 2 are bad' swapped.log -r ReorderFull
says '1. exit status 1; 1 of 2 states at the fence at line 1 of the log, event 2 (ReorderFull of 1 store)' \
	'since the barrier before, only' "the store of 8 bytes at $here/pool+0x0" 'by set_flag (app.c:20)' \
	'2. exit status 1; 1 of 2 states at the fence' 'no store since the barrier before'
states 1 ': 5 states as pmreorder makes them, of which 1 is bad' bad.log -r ReorderFull
states 1 ': 16 states' three.log -r ReorderFull
states 1 ': 4 states as pmreorder makes them, of which 1 is bad' three.log -r ReorderReverseAccumulative
says 'since the barrier before, only'
states 0 ': 4 states' three.log -r ReorderAccumulative
states 0 ': 1 state as' three.log -r NoReorderDoCheck
states 0 ': 0 states' three.log -r NoReorderNoCheck
says 'nothing was checked'
states 0 ': 0 states' three.log
run 0 bash -c 'for i in 1 2; do tidemark images --engine pmreorder -l three.log -p "./checker;:" -r ReorderPartial |
	sed "s/;[^;]*a second//"; done | uniq -c'
says '1 barrier, 1 of them checked: 3 states'
[ "$(grep -c ' 2 1 barrier' out)" -le 1 ] || fail 'the draw has no seed'
states 1 ': 3 states' three.log -r ReorderFull --most 3 -p 'false'
says 'more states than were tried'
# The library, and all permutations of seven stores; there are 128 images. (test_pmreorder.c counts those of eight.)
seven=()
for i in 0 1 2 3 4 5 6; do seven+=("STORE;0x1000010$i;1;1"); done
log seven.log "${seven[@]}" FLUSH\;0x10000100\;0x40 FENCE STOP
run 0 tidemark images --engine pmreorder -l seven.log -c lib -p ./checker.so -n check -r ReorderFull
says ': 13700 states as pmreorder makes them, of which 0 are bad'

# A store that has not been flushed waits for the next barrier; in none of the states it is there before.
states 0 '2 barriers, 2 of them checked: 4 states' early.log -r ReorderFull
run 1 tidemark images -l early.log -p ./checker
says 'by set_data (app.c:10)'
log unflushed.log "$data" "$flag" FENCE STOP
states 0 'no store or flush with a flush and a fence after it' unflushed.log -r ReorderFull
# A store that crosses lines is one store.
log crossing.log 'STORE;0x1000003c;0x0102030405060708;8' FLUSH\;0x10000040\;0x40 FENCE STOP
states 0 ': 2 states' crossing.log -r ReorderFull
# A flush of a part of it is one of all of it.
log part.log "$data" FLUSH\;0x10000044\;0x1 FENCE STOP
states 0 ': 2 states' part.log -r ReorderFull
log deep.log "$data" 'DEEP_SYNC;0x10000040;0x40' "$flag" 'DEEP_SYNC;0x10000000;0x40' STOP
states 0 '2 barriers, 2 of them checked: 4 states' deep.log -r ReorderFull

# What a checker writes does not stay, and the pool is as it was.
run 0 env SCRIBBLE=1 tidemark images --engine pmreorder -l good.log -p ./checker -r ReorderFull
run 1 env SCRIBBLE=1 tidemark images --engine pmreorder -l bad.log -p ./checker -r ReorderFull
says ': 5 states as pmreorder makes them, of which 1 is bad'
cmp -s pool <(head -c 4096 /dev/zero) || fail 'the pool itself was changed'

# --- the same states in the same order ---

# random SEED: a log of a few stores, some of two lines, some not flushed.
random() {
	RANDOM=$1
	local i stores=0 tokens=()
	for ((i = 0; i < 14; i++)); do
		case $((stores < 6 ? RANDOM % 10 : 6 + RANDOM % 4)) in
		[0-5])
			stores=$((stores + 1))
			tokens+=("STORE;$(printf '0x%x;0x%x;0x%x' $((0x10000000 + RANDOM % 248)) $((RANDOM % 256)) $((1 + RANDOM % 8)))")
			;;
		[6-8]) tokens+=("FLUSH;$(printf '0x%x;0x%x' $((0x10000000 + RANDOM % 4 * 64)) $((64 + RANDOM % 2 * 64)))") ;;
		*) tokens+=(FENCE) ;;
		esac
	done
	log random.log "${tokens[@]}" FENCE STOP
}
if command -v python3 >/dev/null; then
	some=0
	for ((seed = 1; seed <= 6; seed++)); do
		random $seed
		for engine in ReorderFull ReorderAccumulative ReorderReverseAccumulative NoReorderDoCheck; do
			rm -f ours theirs
			truncate -s 0 pool && truncate -s 4096 pool
			STATES=ours tidemark images --engine pmreorder -l random.log -c lib -p ./checker.so -n check -r $engine \
				>out 2>&1 || [ $? -eq 1 ] || fail "the log of seed $seed, $engine"
			STATES=theirs "$sources/tests/bench/pmreorder_procedure.py" random.log $engine lib ./checker.so check >counted
			touch ours theirs
			cmp ours theirs || fail "the states of seed $seed, $engine differ"
			some=$((some + $(wc -l <ours)))
		done
	done
	[ $some -gt 300 ] || fail "only $some states were compared"
	truncate -s 0 pool && truncate -s 4096 pool
fi

# --- sections ---

log sections.log OUTER.BEGIN "$flag" "$flush_flag" FENCE PUT.BEGIN "$data" "$flush_data" FENCE PUT.END OUTER.END STOP
states 1 '2 barriers, 1 of them checked: 2 states as pmreorder makes them, of which 1 is bad' sections.log -x PUT=ReorderFull
says 'event 7 (ReorderFull'
states 1 '2 barriers, 2 of them checked: 4 states' sections.log -x OUTER=ReorderFull
states 1 '2 barriers, 2 of them checked: 3 states' sections.log -r ReorderFull -x OUTER=NoReorderDoCheck,PUT=ReorderFull
states 1 '2 barriers, 1 of them checked: 2 states' sections.log -r ReorderFull -x PUT=NoReorderNoCheck
echo '{"PUT": "ReorderFull", "OUTER": "NoReorderNoCheck"}' >config.json
states 1 '2 barriers, 1 of them checked: 2 states' sections.log -x config.json
# images STATUS TEXT OPTION...: Tidemark's own, of these sections.
images() {
	local status=$1 text=$2
	shift 2
	run "$status" tidemark images -l sections.log -p ./checker "$@"
	says "$text"
}
images 1 'the power failed at 7 places: 7 different images, of which 2 are bad, of 2 causes'
images 0 'at 0 places: 0 different images' -r NoReorderNoCheck
says 'nothing was checked'
images 1 'at 2 places' -x PUT=ReorderFull
images 1 'at 2 places' -x config.json
run 0 tidemark images -l bad.log -p ./checker -r NoReorderDoCheck
says 'at 2 places: 1 different image, of which 0 are bad'
images 1 'at 7 places' -r ReorderPartial

# --- what markers there were ---

# The count at 0 is that of the markers PUT.BEGIN so far, or one less; of one name, so that the latest alone says nothing.
cat >counts.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int check(const char *path)
{
	unsigned char count = 255;
	int begun = 0;
	const char *markers = getenv("PMREORDER_MARKERS");
	FILE *f = fopen(path, "r");
	if (!markers || !f || fread(&count, 1, 1, f) != 1)
		return 9;
	fclose(f);
	for (const char *at = markers; (at = strstr(at, "PUT.BEGIN")); at++)
		begun++;
	/* Exactly the markers so far, whole, and nothing else. */
	return (begun && strncmp(markers, "PUT.BEGIN", 9)) || (begun > 1 && !strstr(markers, "PUT.BEGIN|PUT.END|PUT.BEGIN")) ||
	       count > begun || count + 1 < begun;
}
int main(int argc, char **argv)
{
	return check(argv[argc - 1]);
}
END
"$cc" -o counts counts.c
"$cc" -shared -fPIC -o counts.so counts.c
counted=()
for i in 1 2 3; do
	counted+=(PUT.BEGIN "STORE;0x10000080;0x$i;8" "STORE;0x10000000;0x$i;8" FLUSH\;0x10000000\;0x100 FENCE PUT.END)
done
log counted.log "${counted[@]}" STOP
log late.log "STORE;0x10000000;0x1;8" "$flush_flag" FENCE "${counted[@]}" STOP
for how in '-c prog -p ./counts' '-c prog -p ./counts --no-server' '-c lib -p ./counts.so -n check' '-p true;./counts' \
	'-p ./counts --engine pmreorder -r ReorderFull' '-c lib -p ./counts.so -n check --engine pmreorder -r ReorderFull'; do
	# shellcheck disable=SC2086 # words
	run 0 tidemark-pmreorder -l counted.log $how
	says 'of which 0 are bad'
	# shellcheck disable=SC2086 # words
	run 1 tidemark-pmreorder -l late.log $how
done

# --- the report goes to a file ---

run 1 tidemark images -q -l bad.log -p ./checker -o report.txt -e debug
[ ! -s out ] || fail 'a report is printed, too'
mv report.txt out
says 'by set_data (app.c:10)'
run 1 tidemark images -l bad.log -p ./checker --engine pmreorder -r ReorderFull -o report.txt
mv report.txt out
says ': 5 states'

# --- pmreorder's command line ---

run 0 tidemark-pmreorder -l good.log -c prog -p ./checker
says '3 different images'
run 1 tidemark-pmreorder -l early.log -c prog -p ./checker an argument -r ReorderFull
says 'by set_data (app.c:10)' "--path './checker an argument'"
run 0 tidemark-pmreorder --logfile=early.log --path ./checker a b --default-engine ReorderFull --engine pmreorder
says ': 4 states'
run 1 tidemark-pmreorder -n check -p ./checker.so unused -c lib -lbad.log -rReorderFull --engine=pmreorder -o report.txt -e warning
mv report.txt out
says ': 5 states'
run 1 tidemark-pmreorder -l sections.log -x PUT=ReorderFull --engine pmreorder --pool zero -p ./checker --show
says ': 2 states'
run 0 tidemark-pmreorder -v
says 'tidemark '
run 0 tidemark-pmreorder --help
says 'usage: tidemark images'

# --- what is wrong ---

# refused TEXT ARGUMENT...
refused() {
	local text=$1
	shift
	run 2 tidemark "$@"
	says "$text"
	one_line
}
good=(images -q -l good.log -p true)
refused '--engine other: expected tidemark or pmreorder' "${good[@]}" --engine other
refused '-r Full: expected NoReorderNoCheck' "${good[@]}" -r Full
refused '-e loud: expected debug' "${good[@]}" -e loud
refused '-x Full: expected NoReorderNoCheck' "${good[@]}" -x A=Full
for pairs in A A= =ReorderFull 'A=ReorderFull,' A=ReorderFull=B ','; do
	refused 'images: -x' "${good[@]}" -x "$pairs"
done
refused 'expected at most 64 markers' "${good[@]}" -x "$(printf 'A%d=ReorderFull,' {1..65})A=ReorderFull"
for json in '' '{' '[]' '{"A": 1}' '{"A": "Full"}' '{"": "ReorderFull"}' '{"A": "ReorderFull", "A": "ReorderFull"}'; do
	echo "$json" >wrong.json
	refused expected "${good[@]}" -x wrong.json
done
refused expected "${good[@]}" -x .
refused 'cannot be written' "${good[@]}" -o /nowhere/report.txt
refused 'a folder' "${good[@]}" -o .
for option in '--image 1:' '--json x.json' '--model kill'; do
	# shellcheck disable=SC2086 # two words
	refused 'do not go with it' "${good[@]}" --engine pmreorder $option
done
refused './nonexistent: No such file' images -l good.log -p ./nonexistent --engine pmreorder -r ReorderFull
refused 'it has no function no_such' images -l good.log -c lib -p ./checker.so -n no_such --engine pmreorder -r ReorderFull
log crossed.log A.BEGIN B.BEGIN A.END B.END STOP
refused 'crossed.log: line 1 of the log: A.END: sections cross; expected B.END; tidemark images without -x, -r and --engine pmreorder takes this log' images -l crossed.log -p true -x A=ReorderFull
refused 'sections cross' images -l crossed.log -p true --engine pmreorder
run 0 tidemark images -l crossed.log -p true # where sections do not count
run 2 tidemark-pmreorder -l
says '-l wants a value'
run 2 tidemark-pmreorder -l good.log
says 'expected --recover CMD, or -p CHECKER'
