/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which addresses are PM: those at which a shared mapping of one of the files is. A file is known
 * by its device and inode, so that it need not exist when the program starts, nor be opened by the
 * name that was given. A mapping ends with the last byte that was asked for, or with the file if
 * that is longer and ends in the same page.
 */
#include "tidepm.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_vki.h"

#define FILES	   16
#define MAPPINGS   256
#define REGISTERED 64 /* mappings in a log; more are not read by `tidemark images` */

struct mapping {
	Addr base, end;
	ULong offset;
	Int file;
};

static const HChar *files[FILES];
static Int file_count;
static struct mapping mappings[MAPPINGS], registered[REGISTERED];
static Int mapping_count, registered_count;
Addr pm_low;
UWord pm_span;

Bool mappings_file(const HChar *path)
{
	const HChar *folder = VG_(get_startup_wd)();
	if (file_count == FILES || !*path || VG_(strpbrk)(path, "|;\n\r"))
		return False;
	SizeT size = VG_(strlen)(path) + (folder ? VG_(strlen)(folder) : 0) + 2;
	HChar *whole = VG_(malloc)("file", size);
	if (*path == '/' || !folder)
		VG_(strcpy)(whole, path);
	else
		VG_(snprintf)(whole, (Int)size, "%s/%s", folder, path);
	files[file_count++] = whole;
	return True;
}

Bool mappings_any_file(void)
{
	return file_count > 0;
}

/* Which of the files fd is open on; -1: none. */
static Int file_of(Int fd, struct vg_stat *open)
{
	struct vg_stat named;
	if (VG_(fstat)(fd, open) < 0)
		return -1;
	for (Int i = 0; i < file_count; i++)
		if (!sr_isError(VG_(stat)(files[i], &named)) && named.dev == open->dev &&
		    named.ino == open->ino)
			return i;
	return -1;
}

/* --- the table --- */

static void bounds(void)
{
	Addr low = ~(Addr)0, high = 0;
	for (Int i = 0; i < mapping_count; i++) {
		low = mappings[i].base < low ? mappings[i].base : low;
		high = mappings[i].end > high ? mappings[i].end : high;
	}
	pm_low = mapping_count ? low - PM_SLACK : 0;
	/* A flush of the last line may name a byte beyond the end. */
	pm_span = mapping_count ? VG_ROUNDUP(high, LINE) - pm_low : 0;
}

static void take_out(Int i)
{
	mappings[i] = mappings[--mapping_count];
}

static void put_in(struct mapping m)
{
	if (m.base >= m.end)
		return;
	if (mapping_count == MAPPINGS) {
		say("more than %d mappings of PM: 0x%lx is not logged\n", MAPPINGS, m.base);
		return;
	}
	mappings[mapping_count++] = m;
}

/* What is left of a mapping beside [base, end). */
static void cut(Addr base, Addr end)
{
	for (Int i = mapping_count - 1; i >= 0; i--) {
		struct mapping before = mappings[i], after = before;
		if (before.end <= base || before.base >= end)
			continue;
		take_out(i);
		before.end = base;
		after.base = end;
		after.offset += end - before.base;
		put_in(before);
		put_in(after);
	}
	bounds();
}

/* A mapping that is in the log already, and nothing since at its addresses, is not named again. */
static void register_it(const struct mapping *m)
{
	log_ready();
	Int i = (registered_count < REGISTERED ? registered_count : REGISTERED) - 1;
	while (i >= 0 && (registered[i].end <= m->base || registered[i].base >= m->end))
		i--;
	if (i >= 0 && !VG_(memcmp)(&registered[i], m, sizeof(*m)))
		return;
	if (registered_count < REGISTERED)
		registered[registered_count] = *m;
	else if (registered_count == REGISTERED)
		say("more than %d mappings of PM: tidemark images does not read such a log\n",
		    REGISTERED);
	registered_count++;
	log_mapping(files[m->file], m->base, m->end - m->base, m->offset);
}

static void add(Addr base, SizeT len, Int file, ULong offset, Long file_size)
{
	struct mapping m;
	SizeT pages = VG_ROUNDUP(len, VKI_PAGE_SIZE);
	SizeT in_file = file_size > (Long)offset ? (SizeT)file_size - (SizeT)offset : 0;
	SizeT size = in_file > len ? in_file : len;
	VG_(memset)(&m, 0, sizeof(m)); /* compared as a whole */
	m.base = base;
	m.end = base + (size < pages ? size : pages);
	m.offset = offset;
	m.file = file;
	put_in(m);
	bounds();
	register_it(&m);
}

void mapping_add(Addr base, SizeT len, Int fd, ULong offset)
{
	struct vg_stat open;
	Int file = file_of(fd, &open);
	if (file >= 0)
		add(base, len, file, offset, open.size);
}

void mapping_remove(Addr base, SizeT len)
{
	Addr end = VG_ROUNDUP(base + len, VKI_PAGE_SIZE), at = base, part;
	SizeT size;
	while ((size = mapping_next(&at, end, &part)))
		lines_end(part, size);
	cut(base, end);
}

void mapping_move(Addr old, SizeT old_len, Addr new, SizeT new_len)
{
	const struct mapping *found = NULL;
	struct vg_stat named;
	for (Int i = 0; i < mapping_count; i++)
		if (mappings[i].base <= old && old < mappings[i].end)
			found = &mappings[i];
	if (!found) {
		mapping_remove(new, new_len);
		return;
	}
	struct mapping m = *found;
	SizeT kept = old_len < new_len ? old_len : new_len;
	if (new != old)
		mapping_remove(new, new_len);
	if (kept < old_len)
		mapping_remove(old + kept, old_len - kept);
	if (new != old)
		lines_move(old, kept, new);
	cut(old, VG_ROUNDUP(old + old_len, VKI_PAGE_SIZE));
	if (sr_isError(VG_(stat)(files[m.file], &named)))
		named.size = 0;
	add(new, new_len, m.file, m.offset + (old - m.base), named.size);
}

void mappings_log(void)
{
	registered_count = 0;
	for (Int i = 0; i < mapping_count; i++)
		register_it(&mappings[i]);
}

/* --- looking up --- */

SizeT mapping_next(Addr *at, Addr end, Addr *part)
{
	const struct mapping *first = NULL;
	for (Int i = 0; i < mapping_count; i++) {
		const struct mapping *m = &mappings[i];
		if (m->end > *at && m->base < end && (!first || m->base < first->base))
			first = m;
	}
	if (!first || *at >= end)
		return 0;
	*part = first->base > *at ? first->base : *at;
	*at = first->end < end ? first->end : end;
	return *at - *part;
}

void mappings_of(Int fd, void (*what)(Addr base, SizeT size))
{
	struct vg_stat open;
	Int file = fd < 0 ? -1 : file_of(fd, &open);
	for (Int i = 0; i < mapping_count; i++)
		if (fd < 0 || mappings[i].file == file)
			what(mappings[i].base, mappings[i].end - mappings[i].base);
}
