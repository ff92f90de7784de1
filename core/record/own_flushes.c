/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flushes, fences and non-temporal stores that are instructions of the program, and no calls of
 * libpmem. Where it is certain that one begins, it is seen while it runs (traps.c): its function is
 * named by unwind information, and is instructions from its beginning to its end. Of others the
 * recorder says that there are such, with a place and the number of each sort: what it did not see
 * is not what did not happen. So it does of all in objects that were loaded after the first look,
 * as they may have run already.
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

static uintptr_t end_of(const struct functions *f, uint32_t i)
{
	const uint8_t *entry = f->header + f->table[2 * (size_t)i + 1];
	int32_t begin;
	uint32_t len;
	memcpy(&begin, entry + 8, sizeof(begin));
	memcpy(&len, entry + 12, sizeof(len));
	/* Another form is not known. */
	bool known = (uintptr_t)(entry + 8) + (uintptr_t)(intptr_t)begin == begin_of(f, i);
	return begin_of(f, i) + (known ? len : 0);
}

/* Is it instructions from its beginning to its end, and so no data? */
static bool is_whole(const struct functions *f, uint32_t i)
{
	uintptr_t at = begin_of(f, i);
	const uintptr_t end = end_of(f, i);
	for (size_t bytes = 1; bytes && at < end; at += bytes)
		bytes = instruction_bytes((const uint8_t *)at, end - at);
	return at == end;
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

struct look {
	struct functions functions;
	struct sort sort[SORTS]; /* not seen */
	bool locked;		 /* for locked instructions, and for these alone */
	bool late;		 /* what is seen from now on may have run before */
	uint32_t asked;		 /* the function that was asked for last, and one more; 0: none */
	bool whole;		 /* is that one? */
	bool weak;		 /* there are flushes that such an instruction waits for */
};

static bool is_in_whole(struct look *l, uint32_t i, uintptr_t at)
{
	if (i == UINT32_MAX || at >= end_of(&l->functions, i))
		return false;
	if (l->asked != i + 1)
		l->whole = is_whole(&l->functions, i);
	l->asked = i + 1;
	return l->whole;
}

/* An instruction in function `i`, or in none: UINT32_MAX. */
static void look_at_instruction(struct look *l, uint32_t i, uintptr_t at, size_t bytes,
				uintptr_t stop)
{
	const uint8_t *code = (const uint8_t *)at;
	bool fences = false;
	const char *name = instruction_flushes(code, bytes, &fences);
	if (l->locked ? name || !instruction_locks(code, bytes) : !name)
		return;
	const bool kept = is_in_whole(l, i, at) && trap_keep(code, bytes);
	if (name && (!kept || l->late) && goes_on(at, stop))
		take_sort(l->sort, name, fences, at);
	l->weak |= kept && !fences && strcmp(name ? name : "clflush", "clflush") != 0;
}

/* From one instruction to the next, and anew where a function begins: between functions there may
 * be data. The program itself tells of one after RECORD_TOLD_MARK. */
static void look_at_text(struct look *l, uintptr_t at, uintptr_t end)
{
	static const uint8_t mark[] = {RECORD_TOLD_MARK};
	const struct functions *f = &l->functions;
	bool marked = false;
	for (uint32_t next = 0; at < end;) {
		while (next < f->n && begin_of(f, next) <= at)
			next++;
		const uintptr_t stop = next < f->n && begin_of(f, next) < end ? begin_of(f, next)
									      : end;
		const uint8_t *code = (const uint8_t *)at;
		size_t bytes = instruction_bytes(code, stop - at);
		if (bytes && !marked)
			look_at_instruction(l, next - 1, at, bytes, stop);
		marked = bytes == sizeof(mark) && !memcmp(code, mark, sizeof(mark));
		if (bytes)
			at += bytes;
		else
			at = stop - at > ALIGNED ? (at + ALIGNED) / ALIGNED * ALIGNED : stop;
	}
}

static void look_at_object(const struct dl_phdr_info *o, struct look *l)
{
	const uint8_t *header = NULL;
	for (unsigned i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			header = (const uint8_t *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
	const struct functions f = l->functions = functions_of(header);
	for (unsigned i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		uintptr_t at = o->dlpi_addr + p->p_vaddr, end = at + p->p_memsz;
		if (p->p_type != PT_LOAD || (p->p_flags & (PF_R | PF_X)) != (PF_R | PF_X))
			continue;
		/* As linkers once did it: constants are in the same part of the file. */
		if (f.n && (uintptr_t)header - at < p->p_memsz) {
			at = begin_of(&f, 0);
			end = end_of(&f, f.n - 1);
		}
		look_at_text(l, at, end);
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
	const uint64_t *before = arg;
	struct look look = {.late = *before > 0};
	(void)size;
	if (o->dlpi_adds == *before)
		return 1; /* there are no others since */
	looked.loads = o->dlpi_adds;
	if (is_new(o->dlpi_addr) && counts(o->dlpi_name)) {
		look_at_object(o, &look);
		look.locked = look.weak;
		if (look.locked)
			look_at_object(o, &look);
		trap_set();
		tell(look.sort);
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
