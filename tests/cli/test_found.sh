#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_found.sh TIDEMARK SOURCES
#
# Small programs with what was found in those of others (docs/found.md), each beside the same one that is right: tidemark try tells
# them apart, and the cause is the store that matters.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

cat >prog.c <<'END'
#include "core/record/record.h"
#include <stdbool.h>
/*
 * prog HOW POOL run|check|more
 *
 * shift:   records in a row; the first one is deleted, the others move to the left, and a line is flushed with its first record.
 * handle:  a directory is made in PM and then switched to; what is made durable is the variable that has its place.
 * lock:    a lock in PM is closed while a record is written; who opens the pool leaves it closed.
 * address: the pool's address is in PM, and is where the next record is written by.
 * drop:    a flag says who flushes, and it is lost when another one is set.
 * HOW-right: what should have been done.
 */
struct record { unsigned long key, value; };
struct directory { unsigned long depth, pad[7]; };
struct pool {
	struct record record[12];
	struct directory directory[2];
	unsigned long current, pad[7];
	volatile long lock;
	unsigned long pad_lock[7];
	struct pool *self;
	unsigned long next, pad_self[6];
};
static bool right;
static struct pool *pool;
static void persist(const void *at, size_t n) { pmem_persist(at, n); }
static void put(unsigned at, unsigned long key)
{
	pool->record[at].value = key * 10;
	pool->record[at].key = key;
	persist(&pool->record[at], sizeof(struct record));
}
static void remove_first(void)
{
	for (unsigned i = 0; i < 11; i++) {
		pool->record[i].value = pool->record[i + 1].value;
		pool->record[i].key = pool->record[i + 1].key;
		if ((uintptr_t)&pool->record[right ? i + 1 : i] % 64 == 0)
			persist(&pool->record[i], sizeof(struct record));
	}
	if (right)
		persist(&pool->record[10], sizeof(struct record));
}
static void grow(void)
{
	struct directory *larger = &pool->directory[1];
	larger->depth = 2;
	if (right)
		persist(larger, sizeof(*larger));
	else
		persist(&larger, sizeof(larger));
	pool->current = 1;
	persist(&pool->current, sizeof(pool->current));
}
static void lock(long to)
{
	while (to && pool->lock)
		;
	pool->lock = to;
}
static void append(struct pool *by)
{
	by->record[by->next].value = (by->next + 1) * 10;
	by->record[by->next].key = by->next + 1;
	persist(&by->record[by->next], sizeof(struct record));
	by->next++;
	persist(&by->next, sizeof(by->next));
}
static void flagged(unsigned at, unsigned long key)
{
	enum { IN_PM = 1, CAS = 2 };
	unsigned use_cas = 1, flags = IN_PM;
	flags = right ? flags | (use_cas ? CAS : 0) : flags | use_cas ? CAS : 0;
	pool->record[at].value = key * 10;
	pool->record[at].key = key;
	if (flags & IN_PM)
		persist(&pool->record[at], sizeof(struct record));
}
static int work(const char *how)
{
	if (!strncmp(how, "shift", 5))
		for (unsigned i = 0; i < 11; i++)
			put(i, i + 1);
	if (!strncmp(how, "handle", 6)) {
		pool->directory[0].depth = 1;
		persist(pool->directory, sizeof(pool->directory));
	}
	if (!strncmp(how, "address", 7)) {
		pool->self = pool;
		persist(&pool->self, sizeof(pool->self));
		append(pool);
	}
	if (!strncmp(how, "drop", 4))
		put(1, 2);
	tidemark_record_ack();
	if (!strncmp(how, "shift", 5))
		remove_first();
	else if (!strncmp(how, "handle", 6))
		grow();
	else if (!strncmp(how, "address", 7))
		append(pool);
	else if (!strncmp(how, "drop", 4))
		flagged(0, 1);
	else {
		lock(1);
		put(0, 1);
		lock(0);
	}
	tidemark_record_ack();
	return 0;
}
static bool has(unsigned long key)
{
	for (unsigned i = 0; i < 11; i++)
		if (pool->record[i].key == key && pool->record[i].value == key * 10)
			return true;
	return false;
}
static int check(const char *how, int acked)
{
	unsigned long n = acked ? 11 : 0;
	if (!acked)
		return 0;
	if (!strncmp(how, "handle", 6))
		return pool->directory[pool->current].depth != pool->current + 1;
	if (!strncmp(how, "shift", 5)) {
		for (unsigned long key = 2; key <= n; key++)
			if (!has(key))
				return printf("key %lu is lost\n", key), 1;
		return acked > 1 && has(1) ? 3 : 0;
	}
	if (!strncmp(how, "address", 7))
		return !has(1) || (acked > 1 && !has(2));
	if (!strncmp(how, "lock", 4)) {
		if (right)
			pool->lock = 0;
		lock(1);
	}
	return acked > 1 && !has(1);
}
int main(int argc, char **argv)
{
	if (argc != 4 || !(pool = pmem_map_file(argv[2], 4096, PMEM_FILE_CREATE, 0600, 0, 0)))
		return 2;
	right = strstr(argv[1], "-right") != NULL;
	if (!strcmp(argv[3], "check"))
		return check(argv[1], getenv("TIDEMARK_ACKED") ? atoi(getenv("TIDEMARK_ACKED")) : 0);
	if (!strcmp(argv[3], "more")) {
		append(right ? pool : pool->self);
		return 0;
	}
	return work(argv[1]);
}
END
compile prog -lpmem -I"$sources"
run 0 gcc -g -O1 -fsanitize=thread -include "$prelude" -I"$sources" -o told prog.c -lpmem

# try STATUS HOW [OPTION...]
try() {
	rm -f pool
	run "$1" tidemark try --pm pool --run "./told $2 pool run" --check "./prog $2 {} check" --time 1h "${@:3}"
}
for how in shift handle lock drop; do
	try 0 $how-right
	says 'Every image is good.'
done
try 1 shift
says '1. exit status 1' 'it printed: key 5 is lost' 'by remove_first (prog.c:' # not by put(), which the line has lost, too
! grep -q 'by put' out || fail 'the cause is another store of the line'
try 1 handle
says '1. exit status 1' 'by grow (prog.c:' 'of 1 cause'
try 1 lock -- --timeout 1s
says '1. it did not end'
try 1 drop
says '1. exit status 1' 'by flagged (prog.c:' 'of 1 cause'

# An address in PM is found when the program goes on with its work.
try 0 address
try 1 address --then './prog address {} more'
says '1. it was ended by signal 11' 'and at 1 other place the same' 'of 1 cause' # one fault, wherever the power fails
try 0 address-right --then './prog address-right {} more'

# A node that stores what clients hand over in its memory. Each step of the one waits for the other's, so that they come in one order.
cat >node.c <<'END'
#include "core/record/record.h"
#include <stdbool.h>
#include <sys/wait.h>
/*
 * node HOW POOL run|dump
 *
 * early: the client takes what it has handed over for stored; the node stores it afterwards.
 * stale: the node waits for a mark behind the bytes, which the last ones have left there.
 * right: it takes the mark away, and answers when the bytes are durable.
 */
static struct box { volatile long value, mark; } *box; /* no PM */
static int to_node[2], to_client[2];
static void step(int fd) { if (write(fd, "", 1) != 1) _exit(9); }
static void await(int fd) { char c; if (read(fd, &c, 1) != 1) _exit(9); }
static void hand_over(long value)
{
	box->value = value;
	box->mark = 1;
}
static void store(long *pool)
{
	while (!box->mark)
		;
	pool[8] = box->value;
	pmem_persist(&pool[8], 8);
}
static void serve(long *pool, const char *how)
{
	for (int i = 0; i < 2; i++) {
		await(to_node[0]); /* there is something to come */
		const bool there = box->mark;
		if (there)
			store(pool); /* these are the last ones */
		step(to_client[1]); /* hand it over */
		await(to_node[0]);
		if (!there)
			store(pool);
		if (strcmp(how, "stale") != 0)
			box->mark = 0;
		step(to_client[1]);
	}
}
static void put(long value, const char *how)
{
	char call[32];
	sprintf(call, "put k %ld", value);
	tidemark_recorder_call(1, call);
	step(to_node[1]);
	await(to_client[0]);
	hand_over(value);
	if (!strcmp(how, "early"))
		tidemark_recorder_return(1, "ok");
	step(to_node[1]);
	await(to_client[0]);
	if (strcmp(how, "early") != 0)
		tidemark_recorder_return(1, "ok");
}
static long *map(const char *path) { return pmem_map_file(path, 4096, PMEM_FILE_CREATE, 0600, 0, 0); }
int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	if (!strcmp(argv[3], "dump")) {
		const long *pool = map(argv[2]);
		return pool[8] && printf("k %ld\n", pool[8]) < 0;
	}
	box = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(to_node) || pipe(to_client))
		return 2;
	if (!fork()) {
		long *pool = map(argv[2]);
		step(to_client[1]);
		serve(pool, argv[1]);
		_exit(0);
	}
	await(to_client[0]);
	put(1, argv[1]);
	put(2, argv[1]);
	wait(NULL);
	return 0;
}
END
compile node -lpmem -I"$sources"
# node STATUS HOW
node() {
	rm -f pool
	run "$1" tidemark try --pm pool --run "./node $2 pool run" --check "./node $2 {} dump" -- --contracts DUR,LIN
}
node 0 right
says 'Every image is good.'
node 1 early
says "DUR: k is absent; 'put k 1' of client 1 had been answered"
node 1 stale
says "DUR: k has the value of 'put k 1'; 'put k 2' of client 1 had been answered" 'the power failed before the end'
