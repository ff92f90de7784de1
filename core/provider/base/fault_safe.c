/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See fault_safe.h. Access without a system call to memory that may be gone.
 *
 * Each access is made between guard_begin() and guard_end(), which note its range for the thread.
 * SIGSEGV and SIGBUS are handled here. When a thread faults inside its noted range, it continues
 * after the handler in escape(), which jumps back to the beginning of the guard, and the access
 * reports failure. So the handler does nothing that a handler may not do, and it does not matter on
 * which stack it ran.
 *
 * All other faults, and signals that are sent, belong to the program: they are passed to the action
 * that it has set, in the way in which the kernel would call it. The program sets actions by
 * sigaction() and signal(), which this library also provides. For these two signals they change
 * only where faults are passed to, not the handlers. A thread that blocked the signals would die of
 * a fault at once, so each thread unblocks them before its first access, and pthread_sigmask() and
 * sigprocmask() leave them unblocked. A program may bypass all this, since a library that was
 * opened with dlopen() cannot replace sigaction(). Then the handlers are installed again at the
 * next registration.
 *
 * Bytes become visible in the order of a card: the last aligned word after all others, so that a
 * program that polls the end of a WRITE's packet finds the rest there. An aligned word is never
 * torn.
 */
#include "core/provider/base/fault_safe.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "core/hardware/hardware.h"
#include "core/provider/base/long_copy.h"
#include "core/provider/base/export.h"
#include "core/verbs_compat.h"

#define WORD 8 /* bytes */

/* --- the guard --- */

struct guard {
	jmp_buf back;
	uintptr_t first, end; /* the range of the program's memory */
};

/* So few bytes fit into every thread's static block, even if the library is loaded late, and
 * need no function call. */
#define TLS static _Thread_local __attribute__((tls_model("initial-exec")))
TLS struct guard *guard; /* NULL: no access is under way */
TLS bool hears;		 /* the signals are unblocked in this thread */

static void hear(void);

static _Noreturn void escape(void)
{
	_longjmp(guard->back, 1);
}

/* Becomes true a second time when the access has faulted. */
#define guard_begin(g, at, len)                                                              \
	({                                                                                   \
		if (!hears)                                                                  \
			hear();                                                              \
		assert(!guard); /* accesses are not nested */                                \
		(g)->first = (uintptr_t)(at);                                                \
		(g)->end = (g)->first + (len);                                               \
		int faulted_ = _setjmp((g)->back);                                           \
		guard = faulted_ ? NULL : (g);                                               \
		__asm__ volatile("" ::: "memory"); /* the access is not moved before this */ \
		faulted_ != 0;                                                               \
	})

static void guard_end(void)
{
	__asm__ volatile("" ::: "memory");
	assert(guard);
	guard = NULL;
}

/* Make the thread continue in escape(), below the frame that faulted. */
static void redirect(ucontext_t *context)
{
#if defined(__x86_64__)
	uintptr_t sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
	/* Below the red zone, as after a call. */
	context->uc_mcontext.gregs[REG_RSP] = (greg_t)(((sp - 256) & ~(uintptr_t)15) - 8);
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)escape;
	context->uc_mcontext.gregs[REG_EFL] &= ~0x400; /* direction: up */
#elif defined(__aarch64__)
	context->uc_mcontext.sp = (context->uc_mcontext.sp - 256) & ~15ull;
	context->uc_mcontext.pc = (uintptr_t)escape;
#else
#error "Where does a ucontext_t of this architecture have its program counter?"
#endif
}

/* --- the program's own handlers --- */

#define SIGNALS 2

static const int signals[SIGNALS] = {SIGSEGV, SIGBUS};
static struct sigaction theirs[SIGNALS]; /* under `lock` */
static bool installed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static int (*real_sigmask)(int, const sigset_t *, sigset_t *);
static int (*real_sigprocmask)(int, const sigset_t *, sigset_t *);

/* A library that other libraries need may come after libc in the search order of symbols. */
static void *next_symbol(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found)
		return found;
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	return libc ? dlsym(libc, name) : NULL;
}

static void find_real(void)
{
	*(void **)&real_sigaction = next_symbol("sigaction");
	*(void **)&real_sigmask = next_symbol("pthread_sigmask");
	*(void **)&real_sigprocmask = next_symbol("sigprocmask");
	if (!real_sigaction || !real_sigmask || !real_sigprocmask)
		abort(); /* no libc */
}

static void need_real(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_real);
}

static int index_of(int sig)
{
	for (int i = 0; i < SIGNALS; i++)
		if (signals[i] == sig)
			return i;
	return -1;
}

/* The default action, or a fault that cannot be ignored: the signal is raised again, and ends
 * the program. */
static void die(int sig, const siginfo_t *info)
{
	struct sigaction action = {.sa_handler = SIG_DFL};

	real_sigaction(sig, &action, NULL);
	if (info->si_code <= 0) /* sent, and not a fault that happens again */
		raise(sig);
}

/* Call the program's action as the kernel would. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	struct sigaction *slot = &theirs[index_of(sig)], action = *slot;
	bool sent = info->si_code <= 0;
	sigset_t old;

	if (!(action.sa_flags & SA_SIGINFO) &&
	    (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
		if (action.sa_handler == SIG_DFL || !sent)
			die(sig, info);
		return;
	}
	if (action.sa_flags & (int)SA_RESETHAND)
		*slot = (struct sigaction){.sa_handler = SIG_DFL};
	if (!(action.sa_flags & SA_NODEFER))
		sigaddset(&action.sa_mask, sig);
	else
		sigdelset(&action.sa_mask, sig);
	real_sigmask(SIG_BLOCK, &action.sa_mask, &old);
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(sig, info, context);
	else
		action.sa_handler(sig);
	real_sigmask(SIG_SETMASK, &old, NULL);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	int error = errno;
	uintptr_t at = (uintptr_t)info->si_addr;

	/* For a non-canonical address there is no si_addr (SI_KERNEL). */
	if (guard && info->si_code > 0 &&
	    (info->si_code == SI_KERNEL || (at >= guard->first && at < guard->end)))
		redirect(context);
	else
		pass_on(sig, info, context);
	errno = error;
}

/* The thread may have inherited a mask that blocks them. */
static void hear(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, signals[i]);
	real_sigmask(SIG_UNBLOCK, &set, NULL);
	hears = true;
}

void fault_safe_guard(void)
{
	struct sigaction now,
		ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

	need_real();
	pthread_mutex_lock(&lock);
	for (int i = 0; i < SIGNALS; i++) {
		if (real_sigaction(signals[i], NULL, &now) ||
		    (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault))
			continue;
		theirs[i] = now;
		real_sigaction(signals[i], &ours, NULL);
	}
	installed = true;
	pthread_mutex_unlock(&lock);
}

EXPORT int sigaction(int sig, const struct sigaction *restrict action,
		     struct sigaction *restrict old)
{
	int i = index_of(sig);

	need_real();
	if (i < 0 || !installed)
		return real_sigaction(sig, action, old);
	pthread_mutex_lock(&lock);
	struct sigaction before = theirs[i];
	if (action)
		theirs[i] = *action;
	if (old)
		*old = before;
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	return sigaction(sig, &action, &old) ? SIG_ERR : old.sa_handler;
}

/* The set without our signals, if it is to be blocked. */
static const sigset_t *open_set(int how, const sigset_t *set, sigset_t *room)
{
	if (!set || how == SIG_UNBLOCK || !installed)
		return set;
	*room = *set;
	for (int i = 0; i < SIGNALS; i++)
		sigdelset(room, signals[i]);
	return room;
}

EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t room;

	need_real();
	return real_sigmask(how, open_set(how, set, &room), old);
}

EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t room;

	need_real();
	return real_sigprocmask(how, open_set(how, set, &room), old);
}

/* --- accesses --- */

static void store_word(void *to, const void *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	__atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
}

/*
 * Copy the last aligned word, or a shorter rest, after everything before it. It is a separate
 * function so that what changes after setjmp() is in no register of the caller.
 */
__attribute__((noinline)) static void copy_in_order(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t tail = ((uintptr_t)to + len) % WORD;

	if (!tail)
		tail = WORD;
	if (tail > len)
		tail = len;
	if (len >= LONG_COPY)
		long_copy_in(to, from, len - tail);
	else if (len > tail)
		memcpy(to, from, len - tail);
	to += len - tail;
	from += len - tail;
	if (tail == WORD) {
		store_word(to, from);
		return;
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(to, from, tail);
}

static bool copy_to(void *to, const void *from, size_t len)
{
	struct guard here;

	if (guard_begin(&here, to, len))
		return false;
	copy_in_order(to, from, len);
	guard_end();
	return true;
}

static bool copy_from(void *to, const void *from, size_t len)
{
	struct guard here;

	if (!len)
		return true; /* the source may be unmapped, too */
	if (guard_begin(&here, from, len))
		return false;
	if (len == WORD && !((uintptr_t)from % WORD)) {
		uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);

		memcpy(to, &word, sizeof(word));
	} else if (len < LONG_COPY) {
		memcpy(to, from, len);
	} else {
		long_copy_out(to, from, len);
	}
	guard_end();
	return true;
}

static bool compare_swap(uint64_t *at, uint64_t compare, uint64_t swap, uint64_t *original,
			 const struct packet_name *name)
{
	struct guard here;

	if (guard_begin(&here, at, sizeof(*at)))
		return false;
	__atomic_compare_exchange_n(at, &compare, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	guard_end();
	*original = compare;
	return true;
}

/* --- what is mapped --- */

enum { MAP_READABLE = 1, MAP_WRITABLE = 2, MAP_DURABLE = 4 };

/* One line of /proc/self/maps: begin-end rwxp offset device inode path. */
static unsigned rights_of(const char *line, const char *perms)
{
	const char *p = perms + 4;
	unsigned rights = (perms[0] == 'r' ? MAP_READABLE : 0) |
			  (perms[1] == 'w' ? MAP_WRITABLE : 0);
	unsigned long inode;
	size_t len = strlen(line);

	for (unsigned field = 0; field < 2; field++) /* offset, device */
		for (p++; *p && *p != ' '; p++)
			;
	inode = strtoul(p, NULL, 10);
	/* A file without a name cannot be opened again, so it is not durable. */
	if (perms[3] == 's' && inode && (len < 10 || strcmp(line + len - 10, " (deleted)") != 0))
		rights |= MAP_DURABLE;
	return rights;
}

struct mapped {
	uintptr_t at, end; /* at: everything before it is mapped */
	unsigned rights;   /* rights that the whole area has */
};

static void look_at(struct mapped *area, const char *line)
{
	char *p;
	uintptr_t first = strtoull(line, &p, 16), end = *p == '-' ? strtoull(p + 1, &p, 16) : 0;

	if (*p != ' ' || strlen(p) < 5 || end <= area->at || first > area->at ||
	    area->at >= area->end)
		return;
	area->at = end;
	area->rights &= rights_of(line, p + 1);
}

/* The lines are in the order of their addresses. -errno: they cannot be read. */
static int look(struct mapped *area)
{
	char buf[8192];
	size_t have = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (area->at < area->end && (n = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		char *line = buf, *newline;

		have += (size_t)n;
		buf[have] = '\0';
		for (; (newline = strchr(line, '\n')); line = newline + 1) {
			*newline = '\0';
			look_at(area, line);
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
	}
	close(fd);
	return 0;
}

/*
 * Errors as of the kernel: EFAULT where memory is not mapped, or not with the right that pinning
 * asks for, which is to write if the region can be written and to read otherwise. Shared mappings
 * of files can be registered as persistent; other memory is EINVAL.
 */
static int check(void *memory, const void *addr, uint64_t len, unsigned access,
		 struct pm_place *place)
{
	const unsigned writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	struct mapped area = {(uintptr_t)addr, (uintptr_t)addr + len,
			      MAP_READABLE | MAP_WRITABLE | MAP_DURABLE};

	(void)place; /* there is no model of PM: persistent memory is memory */
	fault_safe_guard();
	if (look(&area))
		return 0; /* no /proc: missing memory shows when it is accessed */
	if (area.at < area.end || !(area.rights & (access & writes ? MAP_WRITABLE : MAP_READABLE)))
		return EFAULT;
	return access & IBV_ACCESS_FLUSH_PERSISTENT && !(area.rights & MAP_DURABLE) ? EINVAL : 0;
}

/* Write the caches' lines back. */
__attribute__((noinline)) static void flush_lines(const uint8_t *line, const uint8_t *end)
{
#if defined(__x86_64__)
	for (; line < end; line += LINE)
		__asm__ volatile("clflush (%0)" ::"r"(line) : "memory");
	__asm__ volatile("sfence" ::: "memory");
#else
	for (; line < end; line += LINE)
		__asm__ volatile("dc cvac, %0" ::"r"(line) : "memory");
	__asm__ volatile("dsb sy" ::: "memory");
#endif
}

static bool flush_caches(const uint8_t *at, uint64_t len)
{
	struct guard here;
	const uint8_t *line = (const uint8_t *)((uintptr_t)at & ~(uintptr_t)(LINE - 1));

	if (guard_begin(&here, line, (uintptr_t)at + len - (uintptr_t)line))
		return false;
	flush_lines(line, at + len);
	guard_end();
	return true;
}

/*
 * msync() makes the pages of any file durable, a file's on a DAX device by flushing the caches. A
 * DAX device itself knows no msync() (EINVAL): its memory is durable when the caches are flushed.
 * The call is raw, as msync() may be the recorder's, which takes it for one of the program's.
 */
static bool persist(const void *at, uint64_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)at & ~(page - 1);

	if (!len || !syscall(SYS_msync, first, (uintptr_t)at + len - first, MS_SYNC))
		return true;
	return errno == EINVAL && flush_caches(at, len);
}

/* --- keys --- */

static uint32_t random_bits(void)
{
	uint32_t bits;

	while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		if (errno != EINTR)
			abort(); /* never use keys that can be guessed */
	return bits;
}

/* --- core/rnic/memory.h --- */

static bool read_mapped(void *memory, const struct rnic_mr *mr, void *to, const uint8_t *from,
			uint32_t len)
{
	return copy_from(to, from, len);
}

static bool write_mapped(void *memory, const struct rnic_mr *mr, uint8_t *to, const void *from,
			 uint32_t len, const struct packet_name *name)
{
	return copy_to(to, from, len);
}

/* There are no buffers between this RNIC and memory: a READ pushes nothing. */
static bool flush_mapped(void *memory, const struct rnic_mr *mr, const uint8_t *at, uint64_t len,
			 const struct packet_name *name)
{
	return !mr || persist(at, len);
}

static bool commit_mapped(void *memory, const struct rnic_mr *mr, const uint8_t *at, uint64_t len,
			  const struct packet_name *name)
{
	return flush_mapped(memory, mr, at, len, name);
}

/* The program's CPUs may see it a moment before it is durable. */
static bool commit_word_mapped(void *memory, const struct rnic_mr *mr, uint8_t *at, uint64_t word,
			       const struct packet_name *name)
{
	return write_mapped(memory, mr, at, &word, sizeof(word), name) &&
	       commit_mapped(memory, mr, at, sizeof(word), name);
}

const struct rnic_memory fault_safe_memory = {
	.random = random_bits,
	.check = check,
	.read = read_mapped,
	.write = write_mapped,
	.compare_swap = compare_swap,
	.flush = flush_mapped,
	.commit = commit_mapped,
	.commit_word = commit_word_mapped,
};
