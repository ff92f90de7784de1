/* SPDX-License-Identifier: BSD-3-Clause */
/* See error_name.h. */
#include "core/text/error_name.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct error_name error_name(int error)
{
	struct error_name name = {"0"};
	const char *known = error < 0 && error != INT_MIN ? strerrorname_np(-error) : NULL;
	if (known)
		snprintf(name.text, sizeof(name.text), "%s", known);
	else if (error)
		snprintf(name.text, sizeof(name.text), "%d, which is no -errno", error);
	return name;
}
