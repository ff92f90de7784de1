/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_ANNOUNCEMENTS_H
#define TM_CHECKER_LOGS_ANNOUNCEMENTS_H
/*
 * What clients announced, read: the operations, and whether an order of them explains the answers.
 * announced.h says how they are written.
 */
#include "checker/logs/pm_log.h"
#include "core/text/text.h"
#include "checker/judge/register.h"

#define NO_OP UINT32_MAX

/* Part of a text. */
struct words {
	const char *at;
	size_t len;
};

/* An operation. */
struct announcement {
	uint8_t kind;  /* enum register_kind */
	bool answered; /* with anything but an error */
	bool failed;   /* a CAS, which has not swapped */
	bool left_out; /* its answer contradicts others: it does not count */
	bool txn;      /* of a transaction; */
	bool joined;   /* the one that the operation before it is of, too; */
	bool aborted;  /* which was aborted */
	int16_t error; /* -EIO for "error" */
	uint32_t key;
	uint32_t value;	       /* PUT, CAS: the new one; GET: the answer; 0: absent, or not known */
	uint32_t old;	       /* CAS */
	uint32_t call, answer; /* of pm_log.call; the answer's is NO_OP where there is none */
	uint32_t next;	       /* the next one that writes the same value, or NO_OP */
	uint32_t sibling;      /* the next one of the key */
};

struct announced_key {
	struct words name;
	uint32_t ops, values, first, last; /* operations */
	bool alike; /* its values do not tell its updates apart: there are equal ones, or CASes */
};

/* Of one key. */
struct announced_value {
	int32_t number;	      /* among the key's */
	uint32_t first, last; /* operations that write it, or NO_OP */
};

struct announcements {
	const struct pm_log *log;
	struct announcement *op;
	size_t ops, op_room;
	struct announced_key *key; /* key k has the number k + 1 in `text` */
	size_t keys, key_room;
	struct announced_value *value; /* by numbers in `pair` */
	size_t values, value_room;
	uint32_t *of;		  /* by pm_log.call: the operation, a transaction's first */
	size_t until;		  /* what came before this event of the log is known */
	bool transactions;	  /* there are such */
	struct pm_log text, pair; /* only for the numbers of texts: keys; "KEY VALUE" */
	char *line;		  /* room for such a text */
	size_t line_room;
};

/* 0, or -errno with a sentence in *why: -EINVAL: they are not as they should be; -ENODATA: there
 * are none; -EFBIG: there are more operations, or keys, than these. The log outlives it. To be
 * freed in any case. */
int announcements_read(struct announcements *a, const struct pm_log *log, size_t most_ops,
		       size_t most_keys, char *why, size_t n);
void announcements_free(struct announcements *a);

/* Number of operations of the transaction that begins there; 1 without one. */
size_t announcements_size(const struct announcements *a, size_t first);
/* Takes the first word off; what follows a single space is left. */
struct words words_take(struct words *from);
/* The key of this name, or -1. */
int announcements_key(const struct announcements *a, struct words name);
/* The number of this value of a key; 0: nobody announced it. */
uint32_t announcements_value(struct announcements *a, unsigned key, struct words value);
/* Has it been announced until then? NO_OP: it has not. */
bool announcements_known(const struct announcements *a, uint32_t call);
/* Of those known, and announced before `limit`, the operation from `op` on that may have written
 * its value: NO_OP: none. Begin with announced_value.first, and go on with .next. */
uint32_t announcements_writer(const struct announcements *a, uint32_t op, uint32_t limit);

/* What is known of the operations of a key, for register.h: moments are those of pm_log.call. To be
 * freed; ends the process without memory. */
struct register_op *announcements_register(const struct announcements *a, unsigned key,
					   unsigned *n);

/* Had an operation begun, or been answered, before event `at`? An answer may have its event after
 * calls that were announced later. */
static inline bool announced_by(const struct pm_call *c, size_t at)
{
	return c->returns ? c->event < at : c->event <= at;
}

/* Operations of a key that no order explains; or it could not be told. */
struct announced_fault {
	uint8_t contract; /* enum tm_contract: TM_LIN; announced.h knows others */
	bool unsure;
	uint32_t key;
	uint32_t lost; /* the operation whose answer does not fit */
	uint32_t *op;  /* those that contradict each other */
	unsigned ops;
};
/* Does an order explain them all? False: *fault says which it does not; `op` is to be freed. */
bool announcements_explained(const struct announcements *a, unsigned key,
			     struct announced_fault *fault);

#define HISTORY_FILE_MAX (1u << 30) /* bytes */

/* A history by itself is a file of the lines that clients announce (core/record/announcement.h).
 * Adds the announcements to an open log. 0 or -errno: -EINVAL with *error. `bytes` end with a NUL,
 * and are changed. */
int history_read(struct pm_log *log, char *bytes, size_t len, struct input_error *error);

#endif
