#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_record_ack.sh TIDEMARK SOURCES
#
# --ack: a program that prints what it has done needs no driver. Lines that match are acknowledgements, also of operations, which
# contracts judge; they are in one order with its stores; and what it prints is printed.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

# POOL good|early|block|dump: four values are put, in the slot of their key; each is told of when it is durable, or too early.
cat >kv.c <<'END'
#include "core/record/record.h"
#include <stdio.h>
struct slot { unsigned long value, pad[7]; };
int main(int argc, char **argv)
{
	struct slot *p = argc == 3 ? pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0) : 0;
	static char room[4096];
	if (!p)
		return 2;
	if (!strcmp(argv[2], "dump")) {
		for (int i = 0; i < 2; i++)
			if (p[i].value)
				printf("k%d %lu\n", i, p[i].value);
		return 0;
	}
	if (!strcmp(argv[2], "block"))
		setvbuf(stdout, room, _IOFBF, sizeof(room));
	printf("ready\n");
	for (unsigned long i = 1; i < 5; i++) {
		int early = !strcmp(argv[2], "early");
		if (early)
			printf("stored k%lu=%lu.\n", i % 2, i);
		p[i % 2].value = i;
		pmem_persist(&p[i % 2], 64);
		if (!early)
			printf("stored k%lu=%lu.\n", i % 2, i);
		fprintf(stderr, "to the log\n");
	}
	return 0;
}
END
compile kv -lpmem -I"$sources"
ack='stored (k[0-9]+)=([0-9]+)\.$'
# recorded HOW [PATTERN]
recorded() {
	rm -f pool
	run 0 tidemark record --pm pool --out run.rec --ack "${2:-$ack => put \\1 \\2}" -- ./kv pool "$1"
}
judged() {
	run "$1" tidemark images run.rec --contracts RDA,LIN,DUR --recover './kv {} dump' "${@:2}"
}

# Without an operation: acknowledgements. What is printed goes where it should.
rm -f pool
tidemark record -q --pm pool --out run.rec --ack '^stored k1' -- ./kv pool good >printed 2>log || fail 'it is not recorded'
[ "$(grep -c '^stored k' printed)" = 4 ] && grep -q '^ready' printed || fail "printed: $(cat printed)"
[ "$(grep -c 'to the log' log)" = 4 ] && ! grep -q stored log || fail "log: $(cat log)"
run 0 tidemark images run.rec --recover true
says '2 acknowledgements'
tidemark record -q --pm pool --out run.rec --ack 'to the log' -- ./kv pool good >printed 2>log || fail 'it is not recorded'
run 0 tidemark images run.rec --recover true
says '4 acknowledgements'

# With one: what was told of before it was durable is lost, and nothing else is.
recorded good
judged 0
says '4 acknowledgements' 'none of them bad'
judged 0 --from start
recorded early
judged 1
says '1. DUR: k' "'put k" 'of client 0 had been answered' 'lost: the store of 8 bytes'
# In blocks, it has told nobody for long: the values that are there meanwhile are nobody else's.
recorded block
judged 0 --from start
# An answer of its own: nothing was promised then.
recorded early "$ack => put \\1 \\2 : error of \\1"
judged 0

# By one command.
rm -f pool
run 1 tidemark try --pm pool --run './kv pool early' --ack "$ack => put \\1 \\2" --check './kv {} dump' -- --contracts DUR
says '1. DUR: k'

# What is written to a socket. order; crossed: of two clients the first one's value is stored last, and both are answered then; early:
# the first one's is not stored yet.
cat >served.c <<'END'
#include "core/record/record.h"
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
static unsigned long *p;
static int client[2][2];
static const char *printed;
static void store(unsigned long value)
{
	p[0] = value;
	pmem_persist(p, 8);
}
static void answer(int i, int value)
{
	char head[] = "STORED k=", tail[16];
	snprintf(tail, sizeof(tail), "%d\r\n", value);
	if (printed) {
		printf("%s %d: STORED k=%d\n", printed, i, value);
		return;
	}
	struct iovec part[] = {{head, sizeof(head) - 1}, {tail, strlen(tail)}};
	struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};
	if (write(client[i][0], "VALUE of something\r\n", 20) != 20 || sendmsg(client[i][0], &message, 0) < 0)
		exit(3);
}
int main(int argc, char **argv)
{
	p = argc >= 3 ? pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0) : 0;
	if (!p || socketpair(AF_UNIX, SOCK_STREAM, 0, client[0]) || socketpair(AF_UNIX, SOCK_STREAM, 0, client[1]))
		return 2;
	if (!strcmp(argv[2], "dump"))
		return p[0] ? printf("k %lu\n", p[0]) < 0 : 0;
	printed = argv[3];
	if (!strcmp(argv[2], "crossed"))
		store(2);
	if (strcmp(argv[2], "early") != 0)
		store(1);
	answer(0, 1);
	if (strcmp(argv[2], "crossed") != 0)
		store(2);
	answer(1, 2);
	store(3);
	answer(0, 3);
	return 0;
}
END
compile served -lpmem -I"$sources"
# served HOW PATTERN STATUS [WORD]
served() {
	rm -f pool
	run 0 tidemark record --pm pool --out run.rec --ack "$2" -- ./served pool "$1" ${4:+"$4"}
	run "$3" tidemark images run.rec --contracts LIN,DUR --recover './served {} dump'
}
rm -f pool
run 0 tidemark record --pm pool --out run.rec --ack '^STORED k=[0-9]$' -- ./served pool order
run 0 tidemark images run.rec --recover true
says '3 acknowledgements'
socket='^STORED (k)=([0-9])$ => put \1 \2'
served order "$socket" 0
says '3 acknowledgements' 'none of them bad'
# Each socket is a client of its own: whose value is the last one is not known.
served crossed "$socket" 0
says 'none of them bad'
served early "$socket" 1
says "1. DUR: k is absent; 'put k 1' of client 1 had been answered"
# What is printed is one client's, if it does not say whose it is.
line='^who ([0-9]): STORED (k)=([0-9])$'
served crossed "$line => put \2 \3" 1 who
says '1. DUR: k has the value of'
served crossed "$line => \1 put \2 \3" 0 who
says 'none of them bad'
served early "$line => \1 put \2 \3" 1 who

# A program that joins prints where it should; and nobody prints what the other one does.
tidemark record -q --pm pool --out run.rec --ack joined -- sh -c 'echo begun; until [ -e go ]; do sleep 0.05; done; echo outer' >first 2>&1 &
until grep -q begun first; do sleep 0.05; done
tidemark record -q --join run.rec -- echo joined >second 2>&1 || fail 'it does not join'
touch go
wait $! || true
[ "$(cat second)" = joined ] && ! grep -q joined first && grep -q outer first || fail "$(cat first) / $(cat second)"

bad '--ack (: ' tidemark record --pm pool --out run.rec --ack '(' -- true
bad '--ack a => put \1 b: the pattern has not so many groups' tidemark record --pm pool --out run.rec --ack 'a => put \1 b' -- true
bad 'expected PATTERN or PATTERN => OPERATION' tidemark record --pm pool --out run.rec --ack ' => put a b' -- true
bad "--ack a: that is the recording's" tidemark record --join run.rec --ack a -- true
recorded good "$ack => put \\1"
bad 'expected put KEY VALUE' tidemark images run.rec --contracts RDA,LIN,DUR --recover './kv {} dump'
