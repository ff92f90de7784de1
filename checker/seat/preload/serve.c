/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that judges one image becomes one that judges many: just before it opens the image, it
 * stops, and forks a child for each. What it has done until then, its linking and its start, is
 * done once.
 *
 * That is right only as long as a child is like a program that has just come here by itself. A
 * program of which this is not certain does not serve, and says why.
 */
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include "checker/seat/preload/answer.h"

#define MEMORY_DEVICES 1 /* the major number of /dev/null, /dev/zero, /dev/urandom */

/* Files that it reads: children share the places where they read, so that these are set back. */
#define READ_MAX 32
static struct {
	int fd;
	off_t at;
} reads[READ_MAX];
static unsigned n_reads;

unsigned preload_threads(void)
{
	struct stat st;
	/* A folder's links: two, and one for each folder in it. */
	return !stat("/proc/self/task", &st) && st.st_nlink > 2 ? (unsigned)st.st_nlink - 2 : 0;
}

static bool has_had_children(void)
{
	struct rusage ended;
	siginfo_t info;
	if (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || errno != ECHILD)
		return true;
	return getrusage(RUSAGE_CHILDREN, &ended) || ended.ru_maxrss || ended.ru_minflt;
}

/* Is there a shared mapping that can be written, other than the board? */
static bool shares_memory(const struct board *board)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	bool shares = !maps, starts = true;
	while (!shares && fgets(line, sizeof(line), maps)) {
		unsigned long from;
		char right[5] = "";
		if (starts && sscanf(line, "%lx-%*x %4s", &from, right) == 2)
			shares = right[1] == 'w' && right[3] == 's' && from != (unsigned long)board;
		starts = strchr(line, '\n') != NULL; /* a long path goes on in the next */
	}
	if (maps)
		fclose(maps);
	return shares;
}

/* Would children disturb each other by what this process has open? */
static bool shares_files(void)
{
	struct rlimit limit;
	int most = !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < 4096 ? (int)limit.rlim_cur
									      : 4096;
	n_reads = 0;
	for (int fd = 3; fd < most; fd++) {
		struct stat st;
		int flags = fcntl(fd, F_GETFL);
		if (flags < 0)
			continue;
		if (fstat(fd, &st))
			return true;
		if (S_ISCHR(st.st_mode) && major(st.st_rdev) == MEMORY_DEVICES)
			continue;
		if (!S_ISREG(st.st_mode) || (flags & O_ACCMODE) != O_RDONLY || n_reads == READ_MAX)
			return true;
		reads[n_reads].fd = fd;
		reads[n_reads++].at = lseek(fd, 0, SEEK_CUR);
	}
	return false;
}

static enum image_way_kind find_refusal(struct board *board)
{
	unsigned n = preload_threads();
	if (n != 1) {
		atomic_store(&board->number, n);
		return IMAGE_WAY_THREADS;
	}
	if (has_had_children())
		return IMAGE_WAY_CHILDREN;
	if (shares_memory(board))
		return IMAGE_WAY_MEMORY;
	return shares_files() ? IMAGE_WAY_OPEN : IMAGE_WAY_SERVED;
}

/* Children that have much memory from malloc() find it in large pages: each of the usual ones is
 * a fault. */
#define MANY_FAULTS 512
#define ROOM	    (32 << 20)
static bool is_roomy;

static void make_room(void)
{
	is_roomy = true;
	preload_make_ndctl();
#ifdef __GLIBC__
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_MMAP_MAX, 0);
	char *room = malloc(ROOM);
	mallopt(M_MMAP_MAX, 65536);
	if (room)
		madvise(room + (4096 - (uintptr_t)room % 4096), ROOM - 4096, MADV_HUGEPAGE);
	free(room);
#endif
}

/* In the parent: the child's wait status. Whatever the child has left running ends, too. */
static int await(pid_t child)
{
	struct rusage used = {.ru_minflt = 0};
	siginfo_t info;
	int status = 0;
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	kill(-child, SIGKILL);
	while (wait4(child, &status, 0, &used) < 0 && errno == EINTR)
		;
	if (used.ru_minflt > MANY_FAULTS && !is_roomy)
		make_room();
	return status;
}

/* The program's own functions around fork() are not called: to the program there is no fork. */
static pid_t new_process(void)
{
#if __GLIBC_PREREQ(2, 34)
	return _Fork();
#else
	return fork();
#endif
}

static void serve(struct board *board)
{
	struct answer_map map = {NULL, 0, 0, 0};
	struct sigaction ours = {.sa_handler = SIG_DFL}, theirs;
	pid_t server = getpid();
	struct stat st;
	fflush(NULL); /* else each child would print what is still in a buffer */
	if (!fstat(STDOUT_FILENO, &st) && S_ISREG(st.st_mode))
		atomic_store(&board->printed, (uint64_t)st.st_size);
	sigaction(SIGCHLD, &ours, &theirs);
	atomic_store(&board->serving, 1);
	for (uint32_t done = atomic_load(&board->asked) - 1;; done++) {
		uint32_t image = 0;
		pid_t child;
		while (atomic_load(&board->asked) == done)
			board_wait(&board->asked, done, NULL);
		do {
			for (unsigned i = 0; i < n_reads; i++)
				lseek(reads[i].fd, reads[i].at, SEEK_SET);
			child = new_process();
			if (!child) {
				setpgid(0, 0);
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				/* Before it starts others, which the judge may have to end. */
				atomic_store(&board->child, getpid());
				if (getppid() != server)
					_exit(127);
				if (theirs.sa_handler != SIG_DFL)
					sigaction(SIGCHLD, &theirs, NULL);
				return;
			}
			if (child > 0)
				setpgid(child, child);
			atomic_store(&board->child, child > 0 ? child : -errno);
			if (child > 0)
				answer_is(board, image, await(child));
		} while (child > 0 && answer_next(&map, board, &image));
		board_set(&board->answered, done + 1);
	}
}

bool preload_may_serve(const struct board *board)
{
	return atomic_load(&board->server) == getpid();
}

void preload_serve(struct board *board)
{
	int error = errno;
	enum image_way_kind why = find_refusal(board);
	if (why == IMAGE_WAY_SERVED) {
		serve(board);
	} else {
		atomic_store(&board->refused, why);
		atomic_store(&board->server, 0);
	}
	errno = error;
}
