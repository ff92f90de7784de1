/* SPDX-License-Identifier: BSD-3-Clause */
/* See rows.h. */
#include "checker/judge/rows.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char **copy; /* of the files; they stay */
static unsigned copies;

static void read_store(struct row_table *table, const struct tm_store *store)
{
	struct store_file file = store_file(store, table->text);
	struct input_error error;
	struct text t;
	char *bytes = strdup(file.text);
	bool kept = bytes && ARRAY_ROOM_FOR_ONE(copy, copies);
	assert(kept);
	(void)kept;
	copy[copies++] = bytes;
	text_start(&t, bytes, strlen(bytes), &error);
	int rc = text_rows(&t, table->row, (void *)store);
	assert(rc != -ENOMEM);
	if (rc)
		snprintf(table->mistake, sizeof(table->mistake), "%s%s: %s", file.path,
			 input_place(&error).text, error.message);
}

const char *rows_read(struct row_table *table)
{
	if (!__atomic_load_n(&table->is_read, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&lock);
		for (unsigned i = 0; stores[i] && !table->is_read && !table->mistake[0]; i++)
			read_store(table, stores[i]);
		__atomic_store_n(&table->is_read, true, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&lock);
	}
	return table->mistake[0] ? table->mistake : NULL;
}
