/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_RECORDING_MERGE_H
#define TM_CHECKER_IMAGES_RECORDING_MERGE_H
/*
 * The recordings of several machines that talked to each other become one (core/record/format.h).
 *
 * Machines have no clock in common, and none is asked. What is known are the order of each
 * machine's own recording, and messages (core/record/message.h): what was recorded before a message
 * left comes before what was recorded after it had come. Of all orders in which that is so, and
 * which no program could have told from the one that was, this one is taken: at each step the first
 * machine goes on that does not wait for a message, in the order in which the recordings are given.
 *
 * A message of a packet is the packet at one end that equals that at the other; of several that are
 * equal, as one that is sent again, the first is the first one's, and so on. One of a TCP
 * connection is the last write that began before the bytes that had come ended.
 *
 * Numbers of threads, processes, queue pairs and clients that two machines have in common become
 * others in the later one. Files of PM that have the same name get that of their recording before
 * it. There are no times: they would be of different clocks.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MERGE_MACHINES 64

struct merge;

struct merge_recording {
	const char *name;
	const char *bytes; /* they stay until the end */
	size_t len;
};

/* Find the order. 0, -ENOMEM, or -EINVAL and a sentence in `why`: they are not of one run, or not
 * all of it. */
int merge_open(struct merge **out, const struct merge_recording *recording, unsigned n, char *why,
	       size_t len);
void merge_close(struct merge *merge);
/* Messages between machines. */
size_t merge_messages(const struct merge *merge);
/* Write the one recording. 0 or -EIO. `merge`: a struct merge. */
int merge_write(FILE *out, const void *merge);

#endif
