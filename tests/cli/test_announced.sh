#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_announced.sh TIDEMARK SOURCES
#
# tidemark images --contracts: clients announce what they do, a recovery prints what is there, and contracts are judged for a
# program that knows nothing else of Tidemark. Each seeded bug breaks the contract that it should, and the right program none.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

mkdir include
ln -s "$sources/core/record" include/tidemark

# --- functions of record.h ---

cat >kv.c <<'END'
#include <tidemark/record.h>

/* Four keys a to d; a value is two lines long, and its length comes last. */
struct slot {
	char text[120];
	unsigned long len;
};

static const char *bug = "";

static void say(unsigned client, int answer, const char *words)
{
	if (answer)
		tidemark_record_return(client, words);
	else
		tidemark_record_call(client, words);
}

static void put(struct slot *s, unsigned client, char key, const char *value)
{
	char words[200];
	snprintf(words, sizeof(words), "put %c %s", key, value);
	say(client, 0, words);
	s += key - 'a';
	s->len = 0;
	pmem_persist(&s->len, sizeof(s->len));
	memset(s->text, 0, sizeof(s->text));
	strcpy(s->text, value);
	if (strcmp(bug, "torn"))
		pmem_persist(s->text, sizeof(s->text));
	s->len = strlen(value);
	if (!strcmp(bug, "early"))
		say(client, 1, "ok");
	pmem_persist(&s->len, sizeof(s->len));
	if (strcmp(bug, "early"))
		say(client, 1, "ok");
}

static void get(struct slot *s, unsigned client, char key)
{
	char words[200];
	snprintf(words, sizeof(words), "get %c", key);
	say(client, 0, words);
	s += key - 'a';
	snprintf(words, sizeof(words), s->len ? "value %s" : "absent", s->text);
	say(client, 1, words);
}

static void del(struct slot *s, unsigned client, char key)
{
	char words[20];
	snprintf(words, sizeof(words), "del %c", key);
	say(client, 0, words);
	s[key - 'a'].len = 0;
	if (strcmp(bug, "del"))
		pmem_persist(&s[key - 'a'].len, sizeof(s->len));
	say(client, 1, "ok");
}

int main(int argc, char **argv)
{
	static const char longer[] = "a value that needs more than one line of the cache, which are sixty-four bytes";
	struct slot *s = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
	if (!s)
		return 1;
	if (argc > 2 && !strcmp(argv[2], "dump")) {
		for (int k = 0; k < 4; k++)
			if (s[k].len)
				printf("%c %.*s\n", 'a' + k, (int)s[k].len, s[k].text);
		return 0;
	}
	bug = argc > 2 ? argv[2] : bug;
	put(s, 1, 'a', "one");
	put(s, 2, 'b', longer);
	get(s, 1, 'b');
	del(s, 1, 'a');
	put(s, 2, 'a', "two");
	get(s, 1, 'a');
	return 0;
}
END
compile kv -Iinclude -lpmem
all=RDA,LIN,DUR,BUF,MONO,NORES,OK

# record BUG
record() {
	rm -f pool
	run 0 tidemark record -q --pm pool --out "$1.rec" -- ./kv pool "$1"
}
# judge STATUS RECORDING [OPTION...]
judge() {
	local status=$1 recording=$2
	shift 2
	run "$status" tidemark images -q "$recording" --recover './kv {} dump' --contracts "$all" "$@"
}

record right
judge 0 right.rec
says '6 acknowledgements' 'none of them bad'
# tidemark cc finds the header by itself.
run 0 tidemark cc -g -O1 -Wall -Wextra -Werror -include "$prelude" -o told kv.c -lpmem
rm -f pool
run 0 tidemark record -q --pm pool --out told.rec -- ./told pool right
judge 0 told.rec
says '6 acknowledgements' 'none of them bad'
# What is not announced is not known: the same program by its exit status alone.
run 0 tidemark images -q right.rec --recover './kv {} dump'

record torn
judge 1 torn.rec
says 'RDA: a has a value that nobody had put' "DUR: a has the value of 'put a one'; 'del a' of client 1 had been answered"
record early
judge 1 early.rec
# Neither the images before the answer nor those with the value count.
says "DUR: a is absent; 'put a one' of client 1 had been answered; 3 images" 'of 1 cause'
# Where caches survive, the answer is not too early, and a value whose length comes last is whole.
judge 0 early.rec --knob domain=mhp
judge 0 torn.rec --knob domain=mhp

record del
judge 1 del.rec
says "DUR: a has the value of 'put a one'; 'del a' of client 1 had been answered" 'of 1 cause'
again=$(sed -n 's/^   once more: [^ ]* //p' out)
run 1 sh -c "tidemark $again"
says "'del a' of client 1 had been answered"
# Contracts that are not asked for are not mentioned.
all=NORES judge 1 del.rec
says 'NORES: '
all=RDA judge 0 del.rec
# The same without a server of images, and for a shell.
judge 1 del.rec --no-server
says 'of 1 cause'
run 1 tidemark images -q del.rec --recover './kv {} dump | cat' --contracts "$all"
says 'of 1 cause'
# The first command recovers, the second one prints.
run 1 tidemark images -q del.rec --recover 'test -s {}' --check './kv {} dump' --contracts "$all"
says "'del a' of client 1 had been answered"
run 1 tidemark images -q right.rec --recover 'echo "" x {}' --contracts RDA
says 'it printed something else than lines KEY VALUE'

# A value whose put begins later.
echo 'echo a two' >future.sh
run 1 tidemark images -q right.rec --recover 'sh future.sh {}' --contracts RDA --image 4:
says 'RDA: a has a value that nobody had put'

# --- lines, in any language ---

# client.sh says what it did; the store never flushes, and forgets b.
cat >store.c <<'END'
int main(int argc, char **argv)
{
	char *pool = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
	if (!pool || argc != 3)
		return 1;
	strcpy(pool, argv[2]);
	if (strcmp(argv[2], "lost"))
		pmem_persist(pool, 64);
	return 0;
}
END
compile store -lpmem
cat >client.sh <<'END'
# client.sh VALUE...
for value; do
	echo "7 call put x $value" >>"$TIDEMARK_HISTORY"
	./store pool "$value"
	printf '7 return ok\n8 call get x\n8 return value %s\n' "$value" >>"$TIDEMARK_HISTORY"
done
END
cat >dump.sh <<'END'
value=$(tr -d '\0' <"$1")
[ -z "$value" ] || echo "x $value"
END
# lines OUT VALUE...
lines() {
	local out=$1
	shift
	rm -f pool
	run 0 tidemark record -q --pm pool --out "$out" -- bash client.sh "$@"
}
lines good.rec one two
run 0 tidemark images -q good.rec --recover 'sh dump.sh {}' --contracts DUR,MONO
says '4 acknowledgements' 'none of them bad'
lines lost.rec one lost
run 1 tidemark images -q lost.rec --recover 'sh dump.sh {}' --model power --contracts DUR,MONO
says "DUR: x has the value of 'put x one'; 'put x lost' of client 7 had been answered"
run 1 tidemark images -q lost.rec --recover 'sh dump.sh {}' --model power --contracts MONO
says "MONO: x has the value of 'put x one'; 'get x' of client 8 had been answered"

lines lost.rec lost
run 1 tidemark images -q lost.rec --recover 'sh dump.sh {}' --model power --contracts DUR
says "DUR: x is absent; 'put x lost' of client 7 had been answered; 2 images" # before its answer it is none

# --- a server and its client, two processes ---

# The server stores "KEY=VALUE" into the slot of KEY, a to d, and answers. With "late" it makes a value durable when the next
# request comes, with "pipe" it answers without an event of its own. The client announces by lines, or by functions.
cat >serve.c <<'END'
#include <tidemark/record.h>

static char (*slot)[64];

static void serve(int in, int out, const char *bug)
{
	char request[64], *last = 0;
	while (read(in, request, 64) == 64) {
		if (last && !strcmp(bug, "late"))
			pmem_persist(last, 64);
		last = slot[request[0] - 'a'];
		memcpy(last, request + 2, 62);
		if (!strcmp(bug, "flushes"))
			pmem_persist(last, 64);
		if (write(out, "k", 1) != 1)
			exit(1);
	}
	exit(0);
}

static void say(int lines, int answer, const char *words)
{
	char line[100];
	int n = snprintf(line, 100, "1 %s %s\n", answer ? "return" : "call", words);
	if (lines ? write(lines, line, (size_t)n) != n : 0)
		exit(2);
	if (!lines && answer)
		tidemark_record_return(1, words);
	else if (!lines)
		tidemark_record_call(1, words);
}

int main(int argc, char **argv)
{
	int in[2], out[2], pipes = argc > 4;
	if (argc == 2) {
		slot = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
		for (int i = 0; slot && i < 4; i++)
			if (slot[i][0])
				printf("%c %s\n", 'a' + i, slot[i]);
		return !slot;
	}
	if (pipes ? pipe(in) || pipe(out) : socketpair(AF_UNIX, SOCK_STREAM, 0, in))
		return 3;
	if (!pipes)
		out[0] = in[1], out[1] = in[0];
	if (!fork()) {
		close(in[1]);
		slot = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
		serve(in[0], out[1], argv[2]);
	}
	close(in[0]);
	int lines = strcmp(argv[3], "lines") ? 0 : open(getenv("TIDEMARK_HISTORY"), O_WRONLY | O_APPEND);
	for (int i = 0; i < 6; i++) {
		char request[64] = "", words[70], answer;
		snprintf(request, 64, "%c=value %d", "abacab"[i], i);
		snprintf(words, 70, "put %c %s", request[0], request + 2);
		say(lines, 0, words);
		if (write(in[1], request, 64) != 64 || read(out[0], &answer, 1) != 1)
			return 4;
		say(lines, 1, "ok");
	}
	close(in[1]);
	int status;
	return wait(&status) < 0 || status;
}
END
compile serve -Iinclude -fsanitize=thread -fno-builtin -lpmem
mv serve told
compile serve -Iinclude -lpmem
cp serve noticed
# served PROGRAM BUG lines|functions [pipe]
served() {
	local program=$1
	shift
	rm -f pool
	run 0 tidemark record -q --pm pool --out served.rec -- "./$program" pool "$@"
}
# Whatever is known of the order, nothing is lost that was not.
for program in noticed told; do
	for how in 'lines' 'functions' 'lines pipe' 'functions pipe'; do
		# shellcheck disable=SC2086
		served $program never $how
		run 0 tidemark images -q served.rec --recover './serve {}' --contracts "$all"
		says 'none of them bad'
		# shellcheck disable=SC2086
		served $program flushes $how
		run 0 tidemark images -q served.rec --recover './serve {}' --contracts "$all"
		says 'none of them bad'
		# The client had its answer before the value was durable: it waited for that with its next request.
		# shellcheck disable=SC2086
		served $program late $how
		run 1 tidemark images -q served.rec --recover './serve {}' --contracts DUR
		says "DUR: a is absent; 'put a value 0' of client 1 had been answered"
	done
done
# --- values that do not tell puts apart, compare-and-set ---

# steps OUT STEP...: a step stores its word in the pool; one with a blank is a line of the history.
steps() {
	local out=$1
	shift
	cat >steps.sh <<-'END'
		for step; do
			case $step in
			*' '*) echo "$step" >>"$TIDEMARK_HISTORY" ;;
			*) ./store pool "$step" ;;
			esac
		done
	END
	rm -f pool
	run 0 tidemark record -q --pm pool --out "$out" -- bash steps.sh "$@"
}
# of STATUS TEXT CONTRACTS [OPTION...]: what the images of steps.rec come to.
of() {
	local status=$1 text=$2 contracts=$3
	shift 3
	run "$status" tidemark images -q steps.rec --recover 'sh dump.sh {}' --model power --contracts "$contracts" "$@"
	says "$text"
}
one=('1 call put x one' one '1 return ok') again=('2 call put x one' one '2 return ok')
steps steps.rec "${one[@]}" '3 call get x' '3 return value one' "${again[@]}" '3 call get x' '3 return value one'
of 0 'none of them bad' "$all"
steps steps.rec "${one[@]}" "${again[@]}" '1 call put x lost' lost '1 return ok'
of 1 "DUR: x has the value of 'put x one'; 'put x lost' of client 1 had been answered" DUR
of 0 'none of them bad' RDA
steps steps.rec "${one[@]}" '2 call cas x one two' two '2 return ok' '1 call cas x one three' '1 return failed'
of 0 'none of them bad' "$all"
steps steps.rec "${one[@]}" '2 call cas x one lost' lost '2 return ok' '1 call cas x one three' '1 return failed'
of 1 "DUR: x has the value of 'put x one'; 'cas x one lost' of client 2 had been answered" "$all"
# No key has what a cas that failed would have stored.
steps steps.rec "${one[@]}" '2 call cas x two three' '2 return failed' '1 call put y 1' three '1 return ok'
of 1 'RDA: x has a value that nobody had put' RDA
# A value that is put only after it has been read.
steps steps.rec '1 call put y 1' '1 return ok' '2 call get x' '2 return value one' "${one[@]}"
of 1 'without any power failure: RDA is broken on the key x by one answer' RDA
says "client 2: 'get x' -> 'value one'" 'none of them bad'

# --- what answers contradict by themselves is not the work of a power failure ---

steps steps.rec "${one[@]}" '1 call put x two' two '1 return ok' '8 call get x' '8 return value one' '9 call put y 1' '9 return error no'
of 1 'without any power failure: LIN is broken on the key x: no order explains these 3 operations' LIN --json r.json --html r.html --junit r.xml
says "client 1: 'put x one' -> 'ok'" "client 1: 'put x two' -> 'ok'" "client 8: 'get x' -> 'value one'" \
	'No image is blamed for that' 'none of them bad'
grep -q '"operation": "get x"' r.json && grep -q '"contract": "LIN"' r.json || fail 'not in the JSON file'
grep -q '"words":"LIN is broken' r.html || fail 'not on the page'
grep -q '<failure message="LIN is broken on the key x' r.xml || fail 'not in the JUnit file'
of 1 'without any power failure: LIN is broken' DUR
of 1 'without any power failure: OK is broken on the key y by one answer' OK
says 'none of them bad'
of 0 'none of them bad' MONO,RDA
steps steps.rec "${one[@]}" '1 call del x' lost '1 return error no' '1 call put y 1' '1 return error no' '8 call get y' '8 return value 1'
of 1 'without any power failure: NORES is broken on the key y by the answers of these 2 operations' NORES
says "client 1: 'put y 1' -> 'error no'" "client 8: 'get y' -> 'value 1'"
# The rest is judged.
steps steps.rec "${one[@]}" '1 call put y 1' '1 return ok' '8 call get y' '8 return value 2' '1 call put x lost' lost '1 return ok'
of 1 "DUR: x has the value of 'put x one'; 'put x lost' of client 1 had been answered" RDA,DUR
says 'without any power failure: RDA is broken on the key y'

# --- a history by itself ---

# verdict STATUS TEXT LINE...: of a history of these lines.
verdict() {
	local status=$1 text=$2
	shift 2
	printf '%s\n' "$@" >h.hist
	run "$status" tidemark judge h.hist --json r.json
	says "$text"
}
put1=('0 call put r 1' '0 return ok') put2=('0 call put r 2' '0 return ok')
# Equal values: `get` may have read either put, and the one that was never answered.
verdict 0 'linearizable' '0 call put r 4' '0 return ok' '0 call get r' '0 return value 4' '1 call put r 0a' '2 call get r' \
	'2 return value 4' '3 call put r 0a' '4 call get r' '4 return value 0a' '4 call get r' '4 return value 0a' '5 call get r' \
	'5 return value 0a' '6 call get r' '6 return value 0a'
says 'h.hist: 9 operations on 1 key, 2 of them without an answer or with an error'
grep -q '"linearizable": true' r.json || fail 'not in the JSON file'
verdict 0 'linearizable' "${put1[@]}" "${put2[@]}" "${put1[@]}" '2 call get r' '2 return value 1'
verdict 1 'no order explains these 2 operations' "${put1[@]}" "${put1[@]}" '1 call del q' '1 return ok' '2 call get r' '2 return absent'
# Compare-and-set.
verdict 0 'linearizable' "${put1[@]}" '1 call cas r 1 2' '1 return ok' '2 call get r' '2 return value 2'
verdict 0 'linearizable' "${put1[@]}" '1 call cas r 2 3' '1 return failed' '2 call get r' '2 return value 1'
verdict 1 'by one answer' '1 call cas r 1 2' '1 return ok'
verdict 0 'linearizable' '1 call cas r 1 2' '1 return failed'
verdict 1 'these 2 operations' "${put1[@]}" '1 call cas r 1 2' '1 return failed'
verdict 1 'these 3 operations' "${put1[@]}" '1 call cas r 1 2' '1 return ok' '2 call cas r 1 3' '2 return ok' "${put2[@]}"
says "line 3: client 1: 'cas r 1 2' -> 'ok' (line 4)" 'not linearizable'
verdict 0 'linearizable' "${put1[@]}" '1 call cas r 1 two words' '1 return ok' '2 call get r' '2 return value two words'
# The fewest operations, of many.
verdict 1 'no order explains these 3 operations' "${put1[@]}" '5 call get r' '5 return value 1' "${put2[@]}" '6 call put q 1' \
	'7 call get r' '6 return ok' '7 return value 2' '7 call get r' '7 return value 1' '7 call get r' '7 return value 1'
grep -q '"key": "r"' r.json && grep -q '"line": 11' r.json || fail 'not in the JSON file'
# Transactions: a write skew; a lost update, of which the abort is told; what was aborted is read.
skew=('1 call txn get q put r 1' '2 call txn get r put q 2' '1 return ok absent')
verdict 1 'SSER is broken on the key' "${skew[@]}" '2 return ok absent'
says "line 1: client 1: 'txn get q put r 1' -> 'ok absent' (line 3)" 'line 2: client 2' 'not strictly serializable'
verdict 0 'strictly serializable' "${skew[@]}" '2 return aborted'
verdict 0 'strictly serializable' "${skew[@]}" '2 return ok value 1'
verdict 0 'strictly serializable' "${skew[@]}" '2 return error timeout'
verdict 1 'these 2 operations' "${skew[@]}" '2 return aborted' '3 call get q' '3 return value 2'
verdict 0 'strictly serializable' "${skew[@]}" '3 call get q' '3 return value 2'
verdict 0 'strictly serializable' '1 call txn put r 1 get r put r 2' '1 return ok value 1' '1 call get r' '1 return value 2'
# An error, and no answer: it may have happened, even later, or not.
for end in '1 return error timeout' ''; do
	for value in 1 2; do
		verdict 0 'linearizable' "${put1[@]}" '1 call put r 2' ${end:+"$end"} '2 call get r' '2 return value 1' '2 call get r' "2 return value $value"
	done
	verdict 1 'not linearizable' "${put1[@]}" '1 call put r 2' ${end:+"$end"} '2 call get r' '2 return value 2' '2 call get r' '2 return value 1'
done
verdict 1 'by one answer' "${put1[@]}" '2 call get r' '2 return value 3'
# Two keys; one is broken.
verdict 1 'LIN is broken on the key q' "${put1[@]}" '2 call get r' '2 return value 1' '2 call get q' '2 return value 1'
# Too many at one time: told as that, and a key that is broken all the same.
{
	for ((i = 0; i < 80; i++)); do echo "$i call put r $i"; done
	for ((i = 0; i < 80; i++)); do printf "$((100 + i)) call cas r $i new\n"; done
	printf '200 call get r\n200 return value new\n'
} >many.hist
run 3 tidemark judge many.hist --json r.json
says 'could not tell LIN of the key r: too many of its operations were under way at one time'
grep -q '"could_not_tell": true' r.json || fail 'not in the JSON file'
printf '300 call get q\n300 return value 1\n' | cat many.hist - >more.hist
run 1 tidemark judge more.hist
run 3 tidemark judge -q many.hist
[ ! -s out ] || fail 'it is not quiet'
# A long one.
awk 'BEGIN { for (i = 0; i < 20000; i++) { c = i % 4; k = i % 7
	printf "%d call put k%d %d\n%d call get k%d\n%d return ok\n%d return value %d\n", c, k, i, c + 4, k, c, c + 4, i } }' >long.hist
run 0 tidemark judge long.hist
says 'long.hist: 40000 operations on 7 keys' 'linearizable'
printf '1 call get k3\n1 return value 3\n' | cat long.hist - >longer.hist
run 1 sh -c 'tidemark judge - <longer.hist'
says 'no order explains these 3 operations'
# wrong TEXT LINE...
wrong() {
	local text=$1
	shift
	printf '%s\n' "$@" >h.hist
	bad "$text" tidemark judge h.hist
}
wrong "h.hist:2: '1 set x'; expected CLIENT call OPERATION or CLIENT return ANSWER" '' '1 set x'
wrong "h.hist: line 1, an operation by client 1, 'set x': expected put KEY VALUE, get KEY, del KEY or cas KEY OLD NEW" '1 call set x'
wrong "h.hist: line 3, an answer by client 1, 'ok': this client has no operation" '1 call get x' '1 return absent' '1 return ok'
wrong 'h.hist: no operation; expected a line such as "1 call put x 5"' ''

# --- transactions ---

# Two values in one copy of two, and which copy counts; or the values in place.
cat >pair.c <<'END'
#include <tidemark/record.h>

struct pool {
	unsigned long at;
	char pad[56];
	struct {
		char value[2][64];
	} copy[2];
};

int main(int argc, char **argv)
{
	struct pool *p = pmem_map_file(argv[1], sizeof(*p), PMEM_FILE_CREATE, 0600, NULL, NULL);
	if (!p || argc != 3)
		return 1;
	for (int k = 0; !strcmp(argv[2], "dump") && k < 2; k++)
		if (*p->copy[p->at].value[k])
			printf("%c %s\n", 'x' + k, p->copy[p->at].value[k]);
	for (int i = 1; strcmp(argv[2], "dump") && i < 3; i++) {
		char words[40], value[8];
		int in_place = !strcmp(argv[2], "in_place"), aborts = !strcmp(argv[2], "aborts") && i == 2;
		unsigned long to = in_place ? 0 : !p->at;
		snprintf(value, sizeof(value), "v%d", i);
		snprintf(words, sizeof(words), "txn put x %s put y %s", value, value);
		tidemark_record_call(1, words);
		for (int k = 0; k < 2; k++) {
			strcpy(p->copy[to].value[k], value);
			pmem_persist(p->copy[to].value[k], 64);
		}
		p->at = to;
		pmem_persist(&p->at, sizeof(p->at));
		tidemark_record_return(1, aborts ? "aborted" : "ok");
	}
	return 0;
}
END
compile pair -Iinclude -lpmem
for bug in right in_place aborts; do
	rm -f pool
	run 0 tidemark record -q --pm pool --out $bug.rec -- ./pair pool $bug
done
all=RDA,LIN,DUR,NORES,OK,ATOM,SSER
pair() {
	run "$1" tidemark images -q "$2.rec" --recover './pair {} dump' --contracts "$all"
}
pair 0 right
says 'none of them bad'
pair 1 in_place
says "ATOM: y is absent, and another key has what 'txn put x v1 put y v1' of client 1 put; 2 images"
pair 1 aborts
says 'NORES: x has the value of' 'had been answered'

# --- what is not as it should be ---

# ill EXPECTED LINE...: the announcements are these lines.
ill() {
	local expected=$1
	shift
	printf '%s\n' "$@" >lines
	cat >bad.sh <<-'END'
		cat lines >>"$TIDEMARK_HISTORY"
		./store pool one
	END
	rm -f pool
	run 0 tidemark record -q --pm pool --out bad.rec -- bash bad.sh
	bad '' tidemark images bad.rec --recover 'sh dump.sh {}' --contracts DUR
	says "$expected"
}
ill 'expected put KEY VALUE, get KEY, del KEY or cas KEY OLD NEW' '1 call set x 1'
for txn in txn 'txn get' 'txn put x' 'txn del x' 'txn put x 1 get'; do
	ill 'expected txn and at most 8 of get KEY and put KEY VALUE' "1 call $txn"
done
for answer in ok 'ok absent absent' 'ok value' 'ok 1' 'aborted 1' absent; do
	ill 'expected ok and, for each get, value VALUE or absent' '1 call txn get x put y 1' "1 return $answer"
done
ill 'announcement 2, an operation by client 0' '1 call get x' 'hello'
ill 'cas KEY OLD NEW' '1 call cas x 1'
ill 'expected ok, failed or error WORDS' '1 call cas x 1 2' '1 return absent'
ill 'this client has no operation that is not answered' '1 call put x 1' '2 return ok'
ill 'this client has no operation that is not answered' '1 call put x 1' '1 return ok' '1 return ok'
ill 'expected ok or error WORDS' '1 call put x 1' '1 return absent'
ill 'expected value VALUE, absent or error WORDS' '1 call get x' '1 return ok'
ill 'more than 64 keys' "$(seq -f '1 call get x%.0f' 65)"
ill 'more than 4032 operations' "$(seq -f '1 call put x %.0f' 4033)"
ill 'no client announced an operation' ''
for list in FOO KEEP '' 'RDA,' rda; do
	bad '' tidemark images good.rec --recover 'sh dump.sh {}' --contracts "$list"
done
bad '' tidemark images good.rec -c lib -p ./x.so -n check --contracts DUR
