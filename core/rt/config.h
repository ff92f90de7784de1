/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_CONFIG_H
#define TM_RT_CONFIG_H
/*
 * The configuration of a store that has several servers: which of them are members, and which one
 * serves clients. A service keeps it that never fails, as a cluster manager or ZooKeeper does for
 * real systems; asking it takes time. Everybody may ask, and servers change it: of two that do so
 * at once one fails.
 */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rt_config {
	uint64_t epoch;	  /* each configuration has its own, from 1 on */
	uint32_t members; /* servers, as bits: bit 0 is the first */
	uint32_t alive;	  /* servers whose lease has not ended: a server that has lost its power is
			   * not   alive a while later, and alive again when it has recovered */
	uint32_t primary; /* the server that clients ask */
};

/* As it is now. */
void rt_config_get(struct rt_config *now);
/* Make `next` the configuration, if its epoch is the one after that which is in force (`alive` is
 * not looked at). 0; -EAGAIN: it is not. */
int rt_config_set(const struct rt_config *next);
/* Wait until the epoch, or who is alive, is not what `known` says; it says so then. */
void rt_config_wait(struct rt_config *known);

#ifdef __cplusplus
}
#endif

#endif
