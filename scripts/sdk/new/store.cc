/*
 * NAME: a store for Tidemark to test, as simple as a store in C++ can be.
 *
 * The server does everything. A client sends a request and waits for the reply. An update becomes a record at the end of a
 * log in persistent memory (PM), and is durable before the reply; an index in DRAM says where a key's newest record is.
 * Containers, exceptions and static data are those of C++, and each simulated process has its own of all that.
 *
 * Make it yours: what lies in PM, what the server does with a request, what a client does by itself (serve_rdma()). The
 * connections, and who sends what, are in <tidemark/serve.h>.
 * `tidemark crashtest ./NAME.so` then says whether it keeps the promises at the end of this file.
 */
#include <cerrno>
#include <cstring>
#include <libpmem.h>
#include <new>
#include <string>
#include <tidemark/serve.h>
#include <tidemark/tidemark.h>
#include <unordered_map>

namespace {

/* Knobs, by their places in the list at the end. */
enum { KNOB_PERSIST };
enum { PERSIST_BOTH, PERSIST_FLAG };

/* --- the log in PM --- */

constexpr uint32_t DELETED = UINT32_MAX; /* in place of a value's length */

/* All records have the same size. The log ends at the first that is not used. */
struct record {
	uint32_t used;
	uint32_t klen, vlen;
	uint8_t key[TM_MAX_KEY];

	uint8_t *value() { return reinterpret_cast<uint8_t *>(this + 1); }
	std::string name() const { return {reinterpret_cast<const char *>(key), klen}; }
};

size_t record_bytes(const tm_params *p)
{
	return (sizeof(record) + p->max_vlen + TM_LINE - 1) / TM_LINE * TM_LINE;
}

/* One more than there can be: the last one stays unused. */
size_t pm_bytes(const tm_params *p)
{
	return (size_t{p->updates} + p->keys + 1) * record_bytes(p);
}

record *record_at(const tm_env *env, size_t i)
{
	return reinterpret_cast<record *>(env->pm + i * record_bytes(env->params));
}

unsigned regions(const tm_params *p, tm_region *out, unsigned max)
{
	if (max)
		out[0] = {"log", 0, pm_bytes(p)};
	return max ? 1 : 0;
}

/* Zeros are an empty log. */
int format(const tm_env *env)
{
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

/*
 * Nothing is to be repaired: a record counts from the moment when `used` is set, and all else of it was durable before. But if
 * only the server's process died, `used` itself may be in a cache still, and clients are going to see the record.
 */
int recover(const tm_env *env)
{
	for (size_t i = 0; record_at(env, i)->used; i++)
		pmem_persist(&record_at(env, i)->used, sizeof(uint32_t));
	return 0;
}

void fsck(const tm_env *env, tm_fsck *fsck)
{
	for (size_t i = 0; record_at(env, i)->used; i++) {
		const record *r = record_at(env, i);
		if (r->used != 1 || r->klen > TM_MAX_KEY || (r->vlen > env->params->max_vlen && r->vlen != DELETED))
			fsck->bad(fsck, "record %zu makes no sense", i);
	}
}

/* --- messages --- */

enum { PUT = 1, GET, DEL };

/* A request, or the reply to one; the value follows. */
struct message {
	uint32_t op;
	int32_t status; /* 0 or -errno */
	uint32_t klen, vlen;
	uint8_t key[TM_MAX_KEY];

	uint8_t *value() { return reinterpret_cast<uint8_t *>(this + 1); }
	const uint8_t *value() const { return reinterpret_cast<const uint8_t *>(this + 1); }
	std::string name() const { return {reinterpret_cast<const char *>(key), klen}; }
};

/* --- the server --- */

class server {
public:
	explicit server(const tm_env *env) : env(*env)
	{
		for (; record_at(env, records)->used; records++)
			index[record_at(env, records)->name()] = record_at(env, records);
	}

	int start()
	{
		int rc = serve_init(&link, &env, sizeof(message) + env.params->max_vlen, handle, this);
		return rc ? rc : serve_start(&link);
	}

private:
	static size_t handle(void *server, const void *request, void *reply)
	{
		return static_cast<class server *>(server)->answer(static_cast<const message *>(request), static_cast<message *>(reply));
	}

	int append(const message *m, uint32_t vlen)
	{
		record *r = record_at(&env, records);
		if ((records + 2) * record_bytes(env.params) > env.pm_len || rt_pm_full())
			return -ENOSPC;
		r->klen = m->klen;
		r->vlen = vlen;
		std::memcpy(r->key, m->key, m->klen);
		if (vlen != DELETED)
			std::memcpy(r->value(), m->value(), vlen);
		if (env.params->knob[KNOB_PERSIST] == PERSIST_BOTH)
			pmem_persist(r, record_bytes(env.params));
		/* From here on it counts. It must not be durable before the rest is. */
		r->used = 1;
		pmem_persist(&r->used, sizeof(r->used));
		index[m->name()] = r;
		records++;
		return 0;
	}

	size_t answer(const message *m, message *reply)
	{
		std::memset(static_cast<void *>(reply), 0, sizeof(*reply));
		auto found = index.find(m->name());
		if (m->op == PUT) {
			reply->status = append(m, m->vlen);
		} else if (found == index.end() || found->second->vlen == DELETED) {
			reply->status = -ENOENT;
		} else if (m->op == DEL) {
			reply->status = append(m, DELETED);
		} else {
			reply->vlen = found->second->vlen;
			std::memcpy(reply->value(), found->second->value(), reply->vlen);
		}
		return sizeof(*reply) + reply->vlen;
	}

	const tm_env env;
	serve_server link;
	size_t records = 0; /* in use */
	std::unordered_map<std::string, record *> index;
};

/* --- a client --- */

class client {
public:
	explicit client(const tm_env *env) : error(serve_connect(&link, env, sizeof(message) + env->params->max_vlen)) {}

	int call(uint32_t op, const void *key, size_t klen, const void *value, size_t vlen)
	{
		message *m = reinterpret_cast<message *>(link.request);
		std::memset(static_cast<void *>(m), 0, sizeof(*m));
		m->op = op;
		m->klen = static_cast<uint32_t>(klen);
		m->vlen = static_cast<uint32_t>(vlen);
		std::memcpy(m->key, key, klen);
		if (vlen)
			std::memcpy(m->value(), value, vlen);
		int rc = serve_call(&link, sizeof(*m) + vlen);
		return rc ? rc : reply()->status;
	}
	message *reply() { return reinterpret_cast<message *>(link.reply); }

private:
	serve_client link;

public:
	const int error; /* of connecting */
};

/* --- what Tidemark calls --- */

server *the_server; /* of this process */

int serve(const tm_env *env)
{
	try {
		the_server = new server(env);
		return the_server->start();
	} catch (const std::bad_alloc &) {
		return -ENOMEM;
	}
}

int open_client(const tm_env *env, void **handle)
{
	client *c = new (std::nothrow) client(env);
	*handle = c;
	return c ? c->error : -ENOMEM;
}

int put(void *handle, const void *key, size_t klen, const void *value, size_t vlen)
{
	return static_cast<client *>(handle)->call(PUT, key, klen, value, vlen);
}

int get(void *handle, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	client *c = static_cast<client *>(handle);
	int rc = c->call(GET, key, klen, nullptr, 0);
	if (rc)
		return rc;
	*vlen = c->reply()->vlen;
	std::memcpy(value, c->reply()->value(), *vlen < cap ? *vlen : cap);
	return 0;
}

int del(void *handle, const void *key, size_t klen)
{
	return static_cast<client *>(handle)->call(DEL, key, klen, nullptr, 0);
}

constexpr tm_knob knobs[] = {
	{"persist", "both flag", "what is made durable before the reply: the record and its flag, or the flag"},
	{},
};

constexpr tm_variant variants[] = {
	{"flag_only", "persist=flag", "a seeded bug: the flag may be durable before the record is", TM_BIT(TM_RDA) | TM_BIT(TM_DUR)},
	{},
};

constexpr tm_store describe()
{
	tm_store s = {};
	s.name = "NAME";
	s.what = "a log that the server appends to";
	s.promises = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) | TM_BIT(TM_KEEP) |
		     TM_BIT(TM_NORES) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK);
	s.knobs = knobs;
	s.variants = variants;
	s.pm_bytes = pm_bytes;
	s.regions = regions;
	s.format = format;
	s.recover = recover;
	s.serve = serve;
	s.fsck = fsck;
	s.open = open_client;
	s.put = put;
	s.get = get;
	s.del = del;
	return s;
}

} // namespace

/* Known before any constructor runs. */
extern "C" constinit const tm_store NAME_store = describe();
