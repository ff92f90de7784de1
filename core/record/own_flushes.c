/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flushes, fences and non-temporal stores that are instructions of the program, and no calls of
 * libpmem: the recorder does not see them while they run. It says that there are such, with a place
 * and the number of each sort: what it did not see is not what did not happen.
 *
 * What counts is the text that this process has mapped: the program, and each library that is not
 * the system's (its folder is none of /lib and /usr/lib, nor that of libc), not PMDK's, whose calls
 * are recorded, and not Tidemark's own. It is looked at when PM is mapped first, and again if there
 * are more libraries when PM is mapped later, and at the end. Text that is made while a program
 * runs is not looked at.
 */
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include "core/instruction.h"
#include "core/record/record_hooks.h"
#include "core/record/recorder.h"

#define OBJECTS	  512 /* those beyond are not looked at */
#define SORTS	  16
#define FOLLOWING 32 /* of data a few bytes at most look like instructions */
#define ALIGNED	  16 /* bytes: where assembly's functions begin */

struct sort {
	const char *name; /* NULL: no more */
	bool fences;
	uintptr_t first;
	uint64_t times;
};

/* --- an object's functions, as its unwind information names them --- */

/* .eh_frame_hdr with a table in the form that all linkers make: where each function begins, and the
 * place of its description, from the header on. Sorted. */
struct functions {
	const uint8_t *header;
	const int32_t *table;
	uint32_t n; /* 0: not known */
};

static struct functions functions_of(const uint8_t *header)
{
	static const uint8_t form[] = {1, 0x1b, 0x03, 0x3b};
	struct functions f = {.header = header};
	if (header && !memcmp(header, form, sizeof(form))) {
		memcpy(&f.n, header + 8, sizeof(f.n));
		f.table = (const int32_t *)(const void *)(header + 12);
	}
	return f;
}

static uintptr_t begin_of(const struct functions *f, uint32_t i)
{
	return (uintptr_t)f->header + (uintptr_t)(intptr_t)f->table[2 * (size_t)i];
}

static uintptr_t end_of_last(const struct functions *f)
{
	const size_t last = 2 * (size_t)(f->n - 1);
	const uint8_t *entry = f->header + f->table[last + 1];
	int32_t begin;
	uint32_t len;
	memcpy(&begin, entry + 8, sizeof(begin));
	memcpy(&len, entry + 12, sizeof(len));
	/* Another form is not known. */
	bool known = (uintptr_t)(entry + 8) + (uintptr_t)(intptr_t)begin == begin_of(f, f->n - 1);
	return begin_of(f, f->n - 1) + (known ? len : 0);
}

/* --- a stretch of text --- */

static void take_sort(struct sort sort[SORTS], const char *name, bool fences, uintptr_t at)
{
	unsigned i = 0;
	while (i < SORTS && sort[i].name && sort[i].name != name)
		i++;
	if (i == SORTS)
		return;
	if (!sort[i].name)
		sort[i] = (struct sort){.name = name, .fences = fences, .first = at};
	sort[i].times++;
}

/* Is this no data that looks like an instruction? Others follow it. */
static bool goes_on(uintptr_t at, uintptr_t stop)
{
	for (unsigned i = 0; i < FOLLOWING && at < stop; i++) {
		size_t bytes = instruction_bytes((const uint8_t *)at, stop - at);
		if (!bytes)
			return stop - at < ALIGNED; /* cut off by what follows */
		at += bytes;
	}
	return true;
}

/* From one instruction to the next, and anew where a function begins: between functions there may
 * be data. The program itself tells of one after RECORD_TOLD_MARK. */
static void look_at_text(const struct functions *f, uintptr_t at, uintptr_t end, struct sort *sort)
{
	static const uint8_t mark[] = {RECORD_TOLD_MARK};
	bool marked = false;
	for (uint32_t next = 0; at < end;) {
		while (next < f->n && begin_of(f, next) <= at)
			next++;
		const uintptr_t stop = next < f->n && begin_of(f, next) < end ? begin_of(f, next)
									      : end;
		const uint8_t *code = (const uint8_t *)at;
		size_t bytes = instruction_bytes(code, stop - at);
		bool fences;
		const char *name = bytes ? instruction_flushes(code, bytes, &fences) : NULL;
		if (name && !marked && goes_on(at, stop))
			take_sort(sort, name, fences, at);
		marked = bytes == sizeof(mark) && !memcmp(code, mark, sizeof(mark));
		if (bytes)
			at += bytes;
		else
			at = stop - at > ALIGNED ? (at + ALIGNED) / ALIGNED * ALIGNED : stop;
	}
}

static void look_at_object(const struct dl_phdr_info *o, struct sort *sort)
{
	const uint8_t *header = NULL;
	for (unsigned i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			header = (const uint8_t *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
	const struct functions f = functions_of(header);
	for (unsigned i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		uintptr_t at = o->dlpi_addr + p->p_vaddr, end = at + p->p_memsz;
		if (p->p_type != PT_LOAD || (p->p_flags & (PF_R | PF_X)) != (PF_R | PF_X))
			continue;
		/* As linkers once did it: constants are in the same part of the file. */
		if (f.n && (uintptr_t)header - at < p->p_memsz) {
			at = begin_of(&f, 0);
			end = end_of_last(&f);
		}
		look_at_text(&f, at, end, sort);
	}
}

/* --- which objects --- */

/* Without the dynamic linker's locks: dladdr() takes one that comes before that of
 * dl_iterate_phdr(). */
static bool is_in_folder_of(const char *path, const void *pc)
{
	uintptr_t begins;
	const char *file = call_site_file(pc, &begins), *slash = file ? strrchr(file, '/') : NULL;
	return slash && !strncmp(path, file, (size_t)(slash + 1 - file));
}

static bool counts(const char *path)
{
	static const char *const systems[] = {"/lib/",	   "/lib32/",	  "/lib64/",
					      "/usr/lib/", "/usr/lib32/", "/usr/lib64/"};
	if (!*path)
		return true; /* the program */
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if (!strncmp(path, systems[i], strlen(systems[i])))
			return false;
	/* The kernel's has no path. */
	return strchr(path, '/') && !call_site_is_pmdk_file(path) &&
	       !is_in_folder_of(path, (const void *)(uintptr_t)gnu_get_libc_version) &&
	       !is_in_folder_of(path, (const void *)(uintptr_t)own_flushes_look);
}

/* What was looked at; under the dynamic linker's lock. */
static struct {
	uint64_t loads; /* objects, until then */
	unsigned n;
	uintptr_t at[OBJECTS];
} looked;

static bool is_new(uintptr_t at)
{
	for (unsigned i = 0; i < looked.n; i++)
		if (looked.at[i] == at)
			return false;
	if (looked.n == OBJECTS)
		return false;
	looked.at[looked.n++] = at;
	return true;
}

static void tell(const struct sort *sort)
{
	if (!sort->name || !recorder_lock())
		return;
	for (unsigned i = 0; i < SORTS && sort[i].name; i++) {
		const uint64_t place[] = {sort[i].first, 0};
		recorder_add_unseen(sort[i].fences ? RECORD_UNSEEN_FENCE : RECORD_UNSEEN_FLUSH,
				    sort[i].times, sort[i].name, call_site_of(place, 1));
	}
	recorder_unlock();
}

static int look_at(struct dl_phdr_info *o, size_t size, void *arg)
{
	struct sort sort[SORTS] = {0};
	const uint64_t *before = arg;
	(void)size;
	if (o->dlpi_adds == *before)
		return 1; /* there are no others since */
	looked.loads = o->dlpi_adds;
	if (is_new(o->dlpi_addr) && counts(o->dlpi_name)) {
		look_at_object(o, sort);
		tell(sort);
	}
	return 0;
}

static bool begun;

void own_flushes_look(void)
{
	uint64_t before = looked.loads;
	if (told_by_tool())
		return;
	begun = true;
	dl_iterate_phdr(look_at, &before);
}

/* PM may be gone by now. */
void own_flushes_end(void)
{
	if (begun)
		own_flushes_look();
}

void own_flushes_forked(void)
{
	begun = false; /* another thread may have had the dynamic linker's lock */
}
