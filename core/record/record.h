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
 *	tidemark_record_call(client, "put KEY VALUE");
 *	tidemark_record_return(client, "ok");
 *						what clients do, for tidemark images --contracts
 *
 * A call is put, get, del, or "txn get KEY put KEY VALUE", a transaction; a return is ok, value
 * VALUE, absent, aborted or error WORDS.
 *
 * A client is a number; it has one operation at a time. In any language the last two are lines
 * that are added to the file that the environment's TIDEMARK_HISTORY names: "CLIENT call put KEY
 * VALUE", "CLIENT return ok".
 *
 * Sends and what is written to sockets are acknowledgements of themselves, if the process has PM.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* Functions of libtidemark-record.so. */
extern void tidemark_recorder_mark(const char *name) __attribute__((weak));
extern void tidemark_recorder_ack(void) __attribute__((weak));
extern void tidemark_recorder_call(unsigned client, const char *operation) __attribute__((weak));
extern void tidemark_recorder_return(unsigned client, const char *answer) __attribute__((weak));

/* Macros, so that the place is the line that they are in. */
#define tidemark_record_mark(name) (tidemark_recorder_mark ? tidemark_recorder_mark(name) : (void)0)
#define tidemark_record_ack()	   (tidemark_recorder_ack ? tidemark_recorder_ack() : (void)0)
#define tidemark_record_call(client, operation) \
	(tidemark_recorder_call ? tidemark_recorder_call(client, operation) : (void)0)
#define tidemark_record_return(client, answer) \
	(tidemark_recorder_return ? tidemark_recorder_return(client, answer) : (void)0)

#ifdef __cplusplus
}
#endif

#endif
