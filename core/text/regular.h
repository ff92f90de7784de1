/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TEXT_REGULAR_H
#define TM_TEXT_REGULAR_H
#include <stddef.h>

/* Open a file that an input names, for reading: only a regular one, so that neither this nor a read
 * waits for another program, and no device is touched. The descriptor, or -errno: -EISDIR, -ENOTSUP
 * for what is no file. */
int regular_open(const char *path);

/* The path of a program that can be executed, as a shell finds it: in PATH, if there is no '/' in
 * its name. 0 or -errno. */
int program_find(const char *name, char *path, size_t size);

#endif
