/* SPDX-License-Identifier: BSD-3-Clause */
/* See peer.h. */
#include "core/nic/peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/nic/net_dir.h"

#define LOOK_NS 1000000 /* so long it is believed that a process lives */
#define IDLE	2
#define MANY	256 /* turns: more than the NIC takes between two looks at its timers */

static int open_inbox(const struct peers *peers, unsigned slot)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", slot);
	return net_dir_open(peers->directory, name, false);
}

struct inbox_head *peer_head(struct peers *peers, unsigned slot)
{
	struct peer *peer = &peers->peer[slot];
	struct stat is;
	void *at = MAP_FAILED;
	int fd;

	if (peer->head && !peer->head->dead)
		return peer->head;
	fd = open_inbox(peers, slot);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &is) && is.st_size >= (off_t)sizeof(struct inbox_head))
		at = mmap(NULL, sizeof(struct inbox_head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return NULL;
	if (peer->head)
		munmap(peer->head, sizeof(*peer->head));
	*peer = (struct peer){.head = at};
	return at;
}

/* By a signal, or a debugger. Of a process that cannot be seen from here it is not known. */
static bool is_stopped(pid_t pid)
{
	char path[32], text[256], *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	state = strrchr(text, ')'); /* a program's name may have some, too */
	return state && (!strncmp(state, ") T", 3) || !strncmp(state, ") t", 3));
}

static bool runs(const struct peers *peers, unsigned slot)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	bool lives;
	int fd;

	if (slot == peers->own)
		return true;
	fd = open_inbox(peers, slot);
	if (fd < 0)
		return false;
	lives = !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
	close(fd);
	return lives && !(lock.l_pid > 0 && is_stopped(lock.l_pid));
}

bool peer_starves(struct peers *peers, unsigned slot, bool taken, uint64_t now, struct link_watch *watch)
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
	/* It could have answered, but did it, since the packets that have come in here were last taken? */
	if (watch->could)
		return false;
	watch->could = true;
	return true;
}
