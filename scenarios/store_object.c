/* SPDX-License-Identifier: BSD-3-Clause */
/* See store_object.h. */
#include "scenarios/store_object.h"
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "core/object.h"
#include "scenarios/workload/workload.h"

#define NAME_MAX_LEN 32

static const struct tm_knob no_knobs[] = {{NULL, NULL, NULL}};
static const struct tm_variant no_variants[] = {{NULL, NULL, NULL, 0}};

/* NULL: nothing is wrong. */
static const char *mistake_in_calls(const struct tm_call_type *calls)
{
	static const char *const taken[] = {"put",   "get", "del",   "clean",
					    "leave", "die", "pause", "same"};
	unsigned n = 0;
	for (const struct tm_call_type *t = calls; t->name; t++, n++) {
		const size_t len = strlen(t->name);
		if (!len || len > 16 || strspn(t->name, "abcdefghijklmnopqrstuvwxyz_") < len)
			return "the name of one of .calls; expected 1 to 16 small letters or '_'";
		for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
			if (!strcmp(t->name, taken[i]))
				return "the name of one of .calls means something else (put, get, "
				       "del, "
				       "clean, leave, die, pause, same)";
		for (const struct tm_call_type *before = calls; before < t; before++)
			if (!strcmp(t->name, before->name))
				return "two of .calls have one name";
		if (!t->run || !t->what)
			return "one of .calls has no .run or no .what";
		if (t->keys > TM_CALL_KEYS)
			return "one of .calls takes too many keys; expected at most 3";
		if (t->looks && (t->keys > 1 || t->value))
			return "one of .calls .looks; expected one that takes no value, and a key "
			       "at "
			       "most";
	}
	_Static_assert(TM_CALL_KEYS == 3 && TM_CALL_TYPES == 16, "the texts here");
	return n && n <= TM_CALL_TYPES ? NULL : "expected 1 to 16 .calls";
}

/* NULL: nothing is wrong. */
static const char *mistake_in(const struct tm_store *s)
{
	size_t len = s->name ? strlen(s->name) : 0;
	if (!len || len > NAME_MAX_LEN)
		return "the store has no name, or a long one; expected 1 to 32 letters";
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s->name[i]) && s->name[i] != '_')
			return "the store's name; expected letters, digits and '_'";
	if (!s->what)
		return "the store's .what is missing; expected one line about it";
	if (!s->promises || s->promises >> TM_CONTRACTS)
		return "the store's .promises; expected TM_BIT()s of contracts, at least one";
	if (!s->pm_bytes || !s->regions || !s->format || !s->recover || !s->serve || !s->fsck)
		return "a function of the server is missing; expected .pm_bytes, .regions, "
		       ".format, .recover, .serve and .fsck";
	if (!s->open || (!s->put && !s->calls))
		return "a function of the client is missing; expected .open, and .put, .get and "
		       ".del, "
		       "or .calls";
	if (!s->put != !s->get || !s->put != !s->del)
		return "expected all of .put, .get and .del, or none of them (.calls)";
	if (s->txn ? !s->put : s->promises & (TM_BIT(TM_ATOM) | TM_BIT(TM_SSER)))
		return s->txn ? ".txn; expected .put, .get and .del, too"
			      : ".promises has ATOM or SSER; expected .txn, too";
	if (!s->judge && !(s->calls && s->model) && s->promises & TM_BIT(TM_OWN))
		return ".promises has OWN; expected a .judge, too";
	if ((s->model || (s->workloads && !s->txn)) && !s->calls)
		return ".workloads and .model are for operations of the store's own; expected "
		       ".calls, "
		       "too";
	if (s->model && (!s->model->apply || s->model->bytes > TM_MODEL_BYTES))
		return "the model; expected .apply, and at most 2048 .bytes";
	_Static_assert(TM_MODEL_BYTES == 2048, "the text above");
	return s->calls ? mistake_in_calls(s->calls) : NULL;
}

/* True: *why says what is wrong. */
static bool mistake_in_workloads(const struct tm_store *s, const char *path,
				 char why[STORE_OBJECT_WHY])
{
	for (unsigned i = 0; s->workloads && s->workloads[i].name; i++) {
		const struct tm_workload *own = &s->workloads[i];
		struct workload w;
		const char *expected;
		if (!workload_of_store(s, i, &w, &expected)) {
			bool fits = workload_fits(&w, s), does = workload_ops(&w) > 0;
			workload_free(&w);
			if (fits && does && own->what)
				continue;
			expected = !own->what ? ".what"
				   : !does    ? "operations"
					      : "operations that the store has";
		}
		snprintf(why, STORE_OBJECT_WHY, "%s: workload %.60s: expected %s", path, own->name,
			 expected);
		return true;
	}
	return false;
}

/* What the object may write, but for what its relocations have filled. */
static int find_segments(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct statics *s = arg;
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = 0, end = 0, relro = 0;
	(void)size;
	if ((uintptr_t)s->live != info->dlpi_addr)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t at = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && p->p_flags & PF_W) {
			first = at;
			end = at + p->p_memsz;
		} else if (p->p_type == PT_GNU_RELRO) {
			relro = (at + p->p_memsz) & ~(page - 1);
		} else if (p->p_type == PT_TLS) {
			s->tls = (const uint8_t *)at;
			s->tls_filled = p->p_filesz;
			s->tls_len = p->p_memsz;
			s->tls_align = p->p_align ? p->p_align : 1;
		}
	}
	s->live = (uint8_t *)(relro > first ? relro : first);
	s->len = end > (uintptr_t)s->live ? end - (uintptr_t)s->live : 0;
	return 1;
}

static bool init_statics(struct store_object *o, void *handle, const struct tm_object *shown)
{
	struct statics *s = &o->statics;
	struct link_map *map;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map))
		return false;
	s->live = (uint8_t *)map->l_addr;
	if (!dl_iterate_phdr(find_segments, s))
		return false;
	uint8_t *fresh = malloc(s->len + 1);
	if (!fresh)
		return false;
	memcpy(fresh, s->live, s->len);
	s->fresh = fresh;
	s->begin = shown->begin;
	s->begins = (unsigned)(shown->begin_end - shown->begin);
	return true;
}

/* Hash the names, places and bytes of what is loaded, by the table of sections, a file's last part.
 * False: it is no such file, or has been cut off, at which the dynamic linker does not look. */
static bool hash_sections(const uint8_t *bytes, size_t len, uint64_t *build)
{
	ElfW(Ehdr) head;
	if (len < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_shoff + (uint64_t)head.e_shnum * sizeof(ElfW(Shdr)) > len)
		return false;
	for (unsigned i = 0; i < head.e_shnum; i++) {
		ElfW(Shdr) s;
		memcpy(&s, bytes + head.e_shoff + i * sizeof(s), sizeof(s));
		if (!(s.sh_flags & SHF_ALLOC))
			continue;
		const uint64_t place[] = {s.sh_addr, s.sh_size};
		*build = XXH3_64bits_withSeed(place, sizeof(place), *build);
		if (s.sh_type == SHT_NOBITS)
			continue;
		if (s.sh_offset > len || s.sh_size > len - s.sh_offset)
			return false;
		*build = XXH3_64bits_withSeed(bytes + s.sh_offset, s.sh_size, *build);
	}
	return true;
}

static bool hash_object(const char *path, uint64_t *build)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *bytes = MAP_FAILED;
	*build = 0;
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (bytes == MAP_FAILED)
		return false;
	bool whole = hash_sections(bytes, (size_t)st.st_size, build);
	munmap(bytes, (size_t)st.st_size);
	return whole;
}

static struct store_object *wrong(char *why, const char *path, const char *what)
{
	snprintf(why, STORE_OBJECT_WHY, "%s: %s", path, what);
	return NULL;
}

/* The other half of a store's object than the one that is expected. */
static struct store_object *wrong_half(char *why, const char *path, bool live)
{
	size_t len = strlen(path), end = strlen(STORE_OBJECT_LIVE);
	bool named = len > end && !strcmp(path + len - end, STORE_OBJECT_LIVE);
	if (live)
		return wrong(why, path,
			     "a store for crash tests, not for real hardware; expected "
			     "the NAME" STORE_OBJECT_LIVE " that tidemark cc has made beside it");
	snprintf(why, STORE_OBJECT_WHY,
		 "%s: a store for real hardware (tidemark serve); expected the one for crash "
		 "tests, %.*s" STORE_OBJECT_SUFFIX,
		 path, named ? (int)(len - end) : 4, named ? path : "NAME");
	return NULL;
}

struct store_object *store_object_load(const char *path, bool live, char why[STORE_OBJECT_WHY])
{
	uint64_t build;
	if (access(path, R_OK))
		return wrong(why, path, strerror(errno));
	if (!hash_object(path, &build))
		return wrong(why, path,
			     "not a whole shared object; expected one that tidemark cc "
			     "has linked");
	/* A name without a directory would be looked for where the system's libraries are. */
	char file[PATH_MAX];
	snprintf(file, sizeof(file), "%s%s", strchr(path, '/') ? "" : "./", path);
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		/* It begins with the path. */
		snprintf(why, STORE_OBJECT_WHY, "%s", dlerror());
		return NULL;
	}
	const struct tm_object *shown = dlsym(handle, TM_OBJECT_SYMBOL);
	if (!shown)
		return wrong(why, path, "no store; expected an object that tidemark cc has linked");
	if (shown->version != TM_OBJECT_VERSION || shown->store_bytes != sizeof(struct tm_store))
		return wrong(why, path,
			     "made with another version of Tidemark; expected to be compiled again "
			     "with this one's tidemark cc");
	if (!shown->live == live)
		return wrong_half(why, path, live);
	const char *mistake = mistake_in(shown->store);
	if (mistake)
		return wrong(why, path, mistake);
	if (mistake_in_workloads(shown->store, path, why))
		return NULL;
	struct store_object *o = calloc(1, sizeof(*o));
	if (!o || !(o->path = strdup(path)) || !init_statics(o, handle, shown))
		return wrong(why, path, "out of memory");
	o->store = *shown->store;
	o->build = build;
	if (!o->store.knobs)
		o->store.knobs = no_knobs;
	if (!o->store.variants)
		o->store.variants = no_variants;
	return o;
}
