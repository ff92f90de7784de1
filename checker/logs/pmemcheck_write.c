/* SPDX-License-Identifier: BSD-3-Clause */
/* See pmemcheck_write.h. */
#include "checker/logs/pmemcheck_write.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define FIRST_ADDRESS 0x100000000u
#define ALIGNMENT     0x200000u

static void find_addresses(const struct pm_log *log, uint64_t address[PM_FILES])
{
	uint64_t next = FIRST_ADDRESS;
	for (unsigned i = 0; i < log->files; i++) {
		address[i] = next;
		next += (log->file[i].len + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	}
}

/* What separates tokens and fields is no part of a frame. */
static void write_frames(FILE *out, const char *frames)
{
	for (; *frames; frames++)
		putc(*frames == '|' || *frames == '\n' ? '/' : *frames, out);
}

/* Words of eight bytes where they are aligned. */
static void write_store(FILE *out, const struct pm_log *log, const struct pm_event *e,
			uint64_t address)
{
	for (uint32_t at = 0, n; at < e->len; at += n) {
		uint64_t value = 0, to = address + at;
		n = 8 - (uint32_t)(to % 8);
		if (n > e->len - at)
			n = e->len - at;
		memcpy(&value, log->bytes + e->data + at, n);
		fprintf(out, "|STORE;0x%" PRIx64 ";0x%" PRIx64 ";0x%x", to, value, n);
		if (!e->source)
			continue;
		putc(';', out);
		write_frames(out, log->source[e->source]);
	}
}

static void write_event(FILE *out, const struct pm_log *log, const struct pm_event *e,
			uint64_t address)
{
	switch ((enum pm_event_kind)e->kind) {
	case PM_STORE:
	case PM_LAND:
		write_store(out, log, e, address);
		return;
	case PM_FLUSH:
	case PM_SYNC:
	case PM_COMMIT: {
		uint64_t from = address / PM_LINE * PM_LINE,
			 end = (address + e->len + PM_LINE - 1) / PM_LINE * PM_LINE;
		fprintf(out, "|FLUSH;0x%" PRIx64 ";0x%" PRIx64 "%s", from, end - from,
			e->kind == PM_FLUSH ? "" : "|FENCE");
		return;
	}
	case PM_FENCE:
		fputs("|FENCE", out);
		return;
	case PM_ACK:
		fputs("|ACK.BEGIN|ACK.END", out);
		return;
	case PM_MARK:
		putc('|', out);
		write_frames(out, log->source[e->source]);
		return;
	/* The format has no such thing; by default they make nothing durable (ddio=on). */
	case PM_RDMA_FLUSH:
	case PM_PUSH:
	case PM_EVENT_KINDS:
		return;
	}
}

int pmemcheck_write(FILE *out, const void *arg)
{
	const struct pm_log *log = arg;
	uint64_t address[PM_FILES];
	find_addresses(log, address);
	fputs("START", out);
	for (unsigned i = 0; i < log->files; i++)
		fprintf(out, "|REGISTER_FILE;%s;0x%" PRIx64 ";0x%" PRIx64 ";0x0", log->file[i].name,
			address[i], log->file[i].size);
	for (size_t i = 0; i < log->events; i++)
		write_event(out, log, &log->event[i],
			    address[log->event[i].file] + log->event[i].off);
	fputs("|STOP\n", out);
	return ferror(out) ? -EIO : 0;
}
