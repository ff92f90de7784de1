/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_files.h. */
#include "checker/seat/image_files.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/array.h"

#define PAGE 4096

/* The folder of this process, for image_folder_drop(). */
static char made[IMAGE_PATH];
static volatile sig_atomic_t is_made;

int image_folder_make(char path[IMAGE_PATH])
{
	const char *tmp = getenv("TMPDIR");
	if (!access("/dev/shm", W_OK | X_OK) && !(tmp && *tmp))
		tmp = "/dev/shm";
	snprintf(path, IMAGE_PATH, "%s/tidemark-images-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(path))
		return -errno;
	strcpy(made, path);
	is_made = 1;
	return 0;
}

/* Only system calls: a signal's handler may be at it. */
static void remove_folder(int in, const char *name)
{
	_Alignas(struct dirent64) char entries[4096];
	const int dir = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;
	while (dir >= 0 && (n = getdents64(dir, entries, sizeof(entries))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const void *)(entries + at);
			at += e->d_reclen;
			if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
				continue;
			if (unlinkat(dir, e->d_name, 0) && errno == EISDIR)
				remove_folder(dir, e->d_name);
		}
	if (dir >= 0)
		close(dir);
	unlinkat(in, name, AT_REMOVEDIR);
}

void image_folder_remove(const char *path)
{
	remove_folder(AT_FDCWD, path);
	if (!strcmp(path, made))
		is_made = 0;
}

void image_folder_drop(void)
{
	if (is_made)
		remove_folder(AT_FDCWD, made);
}

#define WHOLE (256u << 20)

/* Where bytes may be stored there are some: a write to a full /dev/shm would end the process. What
 * a checker stores elsewhere in a large file has to find room. */
static int make_bytes(int fd, const struct pm_file *file)
{
	int error = 0;
	if (file->len <= WHOLE)
		return file->len ? posix_fallocate(fd, 0, (off_t)file->len) : 0;
	for (uint64_t at = 0, n; !error && pm_file_run(file, &at, &n); at += n)
		error = posix_fallocate(fd, (off_t)at, (off_t)n);
	return error;
}

static int make_file(struct image_file *f, const struct pm_file *file)
{
	const uint64_t size = file->size, len = file->len;
	f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (f->fd < 0)
		return -errno;
	int error = make_bytes(f->fd, file);
	struct stat st;
	if (!error && (ftruncate(f->fd, (off_t)size) || fstat(f->fd, &st)))
		error = errno;
	if (error)
		return -error;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->map = mmap(NULL, len ? len : 1, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (f->map != MAP_FAILED)
		return 0;
	f->map = NULL;
	return -errno;
}

/* A file's last line may be longer than the file. */
static size_t in_file(const struct pm_file *file, uint64_t at, uint64_t n)
{
	return at >= file->size ? 0 : file->size - at < n ? file->size - at : n;
}

static void drop_file(struct image_file *f, uint64_t len)
{
	if (f->map)
		munmap(f->map, len ? len : 1);
	if (f->fd >= 0)
		close(f->fd);
	f->map = NULL;
	f->fd = -1;
}

int image_files_open(struct image_files *f, const struct pm_log *log, const char *folder,
		     const char *name)
{
	memset(f, 0, sizeof(*f));
	for (unsigned i = 0; i < PM_FILES; i++)
		f->file[i].fd = -1;
	f->log = log;
	f->wait = calloc(BOARD_IMAGES, sizeof(*f->wait));
	if (!f->wait)
		return -ENOMEM;
	int n = snprintf(f->dir, sizeof(f->dir), "%s/%s", folder, name);
	if (n >= (int)sizeof(f->dir) || mkdir(f->dir, 0700))
		return n >= (int)sizeof(f->dir) ? -ENAMETOOLONG : -errno;
	for (unsigned i = 0; i < log->files; i++) {
		const struct pm_file *file = &log->file[i];
		const char *base = strrchr(file->name, '/');
		base = base && base[1] ? base + 1 : file->name;
		/* Two files of one name are told apart by folders. */
		n = snprintf(f->file[i].path, IMAGE_PATH, "%s/%u", f->dir, i);
		if (n >= IMAGE_PATH || mkdir(f->file[i].path, 0700))
			return n >= IMAGE_PATH ? -ENAMETOOLONG : -errno;
		n = snprintf(f->file[i].path, IMAGE_PATH, "%s/%u/%s", f->dir, i, base);
		if (n >= IMAGE_PATH)
			return -ENAMETOOLONG;
		int error = make_file(&f->file[i], file);
		if (error)
			return error;
		f->file[i].expected = pm_sparse_new(file->len);
		if (!f->file[i].expected)
			return -ENOMEM;
		for (uint64_t at = 0, bytes; pm_file_run(file, &at, &bytes); at += bytes) {
			memcpy(f->file[i].expected + at, file->before + at, bytes);
			memcpy(f->file[i].map + at, file->before + at, in_file(file, at, bytes));
		}
	}
	return 0;
}

void image_files_close(struct image_files *f)
{
	for (unsigned i = 0; f->log && i < f->log->files; i++)
		drop_file(&f->file[i], f->log->file[i].len);
	for (unsigned i = 0; f->log && i < f->log->files; i++)
		pm_sparse_free(f->file[i].expected, f->log->file[i].len);
	free(f->wait);
	free(f->write);
	free(f->changed);
	free(f->now);
	memset(f, 0, sizeof(*f));
}

/* --- writing --- */

/* A write for an image that does not wait yet. */
static void keep_write(struct image_files *f, uint64_t at, const uint8_t *bytes, size_t len)
{
	if (!ARRAY_RESERVE(f->write, f->writes, 1, f->write_room)) {
		f->error = -ENOMEM;
		return;
	}
	struct board_write *w = &f->write[f->writes++];
	w->at = at;
	w->len = (uint32_t)len;
	memcpy(w->bytes, bytes, len);
}

void image_files_write(struct image_files *f, unsigned file, uint64_t at, const uint8_t *bytes,
		       size_t len)
{
	uint64_t size = f->log->file[file].size;
	assert(len <= BOARD_WRITE && at < size);
	/* A file's last line may be longer than the file. */
	len = size - at < len ? size - at : len;
	if (f->waiting) {
		assert(!file);
		keep_write(f, at, bytes, len);
		return;
	}
	memcpy(f->file[file].expected + at, bytes, len);
	memcpy(f->file[file].map + at, bytes, len);
}

static void write_line(struct image_files *f, unsigned file, uint64_t line,
		       const uint8_t content[PM_LINE])
{
	image_files_write(f, file, line * PM_LINE, content, PM_LINE);
}

void image_files_durable(void *files, unsigned file, uint64_t line, const uint8_t content[PM_LINE])
{
	write_line(files, file, line, content);
}

static void back_to_durable(struct image_files *f, const struct pm_replay *r)
{
	for (unsigned i = 0; i < f->changes; i++)
		write_line(f, f->changed[i].file, f->changed[i].line,
			   r->durable[f->changed[i].file] + f->changed[i].line * PM_LINE);
	f->changes = 0;
	f->at = 0;
}

/* From here on only what differs from image to image is written. */
static int stand_at(struct image_files *f, const struct pm_replay *r)
{
	back_to_durable(f, r);
	if (!ARRAY_RESERVE(f->changed, 0, r->dirties + 1, f->room) ||
	    !ARRAY_RESERVE(f->now, 0, r->dirties + 1, f->now_room))
		return -ENOMEM;
	memset(f->now, 0, r->dirties * sizeof(*f->now));
	f->at = r->at + 1;
	f->lines = r->dirties;
	return 0;
}

int image_files_set(struct image_files *f, const struct pm_replay *r, const unsigned *left)
{
	uint8_t content[PM_LINE];
	if (f->at != r->at + 1 && stand_at(f, r))
		return -ENOMEM;
	assert(f->lines == r->dirties);
	for (unsigned i = 0; i < r->dirties; i++) {
		const struct pm_line *l = &r->dirty[i];
		if (left[i] == (f->now[i] ? f->now[i] - 1 : 0))
			continue;
		assert(f->now[i] || f->changes < r->dirties);
		if (!f->now[i])
			f->changed[f->changes++] = (struct image_change){l->line, l->file};
		f->now[i] = left[i] + 1;
		pm_replay_content(r, l, left[i], content);
		write_line(f, l->file, l->line, content);
	}
	return 0;
}

/* Is the file of this path still the one that is open, with its length? */
static bool is_whole(const struct image_file *f, uint64_t size)
{
	struct stat open_one, named;
	return !fstat(f->fd, &open_one) && !stat(f->path, &named) &&
	       open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev &&
	       (uint64_t)open_one.st_size == size;
}

/* Are these pages as they should be? If not, they are put right, or that is the end. */
static bool look_at_some(const struct image_file *f, uint64_t from, uint64_t to, bool mend)
{
	bool same = true;
	for (uint64_t at = from; at < to && (same || mend); at += PAGE) {
		size_t n = to - at < PAGE ? to - at : PAGE;
		if (!memcmp(f->map + at, f->expected + at, n))
			continue;
		same = false;
		if (mend)
			memcpy(f->map + at, f->expected + at, n);
	}
	return same;
}

/* The same of all. Where the file has nothing there are zeros, and so there should be, unless
 * something is known to be there. */
static bool look_at_pages(const struct image_file *f, const struct pm_file *file, bool mend)
{
	const uint64_t size = file->size;
	bool same = true;
	for (uint64_t at = 0, to; at < size && (same || mend); at = to) {
		off_t data = lseek(f->fd, (off_t)at, SEEK_DATA);
		to = data < 0 ? size : (uint64_t)data;
		for (uint64_t run = at, n; pm_file_run(file, &run, &n) && run < to; run += n)
			same &= look_at_some(f, run, run + n < to ? run + n : to, mend);
		if (to >= size)
			break;
		data = lseek(f->fd, data, SEEK_HOLE);
		same &= look_at_some(f, to, (uint64_t)data, mend);
		to = (uint64_t)data;
	}
	return same;
}

int image_files_restore(struct image_files *f)
{
	for (unsigned i = 0; i < f->log->files; i++) {
		uint64_t size = f->log->file[i].size;
		if (!is_whole(&f->file[i], size)) {
			drop_file(&f->file[i], f->log->file[i].len);
			unlink(f->file[i].path);
			int error = make_file(&f->file[i], &f->log->file[i]);
			if (error)
				return error;
		}
		look_at_pages(&f->file[i], &f->log->file[i], true);
	}
	return 0;
}

void image_files_restore_pages(struct image_files *f, const uint64_t *page, unsigned n)
{
	const struct image_file *file = &f->file[0];
	const uint64_t size = f->log->file[0].size;
	for (unsigned i = 0; i < n; i++)
		if (page[i] * PAGE < size)
			memcpy(file->map + page[i] * PAGE, file->expected + page[i] * PAGE,
			       size - page[i] * PAGE < PAGE ? size - page[i] * PAGE : PAGE);
}

bool image_files_untouched(const struct image_files *f)
{
	assert(!f->waiting);
	for (unsigned i = 0; i < f->log->files; i++) {
		uint64_t size = f->log->file[i].size;
		if (!is_whole(&f->file[i], size) ||
		    !look_at_pages(&f->file[i], &f->log->file[i], false))
			return false;
	}
	return true;
}

/* --- waiting --- */

void image_files_mark(struct image_moment *at, const struct pm_log *log,
		      const struct pm_event *mark)
{
	at->markers = mark ? mark->data : 0;
	at->marker = mark ? mark->data - strlen(log->source[mark->source]) : 0;
}

int image_files_wait(struct image_files *f, const struct image_moment *at)
{
	assert(f->waiting < BOARD_IMAGES && (!f->waiting || f->log->files == 1));
	f->wait[f->waiting].writes = f->writes;
	f->wait[f->waiting++].moment = *at;
	return f->error;
}

bool image_files_full(const struct image_files *f)
{
	return f->waiting == BOARD_IMAGES || f->writes >= BOARD_WRITES;
}

const struct board_write *image_files_writes(const struct image_files *f, unsigned i, size_t *n)
{
	size_t from = i ? f->wait[i - 1].writes : 0;
	assert(i < f->waiting && from <= f->wait[i].writes && f->wait[i].writes <= f->writes);
	*n = f->wait[i].writes - from;
	return *n ? f->write + from : NULL;
}

static void write_some(struct image_file *file, const struct board_write *w, size_t n, bool made)
{
	for (size_t k = 0; k < n; k++) {
		memcpy(file->expected + w[k].at, w[k].bytes, w[k].len);
		if (!made)
			memcpy(file->map + w[k].at, w[k].bytes, w[k].len);
	}
}

void image_files_make(struct image_files *f, unsigned i)
{
	size_t n;
	const struct board_write *w = image_files_writes(f, i, &n);
	write_some(&f->file[0], w, n, false);
}

void image_files_made(struct image_files *f, unsigned i)
{
	size_t n;
	const struct board_write *w = image_files_writes(f, i, &n);
	write_some(&f->file[0], w, n, true);
}

void image_files_judged(struct image_files *f)
{
	size_t from = f->waiting ? f->wait[f->waiting - 1].writes : 0;
	if (f->writes > from)
		write_some(&f->file[0], f->write + from, f->writes - from, false);
	f->waiting = 0;
	f->writes = 0;
}
