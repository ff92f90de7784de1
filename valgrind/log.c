/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log, START|...|STOP on one line, buffered. A fence writes out what there is, so that a
 * process that is killed by SIGKILL leaves a log that ends after what it had made durable.
 */
#include "tidepm.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_options.h"
#include "pub_tool_vki.h"

/* The core's: the same file at a number that the program cannot use itself. */
extern Int VG_(safe_fd)(Int fd);

#define TOKEN_MAX 256 /* without frames and paths */

static HChar buffer[1 << 16];
static SizeT used;
static Int log_fd = -1;
static const HChar *log_path = "none", *log_pattern = "";
static Bool waits; /* in a child process: for something that is to be in its log */

void log_settle(void)
{
	SizeT done = 0;
	while (log_fd >= 0 && done < used) {
		Int n = VG_(write)(log_fd, buffer + done, (Int)(used - done));
		if (n <= 0) {
			say("%s: cannot be written; the log ends here\n", log_path);
			VG_(close)(log_fd);
			log_fd = -1;
			break;
		}
		done += (SizeT)n;
	}
	used = 0;
}

void log_ready(void)
{
	if (!waits)
		return;
	waits = False;
	if (!VG_(strstr)(log_pattern, "%p"))
		say("child process %d: not in %s; with %%p in --pm-log it has a log of its own\n",
		    VG_(getpid)(), log_path);
	else if (log_open(log_pattern))
		mappings_log();
}

static void add(const HChar *text)
{
	log_ready();
	SizeT len = VG_(strlen)(text);
	while (len) {
		if (used == sizeof(buffer))
			log_settle();
		SizeT part = len < sizeof(buffer) - used ? len : sizeof(buffer) - used;
		VG_(memcpy)(buffer + used, text, part);
		used += part;
		text += part;
		len -= part;
	}
}

Bool log_open(const HChar *name)
{
	log_pattern = name;
	log_path = VG_(expand_file_name)("--pm-log", name);
	Int fd = VG_(fd_open)(log_path, VKI_O_WRONLY | VKI_O_CREAT | VKI_O_TRUNC, 0644);
	if (fd < 0) {
		say("%s: cannot be created\n", log_path);
		return False;
	}
	log_fd = VG_(safe_fd)(fd);
	add("START");
	return True;
}

void log_mapping(const HChar *path, Addr base, SizeT size, ULong offset)
{
	HChar token[TOKEN_MAX];
	add("|REGISTER_FILE;");
	add(path);
	VG_(snprintf)(token, sizeof(token), ";0x%lx;0x%lx;0x%llx", base, size, offset);
	add(token);
}

void log_store(Addr a, const void *bytes, SizeT size, const struct place *place)
{
	HChar token[TOKEN_MAX];
	UWord value = 0;
	tl_assert(size >= 1 && size <= sizeof(value));
	VG_(memcpy)(&value, bytes, size);
	VG_(snprintf)(token, sizeof(token), "|STORE;0x%lx;0x%lx;0x%lx", a, value, size);
	add(token);
	if (*place->text) {
		add(";");
		add(place->text);
	}
}

static void add_range(const HChar *name, Addr a, SizeT size)
{
	HChar token[TOKEN_MAX];
	VG_(snprintf)(token, sizeof(token), "|%s;0x%lx;0x%lx", name, a, size);
	add(token);
}

void log_flush(Addr a, SizeT size)
{
	add_range("FLUSH", a, size);
}

void log_sync(Addr a, SizeT size)
{
	/* Readers take 32 bits. */
	for (SizeT most = 1u << 30; size; a += most, size -= most) {
		most = size < most ? size : most;
		add_range("DEEP_SYNC", a, most);
	}
	log_settle();
}

void log_fence(void)
{
	add("|FENCE");
	log_settle();
}

void log_close(void)
{
	if (waits)
		return;
	add("|STOP");
	log_settle();
	if (log_fd >= 0)
		VG_(close)(log_fd);
	log_fd = -1;
}

void log_in_child(void)
{
	used = 0;
	if (log_fd >= 0)
		VG_(close)(log_fd);
	log_fd = -1;
	waits = True;
}

const HChar *log_name(void)
{
	return log_path;
}
