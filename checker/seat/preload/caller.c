/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark-images-caller LIBRARY FUNCTION: calls the function for each crash image. It is a program
 * of its own, and small, so that the library finds a process like any other, with
 * libtidemark-images.so in front of libc. Only `tidemark images` starts it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "checker/seat/calls.h"

int main(int argc, char **argv)
{
	const char *path = getenv(BOARD_ENV);
	int fd = path && argc == 3 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct stat st;
	struct board *board = fd < 0 || fstat(fd, &st)
				      ? MAP_FAILED
				      : mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
					     MAP_SHARED, fd, 0);
	if (board == MAP_FAILED) {
		fputs("tidemark-images-caller is started by tidemark images\n", stderr);
		return 2;
	}
	close(fd);
	image_calls_serve(board, argv[1], argv[2]);
}
