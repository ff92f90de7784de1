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
#include <libpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
run 0 gcc -g -O1 -Wall -Wextra -Werror -Iinclude -o kv kv.c -lpmem
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
says '6 acknowledgements' ' 0 are bad'
# tidemark cc finds the header by itself.
run 0 tidemark cc -g -O1 -Wall -Wextra -Werror -o told kv.c -lpmem
rm -f pool
run 0 tidemark record -q --pm pool --out told.rec -- ./told pool right
judge 0 told.rec
says '6 acknowledgements' ' 0 are bad'
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
# Of the contracts that are not asked for nothing is said.
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
#include <libpmem.h>
#include <string.h>

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
run 0 gcc -g -O1 -Wall -Wextra -Werror -o store store.c -lpmem
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
says '4 acknowledgements' ' 0 are bad'
lines lost.rec one lost
run 1 tidemark images -q lost.rec --recover 'sh dump.sh {}' --model power --contracts DUR,MONO
says "DUR: x has the value of 'put x one'; 'put x lost' of client 7 had been answered"
run 1 tidemark images -q lost.rec --recover 'sh dump.sh {}' --model power --contracts MONO
says "MONO: x has the value of 'put x one'; 'get x' of client 8 had been answered"

lines lost.rec lost
run 1 tidemark images -q lost.rec --recover 'sh dump.sh {}' --model power --contracts DUR
says "DUR: x is absent; 'put x lost' of client 7 had been answered; 2 images" # before its answer it is none

# --- what is not as it should be ---

# bad EXPECTED LINE...: the announcements are these lines.
bad() {
	local expected=$1
	shift
	printf '%s\n' "$@" >lines
	cat >bad.sh <<-'END'
		cat lines >>"$TIDEMARK_HISTORY"
		./store pool one
	END
	rm -f pool
	run 0 tidemark record -q --pm pool --out bad.rec -- bash bad.sh
	run 2 tidemark images bad.rec --recover 'sh dump.sh {}' --contracts DUR
	one_line
	says "$expected"
}
bad 'expected put KEY VALUE, get KEY or del KEY' '1 call set x 1'
bad 'announcement 2, an operation by client 0' '1 call get x' 'hello'
bad 'expected a value that no other put of this key has' '1 call put x 1' '1 return ok' '1 call put x 1'
bad 'this client has no operation that is not answered' '1 call put x 1' '2 return ok'
bad 'this client has no operation that is not answered' '1 call put x 1' '1 return ok' '1 return ok'
bad 'expected ok or error WORDS' '1 call put x 1' '1 return absent'
bad 'expected value VALUE, absent or error WORDS' '1 call get x' '1 return ok'
bad 'more than 64 keys' "$(seq -f '1 call get x%.0f' 65)"
bad 'more than 4032 operations' "$(seq -f '1 call put x %.0f' 4033)"
bad 'no client announced an operation' ''
for list in FOO KEEP '' 'RDA,' rda; do
	run 2 tidemark images good.rec --recover 'sh dump.sh {}' --contracts "$list"
	one_line
done
run 2 tidemark images good.rec -c lib -p ./x.so -n check --contracts DUR
one_line
