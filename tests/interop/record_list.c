/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record_list POOL: is the list whole? record_list POOL N [bug]: put N nodes at its front, each in
 * a transaction of libpmemobj. The bug: their number is not stored in the transaction, but after
 * it.
 */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

POBJ_LAYOUT_BEGIN(list);
POBJ_LAYOUT_ROOT(list, struct root);
POBJ_LAYOUT_TOID(list, struct node);
POBJ_LAYOUT_END(list);

struct node {
	uint64_t value;
	TOID(struct node) next;
};
struct root {
	TOID(struct node) first;
	uint64_t nodes;
};

static int check(TOID(struct root) root)
{
	uint64_t n = 0;
	for (TOID(struct node) at = D_RO(root)->first; !TOID_IS_NULL(at); at = D_RO(at)->next)
		if (D_RO(at)->value != D_RO(root)->nodes - n++)
			return 1;
	return n != D_RO(root)->nodes;
}

static void put(PMEMobjpool *pool, TOID(struct root) root, uint64_t value, int bug)
{
	TX_BEGIN(pool)
	{
		TX_ADD(root);
		TOID(struct node) node = TX_NEW(struct node);
		D_RW(node)->value = value;
		D_RW(node)->next = D_RO(root)->first;
		D_RW(root)->first = node;
		if (!bug)
			D_RW(root)->nodes = value;
	}
	TX_ONABORT
	{
		abort();
	}
	TX_END
	if (bug) {
		D_RW(root)->nodes = value;
		pmemobj_persist(pool, &D_RW(root)->nodes, sizeof(uint64_t));
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	PMEMobjpool *pool = access(argv[1], F_OK)
				    ? pmemobj_create(argv[1], "list", PMEMOBJ_MIN_POOL, 0600)
				    : pmemobj_open(argv[1], "list");
	if (!pool) {
		fprintf(stderr, "%s\n", pmemobj_errormsg());
		return 3;
	}
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	int status = argc == 2 ? check(root) : 0;
	for (int i = 0; argc > 2 && i < atoi(argv[2]); i++)
		put(pool, root, D_RO(root)->nodes + 1, argc > 3);
	pmemobj_close(pool);
	return status;
}
