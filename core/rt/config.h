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

#define RT_CONFIG_PARTS 2

struct rt_config {
	uint64_t epoch;	  /* each configuration has its own, from 1 on */
	uint32_t members; /* servers, as bits: bit 0 is the first */
	uint32_t alive;	  /* servers whose lease has not ended: a server that has lost its power is
			   * not alive a while later, and alive again when it has recovered */
	uint32_t primary; /* the server that clients ask */
	uint32_t lease;	  /* of the server that asked: which one it holds, see rt_config_lease() */
	/* A store whose members do not all hold the same says here who holds what: the servers with
	 * a copy of a part, as bits, and which of them leads. No servers: there is no such part. */
	struct {
		uint32_t servers, primary;
	} part[RT_CONFIG_PARTS];
};

/*
 * A server may be cut off from the service, while its clients and the other servers still reach it.
 * Then these functions return -ETIMEDOUT, after RT_CONFIG_PATIENCE_NS. A client is never cut off.
 */

/* As it is now. 0; or -ETIMEDOUT, and `now` is the last that this server has heard. */
int rt_config_get(struct rt_config *now);
/* Make `next` the configuration, if its epoch is the one after that which is in force (`alive` and
 * `lease` are not looked at). 0; -EAGAIN: it is not; -ETIMEDOUT: there was no answer, and it may be
 * done. */
int rt_config_set(const struct rt_config *next);
/* Wait until the epoch, or who is alive, is not what `known` says; it says so then. 0; or
 * -ETIMEDOUT, and `known` is as it was. */
int rt_config_wait(struct rt_config *known);
/*
 * When the lease ends that the calling server held when it was told `known`, on its own clock
 * (rt_now()); 0: it has ended. The service says until then, and a little longer, that the server is
 * alive, so nobody has taken over from it. A lease is renewed all the time until its server is cut
 * off; a server that is heard again after the end of its lease has another one, and must ask what
 * the configuration is now. Of a client: UINT64_MAX.
 */
uint64_t rt_config_lease(const struct rt_config *known);

#define RT_LEASE_NS	      50000 /* from a server's last sign of life to the end of its lease */
#define RT_CONFIG_NS	      2000  /* to the service, or back */
#define RT_CONFIG_PATIENCE_NS 20000

#ifdef __cplusplus
}
#endif

#endif
