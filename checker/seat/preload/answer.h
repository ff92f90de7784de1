/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_PRELOAD_ANSWER_H
#define TM_CHECKER_SEAT_PRELOAD_ANSWER_H
/*
 * Whoever serves and judges several images of a question: it makes each of the one before it, by a
 * mapping of its own, which is shared. So the judge is woken once for all of them.
 *
 * The mapping is made by system calls, as a program's own functions may be preload.c's. If it is
 * written to by mistake, that is found where changes that were not seen are found.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "checker/seat/preload/board.h"
#include "core/clock.h"

struct answer_map {
	uint8_t *at; /* NULL: none */
	uint64_t bytes, dev, ino;
};

/* Map the image, unless it is mapped. False: it could not be. */
static inline bool answer_map(struct answer_map *m, const struct board *b)
{
	struct stat st;
	if (m->at && m->dev == b->file[0].dev && m->ino == b->file[0].ino)
		return true;
	if (m->at)
		syscall(SYS_munmap, m->at, m->bytes);
	m->at = NULL;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, b->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && st.st_dev == b->file[0].dev && st.st_ino == b->file[0].ino) {
		long at = syscall(SYS_mmap, NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				  0L);
		if (at != -1)
			*m = (struct answer_map){(uint8_t *)at, b->bytes, st.st_dev, st.st_ino};
	}
	syscall(SYS_close, fd);
	/* What is forked may not write there. */
	if (m->at)
		syscall(SYS_madvise, m->at, m->bytes, MADV_DONTFORK);
	return m->at != NULL;
}

/* Another image of this question is to be judged: it has been made, and this is its number. False:
 * there is none, or the judge has to look at the last one first. */
static inline bool answer_next(struct answer_map *m, struct board *b, uint32_t *image)
{
	uint32_t next = atomic_load(&b->judged);
	if (next == b->images || atomic_load(&b->stop) || !atomic_load(&b->opened) ||
	    atomic_load(&b->written) || atomic_load(&b->touched) || atomic_load(&b->doubt) ||
	    !answer_map(m, b))
		return false;
	for (uint32_t i = b->image[next - 1].writes; i < b->image[next].writes; i++)
		memcpy(m->at + b->write[i].at, b->write[i].bytes, b->write[i].len);
	board_forget(b);
	*image = next;
	return true;
}

static inline void answer_is(struct board *b, uint32_t image, int status)
{
	b->image[image].status = status;
	atomic_store(&b->began_ns, clock_ns());
	atomic_store(&b->judged, image + 1);
}

#endif
