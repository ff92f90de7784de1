/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bank: accounts in persistent memory (PM), and a server of many threads. Clients pay money in, move it from one account to
 * another, and look; a model says what that means, and a judge that no money is made or lost, whatever fails.
 *
 * An account is a line of PM with a name and a balance. A transfer changes two. So it first makes a record durable that says
 * what was in both, and takes it back when both are durable; a recovery that finds such a record undoes the transfer. Each
 * worker has a record of its own, and the accounts in it are locked.
 *
 * Clients connect by rdma_cm. A thread waits for them; a connection is then a worker's until it is closed, and a worker
 * without one sleeps.
 */
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <libpmem.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <tidemark/rt.h>
#include <tidemark/tidemark.h>
#include <vector>

namespace {

constexpr uint16_t PORT = 7473;
constexpr uint64_t DEPOSIT = 10; /* what a deposit pays in; a transfer moves 1 */
constexpr unsigned MAX_ACCOUNTS = 32, MAX_WORKERS = 2 * TM_MAX_CLIENTS; /* of those who have left, some are at work still */
constexpr unsigned MAX_TRIES = 8; /* to post a reply */

/* Knobs, by their places in the list at the end. */
enum { KNOB_ORDER, KNOB_LOCK, KNOB_RECORD, KNOB_RECOVERY, KNOB_REPLY, KNOB_WAKE };
enum { ORDER_ONE, ORDER_ARGUMENTS };
enum { LOCK_WHOLE, LOCK_SHORT, LOCK_NONE };
enum { RECORD_FIRST, RECORD_LATER };
enum { RECOVERY_UNDO, RECOVERY_BLIND, RECOVERY_HASTY };
enum { REPLY_DURABLE, REPLY_EARLY };
enum { WAKE_ONE, WAKE_NOBODY };

/* --- what lies in PM --- */

/* An account is in use when its name has a length. Those in use come first. */
struct alignas(TM_LINE) entry {
	uint64_t balance;
	uint32_t klen;
	char key[TM_MAX_KEY];

	std::string name() const { return {key, klen}; }
};

/* What two accounts had before a transfer. Without one under way `sum` is 0. */
struct alignas(TM_LINE) record {
	uint64_t sum;
	uint64_t account[2], balance[2];
};

/* FNV-1a. */
uint64_t hash(const void *bytes, size_t len)
{
	const uint8_t *at = static_cast<const uint8_t *>(bytes);
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < len; i++)
		h = (h ^ at[i]) * 1099511628211u;
	return h;
}

uint64_t sum_of(const record &r)
{
	return hash(r.account, sizeof(r.account) + sizeof(r.balance)) | 1; /* never 0 */
}

/* Zeros are a bank without accounts. */
struct pool {
	entry accounts[MAX_ACCOUNTS];
	record undo[MAX_WORKERS];
};

pool *pool_of(const tm_env *env)
{
	return reinterpret_cast<pool *>(env->pm);
}

size_t pm_bytes(const tm_params *)
{
	return sizeof(pool);
}

unsigned regions(const tm_params *, tm_region *out, unsigned max)
{
	if (max < 2)
		return 0;
	out[0] = {"accounts", offsetof(pool, accounts), sizeof(pool::accounts)};
	out[1] = {"undo", offsetof(pool, undo), sizeof(pool::undo)};
	return 2;
}

int format(const tm_env *env)
{
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

/* No two records have an account in common, so that their order does not matter. */
int recover(const tm_env *env)
{
	pool *p = pool_of(env);
	const uint8_t how = env->params->knob[KNOB_RECOVERY];
	for (const record &r : p->undo) {
		if (how == RECOVERY_BLIND || !r.sum || !rt_check(r.sum == sum_of(r)))
			continue;
		for (unsigned k = 0; k < 2; k++)
			p->accounts[r.account[k]].balance = r.balance[k];
	}
	/* Before the records are gone, for the power may fail again. And if only the server's process died, a deposit may be in
	 * a cache still, and clients are going to see it. */
	if (how != RECOVERY_HASTY)
		pmem_persist(p->accounts, sizeof(p->accounts));
	for (record &r : p->undo)
		r.sum = 0;
	pmem_persist(p, sizeof(*p));
	return 0;
}

void fsck(const tm_env *env, tm_fsck *fsck)
{
	std::set<std::string> names;
	uint64_t all = 0;
	bool last = false; /* it has been found */
	for (const entry &e : pool_of(env)->accounts) {
		all += e.balance;
		last = last || !e.klen;
		if (last ? e.klen || e.balance : e.klen > TM_MAX_KEY || !names.insert(e.name()).second)
			fsck->bad(fsck, "account %zu makes no sense", static_cast<size_t>(&e - pool_of(env)->accounts));
	}
	if (all % DEPOSIT)
		fsck->bad(fsck, "the accounts have %llu, and only tens were paid in", static_cast<unsigned long long>(all));
	for (const record &r : pool_of(env)->undo)
		if (r.sum)
			fsck->bad(fsck, "record %zu is of a transfer under way", static_cast<size_t>(&r - pool_of(env)->undo));
}

/* --- messages and connections --- */

enum { DO_DEPOSIT, DO_TRANSFER, DO_BALANCE, DO_AUDIT };

/* A request, with up to two names, or the reply to one. */
struct message {
	uint32_t op;
	int32_t status;	 /* 0 or -errno */
	uint32_t len[2]; /* of the names; or the first: of the answer, in words */
	union {
		char key[2][TM_MAX_KEY];
		uint64_t answer[2 * MAX_ACCOUNTS];
	};

	std::string name(unsigned i) const { return {key[i], std::min<size_t>(len[i], TM_MAX_KEY)}; }
};

/* Calls that fail throw; the functions that Tidemark calls, and replies, have -errno. */
[[noreturn]] void fail(int error)
{
	throw std::system_error(error, std::generic_category());
}

template <typename T> T *made(T *thing)
{
	if (!thing)
		fail(errno);
	return thing;
}

/* librdmacm returns -1, verbs return an error. */
void done(int rc)
{
	if (rc)
		fail(rc < 0 ? errno : rc);
}

template <typename F> int error_of(F work)
{
	try {
		work();
		return 0;
	} catch (const std::system_error &e) {
		return -e.code().value();
	} catch (const std::exception &) {
		return -ENOMEM;
	}
}

/* What a verbs object is destroyed by. */
template <auto destroy> struct destroys {
	template <typename T> void operator()(T *thing) const { destroy(thing); }
};
template <typename T, auto destroy> using owned = std::unique_ptr<T, destroys<destroy>>;

constexpr rdma_conn_param PARAMETERS = {nullptr, 0, 1, 1, 0, 6, 7, 0, 0}; /* one READ each way, 6 retries, 7: for ever */

/* One side of a connection: who is there, a queue pair, and a message each way. */
struct side {
	/* The server gives who has connected. */
	explicit side(rdma_cm_id *visitor) : events(made(rdma_create_event_channel()))
	{
		if (visitor)
			done(rdma_migrate_id(visitor, events.get()));
		else
			done(rdma_create_id(events.get(), &visitor, nullptr, RDMA_PS_TCP));
		id.reset(visitor);
	}

	void open()
	{
		ibv_qp_init_attr init = {};
		cq.reset(made(ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0)));
		init.send_cq = init.recv_cq = cq.get();
		init.qp_type = IBV_QPT_RC;
		init.cap = {4, 4, 1, 1, 0};
		done(rdma_create_qp(id.get(), nullptr, &init));
		qp.reset(id.get());
		mr.reset(made(rdma_reg_msgs(id.get(), &in, sizeof(in) + sizeof(out))));
		receive();
	}

	/* Wait for the next event, which has to be this one. */
	void await(rdma_cm_event_type type)
	{
		rdma_cm_event *event;
		done(rdma_get_cm_event(events.get(), &event));
		bool is = event->event == type;
		rdma_ack_cm_event(event);
		if (!is)
			fail(ECONNREFUSED);
	}

	/* The connection is there: from now on events are not waited for. */
	void opened() { fcntl(events->fd, F_SETFL, O_NONBLOCK); }

	bool closed()
	{
		rdma_cm_event *event;
		while (!rdma_get_cm_event(events.get(), &event)) {
			over = over || event->event != RDMA_CM_EVENT_ESTABLISHED;
			rdma_ack_cm_event(event);
		}
		return over;
	}

	/* `in` has been looked at. Whoever could not post what comes here may try again. */
	void receive()
	{
		come = false;
		if (!listening)
			done(rdma_post_recv(id.get(), nullptr, &in, sizeof(in), mr.get()));
		listening = true;
	}

	void send()
	{
		done(rdma_post_send(id.get(), nullptr, &out, sizeof(out), mr.get(), IBV_SEND_SIGNALED));
		gone = false;
	}

	/* Something has come or gone. False: there is nothing new. */
	bool poll()
	{
		ibv_wc wc;
		if (ibv_poll_cq(cq.get(), 1, &wc) < 1)
			return false;
		if (wc.status != IBV_WC_SUCCESS)
			fail(EIO);
		bool received = wc.opcode == IBV_WC_RECV;
		(received ? come : gone) = true;
		listening = listening && !received;
		return true;
	}

	bool come = false; /* a message, which has not been looked at */
	bool gone = true;  /* the last one that was sent: `out` is free */
	bool listening = false;
	bool over = false; /* the other side has gone */
	message in = {}, out = {};
	owned<rdma_event_channel, rdma_destroy_event_channel> events;
	owned<rdma_cm_id, rdma_destroy_id> id;
	owned<ibv_cq, ibv_destroy_cq> cq;
	owned<ibv_mr, rdma_dereg_mr> mr;
	owned<rdma_cm_id, rdma_destroy_qp> qp;
};

/* --- the bank --- */

struct account {
	std::mutex lock; /* of the balance */
	entry *at;
};

/* Locks of accounts are taken in the order of their names, and no other lock while one is held. */
class bank {
public:
	explicit bank(const tm_env *env) : knob(env->params->knob), pm(pool_of(env))
	{
		for (unsigned i = 0; i < MAX_ACCOUNTS && pm->accounts[i].klen; i++)
			accounts[pm->accounts[i].name()].at = &pm->accounts[i];
	}

	/* Carries out a request; `undo` is the caller's record. Nothing throws once a balance has changed. */
	void handle(const message &m, message &reply, record *undo)
	{
		if (m.op == DO_AUDIT)
			return audit(reply);
		reply.len[0] = 1;
		if (m.op == DO_DEPOSIT)
			reply.answer[0] = deposit(m.name(0));
		else if (m.op == DO_TRANSFER)
			reply.answer[0] = transfer(m.name(0), m.name(1), undo);
		else
			reply.answer[0] = balance(m.name(0));
	}

private:
	/* Null: there is no such account, and it is not to be opened. */
	account *find(const std::string &name, bool open)
	{
		std::lock_guard hold(directory);
		auto found = accounts.find(name);
		if (found != accounts.end() || !open)
			return found == accounts.end() ? nullptr : &found->second;
		if (accounts.size() == MAX_ACCOUNTS || rt_pm_full())
			fail(ENOSPC);
		entry *e = &pm->accounts[accounts.size()];
		account *a = &accounts[name];
		a->at = e;
		std::memcpy(e->key, name.data(), name.size());
		pmem_persist(e->key, sizeof(e->key));
		/* From here on it counts. */
		e->klen = static_cast<uint32_t>(name.size());
		pmem_persist(&e->klen, sizeof(e->klen));
		return a;
	}

	/* With this the operation is in effect. A bug of some stores: only after the reply. */
	void commit(const void *line)
	{
		if (knob[KNOB_REPLY] == REPLY_DURABLE)
			pmem_persist(line, TM_LINE);
	}

	uint64_t deposit(const std::string &name)
	{
		account *a = find(name, true);
		std::lock_guard hold(a->lock);
		uint64_t now = a->at->balance + DEPOSIT;
		a->at->balance = now; /* a word is never torn */
		commit(a->at);
		return now;
	}

	bool transfer(const std::string &from, const std::string &to, record *undo)
	{
		account *pays = find(from, false);
		if (!pays)
			return false;
		if (from == to)
			return balance(from) > 0;
		account *gets = find(to, true);
		bool in_order = from < to || knob[KNOB_ORDER] == ORDER_ARGUMENTS;
		std::unique_lock first((in_order ? pays : gets)->lock, std::defer_lock);
		std::unique_lock second((in_order ? gets : pays)->lock, std::defer_lock);
		if (knob[KNOB_LOCK] != LOCK_NONE) {
			first.lock();
			second.lock();
		}
		entry *a = pays->at, *b = gets->at;
		if (!a->balance)
			return false;
		undo->account[0] = static_cast<uint64_t>(a - pm->accounts);
		undo->account[1] = static_cast<uint64_t>(b - pm->accounts);
		undo->balance[0] = a->balance;
		undo->balance[1] = b->balance;
		undo->sum = sum_of(*undo);
		/* Before a balance changes: what has changed may be durable at any moment. */
		if (knob[KNOB_RECORD] == RECORD_FIRST)
			pmem_persist(undo, sizeof(*undo));
		a->balance--;
		b->balance++;
		pmem_flush(a, sizeof(*a));
		pmem_flush(b, sizeof(*b));
		pmem_drain();
		/* The record still says what the balances were: what others pay in meanwhile would be undone, too. */
		if (knob[KNOB_LOCK] == LOCK_SHORT) {
			first.unlock();
			second.unlock();
		}
		undo->sum = 0;
		commit(undo);
		return true;
	}

	uint64_t balance(const std::string &name)
	{
		account *a = find(name, false);
		if (!a)
			return 0;
		std::lock_guard hold(a->lock);
		return a->at->balance;
	}

	/* Names, as hashes, and balances, of all accounts that have something, at one moment. */
	void audit(message &reply)
	{
		std::lock_guard hold(directory);
		std::vector<std::unique_lock<std::mutex>> locks;
		std::map<uint64_t, uint64_t> all;
		for (auto &[name, a] : accounts) {
			locks.emplace_back(a.lock);
			if (a.at->balance)
				all[hash(name.data(), name.size())] = a.at->balance;
		}
		for (auto [name, balance] : all) {
			reply.answer[reply.len[0]++] = name;
			reply.answer[reply.len[0]++] = balance;
		}
	}

	const uint8_t *const knob;
	pool *const pm;
	std::mutex directory; /* of `accounts`; none is ever removed */
	std::map<std::string, account> accounts;
};

/* --- the server --- */
class server {
public:
	explicit server(const tm_env *env)
		: pm(pool_of(env)), knob(env->params->knob), money(env), events(made(rdma_create_event_channel()))
	{
		sockaddr_in own = {};
		own.sin_family = AF_INET;
		own.sin_port = htons(PORT);
		rdma_cm_id *id;
		done(rdma_create_id(events.get(), &id, nullptr, RDMA_PS_TCP));
		listener.reset(id);
		done(rdma_bind_addr(id, reinterpret_cast<sockaddr *>(&own)));
		done(rdma_listen(id, TM_MAX_CLIENTS));
		start("porter", [this] { wait_for_visitors(); });
	}

private:
	template <typename F> void start(const char *name, F work)
	{
		std::thread thread(work);
		pthread_setname_np(thread.native_handle(), name);
		thread.detach();
	}

	void wait_for_visitors()
	{
		rdma_cm_event *event;
		for (;; std::this_thread::yield()) {
			if (rdma_get_cm_event(events.get(), &event))
				continue;
			rdma_cm_id *id = event->id;
			bool connects = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
			rdma_ack_cm_event(event);
			if (connects && error_of([&] { welcome(id); }))
				refuse(id);
		}
	}

	void refuse(rdma_cm_id *id)
	{
		rdma_reject(id, nullptr, 0);
		rdma_destroy_id(id);
	}

	/* An idle worker has this visitor, or a new one has. */
	void welcome(rdma_cm_id *id)
	{
		std::lock_guard hold(lock);
		if (idle <= waiting.size()) {
			if (workers == MAX_WORKERS)
				fail(EAGAIN);
			start("worker", [this, undo = &pm->undo[workers]] { work(undo); });
			workers++;
			idle++;
		}
		waiting.push_back(id);
		if (knob[KNOB_WAKE] == WAKE_ONE)
			someone_waits.notify_one();
	}

	void work(record *undo)
	{
		std::unique_lock hold(lock);
		for (;; idle++) {
			while (waiting.empty())
				someone_waits.wait(hold);
			rdma_cm_id *id = waiting.front();
			waiting.pop_front();
			idle--;
			hold.unlock();
			serve(id, undo);
			hold.lock();
		}
	}

	void serve(rdma_cm_id *id, record *undo)
	{
		std::optional<side> link;
		rdma_conn_param p = PARAMETERS;
		if (error_of([&] {
			    link.emplace(id);
			    link->open();
			    done(rdma_accept(id, &p));
		    })) {
			if (!link)
				return refuse(id);
			rdma_reject(id, nullptr, 0);
			return;
		}
		link->opened();
		bool bad = false, told = false;
		for (; !link->closed(); std::this_thread::yield())
			if (!bad)
				bad = error_of([&] { attend(*link, undo); });
			else if (!told) /* the client would wait for ever */
				told = !rdma_disconnect(id);
	}

	void attend(side &link, record *undo)
	{
		while (link.poll()) {
			if (!link.come || !link.gone)
				continue;
			link.out = {};
			link.out.status = error_of([&] { money.handle(link.in, link.out, undo); });
			/* The next request may come as soon as the client has its reply. */
			for (unsigned tries = 0; error_of([&] { link.receive(), link.send(); }); std::this_thread::yield())
				if (++tries == MAX_TRIES)
					fail(ENOMEM);
			if (knob[KNOB_REPLY] == REPLY_EARLY)
				pmem_persist(pm, sizeof(*pm));
		}
	}

	pool *const pm;
	const uint8_t *const knob;
	bank money;
	owned<rdma_event_channel, rdma_destroy_event_channel> events;
	owned<rdma_cm_id, rdma_destroy_id> listener;
	std::mutex lock; /* of all below */
	std::condition_variable someone_waits;
	std::deque<rdma_cm_id *> waiting;
	unsigned workers = 0, idle = 0; /* those that have just been started are idle, too */
};

/* --- a client --- */

class client {
public:
	client() : link(nullptr)
	{
		sockaddr_in server = {};
		server.sin_family = AF_INET;
		server.sin_port = htons(PORT);
		server.sin_addr.s_addr = htonl(0x0a000001); /* 10.0.0.1; any will do here */
		rdma_conn_param p = PARAMETERS;
		done(rdma_resolve_addr(link.id.get(), nullptr, reinterpret_cast<sockaddr *>(&server), 1000));
		link.await(RDMA_CM_EVENT_ADDR_RESOLVED);
		done(rdma_resolve_route(link.id.get(), 1000));
		link.await(RDMA_CM_EVENT_ROUTE_RESOLVED);
		link.open();
		done(rdma_connect(link.id.get(), &p));
		link.await(RDMA_CM_EVENT_ESTABLISHED);
		link.opened();
	}

	int ask(uint32_t op, const tm_call *call, tm_answer *answer)
	{
		if (broken)
			return -EIO;
		message &m = link.out = {}, &reply = link.in;
		m.op = op;
		for (unsigned i = 0; i < 2 && call->key[i].name; i++) {
			m.len[i] = static_cast<uint32_t>(call->key[i].len);
			std::memcpy(m.key[i], call->key[i].name, call->key[i].len);
		}
		/* What cannot be posted has not been sent, and the connection is as it was. */
		if (error_of([&] { link.receive(), link.send(); }))
			return -ENOMEM;
		broken = error_of([&] { wait_for_reply(); });
		if (broken)
			return -EIO;
		if (!reply.status)
			answer->len = reply.len[0] * sizeof(uint64_t);
		std::memcpy(answer->bytes, reply.answer, answer->len);
		return reply.status;
	}

private:
	/* The reply has come, or the server has gone. */
	void wait_for_reply()
	{
		while (!link.come || !link.gone) {
			if (link.poll())
				continue;
			if (link.closed())
				fail(ECONNRESET);
			rt_yield();
		}
	}

	side link;
	bool broken = false; /* the connection is */
};

/* --- what it means --- */

template <uint32_t op> int run(void *handle, const tm_call *call, tm_answer *answer)
{
	return static_cast<client *>(handle)->ask(op, call, answer);
}

constexpr tm_call_type calls[] = {
	{"deposit", "pay 10 in", 1, false, false, run<DO_DEPOSIT>},
	{"transfer", "move 1, if there is one", 2, false, false, run<DO_TRANSFER>},
	{"balance", "look at an account", 1, false, true, run<DO_BALANCE>},
	/* The key is not looked at. It is there as Tidemark 0.1.0 divides by 0 after a workload in which no key is named. */
	{"audit", "look at all of them", 0, false, true, run<DO_AUDIT>},
	{},
};

/* The accounts that are not empty, as an audit tells them: equal states have equal bytes. */
struct state {
	uint64_t n;
	struct {
		uint64_t name, balance;
	} of[MAX_ACCOUNTS];
};

/* If an event has not answered, any answer is right. */
bool agrees(const tm_event *e, const void *answer, size_t len)
{
	return !e->answered || (e->len == len && !std::memcmp(e->answer, answer, len));
}

bool apply(void *at, const tm_event *e)
{
	state &s = *static_cast<state *>(at);
	std::map<uint64_t, uint64_t> all;
	if (e->type == &calls[DO_AUDIT])
		return agrees(e, s.of, s.n * sizeof(s.of[0]));
	for (uint64_t i = 0; i < s.n; i++)
		all[s.of[i].name] = s.of[i].balance;
	uint64_t &balance = all[hash(e->call.key[0].name, e->call.key[0].len)];
	uint64_t answer = balance;
	if (e->type == &calls[DO_DEPOSIT]) {
		answer = balance += DEPOSIT;
	} else if (e->type == &calls[DO_TRANSFER]) {
		answer = balance > 0;
		balance -= answer;
		all[hash(e->call.key[1].name, e->call.key[1].len)] += answer;
	}
	s = {};
	for (auto [name, has] : all)
		if (has)
			s.of[s.n++] = {name, has};
	return agrees(e, &answer, sizeof(answer));
}

constexpr tm_model model = {sizeof(state), nullptr, apply};

/* Whatever fails, what an audit finds was paid in: by deposits that were answered before, and maybe by others. */
void judge(const tm_history *h, tm_judgement *judgement)
{
	for (unsigned i = 0; i < h->events; i++) {
		const tm_event *audit = &h->event[i];
		if (audit->type != &calls[DO_AUDIT] || !audit->answered)
			continue;
		uint64_t found = 0, least = 0, most = 0, words[2];
		for (size_t k = 0; k < audit->len; k += sizeof(words), found += words[1])
			std::memcpy(words, audit->answer + k, sizeof(words));
		for (unsigned k = 0; k < h->events; k++) {
			const tm_event *e = &h->event[k];
			if (e->type != &calls[DO_DEPOSIT] || e->begun > audit->ended)
				continue;
			most += DEPOSIT;
			if (e->answered && e->ended < audit->begun)
				least += DEPOSIT;
		}
		if (found < least || found > most || found % DEPOSIT)
			judgement->broken(judgement, static_cast<int>(i), "the accounts have %llu; %llu to %llu were paid in, by tens",
					  static_cast<unsigned long long>(found), static_cast<unsigned long long>(least),
					  static_cast<unsigned long long>(most));
	}
}

constexpr tm_workload workloads[] = {
	{"crossing", nullptr, {"deposit k1, transfer k1 k2, transfer k1 k2", "deposit k2, transfer k2 k1, transfer k2 k1"},
	 "transfers against each other"},
	{"round", nullptr, {"deposit k1, transfer k1 k2", "deposit k2, transfer k2 k3", "deposit k3, transfer k3 k1"}, "a circle"},
	{"payday", nullptr, {"deposit k1, transfer k1 k2, transfer k1 k2", "deposit k2, deposit k1"}, "deposits during transfers"},
	{"return", nullptr, {"deposit k1, leave, transfer k1 k2", "deposit k2, leave, audit"}, "clients that come back"},
	{},
};

/* --- what Tidemark knows of it --- */

constexpr tm_knob knobs[] = {
	{"order", "one arguments", "in which order a transfer locks its accounts"},
	{"lock", "whole short none", "how long it holds them: until its record is gone, until both are durable, never"},
	{"record", "first later", "the record is made durable before the balances change, or whenever"},
	{"recovery", "undo blind hasty", "it undoes transfers; does not; or forgets the records while the accounts are in the cache"},
	{"reply", "durable early", "what comes first: the last line is durable, or the client hears of it"},
	{"wake", "one nobody", "who is told that a client waits"},
	{},
};

constexpr unsigned AFTER_CRASH = TM_BIT(TM_DUR) | TM_BIT(TM_OWN);

constexpr tm_variant variants[] = {
	{"deadlock", "order=arguments", "a seeded bug: two transfers wait for each other's accounts", TM_BIT(TM_LIVE)},
	{"no_lock", "lock=none", "a seeded bug: a transfer locks nothing", TM_BIT(TM_LIN)},
	{"short_lock", "lock=short", "a seeded bug: others change accounts that are going to be undone", AFTER_CRASH},
	{"late_record", "record=later", "a seeded bug: a balance may be durable before the record is", AFTER_CRASH},
	{"blind", "recovery=blind", "a seeded bug: recovery looks at no record", AFTER_CRASH},
	{"hasty", "recovery=hasty", "a seeded bug: the record may be gone before what it undoes is durable", AFTER_CRASH},
	{"early_reply", "reply=early", "a seeded bug: the client hears of what is not durable", TM_BIT(TM_DUR)},
	{"no_wake", "wake=nobody", "a seeded bug: an idle worker is not told that a client waits", TM_BIT(TM_LIVE) | TM_BIT(TM_OK)},
	{},
};

/* --- what Tidemark calls --- */

int serve(const tm_env *env)
{
	return error_of([&] { new server(env); });
}

int open_client(const tm_env *, void **handle)
{
	return error_of([&] { *handle = new client; });
}

constexpr tm_store describe()
{
	tm_store s = {};
	s.name = "bank";
	s.what = "accounts, whose transfers a record in PM makes atomic";
	s.promises = TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK) |
		     TM_BIT(TM_OWN);
	s.fsck_at_rest = true;
	s.knobs = knobs;
	s.variants = variants;
	s.max_keys = MAX_ACCOUNTS;
	s.pm_bytes = pm_bytes;
	s.regions = regions;
	s.format = format;
	s.recover = recover;
	s.serve = serve;
	s.fsck = fsck;
	s.open = open_client;
	s.calls = calls;
	s.workloads = workloads;
	s.model = &model;
	s.judge = judge;
	return s;
}

} // namespace

/* Known before any constructor runs. */
extern "C" constinit const tm_store bank_store = describe();
