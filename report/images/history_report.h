/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HISTORY_REPORT_H
#define TM_REPORT_HISTORY_REPORT_H
/* What clients' answers contradict by themselves, as text and JSON. */
#include <jansson.h>
#include "checker/logs/announced.h"

/* The operations, one a line, each with its answer. */
void history_print_operations(FILE *out, const struct announcements *a,
			      const struct announced_fault *fault, unsigned indent);
#define FAULT_WORDS 300
/* In words: "LIN of the key x: ...", without the operations. */
void history_fault_words(const struct announcements *a, const struct announced_fault *fault,
			 char *out, size_t n);
json_t *history_json(const struct announcements *a, const struct announced_fault *fault,
		     unsigned faults);

#endif
