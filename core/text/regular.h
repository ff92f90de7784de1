/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TEXT_REGULAR_H
#define TM_TEXT_REGULAR_H

/* Open a file that an input names, for reading: only a regular one, so that neither this nor a read
 * waits for another program, and no device is touched. The descriptor, or -errno: -EISDIR, -ENOTSUP
 * for what is no file. */
int regular_open(const char *path);

#endif
