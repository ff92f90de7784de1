/* SPDX-License-Identifier: BSD-3-Clause */
/* See judge_seat.h. */
#include "checker/seat/judge_seat.h"
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "checker/campaign/driver.h"
#include "checker/seat/calls.h"
#include "core/clock.h"

#define ENDED	   0x80000000u /* in board->answered: some child has ended */
#define SLICE	   0.5	       /* seconds, after which the process is looked at in any case */
#define KILL_GRACE 5	       /* seconds; a server answers that its child was killed */

static struct image_seat *volatile open_seats;

/* --- the board --- */

/* Each child of the process writes at the end. */
static bool keep_output(struct image_seat *s)
{
	s->output = memfd_create("tidemark-output", MFD_CLOEXEC);
	return s->output >= 0 && !fcntl(s->output, F_SETFL, O_APPEND);
}

char *seat_output(const struct image_seat *s, size_t *len)
{
	struct stat st;
	if (fstat(s->output, &st))
		return NULL;
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t n = text ? pread(s->output, text, (size_t)st.st_size, 0) : 0;
	*len = n > 0 ? (size_t)n : 0;
	return text;
}

int seat_open(struct image_seat *s, const char *folder, const struct pm_log *log, unsigned number,
	      bool output)
{
	memset(s, 0, sizeof(*s));
	s->output = -1;
	snprintf(s->own, sizeof(s->own), "%s/.own", folder);
	snprintf(s->path, sizeof(s->path), "%s/.judge%u", folder, number);
	int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	s->bytes = sizeof(*s->board) + log->markers_n;
	int error = posix_fallocate(fd, 0, (off_t)s->bytes);
	void *at = error ? MAP_FAILED
			 : mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!error && at == MAP_FAILED)
		error = errno;
	close(fd);
	if (!error && output && !keep_output(s))
		error = errno;
	if (error)
		unlink(s->path);
	if (error)
		return -error;
	s->board = at;
	if (log->markers_n)
		memcpy(s->board->markers, log->markers, log->markers_n);
	s->next = open_seats;
	open_seats = s;
	return 0;
}

static void forget_seat(const struct image_seat *s)
{
	struct image_seat *other = open_seats;
	if (other == s) {
		open_seats = s->next;
		return;
	}
	while (other->next != s)
		other = other->next;
	other->next = s->next;
}

void seat_close(struct image_seat *s)
{
	if (!s->board)
		return;
	seat_end(s);
	forget_seat(s);
	munmap(s->board, s->bytes);
	unlink(s->path);
	image_folder_remove(s->own);
	if (s->output >= 0)
		close(s->output);
	free(s->words);
	memset(s, 0, sizeof(*s));
}

/* Images after the first one, of which a program has to be told the same. */
static unsigned tell_images(struct board *b, const struct image_files *files, unsigned first,
			    unsigned n)
{
	uint32_t writes = 0;
	for (unsigned i = 0; i < n; i++) {
		size_t more = 0;
		const struct board_write *w = image_files_writes(files, first + i, &more);
		if (i && writes + more > BOARD_WRITES)
			return i;
		for (size_t k = 0; i && k < more; k++)
			b->write[writes++] = w[k];
		b->image[i].writes = writes;
		b->image[i].moment = files->wait[first + i].moment;
	}
	return n;
}

/* Where PM is mapped, if a program leaves that open: 0, as it comes. Nothing else is there. libpmem
 * looks for a place itself; who says where has a reason. */
static uint64_t place_of(const struct image_seat *s)
{
	return s->life && !getenv("PMEM_MMAP_HINT") ? 0x100000000000u + ((uint64_t)s->life << 42)
						    : 0;
}

void seat_images(struct image_seat *s, const struct image_files *files, unsigned file,
		 enum board_maps maps, unsigned first, unsigned *n)
{
	struct board *b = s->board;
	_Static_assert(BOARD_FILES == PM_FILES, "a bit for each file");
	b->files = files->log->files;
	for (unsigned i = 0; i < b->files; i++) {
		b->file[i].dev = files->file[i].dev;
		b->file[i].ino = files->file[i].ino;
	}
	b->bytes = files->log->file[file].len;
	b->place = place_of(s);
	snprintf(b->path, sizeof(b->path), "%s", files->file[file].path);
	atomic_store(&b->maps, maps);
	b->images = *n = tell_images(b, files, first, *n);
	board_forget(b);
}

/* --- waiting --- */

/* Whose answer is waited for. */
static struct board *_Atomic waiting;

/* The end of a process ends the wait, also if it comes just before the wait begins: the word is
 * not what it was then. */
static void child_ended(int signal)
{
	(void)signal;
	int error = errno;
	struct board *b = atomic_load(&waiting);
	if (b) {
		atomic_fetch_or(&b->answered, ENDED);
		syscall(SYS_futex, &b->answered, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
	errno = error;
}

/* Has it ended? Then what it has left running ends, too. */
static bool has_ended(struct image_seat *s, int *status)
{
	siginfo_t info = {0};
	if (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return false;
	kill(-s->pid, SIGKILL);
	waitpid(s->pid, status, 0);
	s->pid = 0;
	return true;
}

/* Wait for an answer, or for the end of the process, for some seconds for each image, or until
 * *stop is set. */
static enum seat_outcome wait_some(struct image_seat *s, double patience,
				   const volatile sig_atomic_t *stop, int *status)
{
	struct board *b = s->board;
	uint32_t asked = atomic_load(&b->asked), before = asked - 1;
	uint32_t first = atomic_load(&b->judged);
	double began = clock_seconds();
	for (;;) {
		uint32_t judged = atomic_load(&b->judged), now = atomic_load(&b->answered);
		if ((now & ~ENDED) == (asked & ~ENDED)) {
			atomic_store(&b->answered, asked);
			return SEAT_ANSWERED;
		}
		if (now & ENDED)
			atomic_fetch_and(&b->answered, ~ENDED);
		if (has_ended(s, status))
			return SEAT_ENDED;
		if (stop && *stop)
			return SEAT_LEFT_OFF;
		/* If it has gone on meanwhile, that was a moment ago. */
		double since = judged == first ? began : (double)atomic_load(&b->began_ns) * 1e-9;
		double left = since + patience - clock_seconds();
		if (left <= 0) {
			s->late = judged;
			return SEAT_LATE;
		}
		left = left < SLICE ? left : SLICE;
		struct timespec slice = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
		board_wait(&b->answered, before & ~ENDED, &slice);
	}
}

/* End what takes too long. A server stays, but for that it has to answer: it counts the child that
 * is killed as an image that was judged. */
static void end_late(struct image_seat *s)
{
	struct board *b = s->board;
	int status;
	atomic_store(&b->stop, 1);
	pid_t child = atomic_load(&b->serving) ? atomic_load(&b->child) : 0;
	if (child <= 0 || kill(-child, SIGKILL) ||
	    wait_some(s, KILL_GRACE, NULL, &status) != SEAT_ANSWERED)
		seat_end(s);
}

enum seat_outcome seat_wait(struct image_seat *s, const struct image_checker *c, unsigned *judged,
			    int *status)
{
	struct board *b = s->board;
	atomic_store(&waiting, b);
	enum seat_outcome outcome = wait_some(s, c->patience, c->stop, status);
	uint32_t late = s->late;
	if (outcome == SEAT_LATE)
		end_late(s);
	if (outcome == SEAT_LEFT_OFF)
		seat_end(s);
	*judged = atomic_load(&b->judged);
	if (outcome == SEAT_ENDED && *judged == b->images)
		outcome = SEAT_ANSWERED;
	if (outcome == SEAT_LATE && *judged > late + atomic_load(&b->serving)) {
		/* It had gone on just then. Of a server it may be the next child that was killed:
		 * that image is asked about again. */
		*judged -= atomic_load(&b->serving);
		outcome = SEAT_ANSWERED;
	} else if (outcome == SEAT_LATE) {
		*judged = late;
	}
	atomic_store(&waiting, NULL);
	return outcome;
}

/* --- the process --- */

/* A variable in a list that has room for it, in place of one of the same name. */
static void put_variable(char **list, char *variable)
{
	size_t name = (size_t)(strchr(variable, '=') - variable) + 1;
	while (*list && strncmp(*list, variable, name) != 0)
		list++;
	*list = variable;
}

#define VARIABLES   (IMAGE_VARIABLES + 7)
#define FABRIC_PATH 60 /* bytes: names of sockets have few */
#define PORTS	    16 /* that a process which judges may use, the first of which is free */

/* Others that judge at the same time have others. 0: none was found. */
static unsigned own_port(void)
{
	static pid_t owner;
	static unsigned port;
	if (owner == getpid())
		return port;
	owner = getpid();
	port = 0;
	for (unsigned i = 0; i < 100 && !port; i++) {
		unsigned some = 20000 + ((unsigned)owner + i * 97) % 750 * PORTS;
		struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)some)};
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !bind(fd, (const struct sockaddr *)&at, sizeof(at)))
			port = some;
		if (fd >= 0)
			close(fd);
	}
	return port;
}

/* Where a server and its clients find each other, and nobody else. */
static bool own_places(const struct image_seat *s, char **variable)
{
	bool done = asprintf(&variable[0], "TIDEMARK_PORT=%u", own_port()) > 0;
	done &= asprintf(&variable[1], "TIDEMARK_DIR=%s", s->own) > 0;
	mkdir(s->own, 0700); /* it may be there */
	if (!getenv("TIDEMARK_FABRIC") && strlen(s->own) < FABRIC_PATH)
		done &= asprintf(&variable[2], "TIDEMARK_FABRIC=%s/fabric", s->own) > 0;
	return done;
}

/* What is in front of libc, and where the board is; what is known of the image. NULL without
 * memory. The list and `own` are to be freed. */
static char **make_environment(const struct image_seat *s, const struct image_checker *c,
			       char *own[VARIABLES])
{
	size_t n = 0;
	const char *before = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
	char **more = own + IMAGE_VARIABLES;
	bool done = image_variables(s->board, &s->moment, own);
	done &= asprintf(&more[0], "%s=%s", BOARD_ENV, s->path) > 0;
	if (c->preload) {
		done &= asprintf(&more[1], "LD_PRELOAD=%s%s%s", c->preload, before ? ":" : "",
				 before ? before : "") > 0;
		/* gcc's address sanitizer wants to be the first library, without need. */
		done &= asprintf(&more[2], "ASAN_OPTIONS=%s%sverify_asan_link_order=0",
				 asan ? asan : "", asan ? ":" : "") > 0;
	}
	done &= own_places(s, more + 4);
	if (place_of(s))
		done &= asprintf(&more[3], "PMEM_MMAP_HINT=%llx", (unsigned long long)place_of(s)) >
			0;
	while (environ[n])
		n++;
	char **list = done ? calloc(n + VARIABLES + 1, sizeof(*list)) : NULL;
	if (!list)
		return NULL;
	memcpy(list, environ, n * sizeof(*list));
	for (unsigned i = 0; i < VARIABLES; i++)
		if (own[i] && strchr(own[i], '='))
			put_variable(list, own[i]);
	return list;
}

/* In the child, which may still share the parent's memory: only system calls. */
static void settle(struct image_seat *s, pid_t judge, const struct image_checker *c, bool serves)
{
	struct sigaction none = {.sa_handler = SIG_DFL};
	sigaction(SIGCHLD, &none, NULL);
	setpgid(0, 0);
	driver_hold(SIG_UNBLOCK);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != judge)
		_exit(127);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		if (!c->show) {
			dup2(null, STDOUT_FILENO);
			dup2(null, STDERR_FILENO);
		}
	}
	if (s->output >= 0)
		dup2(s->output, STDOUT_FILENO);
	if (s->output >= 0 && c->listen)
		dup2(s->output, STDERR_FILENO);
	/* The pipes of other processes are not its business. */
	close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	if (serves)
		atomic_store(&s->board->server, getpid());
}

/* The parent's memory may be large, and is not copied. */
static pid_t spawn(struct image_seat *s, const struct image_checker *c, bool serves,
		   char *const *words, char *const *environment)
{
	pid_t judge = getpid(), child = vfork();
	if (child)
		return child;
	settle(s, judge, c, serves);
	execvpe(words[0], words, environment);
	_exit(127);
}

/* The judge's own child, for a library where there is no program to call it. */
static pid_t become_caller(struct image_seat *s, const struct image_checker *c, char **environment)
{
	pid_t judge = getpid(), child = fork();
	if (child)
		return child;
	settle(s, judge, c, false);
	environ = environment;
	image_calls_serve(s->board, c->library, c->function);
}

static void clear_board(struct board *b)
{
	atomic_store(&b->loaded, 0);
	atomic_store(&b->serving, 0);
	atomic_store(&b->refused, IMAGE_WAY_SERVED);
	atomic_store(&b->printed, 0);
	atomic_store(&b->child, 0);
	atomic_store(&b->server, 0);
	atomic_store(&b->answered, atomic_load(&b->asked));
}

static void ask(struct image_seat *s)
{
	if (s->output >= 0 && ftruncate(s->output, (off_t)atomic_load(&s->board->printed)))
		abort(); /* of a file in memory: it gives memory back */
	atomic_store(&s->board->child, 0);
	atomic_store(&s->board->stop, 0);
	atomic_store(&s->board->judged, 0);
	board_set(&s->board->asked, (atomic_load(&s->board->asked) + 1) & ~ENDED);
}

static int start(struct image_seat *s, const struct image_checker *c, bool serves,
		 char *const *words)
{
	struct sigaction action = {.sa_handler = child_ended, .sa_flags = SA_RESTART};
	char *own[VARIABLES] = {NULL};
	assert(!s->pid);
	s->moment = s->board->image[0].moment;
	s->calls = 0;
	char **environment = make_environment(s, c, own);
	int error = environment ? 0 : -ENOMEM;
	if (!error) {
		sigaction(SIGCHLD, &action, NULL);
		clear_board(s->board);
		ask(s);
		driver_hold(SIG_BLOCK); /* seats_end() has to know of it */
		s->pid = words ? spawn(s, c, serves, words, environment)
			       : become_caller(s, c, environment);
		error = s->pid < 0 ? -errno : 0;
	}
	if (error)
		s->pid = 0;
	else
		setpgid(s->pid, s->pid);
	driver_hold(SIG_UNBLOCK);
	for (unsigned i = 0; i < VARIABLES; i++)
		free(own[i]);
	free(environment);
	return error;
}

int seat_ask(struct image_seat *s, const struct image_checker *c, bool serves, char *const *words)
{
	if (!s->pid)
		return start(s, c, serves, words);
	ask(s);
	return 0;
}

void seat_end(struct image_seat *s)
{
	const struct board *b = s->board;
	if (s->pid > 0) {
		kill(-s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
		/* A server's child has a group of its own. It dies when its parent does, and not
		 * what it has started. When nobody waits it has ended with all of that. */
		pid_t child = atomic_load(&waiting) == b && atomic_load(&b->serving)
				      ? atomic_load(&b->child)
				      : 0;
		if (child > 0)
			kill(-child, SIGKILL);
	}
	s->pid = 0;
}

void seats_end(void)
{
	for (struct image_seat *s = open_seats; s; s = s->next)
		seat_end(s);
}
