/* SPDX-License-Identifier: BSD-3-Clause */
/* See program_lines.h; elfutils does the work. */
#include "checker/images/program_lines.h"
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS 64

struct program_lines {
	Dwfl *dwfl;
	Dwfl_Callbacks callbacks;
	char *debuginfo_path;
	struct program {
		char *path;
		Dwfl_Module *module; /* NULL: it cannot be read */
	} program[PROGRAMS];
	unsigned programs;
};

struct program_lines *program_lines_new(void)
{
	struct program_lines *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->callbacks.find_elf = dwfl_build_id_find_elf;
	p->callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
	p->callbacks.section_address = dwfl_offline_section_address;
	p->callbacks.debuginfo_path = &p->debuginfo_path;
	p->dwfl = dwfl_begin(&p->callbacks);
	return p;
}

void program_lines_free(struct program_lines *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->programs; i++)
		free(p->program[i].path);
	if (p->dwfl)
		dwfl_end(p->dwfl);
	free(p);
}

static Dwfl_Module *module_of(struct program_lines *p, const char *path)
{
	unsigned i = 0;
	while (i < p->programs && strcmp(p->program[i].path, path) != 0)
		i++;
	if (i < p->programs || i == PROGRAMS || !p->dwfl)
		return i < p->programs ? p->program[i].module : NULL;
	char *copy = strdup(path);
	if (!copy)
		return NULL;
	dwfl_report_begin_add(p->dwfl);
	p->program[i].path = copy;
	p->program[i].module = dwfl_report_offline(p->dwfl, path, path, -1);
	dwfl_report_end(p->dwfl, NULL, NULL);
	p->programs++;
	return p->program[i].module;
}

/* False: it is not known. */
static bool print_line(struct program_lines *p, const char *path, unsigned long long offset,
		       char *out, size_t n)
{
	Dwfl_Module *module = module_of(p, path);
	GElf_Addr bias;
	if (!module || !dwfl_module_getelf(module, &bias))
		return false;
	const char *function = dwfl_module_addrname(module, offset + bias);
	Dwfl_Line *line = dwfl_module_getsrc(module, offset + bias);
	int number = 0;
	const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (!function && !file)
		return false;
	const char *slash = file ? strrchr(file, '/') : NULL;
	if (file)
		snprintf(out, n, "%s (%s:%d)", function ? function : "?", slash ? slash + 1 : file,
			 number);
	else {
		slash = strrchr(path, '/');
		snprintf(out, n, "%s (%s)", function, slash ? slash + 1 : path);
	}
	return true;
}

void program_lines_print(struct program_lines *p, const char *places, char *out, size_t n)
{
	char place[600], words[sizeof(place) + 300];
	size_t at = 0;
	out[0] = 0;
	for (size_t len; *places && at < n; places += len + (places[len] == ';')) {
		unsigned long long offset;
		len = strcspn(places, ";");
		snprintf(place, sizeof(place), "%.*s", (int)len, places);
		char *plus = strrchr(place, '+');
		bool known = false;
		if (plus && sscanf(plus, "+0x%llx", &offset) == 1) {
			*plus = 0;
			known = print_line(p, place, offset, words, sizeof(words));
		}
		at += (size_t)snprintf(out + at, n - at, "%s%.*s", at ? ";" : "",
				       known ? (int)strlen(words) : (int)len,
				       known ? words : places);
	}
}
