/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark record: a program on the soft RNIC (tidemark run), and what happens to its persistent
 * memory is written down (core/record).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checker/logs/printed.h"
#include "checker/logs/recording_read.h"
#include "cli/cli.h"
#include "cli/nic/record.h"
#include "cli/options.h"
#include "core/clock.h"
#include "core/provider/base/config.h"
#include "core/record/format.h"
#include "core/text/text.h"
#include "report/images/images_report.h"

#define LIBRARY "libtidemark-record.so"
#define EXACT	"record/libtsan.so.2"
#define HISTORY "history" /* what clients announce; beside what is known of PM */

struct request {
	struct option_names pm;
	const char *out, *stores, *join, *ack;
	unsigned long long room;
	bool quiet;
	struct record_head *head;
	char library[PATH_MAX], recording[PATH_MAX];
	char exact[PATH_MAX]; /* to be preloaded, too, for --stores exact */
};

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"pm", "PATH|mr",
	 "a file that is persistent memory, or a folder of such files; may be repeated; it need "
	 "not be there yet. mr: all memory that is registered for remote writing",
	 REQUEST(pm)},
	{"out", "FILE", "the recording", REQUEST(out)},
	{"join", "FILE",
	 "a recording that another tidemark record is making: this program's part goes there too, "
	 "until that one ends; instead of all of these",
	 REQUEST(join)},
	{"stores", "auto|exact|noticed",
	 "exact: each store is recorded where it is made, as the program, or a library of it, was "
	 "compiled by tidemark cc, or by gcc with -fsanitize=thread; noticed: by what has changed; "
	 "auto: exact where it was (=)",
	 REQUEST(stores)},
	{"ack", "PATTERN",
	 "a line that the program prints, to stdout or stderr, or writes to a socket, is an "
	 "acknowledgement if this extended regular expression is found in it; 'PATTERN => put "
	 "\\1 \\2': of this operation, of what the groups have found (docs/images.md)",
	 REQUEST(ack)},
	{"room", "BYTES", "how long it may become (=)", REQUEST(room), 1 << 20, 1ull << 40},
	OPTION_QUIET(struct request, quiet),
	OPTION_END};

static const struct options options = {
	.command = "record",
	.usage = "--pm PATH --out FILE [--] PROGRAM [ARGUMENT...]\n--join FILE [--] PROGRAM "
		 "[ARGUMENT...]",
	.about = "Runs a program as it is, on the soft RNIC, and records what happens to its "
		 "persistent memory: what RNICs land, what is flushed, what CPUs have stored. "
		 "tidemark images makes crash images of it.",
	.row = rows,
	.status = "the program's; 2 usage, or it cannot be run"};

/* --- the recording --- */

/* Nothing is left of a recording that no program was run for, nor of one that is made anew: what
 * an earlier program has left running may go on to write to its own. */
static void drop_recording(const char *path)
{
	struct stat st;
	if (!lstat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
}

static int make_recording(struct request *r)
{
	drop_recording(r->out);
	int fd = open(r->out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return fail(EXIT_USAGE, "%s: %s", r->out, strerror(errno));
	int error = ftruncate(fd, (off_t)r->room) ? errno : posix_fallocate(fd, 0, RECORD_HEAD);
	if (!error && !realpath(r->out, r->recording))
		error = errno;
	if (error) {
		close(fd);
		drop_recording(r->out);
		return fail(EXIT_USAGE, "%s: %s", r->out, strerror(error));
	}
	r->head = mmap(NULL, RECORD_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (r->head == MAP_FAILED)
		return fail(EXIT_INTERNAL, "%s: %s", r->out, strerror(errno));
	*r->head = (struct record_head){.magic = RECORD_MAGIC,
					.used = RECORD_HEAD,
					.allocated = RECORD_HEAD,
					.summed = RECORD_HEAD,
					.room = r->room};
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	error = pthread_mutex_init(&r->head->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return error ? fail(EXIT_INTERNAL, "record: %s", strerror(error)) : 0;
}

static int make_shadow(const struct request *r)
{
	struct record_head *h = r->head;
	char history[sizeof(h->shadow) + 16];
	const char *tmp = !access("/dev/shm", W_OK | X_OK) ? "/dev/shm" : "/tmp";
	snprintf(h->shadow, sizeof(h->shadow), "%s/tidemark-record-XXXXXX", tmp);
	if (!mkdtemp(h->shadow))
		return fail(EXIT_USAGE, "%s: %s", h->shadow, strerror(errno));
	snprintf(history, sizeof(history), "%s/%s", h->shadow, HISTORY);
	int fd = open(history, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(EXIT_USAGE, "%s: %s", history, strerror(errno));
	close(fd);
	return 0;
}

static void remove_shadow(const char *shadow)
{
	char path[sizeof(((struct record_head *)0)->shadow) + 16];
	for (unsigned i = 0; i < RECORD_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%u", shadow, i);
		unlink(path);
	}
	static const char *const names[] = {HISTORY, RECORD_PRINTED_OUT, RECORD_PRINTED_ERR};
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", shadow, names[i]);
		unlink(path);
	}
	rmdir(shadow);
}

/*
 * Most programs announce nothing, and then no process that is recorded needs to look for lines: the
 * kernel lets nobody open the file for writing before this process has given its lease back.
 */
static struct record_head *leased;
static int lease;

static void give_back(int sig)
{
	leased->announced = 1;
	fcntl(lease, F_SETLEASE, F_UNLCK);
}

/* Where there are no leases, all look each time. */
static void take_lease(struct record_head *head)
{
	char history[sizeof(head->shadow) + 16];
	snprintf(history, sizeof(history), "%s/%s", head->shadow, HISTORY);
	leased = head;
	lease = open(history, O_RDONLY | O_CLOEXEC);
	signal(SIGIO, give_back);
	if (lease < 0 || fcntl(lease, F_SETLEASE, F_RDLCK))
		head->announced = 1;
}

/* Not before the program was forked: what is blocked in it is its own affair. */
static void unblock_lease(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* The head goes. */
static void drop_lease(void)
{
	signal(SIGIO, SIG_IGN);
	if (lease >= 0)
		close(lease);
}

/* The head of a recording that another one is making. */
static int join_recording(struct request *r)
{
	struct stat st;
	int fd = open(r->join, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !realpath(r->join, r->recording)) {
		int status = fail(EXIT_USAGE, "%s: %s", r->join, strerror(errno));
		if (fd >= 0)
			close(fd);
		return status;
	}
	bool long_enough = S_ISREG(st.st_mode) && st.st_size >= RECORD_HEAD;
	r->head = long_enough ? mmap(NULL, RECORD_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
			      : MAP_FAILED;
	close(fd);
	if (r->head == MAP_FAILED ||
	    memcmp(r->head->magic, RECORD_NAME, sizeof(RECORD_NAME) - 1) != 0)
		return fail(EXIT_USAGE, "%s: expected a recording", r->join);
	if (memcmp(r->head->magic, RECORD_MAGIC, sizeof(RECORD_MAGIC)) != 0)
		return fail(EXIT_USAGE,
			    "%s: a recording of another format; expected one that this version of "
			    "tidemark is making",
			    r->join);
	if (r->head->ended || access(r->head->shadow, W_OK | X_OK))
		return fail(EXIT_USAGE,
			    "%s: this recording has ended; expected one that tidemark record is "
			    "making",
			    r->join);
	return 0;
}

/* --- the program --- */

/* The names of PM, whole, for RECORD_PM_VARIABLE. */
static int list_pm(const struct request *r)
{
	char *pm = r->head->pm, whole[PATH_MAX];
	for (unsigned i = 0; i < r->pm.n; i++) {
		const char *name = r->pm.name[i];
		size_t n = strlen(pm), room = sizeof(r->head->pm) - n;
		if (name[0] != '/' && strcmp(name, RECORD_PM_REGISTERED) != 0 &&
		    getcwd(whole, sizeof(whole)))
			n = (size_t)snprintf(pm + n, room, "%s%s/%s", n ? ":" : "", whole, name);
		else
			n = (size_t)snprintf(pm + n, room, "%s%s", n ? ":" : "", name);
		if (n >= room || strchr(name, ':'))
			return fail(EXIT_USAGE,
				    "record: --pm %.60s: expected a shorter path, and "
				    "none with a ':'",
				    name);
	}
	return 0;
}

static int set_environment(const struct request *r)
{
	const struct record_head *h = r->head;
	char history[sizeof(h->shadow) + 16];
	snprintf(history, sizeof(history), "%s/%s", h->shadow, HISTORY);
	int rc = setenv(RECORD_VARIABLE, r->recording, 1);
	rc |= setenv(RECORD_PM_VARIABLE, h->pm, 1);
	rc |= setenv(RECORD_SHADOW_VARIABLE, h->shadow, 1);
	rc |= setenv(RECORD_HISTORY_VARIABLE, history, 1);
	if (h->ack[0])
		rc |= setenv(RECORD_PRINTED_VARIABLE, "1", 1);
	/* libpmem flushes caches only where it takes memory for PM. */
	rc |= setenv("PMEM_IS_PMEM_FORCE", "1", 0);
	rc |= setenv("PMEM2_FORCE_GRANULARITY", "CACHE_LINE", 0);
	if (h->asked != RECORD_ASKED_NOTICED)
		rc |= environment_preload(r->exact);
	rc |= environment_preload(r->library);
	return rc ? fail(EXIT_INTERNAL, "record: the environment: %s", strerror(errno)) : 0;
}

/* tidemark run -- PROGRAM ARGUMENT... Returns an exit status only after an error. */
static int become_run(char **argv, int argc)
{
	char **words = calloc((size_t)argc + 3, sizeof(*words));
	if (!words)
		return EXIT_INTERNAL;
	words[0] = "run";
	words[1] = "--";
	memcpy(words + 2, argv, (size_t)argc * sizeof(*words));
	optind = 0; /* from the beginning */
	return run_main(argc + 2, words);
}

static pid_t child;

static void pass_on(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/* The program, and what it leaves running. */
static int wait_for_all(const struct request *r, bool interactive)
{
	const char *name = r->join ? r->join : r->out;
	int status = record_rest_program(child);
	record_rest_wait(r->quiet ? NULL : name, interactive);
	return status;
}

/* --- the end --- */

/* What the program has or does, and what is not recorded of it. */
static void print_not_seen(const struct request *r)
{
	const struct record_head *h = r->head;
	if (h->unseen_kind[RECORD_UNSEEN_NAME - RECORD_UNSEEN_FLUSH])
		fprintf(stderr,
			"tidemark: %s: names or lengths of files of PM changed, and what a power "
			"failure leaves of that is not judged\n",
			r->out);
	if (!h->unseen_kind[0])
		return;
	fprintf(stderr,
		"tidemark: %s: the program has instructions that flush or store past the caches, "
		"and when they run is not recorded: tidemark images cannot tell, and names what "
		"records that\n",
		r->out);
}

/* What was waited for. */
static void print_nothing(const struct request *r)
{
	fprintf(stderr,
		"tidemark: %s: nothing is in it: the program mapped no file that --pm names, "
		"shared and to write:",
		r->out);
	for (unsigned i = 0; i < r->pm.n; i++) {
		const char *name = r->pm.name[i];
		struct stat st;
		const char *is = !strcmp(name, RECORD_PM_REGISTERED)
					 ? "no memory was registered for remote writing"
				 : stat(name, &st)     ? strerror(errno)
				 : S_ISDIR(st.st_mode) ? "no file below this folder"
						       : "it is there";
		fprintf(stderr, "%s %s (%s)", i ? "," : "", name, is);
	}
	fputc('\n', stderr);
}

static void print_summary(const struct request *r, double seconds)
{
	const struct record_head *h = r->head;
	static const char *const how[] = {"no PM was mapped",
					  "CPU stores: found by the pages that were written",
					  "CPU stores: found by comparing all of PM"};
	fprintf(stderr, "tidemark: %s: %u file%s of PM, %" PRIu64 " bytes of records; %s", r->out,
		h->files, plural(h->files), (uint64_t)h->used - RECORD_HEAD,
		h->told ? "CPU stores: each one, from Valgrind" : how[h->stores]);
	if (h->scans && !h->told)
		fprintf(stderr, ", %" PRIu64 " time%s", h->scans, plural(h->scans));
	if (h->kernel_scans && !h->told)
		fprintf(stderr, ", the kernel asked %" PRIu64 " time%s", h->kernel_scans,
			plural(h->kernel_scans));
	if (h->exact && !h->told)
		fprintf(stderr, "; %" PRIu64 " that the program told of", h->exact);
	/* Several threads and processes may have been at it at once. */
	fprintf(stderr, "; some %.2f s of recording in %.2f s\n", (double)h->busy_ns * 1e-9,
		seconds);
	if (h->status > EXIT_SIGNAL)
		fprintf(stderr, "tidemark: %s: the program was ended by signal %d (%s)\n", r->out,
			h->status - EXIT_SIGNAL, strsignal(h->status - EXIT_SIGNAL));
	if (h->full)
		fprintf(stderr,
			"tidemark: %s: it is full, or the disk is: what came later is not in "
			"it (--room)\n",
			r->out);
	if (h->asked == RECORD_ASKED_EXACT && !h->exact)
		fprintf(stderr,
			"tidemark: %s: the program told of no store: expected one that tidemark "
			"cc has compiled, or gcc with -fsanitize=thread\n",
			r->out);
	/* Who asked for each store is told above that there is none, and who asked for none knows.
	 */
	if (h->unordered && h->asked == RECORD_ASKED_AUTO) {
		fprintf(stderr, "tidemark: %s: ", r->out);
		images_print_unordered(stderr, h->exact);
		fputc('\n', stderr);
	}
	print_not_seen(r);
	if (!h->files)
		print_nothing(r);
}

/* The checksum of what has none yet. */
static void sum_rest(struct record_head *h, const char *path)
{
	size_t n = h->used - h->summed;
	char *rest = malloc(n + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (rest && fd >= 0 && pread(fd, rest, n, (off_t)h->summed) == (ssize_t)n)
		h->sum = recording_sum(rest, n);
	else
		h->summed = 0;
	if (fd >= 0)
		close(fd);
	free(rest);
}

static void finish(struct request *r, int status, double seconds)
{
	struct record_head *h = r->head;
	/* Processes that live on record nothing more. */
	uint32_t full = h->full;
	if (pthread_mutex_lock(&h->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&h->lock);
	h->full = 1;
	h->ended = 1;
	h->status = status;
	pthread_mutex_unlock(&h->lock);
	if (truncate(r->out, (off_t)h->used))
		fprintf(stderr, "tidemark: %s: %s\n", r->out, strerror(errno));
	sum_rest(h, r->out);
	h->full = full;
	if (!r->quiet)
		print_summary(r, seconds);
	/* What came after it was full is not in the shadow either. */
	if (!full)
		record_unseen(h, r->out, r->quiet);
	drop_lease();
	remove_shadow(h->shadow);
	munmap(h, RECORD_HEAD);
}

/* There will be no program. */
static int abandon(const struct request *r, int status)
{
	if (r->join || !r->recording[0])
		return status;
	if (r->head != MAP_FAILED && r->head->shadow[0])
		remove_shadow(r->head->shadow);
	drop_recording(r->recording);
	return status;
}

/* enum record_asked, or -1. */
static int stores_asked(const struct request *r)
{
	static const char *const words[] = {[RECORD_ASKED_AUTO] = "auto",
					    [RECORD_ASKED_EXACT] = "exact",
					    [RECORD_ASKED_NOTICED] = "noticed"};
	int i = RECORD_ASKED - 1;
	while (i >= 0 && strcmp(words[i], r->stores) != 0)
		i--;
	return i;
}

/* With the link udp there may be other machines, and PM may be theirs. */
static bool is_one_of_several(void)
{
	struct nic_config config;
	char why[300];
	return !nic_config_read(&config, why, sizeof(why)) && config.link == LINK_UDP;
}

static int check_request(struct request *r)
{
	if (r->join && (r->pm.n || r->out || stores_asked(r) != RECORD_ASKED_AUTO))
		return fail(EXIT_USAGE, "record: --join: --pm, --out and --stores are those of the "
					"recording");
	if (!r->join && (!r->out || (!r->pm.n && !is_one_of_several())))
		return fail(EXIT_USAGE, "record: expected --pm PATH and --out FILE");
	if (r->out && check_output("--out", r->out, OUTPUT_RECORDING))
		return EXIT_USAGE;
	struct printed printed;
	char why[200];
	if (r->ack && (r->join || printed_open(&printed, r->ack, why, sizeof(why))))
		return fail(EXIT_USAGE, "record: --ack %.60s: %s", r->ack,
			    r->join ? "that is the recording's" : why);
	if (r->ack)
		printed_close(&printed);
	if (stores_asked(r) < 0)
		return fail(EXIT_USAGE, "record: --stores %.40s: expected auto, exact or noticed",
			    r->stores);
	if (!find_beside(EXACT, r->exact, sizeof(r->exact)))
		return fail(EXIT_INTERNAL, "record: no %s beside this program", EXACT);
	if (!find_beside(LIBRARY, r->library, sizeof(r->library)))
		return fail(EXIT_INTERNAL, "record: no %s beside this program", LIBRARY);
	return 0;
}

/* The recording and its settings. */
static int prepare(struct request *r)
{
	if (r->join)
		return join_recording(r);
	int status = make_recording(r);
	if (status)
		return status;
	r->head->asked = (uint32_t)stores_asked(r);
	if (r->ack)
		snprintf(r->head->ack, sizeof(r->head->ack), "%s", r->ack);
	status = list_pm(r);
	return status ? status : make_shadow(r);
}

int record_main(int argc, char **argv)
{
	struct request r = {.room = 1u << 30, .stores = "auto"};
	char program_path[PATH_MAX];
	int status = options_read_leading(&options, &r, argc, argv);
	if (status >= 0)
		return status;
	if (optind == argc)
		return fail(EXIT_USAGE, "record: no program given (tidemark record --help)");
	status = check_request(&r);
	if (!status)
		status = find_runnable("record", argv[optind], program_path, sizeof(program_path));
	if (!status)
		status = prepare(&r);
	if (!status)
		status = set_environment(&r);
	if (status)
		return abandon(&r, status);
	if (!r.join)
		take_lease(r.head);
	/* The terminal sends it to the program, too. */
	bool interactive = signal(SIGINT, SIG_IGN) != SIG_IGN;
	record_rest_begin();
	double began = clock_seconds();
	child = fork();
	if (!child) {
		signal(SIGINT, SIG_DFL);
		if (!r.join && record_prints_to(r.head))
			_exit(fail(EXIT_INTERNAL, "record: %s", strerror(errno)));
		_exit(become_run(argv + optind, argc - optind));
	}
	if (!r.join)
		record_show_begin(r.head);
	unblock_lease();
	signal(SIGTERM, pass_on);
	signal(SIGHUP, pass_on);
	status = child < 0 ? fail(EXIT_INTERNAL, "record: %s", strerror(errno))
			   : wait_for_all(&r, interactive);
	record_show_end();
	if (!r.join)
		finish(&r, status, clock_seconds() - began);
	return status;
}
