/*
 * NAME: a store for Tidemark to test, as simple as a store in C++ can be.
 *
 * The server does everything. A client sends a request and waits for the reply. An update becomes a record at the end of a
 * log in persistent memory (PM), and is durable before the reply; an index in DRAM says where a key's newest record is.
 * Containers, exceptions and static data are those of C++, and each simulated process has its own of all that.
 *
 * Make it yours: what lies in PM, what the server does with a request, what a client does by itself (RDMA READ and WRITE).
 * `tidemark crashtest ./NAME.so` then says whether it keeps the promises at the end of this file.
 */
#include <cerrno>
#include <cstring>
#include <infiniband/verbs.h>
#include <libpmem.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <tidemark/rt.h>
#include <tidemark/tidemark.h>
#include <unordered_map>
#include <vector>

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
	std::string name() const { return {reinterpret_cast<const char *>(key), klen}; }
};

/* What client and server tell each other when they connect. */
struct greeting {
	uint32_t client, qpn;
	ibv_gid gid;
};

/* --- verbs --- */

/* What a call that fails says. Functions that Tidemark calls turn it into -errno. */
struct failure : std::runtime_error {
	int error;
	explicit failure(int error) : std::runtime_error("a call failed"), error(error) {}
};

template <typename T> T *made(T *thing)
{
	if (!thing)
		throw failure(errno);
	return thing;
}

void done(int rc)
{
	if (rc)
		throw failure(rc < 0 ? -rc : rc);
}

/* Registered memory for messages of one size. */
class messages {
public:
	messages(ibv_pd *pd, size_t bytes, size_t count)
		: bytes(bytes), memory(bytes * count), mr(made(ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE)))
	{
	}
	message *at(size_t i) { return reinterpret_cast<message *>(memory.data() + i * bytes); }
	uint32_t lkey() const { return mr->lkey; }
	const size_t bytes;

private:
	std::vector<uint8_t> memory;
	ibv_mr *mr;
};

/* A reliable connection. */
class connection {
public:
	connection(ibv_pd *pd, ibv_cq *cq)
	{
		ibv_qp_init_attr init = {};
		init.send_cq = init.recv_cq = cq;
		init.qp_type = IBV_QPT_RC;
		init.cap.max_send_wr = init.cap.max_recv_wr = 4;
		init.cap.max_send_sge = init.cap.max_recv_sge = 1;
		qp = made(ibv_create_qp(pd, &init));
	}
	~connection() { ibv_destroy_qp(qp); }
	connection(const connection &) = delete;

	greeting greet(uint32_t client) const
	{
		greeting g = {};
		g.client = client;
		g.qpn = qp->qp_num;
		done(ibv_query_gid(qp->context, 1, 0, &g.gid));
		return g;
	}

	void ready_to_receive(const greeting &peer)
	{
		ibv_qp_attr attr = {};
		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
		done(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
		attr = {};
		attr.qp_state = IBV_QPS_RTR;
		attr.path_mtu = IBV_MTU_1024;
		attr.dest_qp_num = peer.qpn;
		attr.max_dest_rd_atomic = 1;
		attr.min_rnr_timer = 1;
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = peer.gid;
		attr.ah_attr.grh.hop_limit = 64;
		attr.ah_attr.port_num = 1;
		done(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	}

	void ready_to_send()
	{
		ibv_qp_attr attr = {};
		attr.qp_state = IBV_QPS_RTS;
		attr.timeout = 16; /* 0.27 s */
		attr.retry_cnt = 6;
		attr.rnr_retry = 7; /* for ever */
		attr.max_rd_atomic = 1;
		done(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC));
	}

	void receive(uint64_t id, message *at, messages &of)
	{
		ibv_sge sge = {reinterpret_cast<uintptr_t>(at), static_cast<uint32_t>(of.bytes), of.lkey()};
		ibv_recv_wr wr = {}, *bad;
		wr.wr_id = id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		done(ibv_post_recv(qp, &wr, &bad));
	}

	void send(uint64_t id, message *at, size_t bytes, messages &of)
	{
		ibv_sge sge = {reinterpret_cast<uintptr_t>(at), static_cast<uint32_t>(bytes), of.lkey()};
		post(id, IBV_WR_SEND, &sge, 1);
	}

	/* An RDMA WRITE of no bytes: it fails if nobody is there. */
	void probe(uint64_t id) { post(id, IBV_WR_RDMA_WRITE, nullptr, 0); }

private:
	void post(uint64_t id, ibv_wr_opcode opcode, ibv_sge *list, int pieces)
	{
		ibv_send_wr wr = {}, *bad;
		wr.wr_id = id;
		wr.sg_list = list;
		wr.num_sge = pieces;
		wr.opcode = opcode;
		wr.send_flags = IBV_SEND_SIGNALED;
		done(ibv_post_send(qp, &wr, &bad));
	}
	ibv_qp *qp;
};

/* --- the server --- */

/* Work requests' ids name the client, and which of its connections it is: completions of an earlier one are stale. */
enum { REQUEST, REPLY };
struct peer {
	std::shared_ptr<connection> link; /* none: not connected */
	uint32_t connects = 0;
	bool sending = false; /* the last reply has not been acknowledged */
	bool waiting = false; /* a request has come, and can only be answered after that */
	uint64_t id(uint32_t client, unsigned what) const { return uint64_t{connects} << 32 | client << 1 | what; }
};

class server {
public:
	explicit server(const tm_env *env)
		: env(*env), pd(made(ibv_alloc_pd(env->verbs))),
		  cq(made(ibv_create_cq(env->verbs, static_cast<int>(8 * (env->params->clients + 1)), nullptr, nullptr, 0))),
		  peers(env->params->clients + 1), buffers(pd, sizeof(message) + env->params->max_vlen, 2 * peers.size()), now(buffers.bytes), reply(buffers.bytes)
	{
		for (; record_at(env, records)->used; records++)
			index[record_at(env, records)->name()] = record_at(env, records);
	}

	/* A client connects, maybe once more. */
	int accept(const greeting &client, greeting &own)
	{
		peer &p = peers.at(client.client);
		p.connects++;
		p.sending = p.waiting = false;
		p.link = std::make_shared<connection>(pd, cq);
		p.link->ready_to_receive(client);
		p.link->receive(p.id(client.client, REQUEST), request_of(client.client), buffers);
		p.link->ready_to_send();
		own = p.link->greet(client.client);
		return 0;
	}

	void run()
	{
		ibv_wc wc;
		for (;;) {
			if (ibv_poll_cq(cq, 1, &wc) < 1) {
				rt_yield();
				continue;
			}
			uint32_t client = static_cast<uint32_t>(wc.wr_id) >> 1;
			peer &p = peers.at(client);
			if (wc.wr_id >> 32 != p.connects || wc.status != IBV_WC_SUCCESS)
				continue;
			if ((wc.wr_id & 1) == REPLY)
				p.sending = false;
			else
				p.waiting = true;
			if (p.waiting && !p.sending) {
				p.waiting = false;
				answer(p, client);
			}
		}
	}

private:
	void answer(peer &p, uint32_t client)
	{
		/* While it is handled, the client may die, connect again, and send another one. */
		const uint32_t connects = p.connects;
		const std::shared_ptr<connection> link = p.link;
		std::memcpy(now.data(), request_of(client), buffers.bytes);
		handle(reinterpret_cast<message *>(now.data()), reinterpret_cast<message *>(reply.data()));
		if (connects != p.connects)
			return;
		std::memcpy(reply_to(client), reply.data(), buffers.bytes);
		p.sending = true;
		try {
			/* The next request may come as soon as the client has its reply. */
			link->receive(p.id(client, REQUEST), request_of(client), buffers);
			link->send(p.id(client, REPLY), reply_to(client),
				   sizeof(message) + reinterpret_cast<message *>(reply.data())->vlen, buffers);
		} catch (const failure &) {
			if (connects == p.connects)
				drop(p, client);
		}
	}

	/* The client finds out, and connects again. It is said first: it may find out at once. */
	void drop(peer &p, uint32_t client)
	{
		rt_client_dropped(client);
		p.link.reset();
		p.connects++;
	}

	message *request_of(uint32_t client) { return buffers.at(2 * client); }
	message *reply_to(uint32_t client) { return buffers.at(2 * client + 1); }

	int append(message *m, uint32_t vlen)
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

	void handle(message *m, message *reply)
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
	}

	const tm_env env;
	ibv_pd *pd;
	ibv_cq *cq;
	std::vector<peer> peers;
	messages buffers;
	std::vector<uint8_t> now, reply; /* the request that is handled, and the reply to it */
	size_t records = 0;		 /* in use */
	std::unordered_map<std::string, record *> index;
};

/* --- a client --- */

constexpr uint64_t SILENCE_NS = 1000000; /* without a reply for so long, the client asks whether the server is there */

class client {
public:
	explicit client(const tm_env *env)
		: pd(made(ibv_alloc_pd(env->verbs))), cq(made(ibv_create_cq(env->verbs, 8, nullptr, nullptr, 0))), link(pd, cq),
		  buffers(pd, sizeof(message) + env->params->max_vlen, 2)
	{
		greeting own = link.greet(env->client), server;
		done(rt_connect(&own, sizeof(own), &server, sizeof(server)));
		link.ready_to_receive(server);
		link.ready_to_send();
	}

	int call(uint32_t op, const void *key, size_t klen, const void *value, size_t vlen)
	{
		if (broken)
			return -EIO;
		message *m = buffers.at(0);
		std::memset(static_cast<void *>(m), 0, sizeof(*m));
		m->op = op;
		m->klen = static_cast<uint32_t>(klen);
		m->vlen = static_cast<uint32_t>(vlen);
		std::memcpy(m->key, key, klen);
		if (vlen)
			std::memcpy(m->value(), value, vlen);
		try {
			link.receive(ID_REPLY, reply(), buffers);
			link.send(ID_REQUEST, m, sizeof(*m) + vlen, buffers);
			wait_for_reply();
		} catch (const failure &) {
			broken = true;
			return -EIO;
		}
		return reply()->status;
	}
	message *reply() { return buffers.at(1); }

private:
	enum { ID_REPLY, ID_REQUEST, ID_PROBE };

	/* The reply has come, and the request is acknowledged: its buffer and its place in the queue are free. */
	void wait_for_reply()
	{
		uint64_t since = rt_now();
		bool probing = false, sent = false, replied = false;
		ibv_wc wc;
		while (!sent || !replied) {
			int n = ibv_poll_cq(cq, 1, &wc);
			if (n > 0 && wc.status != IBV_WC_SUCCESS)
				throw failure(EIO);
			sent |= n > 0 && wc.wr_id == ID_REQUEST;
			replied |= n > 0 && wc.wr_id == ID_REPLY;
			if (n > 0 && wc.wr_id == ID_PROBE) {
				probing = false;
				since = rt_now();
			}
			if (n > 0)
				continue;
			rt_yield();
			if (!probing && rt_now() - since > SILENCE_NS) {
				link.probe(ID_PROBE);
				probing = true;
			}
		}
	}

	ibv_pd *pd;
	ibv_cq *cq;
	connection link;
	messages buffers;
	bool broken = false; /* the connection is */
};

/* --- what Tidemark calls --- */

server *the_server; /* of this process */

int accept_client(void *, const void *request, size_t request_len, void *reply, size_t reply_len)
{
	if (request_len != sizeof(greeting) || reply_len < sizeof(greeting))
		return -EINVAL;
	try {
		return the_server->accept(*static_cast<const greeting *>(request), *static_cast<greeting *>(reply));
	} catch (const failure &f) {
		return -f.error;
	}
}

int serve(const tm_env *env)
{
	try {
		the_server = new server(env);
		done(rt_listen(accept_client, nullptr));
		return rt_spawn("server", [](void *) { the_server->run(); }, nullptr);
	} catch (const failure &f) {
		return -f.error;
	} catch (const std::exception &) {
		return -ENOMEM;
	}
}

int open_client(const tm_env *env, void **handle)
{
	try {
		*handle = new client(env);
		return 0;
	} catch (const failure &f) {
		return -f.error;
	} catch (const std::exception &) {
		return -ENOMEM;
	}
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
