/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TEXT_ERROR_NAME_H
#define TM_TEXT_ERROR_NAME_H
/* Errors as people know them. */

struct error_name {
	char text[40];
};

/* -errno: "EMSGSIZE"; "0"; any other number: "-4096, which is no -errno". */
struct error_name error_name(int error);

#endif
