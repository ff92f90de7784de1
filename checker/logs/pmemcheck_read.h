/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_PMEMCHECK_READ_H
#define TM_CHECKER_LOGS_PMEMCHECK_READ_H
/*
 * Reads the store log that PMDK's pmemcheck writes, and that others write for pmreorder. One or
 * several lines of tokens, separated by '|', each with fields separated by ';', numbers in
 * hexadecimal:
 *
 *	START
 *	REGISTER_FILE;PATH;ADDRESS;SIZE;OFFSET	a file is mapped
 *	STORE;ADDRESS;VALUE;SIZE[;FRAME...]	at most 8 bytes, as an integer; where in the program
 *	FLUSH;ADDRESS;SIZE
 *	FENCE
 *	DEEP_SYNC;ADDRESS;SIZE			a range is durable: pmem_deep_persist()
 *	NAME.BEGIN, NAME.END			a marker
 *	STOP
 *
 * What precedes the last START is not part of it. Valgrind's "==PID== " at the beginning of a line
 * is passed over. A frame may contain '|', as in "operator|": a token that is none of these goes on
 * with the frame before it.
 */
#include "checker/logs/pm_log.h"
#include "core/text/text.h"

#define PMEMCHECK_LOG_MAX (1ull << 32) /* bytes */

/* From `len` bytes, which may be written to and have a NUL after them. 0, -EINVAL (*error),
 * -ENOMEM. */
int pmemcheck_read(struct pm_log *log, char *bytes, size_t len, struct input_error *error);

#endif
