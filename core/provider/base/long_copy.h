/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_LONG_COPY_H
#define TM_PROVIDER_BASE_LONG_COPY_H
/*
 * Copies of LONG_COPY bytes and more, between the program's memory and memory that another
 * process's core has read or written. Under the NIC's lock.
 */
#include <stddef.h>
#include <stdint.h>

#define LONG_COPY 8192

/* To memory that another core has read, and will read next. */
void long_copy_out(uint8_t *to, const uint8_t *from, size_t len);
/* From memory that another core has written. An aligned word of `to` is never torn. */
void long_copy_in(uint8_t *to, const uint8_t *from, size_t len);

#endif
