/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_PAGE_SOURCE_H
#define TM_REPORT_PAGE_SOURCE_H
/* Places of source, as texts name them. */
#include <stddef.h>

/* The first "core/stores/erda/server.c:29" in a text, and its length. NULL: there is none. */
const char *source_next_place(const char *text, size_t *len);

#endif
