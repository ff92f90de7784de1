/* SPDX-License-Identifier: BSD-3-Clause */
/* The program around a target of libFuzzer where there is no libFuzzer: it runs the files that it
 * is given. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"

#define FILE_MAX (1u << 20) /* bytes */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct input_error error;
		int rc = 0;
		size_t n;
		FILE *in = fopen(argv[i], "re");
		char *bytes = in ? text_read(in, FILE_MAX, &n, &error, &rc) : NULL;
		if (!bytes) {
			fprintf(stderr, "tidemark: %s: %s\n", argv[i], strerror(in ? -rc : errno));
			return 2;
		}
		LLVMFuzzerTestOneInput((const uint8_t *)bytes, n);
		free(bytes);
		fclose(in);
	}
	return 0;
}
