/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions of the program's own text that flush, fence, store past the caches or are locked are
 * seen while they run: the first byte of each becomes INT3, whose signal comes here. A flush is
 * recorded and left out, since what it does is not seen by a program; a fence is recorded and made
 * here. The others run elsewhere, in a place near the text: an operand that is relative to RIP has
 * its displacement there. A store past the caches is noticed when it has been made, so another INT3
 * follows it.
 *
 * A locked instruction waits for flushes as a fence does, and is recorded as one if its thread has
 * something to wait for. One that has not, many times, while no thread has, is let go until one
 * has.
 *
 * All of this is set up under the dynamic linker's lock; what is found by signals never goes away.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "core/instruction.h"
#include "core/record/libpmem_calls.h"
#include "core/record/recorder.h"

#if defined(__x86_64__)

#define INT3  0xcc
#define TRAPS 8192 /* a power of two */
#define SLOT  64
#define ROOM  (64u << 10)
#define NEAR  (1ll << 30) /* bytes: a displacement reaches further */
#define STEP  (16u << 20)
#define BUSY  64 /* times that a locked instruction had nothing to wait for */
#define FREED 64 /* of them at a time */
#define LINE  64u

enum kind { FLUSH, FLUSH_FENCES, FENCE, STREAM, STREAMED, LOCKED };

struct trap {
	_Atomic uintptr_t at; /* 0: none */
	enum kind kind;
	uint8_t bytes, first;
	bool set;
	unsigned idle;
	uint8_t *slot; /* STREAM: it and INT3, and at SLOT / 4 it and a jump back, as LOCKED */
	struct operand operand;
	size_t len;	       /* bytes that it stores */
	const struct trap *of; /* STREAMED: what comes before it */
};
static struct trap trap[TRAPS];
static unsigned traps;

static struct trap *slot_of(uintptr_t at)
{
	unsigned i = (unsigned)(at * 0x9e3779b97f4a7c15u >> 40) % TRAPS;
	while (trap[i].at && trap[i].at != at)
		i = (i + 1) % TRAPS;
	return &trap[i];
}

/* --- text --- */

/* -1: there is none. Not of a process that forks. */
static int open_text(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC);
}

static bool write_text(int fd, uintptr_t at, const void *bytes, size_t n)
{
	return syscall(SYS_pwrite64, fd, bytes, n, at) == (long)n;
}

/* Can this text be changed? */
static bool is_changeable(const uint8_t *at)
{
	int fd = open_text();
	bool changeable = write_text(fd, (uintptr_t)at, at, 1);
	syscall(SYS_close, fd);
	return changeable;
}

/* --- where instructions run --- */

static struct {
	uint8_t *at; /* NULL: none */
	size_t used;
} room;

static bool is_near(const uint8_t *text, const uint8_t *at)
{
	return at - text < NEAR && text - at < NEAR;
}

static uint8_t *map_at(uintptr_t at)
{
	long to = syscall(SYS_mmap, at, ROOM, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0L);
	if (to != -1 && (uintptr_t)to != at)
		syscall(SYS_munmap, to, ROOM); /* a kernel that does not know the flag */
	return (uintptr_t)to == at ? (uint8_t *)at : NULL;
}

static void close_room(void)
{
	if (room.at)
		syscall(SYS_mprotect, room.at, ROOM, PROT_READ | PROT_EXEC);
	room.at = NULL;
}

static uint8_t *new_slot(const uint8_t *text)
{
	const uintptr_t page = (uintptr_t)text & ~(uintptr_t)0xfff;
	if (room.at && (!is_near(text, room.at) || room.used == ROOM))
		close_room();
	for (uintptr_t away = NEAR / 2; away && !room.at; away -= STEP) {
		room.at = map_at(page + away);
		if (!room.at && page > away + ROOM)
			room.at = map_at(page - away);
		room.used = 0;
	}
	if (!room.at)
		return NULL;
	room.used += SLOT;
	return room.at + room.used - SLOT;
}

/* The instruction as it has to be at `to`. */
static bool move(const struct trap *t, const uint8_t *code, uint8_t *to)
{
	int32_t displacement;
	memcpy(to, code, t->bytes);
	if (!t->operand.relative)
		return true;
	int64_t wanted = t->operand.displacement - (int64_t)(uintptr_t)(to + t->bytes);
	displacement = (int32_t)wanted;
	memcpy(to + t->operand.at, &displacement, sizeof(displacement));
	return displacement == wanted;
}

static bool fill_slot(struct trap *t, const uint8_t *code)
{
	static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* to the address that follows */
	uint8_t *plain = t->slot + SLOT / 4;
	const uint64_t next = (uintptr_t)code + t->bytes;
	if (!move(t, code, t->slot) || !move(t, code, plain))
		return false;
	t->slot[t->bytes] = INT3;
	memcpy(plain + t->bytes, jump, sizeof(jump));
	memcpy(plain + t->bytes + sizeof(jump), &next, sizeof(next));
	return true;
}

/* --- what is seen --- */

static bool describe(struct trap *t, const uint8_t *code)
{
	const uint64_t ip = (uintptr_t)code;
	struct opcode op;
	bool fences = false;
	const char *name = instruction_flushes(code, t->bytes, &fences);
	if (!instruction_opcode(code, t->bytes, &op))
		return false;
	if (!name)
		t->kind = LOCKED;
	else if (fences)
		t->kind = FENCE;
	else if ((t->len = instruction_streams(code, ip, t->bytes, &t->operand)))
		t->kind = STREAM;
	else
		t->kind = strcmp(name, "clflush") ? FLUSH : FLUSH_FENCES;
	if (t->kind == FLUSH || t->kind == FLUSH_FENCES || t->kind == LOCKED)
		instruction_operand(code, ip, t->bytes, &op, &t->operand);
	/* A thread's own variables are no PM. */
	return !t->operand.segment || t->kind == LOCKED;
}

bool trap_keep(const uint8_t *code, size_t bytes)
{
	struct trap *t = slot_of((uintptr_t)code);
	struct trap new = {.bytes = (uint8_t)bytes, .first = code[0]};
	if (t->at)
		return true;
	if (traps + 2 > TRAPS / 2 || !describe(&new, code) || !is_changeable(code))
		return false;
	if (new.kind == STREAM || new.kind == LOCKED) {
		new.slot = new_slot(code);
		if (!new.slot || !fill_slot(&new, code))
			return false;
	}
	traps++;
	*t = new;
	t->at = (uintptr_t)code;
	if (new.kind != STREAM)
		return true;
	struct trap *after = slot_of((uintptr_t) new.slot + bytes);
	traps++;
	*after = (struct trap){.kind = STREAMED, .set = true, .of = t};
	after->at = (uintptr_t) new.slot + bytes;
	return true;
}

static uintptr_t register_of(const greg_t *r, int number)
{
	static const uint8_t at[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				     REG_RSI, REG_RDI, REG_R8,	REG_R9,	 REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15};
	return number < 0 ? 0 : (uintptr_t)r[at[number]];
}

static const void *target(const struct trap *t, const greg_t *r)
{
	const struct operand *o = &t->operand;
	uintptr_t at = register_of(r, o->base) + (register_of(r, o->index) << o->shift) +
		       (uintptr_t)o->displacement;
	return (const void *)(o->narrow ? (uint32_t)at : at);
}

static void see_flush(const struct trap *t, const void *at, const void *pc)
{
	const void *line = (const void *)((uintptr_t)at & ~(uintptr_t)(LINE - 1));
	unsigned what = LIBPMEM_FLUSHES | (t->kind == FLUSH_FENCES ? LIBPMEM_FENCES : 0);
	if (pm_maps_has(line))
		libpmem_note(what, line, LINE, pc);
}

static void see_streamed(const struct trap *t, const void *to, const void *pc)
{
	uint32_t source;
	if (!recorder_copied(to, t->len, pc, &source))
		return;
	recorder_add_range(RECORD_FLUSH_NT, to, t->len, source);
	trap_waits(true, false);
	recorder_unlock();
}

/* Under the recorder's lock. */
static struct {
	struct trap *busy[FREED];
	unsigned n;
	unsigned waiting; /* threads that have flushed something since their last fence */
} freed;
static _Thread_local bool waits;

static void set_busy(bool set)
{
	const uint8_t int3 = INT3;
	int fd = open_text();
	for (unsigned i = 0; i < freed.n; i++)
		write_text(fd, freed.busy[i]->at, set ? &int3 : &freed.busy[i]->first, 1);
	syscall(SYS_close, fd);
}

void trap_waits(bool flushed, bool fenced)
{
	const bool before = waits;
	waits = !fenced && (waits || flushed);
	if (waits != before)
		freed.waiting += waits ? 1 : UINT_MAX;
	if (!waits || before || !freed.n)
		return;
	set_busy(true);
	freed.n = 0;
}

static void let_go(struct trap *t)
{
	t->idle = 0;
	if (!recorder_lock())
		return;
	if (!freed.waiting && freed.n < FREED) {
		freed.busy[freed.n++] = t;
		set_busy(false);
	}
	recorder_unlock();
}

static void see_locked(struct trap *t, const void *pc)
{
	if (waits)
		libpmem_note(LIBPMEM_FENCES, NULL, 0, pc);
	else if (++t->idle == BUSY)
		let_go(t);
}

/* Where the program goes on. */
static const uint8_t *see(struct trap *t, const greg_t *r)
{
	const struct trap *of = t->of ? t->of : t;
	const uint8_t *next = (const uint8_t *)of->at + of->bytes;
	const void *at = target(of, r);
	uint32_t source;
	switch (t->kind) {
	case FLUSH:
	case FLUSH_FENCES:
		see_flush(t, at, next);
		return next;
	case FENCE:
		libpmem_note(LIBPMEM_FENCES, NULL, 0, next);
		atomic_thread_fence(memory_order_seq_cst);
		return next;
	case STREAM: /* what was stored there before is no such store */
		if (!recorder_flushes(at, t->len, next, &source))
			return t->slot + SLOT / 4;
		recorder_unlock();
		return t->slot;
	case STREAMED:
		see_streamed(of, at, next);
		return next;
	default:
		see_locked(t, next);
		return t->slot + SLOT / 4;
	}
}

/* --- signals --- */

typedef int sigaction_fn(int, const struct sigaction *, struct sigaction *);
static struct sigaction theirs = {.sa_handler = SIG_DFL};
static bool handles;

static sigaction_fn *real_sigaction(void)
{
	static sigaction_fn *real;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sigaction");
	return real;
}

/* An INT3 of the program itself, or a signal from elsewhere. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	if (theirs.sa_flags & SA_SIGINFO)
		theirs.sa_sigaction(number, info, context);
	else if (theirs.sa_handler != SIG_DFL && theirs.sa_handler != SIG_IGN)
		theirs.sa_handler(number);
	else if (theirs.sa_handler == SIG_DFL || info->si_code > 0) {
		real_sigaction()(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
		raise(number); /* when this has returned */
	}
}

static void trapped(int number, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	const int error = errno;
	struct trap *t = slot_of((uintptr_t)r[REG_RIP] - 1);
	if (info->si_code > 0 && t->at)
		r[REG_RIP] = (greg_t)(uintptr_t)see(t, r);
	else
		pass_on(number, info, context);
	errno = error;
}

/* Other signals wait: their handlers may flush, and the recorder has a lock. */
static void handle_signals(void)
{
	struct sigaction own = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t trap_alone;
	if (handles)
		return;
	sigfillset(&own.sa_mask);
	real_sigaction()(SIGTRAP, &own, &theirs);
	sigemptyset(&trap_alone);
	sigaddset(&trap_alone, SIGTRAP);
	pthread_sigmask(SIG_UNBLOCK, &trap_alone, NULL);
	handles = true;
}

void trap_set(void)
{
	static const uint8_t int3 = INT3;
	int fd = open_text();
	close_room();
	if (traps)
		handle_signals();
	for (unsigned i = 0; traps && i < TRAPS; i++)
		if (trap[i].at && !trap[i].set)
			trap[i].set = write_text(fd, trap[i].at, &int3, 1);
	syscall(SYS_close, fd);
}

/* The program's own handler of SIGTRAP comes after the recorder's, and nobody holds SIGTRAP
 * back: an INT3 would end the process. */
RECORD_EXPORT int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction copy;
	if (number == SIGTRAP && handles) {
		copy = theirs;
		if (new)
			theirs = *new;
		if (old)
			*old = copy;
		return 0;
	}
	if (new) {
		copy = *new;
		sigdelset(&copy.sa_mask, SIGTRAP);
		new = &copy;
	}
	return real_sigaction()(number, new, old);
}

RECORD_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
	static sighandler_t (*real)(int, sighandler_t);
	if (number == SIGTRAP && handles) {
		sighandler_t before = theirs.sa_handler;
		theirs = (struct sigaction){.sa_handler = handler};
		return before;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "signal");
	return real(number, handler);
}

#define MASKS(name)                                                         \
	RECORD_EXPORT int name(int how, const sigset_t *new, sigset_t *old) \
	{                                                                   \
		static int (*real)(int, const sigset_t *, sigset_t *);      \
		sigset_t set;                                               \
		if (!real)                                                  \
			*(void **)&real = dlsym(RTLD_NEXT, #name);          \
		if (new &&how != SIG_UNBLOCK && recorder) {                 \
			set = *new;                                         \
			sigdelset(&set, SIGTRAP);                           \
			new = &set;                                         \
		}                                                           \
		return real(how, new, old);                                 \
	}
MASKS(sigprocmask)
MASKS(pthread_sigmask)

#else

bool trap_keep(const uint8_t *code, size_t bytes)
{
	(void)code;
	(void)bytes;
	return false;
}

void trap_set(void)
{
}

void trap_waits(bool flushed, bool fenced)
{
	(void)flushed;
	(void)fenced;
}

#endif
