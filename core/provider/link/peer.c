/* SPDX-License-Identifier: BSD-3-Clause */
/* See peer.h. */
#include "core/provider/link/peer.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/provider/base/fabric_dir.h"

#define LOOK_NS	   1000000 /* so long it is believed that a process lives */
#define IDLE	   2
#define PROGRAM_NS 5000000 /* a program that has had a CPU for so long could have got ready */
#define RESTS_NS \
	20000000 /* and one that did not want one, for so long; it may wait for its NIC's lock */
#define MANY 256 /* turns: more than the NIC takes between two looks at its timers */

struct inbox_head *peer_head(struct peers *peers, unsigned slot)
{
	struct peer *peer = &peers->peer[slot];
	struct stat is;
	void *at = MAP_FAILED;
	char name[16];
	int fd;

	if (peer->head && !peer->head->dead)
		return peer->head;
	snprintf(name, sizeof(name), "%u", slot);
	fd = net_dir_open(peers->directory, name, false);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &is) && is.st_size >= (off_t)sizeof(struct inbox_head))
		at = mmap(NULL, sizeof(struct inbox_head), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	close(fd);
	if (at == MAP_FAILED)
		return NULL;
	if (peer->head)
		munmap(peer->head, sizeof(*peer->head));
	*peer = (struct peer){.head = at};
	return at;
}

/* A file of a process in /proc, as far as it fits. False: there is none to be seen from here. */
static bool read_proc(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The kernel's letter for what a process, or a thread, does. '\0': not known. */
static char state_of(const char *path)
{
	char text[256], *end;

	if (!read_proc(path, text, sizeof(text)))
		return '\0';
	end = strrchr(text, ')'); /* a program's name may have some, too */
	return end && end[1] ? end[2] : '\0';
}

/* By a signal, or a debugger. */
static bool is_stopped(pid_t pid)
{
	char path[32], state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	state = state_of(path);
	return state == 'T' || state == 't';
}

static bool runs(const struct peers *peers, unsigned slot)
{
	pid_t pid = slot == peers->own ? -1 : net_dir_slot_owner(peers->directory, slot);

	return pid && !(pid > 0 && is_stopped(pid));
}

bool peer_starves(struct peers *peers, unsigned slot, bool taken, uint64_t now,
		  struct link_watch *watch)
{
	struct peer *peer = &peers->peer[slot];
	const struct inbox_head *head = peer_head(peers, slot);
	uint32_t turns, idle;

	if (!head)
		return false;
	if (!peer->looked_at || now - peer->looked_at >= LOOK_NS) {
		peer->runs = runs(peers, slot);
		peer->looked_at = now;
	}
	if (!peer->runs)
		return false;
	idle = atomic_load_explicit(&head->turns.idle, memory_order_acquire);
	turns = atomic_load_explicit(&head->turns.all, memory_order_relaxed);
	if (!watch->asked) {
		watch->asked = true;
		watch->idle = idle;
		watch->turns = turns;
	}
	if (idle - watch->idle < IDLE &&
	    !(taken && turns - watch->turns >= MANY && now - watch->due >= watch->period))
		return true;
	/* It could have answered, but did it, since the packets that have come in here were last
	 * taken? */
	if (watch->could)
		return false;
	watch->could = true;
	return true;
}

/* Does a thread of the process, other than this one, want a CPU? How long they have had one in all,
 * ns. */
static bool wants_cpu(pid_t pid, int32_t except, uint64_t *had_ns)
{
	char path[300], text[64];
	struct dirent *entry;
	bool wants = false;
	DIR *dir;

	*had_ns = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == except)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, entry->d_name);
		wants |= state_of(path) == 'R';
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, entry->d_name);
		if (read_proc(path, text, sizeof(text)))
			*had_ns += strtoull(text, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return wants;
}

bool peer_program_starves(struct peers *peers, unsigned slot, uint64_t now,
			  struct link_watch *watch)
{
	const struct inbox_head *head = peer_head(peers, slot);
	pid_t pid = head && slot != peers->own ? net_dir_slot_owner(peers->directory, slot) : 0;
	uint64_t had_ns;
	bool wants;

	if (pid <= 0)
		return false;
	wants = wants_cpu(pid, atomic_load(&head->turns.thread), &had_ns);
	/* The message was tried again when it was last asked about, so only what was so then
	 * counts: this process may have had no CPU since, either, while an answer from long ago was
	 * waiting for it. */
	if (watch->asked &&
	    (watch->had_ns - watch->had_first >= PROGRAM_NS ||
	     (!wants && watch->rests_since && watch->asked_at - watch->rests_since >= RESTS_NS)))
		return false;
	if (!watch->asked)
		watch->had_first = had_ns;
	if (wants)
		watch->rests_since = 0;
	else if (!watch->rests_since)
		watch->rests_since = now;
	watch->asked = true;
	watch->asked_at = now;
	watch->had_ns = had_ns;
	return true;
}
