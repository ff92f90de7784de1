/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_CATALOGUE_H
#define TM_REPORT_CATALOGUE_H
/* What there is to choose from: stores, variants, bugs, knobs and so on, as text. */

struct catalogue_section {
	const char *name;
	void (*print)(void);
};
extern const struct catalogue_section catalogue[]; /* ends with .name = NULL */

#endif
