/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The place of a call in the program: as "PATH+0xOFFSET", which `tidemark images` turns into
 * function and line. Each place is found once.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "core/record/recorder.h"

#define SITES  4096 /* of a process; those beyond have no number */
#define NAMES  32
#define FRAMES 24
#define PLACES 4 /* of a site: callers of callers */
#define CHAINS 64
#define WAYS   4	  /* of them, for callers that may be the same */
#define CALLED UINT32_MAX /* in the place of a number: it has the calls that led to it */

/*
 * The calls that led to a place. Unwinding the stack takes as long as all else that an event needs,
 * and most events are reached as an earlier one was: the same caller with the same stack pointer,
 * and the same return addresses where they were.
 */
struct chain {
	const void *caller, *frame;
	const uintptr_t *slot[PLACES]; /* on the stack */
	uintptr_t value[PLACES];
	unsigned places;
	uint32_t number; /* 0: not known yet */
};
/* Not a part of each thread's stack, as smaller variables are. */
static _Thread_local struct chain chains[CHAINS] __attribute__((tls_model("global-dynamic")));

static struct known_site {
	_Atomic(const void *) caller;
	_Atomic uint32_t number;
} known[SITES];
static struct known_name {
	const char *name;
	uint32_t number;
} known_name[NAMES];

static struct known_site *slot_of(const void *caller)
{
	uintptr_t hash = (uintptr_t)caller * 0x9e3779b97f4a7c15u >> 20;
	for (unsigned i = 0; i < SITES; i++) {
		struct known_site *k = &known[(hash + i) % SITES];
		if (k->caller == caller || !k->caller)
			return k;
	}
	return NULL;
}

/* A library of PMDK, or the soft RNIC's, is not the program. */
bool call_site_is_pmdk_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	return !strncmp(name, "libpmem", 7) || !strcmp(name, "libtidemark-verbs.so");
}

/* dladdr() would look for the symbol, too, which takes ten times as long. */
const char *call_site_file(const void *pc, uintptr_t *begins)
{
	static char self[PATH_MAX];
	struct dl_find_object found;
	if (_dl_find_object((void *)(uintptr_t)pc, &found) || !found.dlfo_link_map)
		return NULL;
	*begins = found.dlfo_link_map->l_addr;
	if (found.dlfo_link_map->l_name[0])
		return found.dlfo_link_map->l_name;
	/* The main program has no name there, and may have been called by a relative one. */
	if (!self[0]) {
		ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
		self[n > 0 ? n : 0] = 0; /* Valgrind leaves something after it */
	}
	return self[0] ? self : NULL;
}

/* "PATH+0xOFFSET" after what is there, and a ';' between. False: it is nowhere, or in PMDK. */
static bool add_place(char *text, size_t room, const void *pc)
{
	uintptr_t begins;
	size_t n = strlen(text);
	const char *path = call_site_file(pc, &begins);
	if (!path || call_site_is_pmdk_file(path))
		return false;
	/* Before the return address is the call. */
	snprintf(text + n, room - n, "%s%s+0x%lx", n ? ";" : "", path,
		 (unsigned long)((uintptr_t)pc - 1 - begins));
	return true;
}

bool call_site_is_pmdk(const void *pc)
{
	uintptr_t begins;
	const char *path = call_site_file(pc, &begins);
	return path && call_site_is_pmdk_file(path);
}

static bool is_same(const struct chain *c, const void *caller, const void *frame)
{
	bool same = c->number && c->caller == caller && c->frame == frame;
	for (unsigned i = 0; same && i < c->places; i++)
		same = *c->slot[i] == c->value[i];
	return same;
}

/* The chain of a call; true: it is known. Else it takes the place of the oldest one. */
static bool find_chain(const void *caller, const void *frame, struct chain **found)
{
	static _Thread_local unsigned char oldest[CHAINS / WAYS];
	uintptr_t hash = ((uintptr_t)caller ^ (uintptr_t)frame << 7) * 0x9e3779b97f4a7c15u >> 32;
	unsigned set = hash % (CHAINS / WAYS);
	for (unsigned i = 0; i < WAYS; i++) {
		*found = &chains[set * WAYS + i];
		if (is_same(*found, caller, frame))
			return true;
	}
	*found = &chains[set * WAYS + oldest[set]++ % WAYS];
	return false;
}

struct unwinding {
	struct call_site *site;
	struct chain *chain;
	const void *caller;
	unsigned frames;
	bool seen;
};

#define INSTRUCTION 15 /* bytes, at most */

/* The place itself: of a call that is where it returns to; of an instruction that was trapped its
 * end, and the frame says how far it came. */
static bool is_caller(const struct unwinding *u, uintptr_t pc)
{
	return (uintptr_t)u->caller - pc < INSTRUCTION;
}

/* What starts the program, or a thread, is none of its places. */
static bool is_libc(const void *pc)
{
	uintptr_t begins;
	const char *path = call_site_file(pc, &begins), *slash = path ? strrchr(path, '/') : NULL;
	return slash && !strncmp(slash, "/libc.so", 8);
}

/* One frame further out. Its return address is just below where the inner one's frame ended. */
static _Unwind_Reason_Code unwind(struct _Unwind_Context *context, void *arg)
{
	struct unwinding *u = arg;
	uintptr_t pc = _Unwind_GetIP(context);
	const uintptr_t *slot = (const uintptr_t *)_Unwind_GetCFA(context) - 1;
	struct chain *c = u->chain;
	const bool first = !u->seen && is_caller(u, pc);
	u->seen |= first;
	if (u->seen && !first && is_libc((const void *)pc))
		return _URC_END_OF_STACK;
	if (u->seen &&
	    add_place(u->site->text, sizeof(u->site->text), first ? u->caller : (const void *)pc) &&
	    !first) {
		if (*slot != pc)
			c->caller = NULL; /* not as on x86-64: this is found anew each time */
		c->slot[c->places] = slot;
		c->value[c->places++] = pc;
	}
	return ++u->frames == FRAMES || c->places == PLACES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static void find_callers(struct call_site *site, const void *caller)
{
	const void *frame = __builtin_frame_address(0);
	struct chain *c;
	bool known = find_chain(caller, frame, &c);
	site->caller = NULL;
	site->number = known ? c->number : 0;
	if (known)
		return;
	*c = (struct chain){.caller = caller, .frame = frame};
	struct unwinding u = {.site = site, .chain = c, .caller = caller};
	_Unwind_Backtrace(unwind, &u);
	site->chain = c;
	if (!u.seen)
		add_place(site->text, sizeof(site->text), caller);
}

void call_site_find(struct call_site *site, const void *caller, bool callers)
{
	const struct known_site *k = callers ? NULL : slot_of(caller);
	site->caller = caller;
	site->chain = NULL;
	site->number = k && k->caller == caller ? k->number : 0;
	site->text[0] = 0;
	if (site->number && site->number != CALLED)
		return;
	/* The same place of a library is called by many. */
	if (callers || site->number || call_site_is_pmdk(caller))
		find_callers(site, caller);
	else
		add_place(site->text, sizeof(site->text), caller);
}

static uint32_t add_source(const char *text)
{
	uint32_t number = ++recorder->sources;
	recorder_add(RECORD_SOURCE, 0, 0, text, (uint32_t)strlen(text), number);
	return number;
}

/* Sites that were found anew, by the hash of their words. */
static uint32_t number_of_text(const char *text)
{
	static struct {
		uint64_t hash; /* 0: none */
		uint32_t number;
	} found[SITES];
	const uint64_t hash = XXH3_64bits(text, strlen(text));
	unsigned i = 0;
	while (i < SITES && found[(hash + i) % SITES].hash != hash &&
	       found[(hash + i) % SITES].hash)
		i++;
	if (i == SITES)
		return 0;
	const unsigned at = (unsigned)((hash + i) % SITES);
	if (!found[at].hash) {
		found[at].hash = hash;
		found[at].number = add_source(text);
	}
	return found[at].number;
}

static void keep_number(const void *caller, uint32_t number)
{
	struct known_site *k = slot_of(caller);
	if (!k || k->caller == caller)
		return;
	k->number = number;
	k->caller = caller;
}

uint32_t call_site_number(struct call_site *site)
{
	if (site->number || !site->text[0])
		return site->number;
	if (!site->caller) {
		site->number = number_of_text(site->text);
		if (site->chain) {
			site->chain->number = site->number;
			keep_number(site->chain->caller, CALLED);
		}
		return site->number;
	}
	const struct known_site *k = slot_of(site->caller);
	if (k && k->caller == site->caller)
		return site->number = k->number;
	site->number = k ? add_source(site->text) : 0;
	keep_number(site->caller, site->number);
	return site->number;
}

uint32_t call_site_of(const uint64_t *ip, unsigned n)
{
	char text[512] = "";
	/* Before what add_place() is given is the call. */
	for (unsigned i = 0; i < n && ip[i]; i++)
		add_place(text, sizeof(text), (const void *)(uintptr_t)(ip[i] + 1));
	return text[0] ? number_of_text(text) : 0;
}

uint32_t call_site_name(const char *name)
{
	unsigned i = 0;
	while (i < NAMES && known_name[i].name && strcmp(known_name[i].name, name) != 0)
		i++;
	if (i == NAMES)
		return 0;
	if (!known_name[i].name) {
		known_name[i].name = name;
		known_name[i].number = add_source(name);
	}
	return known_name[i].number;
}

/* --- objects that tell of their stores --- */

/* An address of an object's dynamic section, which the linker has relocated already on most
 * machines. */
static const void *dynamic(const struct link_map *map, ElfW(Sxword) tag, size_t *value)
{
	uintptr_t at = 0;
	*value = 0;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			at = *value = d->d_un.d_ptr;
	return (const void *)(at && at < map->l_addr ? at + map->l_addr : at);
}

/* Does it refer to the hooks, or, where these are linked in, to what they call? */
static bool refers_to_hooks(const struct link_map *map, ElfW(Sxword) relocations, ElfW(Sxword) size)
{
	size_t bytes, unused;
	const ElfW(Rela) *rela = dynamic(map, relocations, &unused);
	const ElfW(Sym) *symbol = dynamic(map, DT_SYMTAB, &unused);
	const char *names = dynamic(map, DT_STRTAB, &unused);
	dynamic(map, size, &bytes);
	for (size_t i = 0; rela && i < bytes / sizeof(*rela); i++) {
		const char *name = names + symbol[ELF64_R_SYM(rela[i].r_info)].st_name;
		if (!strncmp(name, "__tsan_", 7) || !strcmp(name, "tidemark_record_stored"))
			return true;
	}
	return false;
}

bool call_site_tells(const void *pc)
{
	static struct object {
		_Atomic uintptr_t first; /* 0: none */
		uintptr_t len;
		bool tells;
	} object[64]; /* that were asked for; under the lock if one is added */
	const unsigned objects = sizeof(object) / sizeof(object[0]);
	struct dl_find_object found;
	unsigned i = 0;
	while (i < objects && object[i].first && (uintptr_t)pc - object[i].first >= object[i].len)
		i++;
	if (i == objects || object[i].first)
		return i < objects && object[i].tells;
	if (_dl_find_object((void *)(uintptr_t)pc, &found) || !found.dlfo_link_map ||
	    !recorder_lock())
		return false;
	bool tells = refers_to_hooks(found.dlfo_link_map, DT_JMPREL, DT_PLTRELSZ) ||
		     refers_to_hooks(found.dlfo_link_map, DT_RELA, DT_RELASZ);
	while (i < objects && object[i].first)
		i++;
	if (i < objects) {
		object[i].len = (uintptr_t)found.dlfo_map_end - (uintptr_t)found.dlfo_map_start;
		object[i].tells = tells;
		object[i].first = (uintptr_t)found.dlfo_map_start;
	}
	recorder_unlock();
	return tells;
}
