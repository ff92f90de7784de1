/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_KV_H
#define TM_STORES_KV_H
/*
 * What the key-value stores share on top of the connection: keys of fixed width,
 * one hash, one checksum, the form of requests and replies.
 */
#include "core/tidemark.h"

struct rpc_conn;

/*
 * Seeded bugs, as a list of X(name, knobs, breaks, what): each is a value of the store's knob BUG,
 * and a variant that has this value and `knobs`, which begin with a blank, if there are any.
 * has_bug() is a macro, so that the code that asks is the one that reads the switch.
 */
#define KV_BUG_VALUE(name, ...)			  BUG_##name,
#define KV_BUG_NAME(name, ...)			  " " #name
#define KV_BUG_VARIANT(name, knobs, breaks, what) {#name, "bug=" #name knobs, what, breaks},
#define KV_BUG_VARIANTS(BUGS)       \
	BUGS(KV_BUG_VARIANT)        \
	{                           \
		NULL, NULL, NULL, 0 \
	}
#define KV_BUG_KNOB(BUGS)                                                         \
	{                                                                         \
		"bug", "none" BUGS(KV_BUG_NAME), "a seeded bug, see the variants" \
	}
#define has_bug(params, name) ((params)->knob[BUG] == BUG_##name)

/* Round up to a multiple of `to`, a power of two. */
static inline uint64_t kv_round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* The smallest power of two that is at least n (n > 0). */
uint64_t kv_pow2(uint64_t n);

/* Keys are compared and hashed with zeros up to TM_MAX_KEY. -EINVAL: empty or too long. */
int kv_key_pad(uint8_t out[TM_MAX_KEY], const void *key, size_t klen);
/* 64 well-mixed bits of a padded key; the same on every host. */
uint64_t kv_hash(const uint8_t key[TM_MAX_KEY]);

/* CRC-32, reflected 0xEDB88320, initial value and final XOR all ones (IEEE 802.3). No bytes have
 * 0. */
uint32_t kv_crc(const void *bytes, size_t len);

enum kv_op { KV_PUT = 1, KV_GET, KV_DEL, KV_CLEAN, KV_ACK, KV_COMMIT, KV_END, KV_RENEW };

/* A request. kv_req_init() zeroes it first; `key` is padded. */
struct kv_req {
	uint8_t op; /* enum kv_op */
	uint8_t klen;
	uint16_t unused;
	uint32_t vlen; /* PUT: bytes; KV_RENEW: how often it was READ */
	uint32_t crc;  /* PUT: as the store defines it */
	uint32_t client;
	uint8_t key[TM_MAX_KEY];
	uint64_t off; /* KV_ACK: the notice's number; KV_COMMIT: where the value was written, or the
			 slot */
};

/* A reply. Where the data lies is an offset in an exported region, never an address. */
struct kv_rsp {
	int32_t status; /* 0 or -errno */
	uint32_t vlen;
	uint64_t off;
};

/* A request with its key; the caller adds what else it takes. -EINVAL: no such key. */
int kv_req_init(struct kv_req *req, enum kv_op op, const void *key, size_t klen);
/* The same of a PUT of vlen bytes. -EMSGSIZE: they are more than max_vlen. */
int kv_put_init(struct kv_req *req, const void *key, size_t klen, size_t vlen, uint32_t max_vlen);
/* Send it and wait for the reply. The reply's status, -EPROTO, or what rpc_call() says. */
int kv_call(struct rpc_conn *conn, const struct kv_req *req, struct kv_rsp *rsp);

/* The same with `vlen` bytes of a value after the request, and a reply of `rsp_bytes` that begins
 * with its status; `msg` has room for the request and the value. */
int kv_call_value(struct rpc_conn *conn, uint8_t *msg, const struct kv_req *req, const void *value,
		  size_t vlen, void *rsp, size_t rsp_bytes);
/* What became of a request: `rc`, of whose reply, `rsp_bytes` that begin with its status, `len`
 * bytes came. */
int kv_status(int rc, size_t len, const void *rsp, size_t rsp_bytes);

/* Wait for what is not there yet: *nap is KV_NAP_NS at first, and longer each time, 1 ms or a
 * little more at most; or max_ns. */
#define KV_NAP_NS 2000
void kv_nap(uint64_t *nap);
void kv_nap_to(uint64_t *nap, uint64_t max_ns);
/* How long a client may keep what others wait for, ns, before it is taken for dead: `ns`, or
 * longer where so many clients have their turn before it. */
#define KV_TURN_NS 20000
static inline uint64_t kv_patience(const struct tm_params *params, uint64_t ns)
{
	const uint64_t turns = (uint64_t)params->clients * KV_TURN_NS;
	return turns > ns ? turns : ns;
}

_Static_assert(sizeof(struct kv_req) == 56, "a fixed layout without padding");
_Static_assert(sizeof(struct kv_rsp) == 16, "a fixed layout without padding");

#endif
