/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_PRINTED_H
#define TM_CHECKER_LOGS_PRINTED_H
/*
 * Acknowledgements among the lines that a program prints: --ack of tidemark record.
 *
 *	PATTERN			a line in which this extended regular expression is found is an
 *				acknowledgement
 *	PATTERN => OPERATION	... of this operation, as a client announces it (announcements.h);
 *				\1 to \9 are what the groups of the pattern have found. Its answer
 *				comes after " : ", or is "ok".
 */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct printed {
	regex_t pattern;
	bool open;
	const char *operation, *answer; /* NULL: an acknowledgement without one; of the text */
	char *text;			/* a copy */
};

/* 0, or -EINVAL with a sentence in *why, or -ENOMEM. To be freed after 0. */
int printed_open(struct printed *p, const char *ack, char *why, size_t n);
void printed_close(struct printed *p);
/* Is this line one? Then its operation and its answer are written there; *operation is "" where
 * there is none. What has no room is cut. */
bool printed_find(const struct printed *p, const char *line, size_t len, char *operation,
		  char *answer, size_t room);

#endif
