/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, values and checksums, as several stores have them. See kv.h. */
#include "core/stores/kv.h"
#include <assert.h>
#include <errno.h>
#include <isa-l.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rpc.h"

#define NAP_MAX_NS 1000000

uint64_t kv_pow2(uint64_t n)
{
	uint64_t p = 1;

	assert(n > 0 && n <= 1ull << 62);
	while (p < n)
		p *= 2;
	return p;
}

int kv_key_pad(uint8_t out[TM_MAX_KEY], const void *key, size_t klen)
{
	if (klen == 0 || klen > TM_MAX_KEY)
		return -EINVAL;
	memset(out, 0, TM_MAX_KEY);
	memcpy(out, key, klen);
	return 0;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0xd6e8feb86659fd93;
	return h ^ h >> 32;
}

/* The high bytes of a word reach the low bits in the second round after it: other keys than those
 * that fill the last word have words of zeros for that. */
uint64_t kv_hash(const uint8_t key[TM_MAX_KEY])
{
	uint64_t word[TM_MAX_KEY / 8];
	uint64_t h = 0x9e3779b97f4a7c15;
	unsigned last = TM_MAX_KEY / 8 - 1;

	memcpy(word, key, sizeof(word));
	for (unsigned i = 0; i <= last; i++)
		h = mix(h, word[i]);
	return word[last] ? mix(h, 0) : h;
}

uint32_t kv_crc(const void *bytes, size_t len)
{
	return crc32_gzip_refl(0, bytes, len);
}

int kv_req_init(struct kv_req *req, enum kv_op op, const void *key, size_t klen)
{
	memset(req, 0, sizeof(*req));
	req->op = (uint8_t)op;
	req->klen = (uint8_t)klen;
	return kv_key_pad(req->key, key, klen);
}

int kv_put_init(struct kv_req *req, const void *key, size_t klen, size_t vlen, uint32_t max_vlen)
{
	int rc = kv_req_init(req, KV_PUT, key, klen);

	if (rc)
		return rc;
	if (vlen > max_vlen)
		return -EMSGSIZE;
	req->vlen = (uint32_t)vlen;
	return 0;
}

int kv_status(int rc, size_t len, const void *rsp, size_t rsp_bytes)
{
	if (rc)
		return rc;
	return len == rsp_bytes ? *(const int32_t *)rsp : -EPROTO;
}

int kv_call(struct rpc_conn *conn, const struct kv_req *req, struct kv_rsp *rsp)
{
	size_t len;
	int rc = rpc_call(conn, req, sizeof(*req), rsp, sizeof(*rsp), &len);

	return kv_status(rc, len, rsp, sizeof(*rsp));
}

int kv_call_value(struct rpc_conn *conn, uint8_t *msg, const struct kv_req *req, const void *value,
		  size_t vlen, void *rsp, size_t rsp_bytes)
{
	size_t len;

	memcpy(msg, req, sizeof(*req));
	if (vlen)
		memcpy(msg + sizeof(*req), value, vlen);
	int rc = rpc_call(conn, msg, sizeof(*req) + vlen, rsp, rsp_bytes, &len);
	return kv_status(rc, len, rsp, rsp_bytes);
}

void kv_nap(uint64_t *nap)
{
	kv_nap_to(nap, NAP_MAX_NS);
}

void kv_nap_to(uint64_t *nap, uint64_t max_ns)
{
	assert(*nap > 0); /* twice nothing is nothing */
	rt_sleep(*nap);
	*nap = *nap < max_ns ? 2 * *nap : *nap;
}
