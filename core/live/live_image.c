/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools as they lie there after a failure, and what the failure leaves of them. See live_pm.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/live/live_map.h"

int pm_image_open(struct pm_image *image, const char *path, uint64_t offset, bool writable,
		  char *why, size_t n)
{
	memset(image, 0, sizeof(*image));
	image->map = calloc(1, sizeof(*image->map));
	if (!image->map)
		return why_not(why, n, -ENOMEM, "no memory");
	int error = pm_map_image(image->map, path, offset, writable, why, n);
	if (error) {
		free(image->map);
		image->map = NULL;
		return error;
	}
	image->pool = image->map->base + POOL_HEADER;
	image->pool_bytes = pm_pool_room(image->map);
	assert(image->pool_bytes && image->pool_bytes % TM_LINE == 0);
	if (!pm_header_read(image->map, image->text))
		return 0;
	pm_image_close(image);
	return why_not(why, n, -EINVAL,
		       "%s: holds something that is neither a pool nor a cache image%s", path,
		       offset ? "" : " (an NVDIMM's backing file: offset 2 MiB)");
}

void pm_image_close(struct pm_image *image)
{
	if (!image->map)
		return;
	pm_map_close(image->map);
	free(image->map);
	image->map = NULL;
}

int pm_image_in_flight(const struct pm_image *cache)
{
	if (!strcmp(cache->text, PM_CACHE_FILLED))
		return 1;
	return !*cache->text || !strcmp(cache->text, PM_CACHE_EMPTY) ? 0 : -EINVAL;
}

int cut_lines(const uint8_t *media, const uint8_t *cache, size_t len, uint32_t **lines, size_t *n)
{
	size_t room = 0;
	assert(len % TM_LINE == 0 && len / TM_LINE <= UINT32_MAX);
	*lines = NULL;
	*n = 0;
	for (size_t off = 0; off < len; off += TM_LINE) {
		if (!memcmp(media + off, cache + off, TM_LINE))
			continue;
		if (!ARRAY_RESERVE(*lines, *n, 1, room)) {
			free(*lines);
			*lines = NULL;
			return -ENOMEM;
		}
		assert(*n < room && (!*n || (*lines)[*n - 1] < off / TM_LINE));
		(*lines)[(*n)++] = (uint32_t)(off / TM_LINE);
	}
	return 0;
}

bool cut_survives(uint64_t seed, uint32_t line)
{
	if (seed <= 1)
		return seed;
	uint64_t z = seed * 0x9e3779b97f4a7c15 + line;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) >> 63;
}

/* The lines of [0, len) that survive reach the media. */
static int cut_pool(struct pm_image *media, const struct pm_image *cache, size_t len, uint64_t seed,
		    size_t *in_flight, size_t *survived)
{
	uint32_t *lines;
	int error = cut_lines(media->pool, cache->pool, len, &lines, in_flight);
	for (size_t i = 0; i < *in_flight && !error; i++) {
		size_t off = (size_t)lines[i] * TM_LINE;
		assert(off + TM_LINE <= len);
		if (!cut_survives(seed, lines[i]))
			continue;
		pm_copy_words(media->pool + off, cache->pool + off, TM_LINE);
		++*survived;
	}
	free(lines);
	assert(*survived <= *in_flight);
	return error ? error : pm_map_sync(media->map, media->pool, len);
}

int pm_cut(struct pm_image *media, struct pm_image *cache, uint64_t seed, size_t *in_flight,
	   size_t *survived, char *why, size_t n)
{
	size_t len = media->pool_bytes < cache->pool_bytes ? media->pool_bytes : cache->pool_bytes;
	int filled = pm_image_in_flight(cache), error = 0;
	*in_flight = *survived = 0;
	if (filled < 0)
		return why_not(why, n, filled, "what is given as the cache image is none");
	if (strncmp(media->text, PM_POOL_TEXT, strlen(PM_POOL_TEXT)) && *media->text)
		return why_not(why, n, -EINVAL, "what is given as the pool is none");
	if (filled)
		error = cut_pool(media, cache, len, seed, in_flight, survived);
	if (!error)
		error = pm_header_write(cache->map, PM_CACHE_EMPTY);
	return error ? why_not(why, n, error, "the cut: %s", strerror(-error)) : 0;
}
