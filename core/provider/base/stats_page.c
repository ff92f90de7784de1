/* SPDX-License-Identifier: BSD-3-Clause */
/* See stats_page.h. */
#include "core/provider/base/stats_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/provider/base/fabric_dir.h"

int stats_page_make(struct stats_page **page, int *fd, char *path, size_t size,
		    const struct nic_config *config)
{
	char name[32];
	void *at;

	*fd = -EAGAIN;
	for (unsigned i = 1; i < STATS_PAGE_MAX && *fd == -EAGAIN; i++) {
		snprintf(name, sizeof(name), "nic.%u", i);
		*fd = fabric_dir_claim(config->fabric, name, sizeof(**page));
	}
	if (*fd < 0)
		return *fd == -EAGAIN ? -EUSERS : *fd;
	at = mmap(NULL, sizeof(**page), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (at == MAP_FAILED) {
		close(*fd);
		return -ENOMEM;
	}
	*page = at;
	**page = (struct stats_page){.bytes = sizeof(**page),
				     .pid = (uint32_t)getpid(),
				     .link = config->link,
				     .seed = config->seed};
	snprintf((*page)->program, STATS_PAGE_NAME, "%s", program_invocation_short_name);
	snprintf((*page)->faults, CONFIG_FAULTS_BYTES, "%s", config->faults);
	snprintf(path, size, "%s/%s", config->fabric, name);
	(*page)->magic = STATS_PAGE_MAGIC;
	return 0;
}

bool stats_page_rules(struct stats_page *page, uint32_t *generation, char *faults, uint64_t *seed)
{
	uint32_t now = atomic_load_explicit(&page->generation, memory_order_acquire);

	if (now == *generation || now & 1)
		return false;
	memcpy(faults, page->faults, CONFIG_FAULTS_BYTES);
	faults[CONFIG_FAULTS_BYTES - 1] = '\0';
	*seed = page->seed;
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&page->generation, memory_order_relaxed) != now)
		return false; /* changed meanwhile: next time */
	*generation = now;
	return true;
}

static int open_page(const char *directory, const char *name, struct stats_page *page)
{
	int fd = fabric_dir_open(directory, name, false);

	if (fd < 0)
		return fd;
	ssize_t n = fabric_dir_owner(fd) ? pread(fd, page, sizeof(*page), 0) : 0;
	if (n == sizeof(*page) && page->magic == STATS_PAGE_MAGIC && page->bytes == sizeof(*page))
		return fd;
	close(fd);
	return n == sizeof(*page) ? -EPROTO : -ESRCH;
}

int stats_page_read(const char *directory, const char *name, struct stats_page *page)
{
	int fd = open_page(directory, name, page);

	if (fd < 0)
		return fd;
	close(fd);
	page->program[STATS_PAGE_NAME - 1] = '\0';
	page->faults[CONFIG_FAULTS_BYTES - 1] = '\0';
	return 0;
}

static int write_at(int fd, const void *bytes, size_t len, size_t at)
{
	ssize_t n = pwrite(fd, bytes, len, (off_t)at);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

int stats_page_give(const char *directory, const char *name, const char *faults, uint64_t seed)
{
	struct flock writers = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
	struct stats_page page;
	size_t at = offsetof(struct stats_page, generation);
	uint32_t generation = 0;
	int fd = open_page(directory, name, &page);

	if (fd < 0)
		return fd;
	int rc = fcntl(fd, F_SETLKW, &writers) ? -errno : 0;
	if (!rc && pread(fd, &generation, sizeof(generation), (off_t)at) != sizeof(generation))
		rc = -EIO;
	generation |= 1; /* the last writer may have died while it wrote */
	snprintf(page.faults, sizeof(page.faults), "%s", faults);
	if (!rc)
		rc = write_at(fd, &generation, sizeof(generation), at);
	if (!rc)
		rc = write_at(fd, &seed, sizeof(seed), offsetof(struct stats_page, seed));
	if (!rc)
		rc = write_at(fd, page.faults, sizeof(page.faults),
			      offsetof(struct stats_page, faults));
	generation++;
	if (!rc)
		rc = write_at(fd, &generation, sizeof(generation), at);
	close(fd);
	return rc;
}
