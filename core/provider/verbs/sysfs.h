/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_VERBS_SYSFS_H
#define TM_PROVIDER_VERBS_SYSFS_H
/* The device's directory in sysfs, as programs look there themselves: sysfs.c. */

#define SYSFS_PATH 512

/* The path of something that has the attributes which the path would have: `path` itself if it is
 * not in the device's directory, or not one that exists there. `room` may be used for it. */
const char *sysfs_stand_in(const char *path, char room[SYSFS_PATH]);

#endif
