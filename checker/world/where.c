/* SPDX-License-Identifier: BSD-3-Clause */
/* See where.h; elfutils does the work. */
#include "checker/world/where.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/text/regular.h"

#define FILES	  64  /* of where_in_file() */
#define FUNCTIONS 256 /* elfutils looks through all symbols for one: so many are kept */

struct where {
	Dwfl *dwfl;
	char *debuginfo_path;
	Dwfl_Callbacks callbacks;
	struct where_file {
		char *path;
		Dwfl_Module *module; /* NULL: it cannot be read */
	} file[FILES];
	unsigned files;
	struct where_kept {
		const char *name;
		uintptr_t begin, end;
	} kept[FUNCTIONS];
	unsigned functions; /* that have been kept */
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

/* As elfutils does it by build ID. Whether it was found, the module knows then: of debug
 * information that refers to another file's, that one is looked for last. */
static int find_debuginfo(Dwfl_Module *module, void **found, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **path)
{
	static char yes;
	int fd = dwfl_build_id_find_debuginfo(module, found, name, base, file, link, crc, path);
	*found = fd >= 0 ? &yes : NULL;
	return fd;
}

/* Does it refer to debug information (as dwz moves it to a file of its own) that was not found?
 * When that is wanted, elfutils would open whatever path is there. */
static bool lacks_another(Dwfl_Module *module)
{
	Dwarf_Addr bias;
	void **found;
	const char *name;
	const void *id;
	Dwarf *dwarf = dwfl_module_getdwarf(module, &bias);
	dwfl_module_info(module, &found, NULL, NULL, NULL, NULL, NULL, NULL);
	return dwarf && dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) > 0 && !*found;
}

struct where *where_new_files(void)
{
	struct where *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->callbacks.find_elf = dwfl_build_id_find_elf;
	/* Not what such a file names in turn: that may be anything, or lead to the network. */
	w->callbacks.find_debuginfo = find_debuginfo;
	w->callbacks.section_address = dwfl_offline_section_address;
	w->callbacks.debuginfo_path = &w->debuginfo_path;
	w->dwfl = dwfl_begin(&w->callbacks);
	if (w->dwfl)
		return w;
	where_free(w);
	return NULL;
}

void where_free(struct where *w)
{
	for (unsigned i = 0; w && i < w->files; i++)
		free(w->file[i].path);
	if (w && w->dwfl)
		dwfl_end(w->dwfl);
	free(w);
}

/* NULL: it cannot be read. */
static Dwfl_Module *report_file(struct where *w, const char *path)
{
	int fd = regular_open(path);
	if (fd < 0)
		return NULL;
	dwfl_report_begin_add(w->dwfl);
	Dwfl_Module *module = dwfl_report_offline(w->dwfl, path, path, fd);
	dwfl_report_end(w->dwfl, NULL, NULL);
	if (!module)
		close(fd); /* else it is the module's */
	return module && !lacks_another(module) ? module : NULL;
}

uintptr_t where_in_file(struct where *w, const char *path, uint64_t offset)
{
	unsigned i = 0;
	GElf_Addr bias;
	while (i < w->files && strcmp(w->file[i].path, path) != 0)
		i++;
	if (i == FILES)
		return 0;
	if (i == w->files) {
		char *copy = strdup(path);
		if (!copy)
			return 0;
		w->file[i].path = copy;
		w->file[i].module = report_file(w, path);
		w->files++;
	}
	Dwfl_Module *module = w->file[i].module;
	return module && dwfl_module_getelf(module, &bias) ? offset + bias : 0;
}

/* The unit of debug information that `pc` is of. Not each compiler makes the table by which
 * elfutils finds it. */
static Dwarf_Die *unit_at(struct where *w, uintptr_t pc, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = w && pc ? dwfl_addrdie(w->dwfl, pc, bias) : NULL;
	Dwfl_Module *module = w && pc && !unit ? dwfl_addrmodule(w->dwfl, pc) : NULL;
	while (module && (unit = dwfl_module_nextcu(module, unit, bias)) != NULL)
		if (dwarf_haspc(unit, pc - *bias) > 0)
			break;
	return unit;
}

static const char *line_at(struct where *w, uintptr_t pc, int *number)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = unit_at(w, pc, &bias);
	Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, pc - bias) : NULL;
	if (line && number && dwarf_lineno(line, number))
		*number = 0;
	return line ? dwarf_linesrc(line, NULL, NULL) : NULL;
}

/* Is it a header of the system, or the library of a language? <infiniband/verbs.h> has functions,
 * which are no program's own. */
static bool is_of_system(const char *file)
{
	return !strncmp(file, "/usr/", 5) || !strncmp(file, "/rustc/", 7) ||
	       strstr(file, "/rustlib/src/");
}

#define SCOPES 64

/* May functions stand within it? In Rust they do. */
static bool holds_functions(Dwarf_Die *die)
{
	const int tag = dwarf_tag(die);
	return tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_enumeration_type || tag == DW_TAG_union_type;
}

/* The scopes within `die` that `pc` is in, the innermost first; returns how many.
 * dwarf_getscopes() knows functions of a unit alone. */
static int scopes_at(Dwarf_Die *die, Dwarf_Addr pc, Dwarf_Die scope[SCOPES])
{
	Dwarf_Die child;
	int n = 0;
	if (dwarf_child(die, &child))
		return 0;
	do {
		if (holds_functions(&child)) {
			n = scopes_at(&child, pc, scope);
		} else if (dwarf_haspc(&child, pc) > 0) {
			n = scopes_at(&child, pc, scope);
			if (n < SCOPES)
				scope[n++] = child;
		}
	} while (!n && !dwarf_siblingof(&child, &child));
	return n;
}

/* The call that an inlined scope stands for. NULL: it has none. */
static const char *call_of(Dwarf_Die *unit, Dwarf_Die *scope, int *number)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;
	Dwarf_Files *files;
	if (dwarf_tag(scope) != DW_TAG_inlined_subroutine ||
	    dwarf_formudata(dwarf_attr(scope, DW_AT_call_file, &attribute), &file) ||
	    dwarf_formudata(dwarf_attr(scope, DW_AT_call_line, &attribute), &line) ||
	    dwarf_getsrcfiles(unit, &files, NULL))
		return NULL;
	*number = (int)line;
	return dwarf_filesrc(files, file, NULL, NULL);
}

/* What was inlined from a header of the system at `pc` is called from there. NULL: not known. */
static const char *find_call(struct where *w, uintptr_t pc, int *number)
{
	Dwarf_Addr bias;
	Dwarf_Die scopes[SCOPES], *unit = unit_at(w, pc, &bias);
	const char *file = NULL;
	int n = unit ? scopes_at(unit, pc - bias, scopes) : 0;
	for (int i = 0; i < n && (!file || is_of_system(file)); i++)
		file = call_of(unit, &scopes[i], number);
	return file && !is_of_system(file) ? file : NULL;
}

const char *where_source(struct where *w, uintptr_t pc, int *number)
{
	int call = 0;
	const char *file = line_at(w, pc, number);
	const char *caller = file && is_of_system(file) ? find_call(w, pc, &call) : NULL;
	if (!caller)
		return file;
	*number = call;
	return caller;
}

void where_print(struct where *w, uintptr_t pc, char *buf, size_t n)
{
	int number = 0;
	const char *file = where_source(w, pc, &number);
	buf[0] = '\0';
	if (!file)
		return;
	/* From the tree's top: "core/stores/erda/server.c:12". */
	const char *from = strstr(file, "core/stores/");
	const char *slash = strrchr(file, '/');
	snprintf(buf, n, "%s:%d", from ? from : slash ? slash + 1 : file, number);
}

/* The function around it; NULL: not known. */
static const struct where_kept *function_of(struct where *w, uintptr_t pc)
{
	GElf_Off offset;
	GElf_Sym symbol;
	for (unsigned i = 0; w && i < w->functions && i < FUNCTIONS; i++)
		if (pc >= w->kept[i].begin && pc < w->kept[i].end)
			return &w->kept[i];
	Dwfl_Module *module = w && pc ? dwfl_addrmodule(w->dwfl, pc) : NULL;
	const char *name = module ? dwfl_module_addrinfo(module, pc, &offset, &symbol, NULL, NULL,
							 NULL)
				  : NULL;
	if (!name)
		return NULL;
	struct where_kept *kept = &w->kept[w->functions++ % FUNCTIONS];
	*kept = (struct where_kept){name, pc - offset, pc - offset + symbol.st_size};
	return kept;
}

const char *where_function(struct where *w, uintptr_t pc)
{
	const struct where_kept *function = function_of(w, pc);
	return function ? function->name : "";
}

uintptr_t where_begin(struct where *w, uintptr_t pc)
{
	const struct where_kept *function = function_of(w, pc);
	return function ? function->begin : 0;
}

/* A compiler's name of it, if there is one, else the source's. */
static const char *name_of(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(
		dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
	return name ? name : dwarf_diename(function);
}

const char *where_inlined(struct where *w, uintptr_t pc)
{
	Dwarf_Addr bias;
	Dwarf_Die scopes[SCOPES], *unit = unit_at(w, pc, &bias);
	const char *file = unit ? where_path(w, pc, NULL) : NULL, *name = NULL;
	int n = file ? scopes_at(unit, pc - bias, scopes) : 0, call;
	for (int i = 0; i < n && !name; i++) {
		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			continue;
		if (!is_of_system(file))
			name = name_of(&scopes[i]);
		file = call_of(unit, &scopes[i], &call);
		if (!file)
			break;
	}
	return name;
}

const char *where_path(struct where *w, uintptr_t pc, int *number)
{
	return line_at(w, pc, number);
}

bool where_together(struct where *w, uintptr_t a, uintptr_t b)
{
	return dwfl_addrmodule(w->dwfl, a) == dwfl_addrmodule(w->dwfl, b);
}

static void unit_rows(Dwarf_Die *unit, Dwarf_Addr bias, where_row *row, void *arg)
{
	Dwarf_Attribute attribute;
	const char *folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
	char whole[PATH_MAX];
	Dwarf_Lines *lines;
	size_t n;
	if (dwarf_getsrclines(unit, &lines, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		bool begins, ends;
		Dwarf_Addr at;
		int at_line;
		const char *path = dwarf_linesrc(line, NULL, NULL);
		if (path && !dwarf_linebeginstatement(line, &begins) && begins &&
		    !dwarf_lineendsequence(line, &ends) && !ends && !dwarf_lineaddr(line, &at) &&
		    !dwarf_lineno(line, &at_line) && at_line > 0) {
			if (path[0] != '/' && folder &&
			    (size_t)snprintf(whole, sizeof(whole), "%s/%s", folder, path) <
				    sizeof(whole))
				path = whole;
			row(arg, at + bias, path, (unsigned)at_line);
		}
	}
}

void where_rows(struct where *w, uintptr_t in, where_row *row, void *arg)
{
	Dwfl_Module *module = dwfl_addrmodule(w->dwfl, in);
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;
	while (module && (unit = dwfl_module_nextcu(module, unit, &bias)) != NULL)
		unit_rows(unit, bias, row, arg);
}

void where_functions(struct where *w, uintptr_t in, where_symbol *symbol, void *arg)
{
	Dwfl_Module *module = dwfl_addrmodule(w->dwfl, in);
	int symbols = module ? dwfl_module_getsymtab(module) : 0;
	for (int i = 0; i < symbols; i++) {
		GElf_Sym found;
		GElf_Addr at;
		const char *name = dwfl_module_getsym_info(module, i, &found, &at, NULL, NULL,
							   NULL);
		if (name && GELF_ST_TYPE(found.st_info) == STT_FUNC && found.st_size &&
		    found.st_shndx != SHN_UNDEF)
			symbol(arg, name, at, at + found.st_size);
	}
}
