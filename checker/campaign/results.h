/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAMPAIGN_RESULTS_H
#define TM_CHECKER_CAMPAIGN_RESULTS_H
/*
 * Files of results: a campaign that is shared out among machines, or that goes on where it was
 * ended. The driver deals the campaign's units to shards, and appends each result as it comes to
 * the shard's file; what a process that dies had found is not lost. From the files of all shards
 * the driver takes the results as if it had just found them.
 *
 * A file is one line of JSON, which says whose results they are, and records: struct record of
 * results.c, then the result's bytes as zstd packs them. Results are raw structs: only the build
 * that wrote them can read them, and the first line names it.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESULTS_WHY    600
#define RESULTS_SHARDS 1000000

/* One file of results. */
struct results_file {
	const char *path;
	json_t *about; /* its first line; NULL: the file is empty, its shard had not begun */
	json_t *campaign, *shown; /* in `about` */
	unsigned shard, shards;
	uint64_t damaged; /* where it is; 0: nowhere. What comes after it is not used */
};

struct results {
	struct results_file *file;
	unsigned files;
	/* After what returned an error that has more words than strerror(). */
	char why[RESULTS_WHY];
	/* after results_begin() */
	unsigned records; /* in the files */
	unsigned units, known;
	unsigned missing; /* units that no file has; of a shard: of it */
	/* private */
	int out; /* the file that is appended to; -1: none, they are merged */
	unsigned shard, shards;
	uint32_t bytes; /* of a result */
	struct results_record *record;
	unsigned room;
	uint32_t *of_unit; /* its record + 1; 0: none */
	unsigned *place;   /* of the unit among those that are dealt; NULL: its number */
	char *packed;
};

/* To be merged: the files come by results_read(). results_close() in any case. */
void results_open(struct results *r);
/* What the file has is known from now on. `path` stays the caller's. 0, or -errno with r->why;
 * -EINVAL: it is not like the first file. */
int results_read(struct results *r, const char *path);
/*
 * To be written: a shard of a campaign; what its file has already is known. `campaign`: what
 * decides the results, `shown`: what a merge of them has to know; both stay the caller's. 0, or
 * -errno with r->why.
 */
int results_open_shard(struct results *r, const char *path, json_t *campaign, json_t *shown,
		       unsigned shard, unsigned shards);
void results_close(struct results *r);

/* --- for the driver --- */

/*
 * There are so many units, with results of so many bytes. `place`, which is r's from now on: where
 * each is dealt; NULL: by number. `same`: are two results of one unit the same but for what differs
 * each time, like seconds; NULL: all bytes are compared. 0, or -errno with r->why.
 */
int results_begin(struct results *r, unsigned units, size_t bytes, unsigned *place,
		  bool (*same)(const void *a, const void *b));
/* Is the unit still to be done here? */
bool results_wants(const struct results *r, unsigned unit);
bool results_knows(const struct results *r, unsigned unit);
/* The known result. 0, or -errno with r->why. */
int results_take(struct results *r, unsigned unit, void *result);
/* One more. 0, or -errno with r->why. */
int results_keep(struct results *r, unsigned unit, const void *result);

/* Has this one of so many shards units that no file has? */
bool results_lacks(const struct results *r, unsigned shard, unsigned shards);
bool results_merges(const struct results *r);

#endif
