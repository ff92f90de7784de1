/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libFuzzer target for the communication manager's messages (core/cm/mad.h): any bytes.
 * What is taken says the same when it is encoded and taken again.
 *
 *	build-clang/fuzz_mad -max_len=256 build/corpus/mad
 */
#include <stdlib.h>
#include <string.h>
#include "core/cm/mad.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct cm_message first, second;
	static uint8_t mad[MAD_BYTES], again[MAD_BYTES];
	struct sockaddr_storage src, dst;

	memset(mad, 0, sizeof(mad));
	memcpy(mad, bytes, n < sizeof(mad) ? n : sizeof(mad));
	if (mad_decode(&first, mad))
		return 0;
	mad_get_addresses(&first, &src, &dst);
	mad_encode(&first, again);
	if (mad_decode(&second, again) || memcmp(&first, &second, sizeof(first)))
		abort();
	return 0;
}
