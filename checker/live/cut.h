/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_CUT_H
#define TM_CHECKER_LIVE_CUT_H
/*
 * What a power cut left of a live server: its media, the lines that were in flight, what the
 * clients recorded, and the states of the keys before. It is in memory, read from separate files
 * (here) or from one file that has all of them (crash_bundle.h).
 *
 * The states of the keys after a cut are written to a text, for the next cut:
 *
 *	tidemark-recovered 1
 *	boot 3			(the one that was cut)
 *	keys 2			(so many lines follow)
 *	17 0x0100000200000037	(the value of this PUT)
 *	18 absent | unknown
 *
 * A key without a line was absent.
 */
#include "checker/live/recorded_history.h"
#include "core/live/live_pm.h"
#include "scenarios/live_store.h"

#define CUT_ANY_OFFSET UINT64_MAX /* 0 or NVDIMM_DATA, wherever the text is */

struct cut_start {
	uint32_t key;
	struct key_state at;
};

struct cut {
	char text[POOL_TEXT]; /* the media's first page */
	struct live_store store;
	uint32_t boot;	/* the one that was cut */
	uint8_t *pool;	/* as the media have it; NULL: there are none, what clients saw is judged */
	size_t len;	/* bytes of the store's pool */
	uint32_t *line; /* numbers of the lines in flight, ascending */
	uint8_t *held;	/* what the cache had of each: TM_LINE bytes */
	size_t lines;
	bool cached;		 /* there was a cache image */
	struct recording_op *op; /* of all recordings, those that are used */
	size_t ops;
	unsigned recordings;
	uint64_t until_ns; /* 0: all; what comes later is not known, by the recordings' clock */
	bool started;	   /* the states of the keys after the cut of boot `start_boot` are known */
	uint32_t start_boot;
	struct cut_start *start; /* sorted by key */
	size_t starts;
};

/* 0 or -errno; *why: a sentence that names the file. After an error, too: cut_free(). */
int cut_read_media(struct cut *c, const char *path, uint64_t offset, char *why, size_t n);
int cut_read_cache(struct cut *c, const char *path, uint64_t offset, char *why, size_t n);
/* After the media, if there are any. */
int cut_read_recording(struct cut *c, const char *path, char *why, size_t n);
int cut_read_start(struct cut *c, const char *path, char *why, size_t n);
/* The text that says what is served; `name`: where it is from. */
int cut_parse(struct cut *c, const char *name, char *why, size_t n);
int cut_parse_start(struct cut *c, const char *name, char *text, char *why, size_t n);
/* Add `n` operations. */
int cut_add_ops(struct cut *c, const struct recording_op *ops, uint64_t n);
void cut_free(struct cut *c);

/* The first boot that is judged: the one after `start`, or else the first that was recorded. */
uint32_t cut_first_boot(const struct cut *c);
/* The state of a key before it. */
struct key_state cut_key_state(const struct cut *c, uint32_t first, uint32_t key);

#endif
