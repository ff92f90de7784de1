/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's client (Erda paper 4.1 to 4.3). A PUT asks the server for an address and
 * writes the object there itself. A GET reads the entry and the object and needs no
 * server, except that it tells it of a damaged newest version. While a log is being
 * cleaned (4.4) both are requests to the server that carry the value.
 */
#include <errno.h>
#include <stdlib.h>
#include "core/rt/rt.h"
#include "core/stores/erda/client.h"

/*
 * A GET that finds no intact version waits 1 us, 4 us, ... and starts again, at
 * most RETRIES times, 1.4 s together: writers that are merely slow have finished
 * by then, while the store calls a writer dead after ten seconds only. So does a PUT for
 * which there is no room before a log has been cleaned.
 */
#define RETRIES	      11
#define FIRST_WAIT_NS 1000
#define FIRST_GUESS   1024 /* bytes: how much of an object to read before any has been seen */

/* What came of a look at the store; negative: -errno. */
enum outcome {
	FOUND,
	DELETED, /* the newest version is a delete object */
	ABSENT,	 /* no entry, or an entry whose first object has not arrived */
	DAMAGED	 /* neither version is intact */
};

int erda_open(const struct tm_env *env, void **client)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	erda_geo(&c->geo, env->params);
	c->number = env->client;
	c->guess = c->geo.max_obj < FIRST_GUESS ? c->geo.max_obj : FIRST_GUESS;
	c->object = calloc(1, c->geo.max_obj);
	c->msg = calloc(1, erda_msg_bytes(&c->geo));
	size_t max_read = (c->geo.hop - 1) * sizeof(struct erda_entry);
	if (max_read < c->geo.max_obj)
		max_read = c->geo.max_obj;
	int rc = c->object && c->msg
			 ? rpc_open(&c->conn, env, erda_msg_bytes(&c->geo), max_read, NULL)
			 : -ENOMEM;
	if (rc)
		goto err;
	notices_busy(c);
	rc = notices_open(c, env);
	if (rc)
		goto err_notices;
	notices_idle(c);
	*client = c;
	return 0;
err_notices:
	rpc_close(&c->notices);
	rpc_close(&c->conn);
err:
	free(c->object);
	free(c->msg);
	free(c);
	return rc;
}

/* ------------------------------------------------------------- PUT, DELETE */

static void fill_request(const struct client *c, struct erda_req *req, enum erda_op op,
			 const void *key, size_t klen)
{
	memset(req, 0, sizeof(*req));
	req->op = (uint8_t)op;
	req->klen = (uint8_t)klen;
	req->client = c->number;
	memcpy(req->key, key, klen);
}

/* Steps 1 and 4 of a PUT: the request and its reply. */
static int ask(struct client *c, const struct erda_req *req, struct erda_rsp *rsp)
{
	size_t len = ERDA_REQ_BYTES(req->klen), got;
	uint64_t slot = c->number * sizeof(*req);
	int rc = -ERANGE;

	memset(rsp, 0, sizeof(*rsp));
	if (!c->geo.knob.request)
		rc = rpc_call_imm(&c->conn, EXPORT_SLOTS, slot, req, len, c->number, rsp,
				  sizeof(*rsp), &got);
	/* -ERANGE: a client whose number is beyond the slots sends its requests as messages. */
	if (rc == -ERANGE)
		rc = rpc_call(&c->conn, req, len, rsp, sizeof(*rsp), &got);
	if (rc)
		return rc;
	return got == sizeof(*rsp) ? rsp->status : -EPROTO;
}

/* Steps 1 to 5 of a PUT. -EBUSY: not now. */
static int update_by_write(struct client *c, enum erda_op op, const void *key, size_t klen,
			   const void *value, size_t vlen)
{
	struct erda_req req;
	struct erda_rsp rsp;
	const void *pushed;
	size_t len;

	len = erda_object_build(&c->geo, c->object, op == ERDA_OP_DEL, key, klen, value, vlen);
	if (op == ERDA_OP_PUT)
		c->guess = len;
	fill_request(c, &req, op, key, klen);
	req.vlen = (uint32_t)vlen;
	int rc = ask(c, &req, &rsp);
	if (rc || rsp.off == ERDA_NO_OFFSET)
		return rc;
	if (rsp.head >= c->geo.heads || rsp.region >= ERDA_REGIONS)
		return -EPROTO;
	unsigned number = erda_export_log(rsp.head, rsp.region);
	uint64_t at = (uint64_t)rsp.off * c->geo.unit;
	rc = rpc_write(&c->conn, number, at, c->object, len);
	/* A WRITE's completion may come before its data can be seen; a READ after it pushes the
	 * data. */
	if (!rc && c->geo.knob.confirm)
		rc = rpc_read(&c->conn, number, at, 1, &pushed);
	return rc;
}

/* The whole PUT as one request: the server writes the object. */
static int update_by_message(struct client *c, enum erda_op op, const void *key, size_t klen,
			     const void *value, size_t vlen)
{
	struct erda_req req;
	struct erda_rsp rsp;
	size_t got;

	fill_request(c, &req, op, key, klen);
	req.inline_object = 1;
	req.vlen = (uint32_t)vlen;
	memcpy(c->msg, &req, sizeof(req));
	if (vlen)
		memcpy(c->msg + ERDA_REQ_BYTES(klen), value, vlen);
	memset(&rsp, 0, sizeof(rsp));
	int rc = rpc_call(&c->conn, c->msg, ERDA_REQ_BYTES(klen) + vlen, &rsp, sizeof(rsp), &got);
	if (rc)
		return rc;
	return got == sizeof(rsp) ? rsp.status : -EPROTO;
}

static const struct known_log *log_of(const struct client *c, const void *key, size_t klen)
{
	struct erda_place place;

	erda_place(&c->geo, key, klen, &place);
	return &c->log[place.head];
}

static int update(struct client *c, enum erda_op op, const void *key, size_t klen,
		  const void *value, size_t vlen)
{
	uint64_t wait_ns = FIRST_WAIT_NS;
	int rc;

	if (klen == 0 || klen > TM_MAX_KEY)
		return -EINVAL;
	if (vlen > c->geo.max_vlen)
		return -EMSGSIZE;
	notices_busy(c);
	for (unsigned tries = 0;; tries++) {
		if (log_of(c, key, klen)->cleaning)
			rc = update_by_message(c, op, key, klen, value, vlen);
		else
			rc = update_by_write(c, op, key, klen, value, vlen);
		if (rc != -EBUSY || tries == RETRIES)
			break;
		rc = notices_pause(c, wait_ns);
		if (rc)
			break;
		wait_ns *= 4;
	}
	notices_idle(c);
	return rc == -EBUSY ? -ENOSPC : rc;
}

int erda_put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return update(client, ERDA_OP_PUT, key, klen, value, vlen);
}

int erda_del(void *client, const void *key, size_t klen)
{
	return update(client, ERDA_OP_DEL, key, klen, NULL, 0);
}

int erda_clean(void *client)
{
	struct client *c = client;
	struct erda_req req;
	struct erda_rsp rsp;
	size_t got = 0;

	notices_busy(c);
	memset(&req, 0, sizeof(req));
	memset(&rsp, 0, sizeof(rsp));
	req.op = ERDA_OP_CLEAN;
	req.client = c->number;
	int rc = rpc_call(&c->conn, &req, ERDA_REQ_BYTES(0), &rsp, sizeof(rsp), &got);
	if (!rc)
		rc = got == sizeof(rsp) ? rsp.status : -EPROTO;
	notices_idle(c);
	return rc;
}

/* --------------------------------------------------------------------- GET */

static bool entry_is(const struct erda_entry *entry, const void *key, size_t klen)
{
	return entry->region != ERDA_EMPTY && entry->klen == klen &&
	       rt_check(memcmp(entry->key, key, klen) == 0);
}

/* The key's entry: one READ of its home slot, one of the rest of the neighbourhood. */
static int read_entry(struct client *c, const void *key, size_t klen, uint64_t *region,
		      uint8_t *head)
{
	const uint32_t bytes = sizeof(struct erda_entry);
	struct erda_place place;
	const void *data;
	unsigned n = 1;

	erda_place(&c->geo, key, klen, &place);
	uint64_t at = c->geo.table_off + (uint64_t)place.home * bytes;
	int rc = rpc_read(&c->conn, EXPORT_TABLE, at, bytes, &data);
	if (rc)
		return rc;
	if (!entry_is(data, key, klen)) {
		n = c->geo.hop - 1;
		rc = rpc_read(&c->conn, EXPORT_TABLE, at + bytes, n * bytes, &data);
		if (rc)
			return rc;
	}
	const struct erda_entry *entry = data;
	for (unsigned i = 0; i < n; i++, entry++) {
		if (!entry_is(entry, key, klen))
			continue;
		*region = entry->region;
		*head = entry->head;
		return FOUND;
	}
	return ABSENT;
}

/*
 * Read the object at `off`. Its length is not in the entry: read as much as the last
 * object had, and once more if the header says that there is more. A torn header can
 * say anything; it gets one second read, within the segment. Returns enum erda_state
 * or -errno; *bytes points to the object in the connection's buffer. `number`: of the
 * exported region.
 */
static int read_object(struct client *c, unsigned number, uint32_t off, const void *key,
		       size_t klen, struct erda_object *object, const uint8_t **bytes)
{
	uint64_t at = (uint64_t)off * c->geo.unit;
	size_t room = erda_room(&c->geo, at), want = c->guess;
	enum erda_state state = OBJECT_LONGER;
	int reads = c->geo.bug == BUG_READ_ONCE ? 1 : 2;

	if (room == 0)
		return OBJECT_BAD;
	if (room > c->geo.max_obj)
		room = c->geo.max_obj;
	for (int i = 0; i < reads && state == OBJECT_LONGER; i++) {
		const void *data;

		if (want > room)
			want = room;
		int rc = rpc_read(&c->conn, number, at, want, &data);
		if (rc)
			return rc;
		*bytes = data;
		state = erda_object_check(&c->geo, data, want, room, key, klen, object);
		want = object->len;
	}
	if (c->geo.bug == BUG_CRC_UNCHECKED && object->klen == klen && object->len <= room)
		state = OBJECT_GOOD;
	if (state == OBJECT_GOOD && !object->tag)
		c->guess = object->len;
	return state == OBJECT_LONGER ? OBJECT_BAD : state;
}

/* "The newest version at `bad` is damaged." The client does not wait for the repair. */
static int send_repair(struct client *c, const void *key, size_t klen, uint32_t bad)
{
	struct erda_req req;

	fill_request(c, &req, ERDA_OP_REPAIR, key, klen);
	req.bad = bad;
	return rpc_send(&c->conn, &req, ERDA_REQ_BYTES(klen));
}

/* Steps 3 to 5 of a GET: the newest version if it is intact, else the one before it. */
static int read_versions(struct client *c, uint64_t region, unsigned head, const void *key,
			 size_t klen, void *value, size_t cap, size_t *vlen)
{
	uint32_t newest = erda_newoff(region), previous = erda_oldoff(region), off = newest;
	struct erda_object object;
	const uint8_t *bytes;

	if (newest == ERDA_NO_OFFSET || head >= c->geo.heads)
		return ABSENT;
	unsigned number = erda_export_log(head, c->log[head].region);
	/* Moved, and the notice has not reached this client yet: it will. */
	if (!rt_check(erda_region_of(&c->geo, region, c->log[head].region) == c->log[head].region))
		return DAMAGED;
	int state = read_object(c, number, newest, key, klen, &object, &bytes);
	if (state == OBJECT_BAD) {
		if (c->geo.bug == BUG_OLD_UNREAD)
			return -EIO;
		off = previous;
		if (previous == ERDA_NO_OFFSET)
			return c->geo.bug == BUG_RETRY_UNBOUNDED ? DAMAGED : ABSENT;
		if (previous != newest) /* equal after a repair */
			state = read_object(c, number, previous, key, klen, &object, &bytes);
	}
	if (state < 0)
		return state;
	if (state == OBJECT_BAD)
		return DAMAGED;
	*vlen = object.vlen;
	memcpy(value, bytes + ERDA_HEADER + object.klen, object.vlen < cap ? object.vlen : cap);
	if (off != newest) {
		state = send_repair(c, key, klen, newest);
		if (state)
			return state;
	}
	return object.tag && c->geo.bug != BUG_TAG_IGNORED ? DELETED : FOUND;
}

/*
 * May "absent" be believed? Not if an entry was displaced since before the search:
 * the READ may have met neither of its places, or one that was being overwritten.
 * 1, 0, or -errno.
 */
static int nothing_moved(struct client *c)
{
	uint64_t before = c->moves;
	const void *data;
	int rc = rpc_read(&c->conn, EXPORT_MOVES, 0, sizeof(before), &data);

	if (rc)
		return rc;
	memcpy(&c->moves, data, sizeof(c->moves));
	return rt_check(c->moves == before && before % 2 == 0);
}

/* The server looks, and sends the value along. */
static int get_by_message(struct client *c, const void *key, size_t klen, void *value, size_t cap,
			  size_t *vlen)
{
	struct erda_req req;
	struct erda_rsp rsp;
	size_t got = 0;
	int rc;

	fill_request(c, &req, ERDA_OP_GET, key, klen);
	rc = rpc_call(&c->conn, &req, ERDA_REQ_BYTES(klen), c->msg, erda_msg_bytes(&c->geo), &got);
	if (rc)
		return rc;
	if (got < sizeof(rsp))
		return -EPROTO;
	memcpy(&rsp, c->msg, sizeof(rsp));
	if (rsp.status)
		return rsp.status == -ENOENT   ? DELETED
		       : rsp.status == -EAGAIN ? DAMAGED
					       : rsp.status;
	if (got != sizeof(rsp) + rsp.vlen)
		return -EPROTO;
	*vlen = rsp.vlen;
	memcpy(value, c->msg + sizeof(rsp), rsp.vlen < cap ? rsp.vlen : cap);
	return FOUND;
}

/* One attempt of a GET; DELETED: surely not there. */
static int look(struct client *c, const void *key, size_t klen, void *value, size_t cap,
		size_t *vlen)
{
	uint64_t region = ERDA_EMPTY;
	uint8_t head = 0;

	if (log_of(c, key, klen)->cleaning)
		return get_by_message(c, key, klen, value, cap, vlen);
	int rc = read_entry(c, key, klen, &region, &head);
	if (rc == FOUND)
		rc = read_versions(c, region, head, key, klen, value, cap, vlen);
	if (rc == ABSENT) {
		int sure = nothing_moved(c);

		if (sure)
			return sure < 0 ? sure : DELETED;
	}
	return rc;
}

int erda_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *c = client;
	uint64_t wait_ns = FIRST_WAIT_NS;
	int rc;

	if (klen == 0 || klen > TM_MAX_KEY)
		return -EINVAL;
	notices_busy(c);
	for (unsigned tries = 0;; tries++) {
		rc = look(c, key, klen, value, cap, vlen);
		if (rc == FOUND || rc == DELETED || rc < 0)
			break;
		if (tries >= RETRIES && c->geo.bug != BUG_RETRY_UNBOUNDED) {
			rc = rc == DAMAGED && c->geo.knob.give_up ? -EAGAIN : DELETED;
			break;
		}
		rc = notices_pause(c, wait_ns);
		if (rc)
			break;
		if (tries < RETRIES)
			wait_ns *= 4;
	}
	notices_idle(c);
	return rc == DELETED ? -ENOENT : rc;
}
