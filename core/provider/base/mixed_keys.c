/* SPDX-License-Identifier: BSD-3-Clause */
/* See mixed_keys.h. */
#include "core/provider/base/mixed_keys.h"

#include <stdbool.h>
#include <stdio.h>
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/qp.h"

void tell_mixed_keys(const struct key_mixup *mixup)
{
	static bool told[MIXUP_KINDS];
	const bool remote = mixup->kind == MIXUP_RKEY;
	const bool receive = mixup->kind == MIXUP_LKEY_RECEIVED;

	if (told[mixup->kind])
		return;
	told[mixup->kind] = true;
	fprintf(stderr,
		"tidemark: queue pair 0x%x: the %s of a %s is the %s of the region at %p; cards "
		"with equal keys accept that (tidemark run --keys equal)\n",
		mixup->qp->ibv.qp_num, remote ? "rkey" : "lkey",
		receive ? "receive request" : mixup->request, remote ? "lkey" : "rkey",
		mixup->mr->ibv.addr);
}
