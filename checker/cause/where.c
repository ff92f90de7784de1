/* SPDX-License-Identifier: BSD-3-Clause */
/* See where.h; elfutils does the work. */
#include "checker/cause/where.h"
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct where {
	Dwfl *dwfl;
	char *debuginfo_path;
	Dwfl_Callbacks callbacks;
};

struct where *where_new(void)
{
	struct where *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->callbacks.find_elf = dwfl_linux_proc_find_elf;
	w->callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
	w->callbacks.debuginfo_path = &w->debuginfo_path;
	w->dwfl = dwfl_begin(&w->callbacks);
	if (!w->dwfl || dwfl_linux_proc_report(w->dwfl, getpid()) ||
	    dwfl_report_end(w->dwfl, NULL, NULL)) {
		where_free(w);
		return NULL;
	}
	return w;
}

void where_free(struct where *w)
{
	if (w && w->dwfl)
		dwfl_end(w->dwfl);
	free(w);
}

void where_print(struct where *w, uintptr_t pc, char *buf, size_t n)
{
	int number = 0;
	buf[0] = '\0';
	if (!w || !pc)
		return;
	Dwfl_Line *line = dwfl_getsrc(w->dwfl, pc);
	const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (!file)
		return;
	/* From the tree's top: "core/stores/erda/server.c:12". */
	const char *from = strstr(file, "core/stores/");
	const char *slash = strrchr(file, '/');
	snprintf(buf, n, "%s:%d", from ? from : slash ? slash + 1 : file, number);
}

const char *where_function(struct where *w, uintptr_t pc)
{
	Dwfl_Module *module = w && pc ? dwfl_addrmodule(w->dwfl, pc) : NULL;
	const char *name = module ? dwfl_module_addrname(module, pc) : NULL;
	return name ? name : "";
}
