/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_CRASH_H
#define TM_PMEM_CRASH_H
/*
 * The explorer's side of the persistence model: machines that boot from what is
 * left of another one.
 *
 * A stack of machines shares images. Machine 0 is the one that runs the workload.
 * What machine i has made durable is, byte for byte, the memory in which machine
 * i + 1 boots after a power failure of machine i; lines of machine i that were in
 * flight are decided when machine i + 1 first touches them (CHOICE_LINE). What
 * machine i + 1 changes is undone when it ends, so a crash image is never copied.
 */
#include "core/pmem/pmem.h"
#include "core/tidemark.h"

struct pmem_stack;

/* `machines` machines over pools of up to max_len bytes (a multiple of LINE). NULL: out of
 * memory. */
struct pmem_stack *pmem_stack_new(unsigned machines, size_t max_len);
void pmem_stack_free(struct pmem_stack *stack);
struct pmem *pmem_machine(struct pmem_stack *stack, unsigned i);
/* All machines hold `image` (NULL: zeros) of len bytes, durable. No machine may be running. */
void pmem_load(struct pmem_stack *stack, const void *image, size_t len);

/* Machine starts in `sim` (after sim_reset). Machine i > 0 boots from machine i - 1, which stands
 * still until pmem_end(). */
void pmem_begin(struct pmem *pm, struct sim *sim, const struct hardware *hw);
/* The machine is gone; images are as they were at pmem_begin(). */
void pmem_end(struct pmem *pm);
bool pmem_running(const struct pmem *pm);
/* Keep all that machine 0 has changed, and what is on its way, at a moment at which neither its
 * tasks nor other machines run. pmem_resume(), in place of pmem_begin() for the same simulation,
 * gives back the machine as it was then. */
struct snapshot;
void pmem_snapshot(struct pmem *pm, struct snapshot *s);
void pmem_resume(struct pmem *pm, struct snapshot *s);
/*
 * One of several hosts whose memories are slices of machine 0's pool loses its power, and the
 * others go on: nothing in [off, off + len) is on its way any more, neither from its CPUs nor from
 * its NIC, and of each line in flight there one version is left, which its first touch decides
 * (CHOICE_LINE, b: PMEM_HOST_FAILED + how often hosts have failed in the run).
 */
#define PMEM_HOST_FAILED 16
void pmem_host_fails(struct pmem *pm, uint64_t off, size_t len, unsigned host);
/* So many servers share the pool, each with its own hardware; off after pmem_begin(). And where a
 * server's part begins, in their order. */
void pmem_set_hosts(struct pmem *pm, unsigned hosts);
void pmem_set_host(struct pmem *pm, unsigned host, uint64_t at);
/* Everything visible becomes durable: an orderly end of the load phase. Copies the image out
 * (pmem_length bytes). */
void pmem_save(struct pmem *pm, void *image);

/* The cache may write back now (CHOICE_EVICT); called where an operation returned. */
void pmem_cache_pressure(struct pmem *pm);

/* A 64-bit name of "which images are possible": durable content since pmem_begin and all versions
 * in flight. */
uint64_t pmem_images_hash(const struct pmem *pm);
/* The same, and another one: of two points with one hash it tells whether they are one. */
uint64_t pmem_images_hashes(const struct pmem *pm, uint64_t *check);

/* For a machine that booted after a failure: the failed machine whose versions of the line were, or
 * are, undecided. */
const struct pmem *pmem_failed(const struct pmem *pm, uint32_t line);
/* Lines that a machine has touched one after the other: a single one, or several that nothing has
 * changed since pmem_load(). */
struct pmem_touch {
	uint64_t content; /* pmem_content_hash() of the one; PMEM_AS_LOADED */
	uint32_t line, lines;
};
#define PMEM_AS_LOADED 0
/* What a machine that boots after a failure has touched since pmem_begin(), in the order of each
 * line's first touch. */
struct pmem_touched {
	const struct pmem_touch *touch;
	unsigned n, lines;
};
/* Is that to be noted, from the next pmem_begin() on? Off at first. */
void pmem_note_touched(struct pmem *pm, bool on);
struct pmem_touched pmem_touched(const struct pmem *pm);
/* Something else happens that what comes next depends on, and is noted in its place, if touches are
 * noted: as a line that no pool has, with a content that is not PMEM_AS_LOADED. */
void pmem_note_mark(struct pmem *pm, uint32_t line, uint64_t content);
/*
 * From now on until pmem_end(): the order in which lines are touched first from here. Only while
 * pmem_note_touched() is on, and no other machine boots from this one.
 */
void pmem_note_touched_again(struct pmem *pm);
/* None, if that was not called. */
struct pmem_touched pmem_touched_again(const struct pmem *pm);
/* From a task: touch the line, as if it were loaded. Its content, as of struct pmem_touch. */
uint64_t pmem_look(struct pmem *pm, uint32_t line);
/* Is nothing that has been stored on its way to memory? */
bool pmem_settled(struct pmem *pm);
/* Never PMEM_AS_LOADED. */
uint64_t pmem_content_hash(const uint8_t content[LINE]);
/* For the machine that boots next: are these lines as they were loaded? */
bool pmem_as_loaded(const struct pmem *pm, uint32_t line, uint32_t lines);
/* What it finds on a line of which nothing is to be decided (pmem_line_answers() of pmem_failed()
 * is 1). */
const uint8_t *pmem_boot_content(const struct pmem *pm, uint32_t line);
/* Decide every undecided line now (tests: the eager search). */
void pmem_decide_all(struct pmem *pm);

/* Operations whose data has arrived at the NIC in this run: pmem_lates() of them, the i-th in *op.
 * True: some of it has not landed yet. */
unsigned pmem_lates(const struct pmem *pm);
bool pmem_is_late(const struct pmem *pm, unsigned i, struct op_label *op);

/* The lines in flight: what the machine that boots next finds undecided. */
unsigned pmem_dirty(const struct pmem *pm);
uint32_t pmem_dirty_line(const struct pmem *pm, unsigned i);
/*
 * Number of answers that CHOICE_LINE has for a line (1: nothing to decide). Answer k: the newest
 * version but k. With line_torn=prefix further answers cut each version at each word, over each
 * older one; with line_torn=any the rest of them have each other choice of words.
 */
unsigned pmem_line_answers(const struct pmem *pm, uint32_t line);
/* The same from the number of versions. */
unsigned pmem_answers(unsigned versions, enum line_torn torn);
/* The line as answer k leaves it. */
void pmem_line_content(const struct pmem *pm, uint32_t line, unsigned answer, uint8_t out[LINE]);
/* The first answer from this one on with a content that no smaller answer has; all of them
 * (pmem_line_answers()): there is none. */
unsigned pmem_line_next(const struct pmem *pm, uint32_t line, unsigned answer);
/* Versions (stores) in flight on a line. */
unsigned pmem_line_versions(const struct pmem *pm, uint32_t line);
/* Number of versions since boot that are certainly durable. */
unsigned pmem_line_durable(const struct pmem *pm, uint32_t line);
/* "version 1 of 3", "version 2 of 3 cut after word 5", "version 2 of 3 only in words 1,4", "...
 * over version 1": what an answer means; and back: -1 if it means nothing. */
#define PMEM_ANSWER_TEXT 96
struct pmem_answer {
	unsigned version; /* 0: durable content */
	uint8_t words;	  /* 0: the whole line; else only these (bit 0: the first) arrived ... */
	unsigned over;	  /* ... over this older one */
};
/* With more versions than this in flight a line is not cut: its answers would be too many. */
#define PMEM_TORN_VERSIONS 4000
struct pmem_answer pmem_answer_split(unsigned versions, unsigned answer);
unsigned pmem_answer_join(unsigned versions, struct pmem_answer a);
/* The first answer that is a cut of another pair of versions than this one. */
unsigned pmem_answer_pair_end(unsigned versions, unsigned answer);
void pmem_answer_print(unsigned versions, unsigned answer, char *buf, size_t n);
int pmem_answer_parse(const char *text);

/* The same for lines that are no machine's, of a recorded program. What a line would hold; and
 * which of its words a content that is compared with it has, too. */
struct pmem_content {
	uint64_t word[LINE / 8];
	uint8_t same;
};
/* A line that is cut: these words of the newer content have arrived over the older one, `line`. */
void pmem_cut(uint8_t words, const uint8_t newer[LINE], uint8_t line[LINE]);
/* As pmem_line_next(), of a line with so many answers; history[v]: the line as of version v, from 0
 * to `versions`. */
unsigned pmem_answer_next(struct pmem_content *history, unsigned versions, unsigned answers,
			  unsigned answer);

/* For the event trace: the actor that wrote version v (1..versions) of a line, and the place in the
 * source (0: not a CPU store). */
struct pmem_version {
	const struct actor *who;
	struct op_label op;
	uint16_t occurrence;
	bool nic;
	uint8_t off, len; /* within the line */
	uintptr_t pc;
	uint8_t data[LINE];
};
void pmem_line_version(const struct pmem *pm, uint32_t line, unsigned v, struct pmem_version *out);

/* Names of offsets: "log+0x240". */
void pmem_set_regions(struct pmem *pm, const struct tm_region *regions, unsigned n);
void pmem_name(const struct tm_region *regions, unsigned n, uint64_t off, char *buf, size_t len);
/* "log+0x40..0xff" */
void pmem_name_range(const struct tm_region *regions, unsigned n, uint64_t off, uint64_t bytes,
		     char *buf, size_t len);
/* -EINVAL: no such place. */
int pmem_unname(const struct tm_region *regions, unsigned n, const char *text, uint64_t *off);

/* Every byte that changed was seen by the tracer: work == durable + versions in flight. False: *off
 * is one that was not. */
bool pmem_all_seen(struct pmem *pm, uint64_t *off);

#endif
