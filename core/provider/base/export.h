/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_EXPORT_H
#define TM_PROVIDER_BASE_EXPORT_H
/* A function that programs see: all others of the libraries are hidden. */
#define EXPORT __attribute__((visibility("default")))

#endif
