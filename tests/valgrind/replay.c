/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay LOG SIZE: what the stores of a log leave of a file of zeros, on stdout. A reader of its
 * own, so that a mistake of Tidemark's does not hide one of the tool's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPPINGS 16

int main(int argc, char **argv)
{
	static char token[1 << 16];
	struct {
		unsigned long base, size, offset;
	} map[MAPPINGS];
	int maps = 0;
	FILE *log = argc == 3 ? fopen(argv[1], "r") : NULL;
	size_t size = log ? strtoul(argv[2], NULL, 0) : 0;
	char *image = calloc(size + 1, 1);
	if (!log || !image)
		return 9;
	while (fscanf(log, "%65535[^|]", token) == 1) {
		unsigned long at, value, len, offset;
		if (sscanf(token, "REGISTER_FILE;%*[^;];%lx;%lx;%lx", &at, &len, &offset) == 3 &&
		    maps < MAPPINGS) {
			map[maps].base = at;
			map[maps].size = len;
			map[maps++].offset = offset;
		} else if (sscanf(token, "STORE;%lx;%lx;%lx", &at, &value, &len) == 3) {
			int i = maps - 1;
			while (i >= 0 && (at < map[i].base || at - map[i].base >= map[i].size))
				i--;
			if (i < 0)
				return 8;
			offset = at - map[i].base + map[i].offset;
			if (len > 8 || offset + len > size)
				return 7;
			memcpy(image + offset, &value, len);
		}
		if (fgetc(log) != '|')
			break;
	}
	return fwrite(image, 1, size, stdout) == size ? 0 : 9;
}
