/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIDEMARK_RECORD_H
#define TIDEMARK_RECORD_H
/*
 * What a program can tell of itself while `tidemark record` runs it. Without it, these functions do
 * nothing, and nothing has to be linked.
 *
 *	tidemark_record_mark("PUT.BEGIN");	where the program is: TIDEMARK_MARKER
 *	tidemark_record_ack();			somebody was promised that all until here is
 *						durable: TIDEMARK_ACKED is one more
 *
 * Sends and what is written to sockets are acknowledgements of themselves, if the process has PM.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* Of libtidemark-record.so. */
extern void tidemark_recorder_mark(const char *name) __attribute__((weak));
extern void tidemark_recorder_ack(void) __attribute__((weak));

/* Macros, so that the place is the line that they stand in. */
#define tidemark_record_mark(name) (tidemark_recorder_mark ? tidemark_recorder_mark(name) : (void)0)
#define tidemark_record_ack()	   (tidemark_recorder_ack ? tidemark_recorder_ack() : (void)0)

#ifdef __cplusplus
}
#endif

#endif
