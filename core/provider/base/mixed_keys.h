/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_MIXED_KEYS_H
#define TM_PROVIDER_BASE_MIXED_KEYS_H
#include "core/rnic/objects/mixed_keys.h"

/* struct rnic_net, mixed_up(): a line on stderr, once for each kind. Under the NIC's lock. */
void tell_mixed_keys(const struct key_mixup *mixup);

#endif
