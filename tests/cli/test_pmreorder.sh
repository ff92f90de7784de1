#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_pmreorder.sh TIDEMARK SOURCES
#
# pmreorder's markers and command line: what its procedure finds, which is written down in Python
# (tests/bench/pmreorder_procedure.py), the images find, and more; tidemark-pmreorder takes pmreorder's words; what is wrong is
# one line.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
ln -s "$(dirname "$tidemark")/tidemark-pmreorder" bin/tidemark-pmreorder

# The flag at 0 says that the data at 64 is there. With PAIR="A B V": the byte V at B says that there is one at A.
cat >checker.c <<'END'
int check(const char *path)
{
	unsigned char b[4096];
	int fd = open(path, O_RDWR);
	if (fd < 0 || pread(fd, b, sizeof(b), 0) != sizeof(b))
		return 9;
	int bad = b[0] == 1 && b[64] != 42;
	unsigned first, second, value;
	if (getenv("PAIR") && sscanf(getenv("PAIR"), "%u %u %u", &first, &second, &value) == 3)
		bad = b[second] == value && !b[first];
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
compile checker
compile checker.so -shared -fPIC
truncate -s 4096 pool
flag='STORE;0x10000000;0x1;0x8;set_flag (app.c:20)' data='STORE;0x10000040;0x2a;0x8;set_data (app.c:10)'
log good.log "$data" "$flush_data" FENCE "$flag" "$flush_flag" FENCE STOP
log swapped.log "$flag" "$flush_flag" FENCE "$data" "$flush_data" FENCE STOP
log bad.log "$data" "$flag" "$flush_data" "$flush_flag" FENCE STOP
log three.log STORE\;0x10000080\;3\;1 "$data" "$flag" FLUSH\;0x10000000\;0x100 FENCE STOP

log early.log "$flag" "$data" "$flush_data" FENCE "$flush_flag" FENCE STOP
log crossing.log 'STORE;0x1000003c;0x0102030405060708;8' FLUSH\;0x10000040\;0x40 FENCE STOP

# What a checker writes does not stay, and the pool is as it was.
run 0 env SCRIBBLE=1 tidemark images -l good.log -p ./checker
run 1 env SCRIBBLE=1 tidemark images -l bad.log -p ./checker
cmp -s pool <(head -c 4096 /dev/zero) || fail 'the pool itself was changed'

# --- what pmreorder's procedure finds, the images find ---

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
# finds STATUS LOG: is a state of ReorderFull bad, which has those of all engines? Then an image is. STATUS '': whatever it is, it is in `bad`.
finds() {
	bad=0
	truncate -s 0 pool && truncate -s 4096 pool
	"$sources/tests/bench/pmreorder_procedure.py" "$2" ReorderFull lib ./checker.so check >counted
	grep -q '^[0-9]* 0 ' counted || bad=1
	truncate -s 0 pool && truncate -s 4096 pool
	[ -z "$1" ] || [ "$bad" -eq "$1" ] || fail "$2: pmreorder's procedure finds $bad"
	[ "$bad" -eq 0 ] || run 1 tidemark images -l "$2" -p ./checker
}
if command -v python3 >/dev/null; then
	for name in good early crossing; do
		finds 0 $name.log
	done
	for name in swapped bad three; do
		finds 1 $name.log
	done
	some=0
	for ((seed = 1; seed <= 12; seed++)); do
		random $seed
		# Two stores, one after the other, of different lines: of one line, the later is never there alone.
		pair='' was=''
		while IFS=';' read -r kind at value _; do
			[ "$kind" = STORE ] || continue
			at=$((at - 0x10000000))
			if [ -n "$was" ] && [ $((value)) -gt 0 ] && [ $((at / 64)) -gt $(((was + 7) / 64)) ]; then
				pair="$was $at $((value))"
				break
			fi
			was=$at
		done < <(tr '|' '\n' <random.log)
		[ -n "$pair" ] || continue
		PAIR=$pair finds '' random.log
		some=$((some + bad))
	done
	[ $some -ge 2 ] || fail "only $some of the random logs have a bad state"
fi
# A store that nobody has flushed may be there before others: pmreorder has no such state.
run 1 tidemark images -l early.log -p ./checker
says 'by set_data (app.c:10)'

# --- sections ---

log sections.log OUTER.BEGIN "$flag" "$flush_flag" FENCE PUT.BEGIN "$data" "$flush_data" FENCE PUT.END OUTER.END STOP
echo '{"PUT": "ReorderFull", "OUTER": "NoReorderNoCheck"}' >config.json
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
says 'at 2 places: 1 different image, none of them bad'
images 1 'at 7 places' -r ReorderPartial

# --- what markers there were ---

# The count at 0 is that of the markers PUT.BEGIN so far, or one less; of one name, so that the latest alone says nothing.
cat >counts.c <<'END'
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
compile counts
compile counts.so -shared -fPIC
counted=()
for i in 1 2 3; do
	counted+=(PUT.BEGIN "STORE;0x10000080;0x$i;8" "STORE;0x10000000;0x$i;8" FLUSH\;0x10000000\;0x100 FENCE PUT.END)
done
log counted.log "${counted[@]}" STOP
log late.log "STORE;0x10000000;0x1;8" "$flush_flag" FENCE "${counted[@]}" STOP
for how in '-c prog -p ./counts' '-c prog -p ./counts --no-server' '-c lib -p ./counts.so -n check' '-p true;./counts'; do
	# shellcheck disable=SC2086 # words
	run 0 tidemark-pmreorder -l counted.log $how
	says 'none of them bad'
	# shellcheck disable=SC2086 # words
	run 1 tidemark-pmreorder -l late.log $how
done

# --- the report goes to a file ---

run 1 tidemark images -q -l bad.log -p ./checker -o report.txt -e debug
[ ! -s out ] || fail 'a report is printed, too'
mv report.txt out
says 'by set_data (app.c:10)'

# --- pmreorder's command line ---

run 0 tidemark-pmreorder -l good.log -c prog -p ./checker
says '3 different images'
run 1 tidemark-pmreorder -l early.log -c prog -p ./checker an argument -r ReorderFull
says 'by set_data (app.c:10)' "--path './checker an argument'"
run 1 tidemark-pmreorder --logfile=early.log --path ./checker a b --default-engine ReorderFull
run 1 tidemark-pmreorder -n check -p ./checker.so unused -c lib -lbad.log -rReorderFull -o report.txt -e warning
mv report.txt out
says 'of which 1 is bad'
run 1 tidemark-pmreorder -l sections.log -x PUT=ReorderFull --pool zero -p ./checker --show
says 'at 2 places'
run 0 tidemark-pmreorder -v
says 'tidemark '
run 0 tidemark-pmreorder --help
says 'usage: tidemark images'

# --- what is wrong ---

# refused TEXT ARGUMENT...
refused() { bad "$1" tidemark "${@:2}"; }
good=(images -q -l good.log -p true)
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
log crossed.log A.BEGIN B.BEGIN A.END B.END STOP
refused 'crossed.log: line 1 of the log: A.END: sections cross; expected B.END; tidemark images without -x and -r takes this log' images -l crossed.log -p true -x A=ReorderFull
run 0 tidemark images -l crossed.log -p true # where sections do not count
run 2 tidemark-pmreorder -l
says '-l wants a value'
run 2 tidemark-pmreorder -l good.log
says 'expected --recover CMD, or -p CHECKER'
