/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ground of a simulated host's connection manager (core/cm). One host listens, the server, and
 * every address is the server's: where it listens only the port counts. Messages are packets of the
 * simulated link: they take time, and are lost, delayed and duplicated as others are. Their sender
 * is the host's actor "cm": "c1/cm message 1 packet 1 try 1".
 *
 * Where a scheduler stands in the clock's place, nothing is lost: no message is sent again, and
 * TIME_WAIT has no end.
 *
 * A task of the server that retrieves an event works from then on for the client's operation that
 * has brought it, as one does that polls a completion of a received message.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include "core/cm/ground.h"
#include "core/cm/sockaddr.h"
#include "core/fail.h"
#include "core/rnic/host/host.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/transport/link.h"
#include "core/rt/process/descriptors.h"
#include "core/rt/process/libc.h"
#include "core/text/text.h"

#define TIMEOUT	  16 /* 0.27 s between tries, 4.3 s in all */
#define LINGER_NS 1000000000ull

/* An identifier as it is here. */
struct place {
	struct cm_id id;
	struct alarm alarm;
	struct packet_name name; /* of id.sent */
	struct place *next_free;
};

static struct host *host_of_cm(const struct cm *cm)
{
	return (struct host *)((char *)cm - offsetof(struct host, cm));
}

static struct sim *sim_of_cm(const struct cm *cm)
{
	return host_sim(host_of_cm(cm));
}

static const struct rnic_ground *below(const struct cm *cm)
{
	return &host_of_cm(cm)->all->net->ground;
}

static struct cm *here(void)
{
	struct process *process = process_here();

	if (!process)
		return NULL;
	process->host->cm.verbs = &process->hca->verbs.context;
	return &process->host->cm;
}

static void call(struct cm *cm)
{
	host_call(host_of_cm(cm));
}

/* The operation that is worked for. */
static struct op_label op_of(const struct cm *cm)
{
	const struct actor *actor = sim_actor(sim_of_cm(cm));

	return cm->cause ? *cm->cause : actor ? actor->op : (struct op_label){0};
}

/* --- memory --- */

static struct cm_id *new_id(struct cm *cm)
{
	struct hosts *all = host_of_cm(cm)->all;
	struct place *place = all->free_place;

	if (place)
		all->free_place = place->next_free;
	else
		place = ground_alloc(below(cm), sizeof(*place));
	memset(&place->id, 0, sizeof(place->id)); /* a stale event may still refer to its alarm */
	return &place->id;
}

static void free_id(struct cm_id *id)
{
	struct place *place = (struct place *)id;
	struct hosts *all = host_of_cm(id->cm)->all;

	place->alarm.at = 0;
	place->next_free = all->free_place;
	all->free_place = place;
}

static struct cm_event *new_event(struct cm *cm)
{
	struct hosts *all = host_of_cm(cm)->all;
	struct cm_event *event = all->free_event;

	if (event)
		all->free_event = event->next;
	else
		event = ground_alloc(below(cm), sizeof(*event));
	*event = (struct cm_event){.op = op_of(cm)};
	return event;
}

static void free_event(struct cm *cm, struct cm_event *event)
{
	struct hosts *all = host_of_cm(cm)->all;

	event->next = all->free_event;
	all->free_event = event;
}

static void load(struct cm_id *id, void *to, const void *from, size_t len)
{
	hca_load(to_hca(id->user.verbs), to, from, len);
}

/* --- event channels --- */

static short channel_ready(const void *object, uint64_t *arrivals)
{
	const struct cm_channel *channel = object;

	*arrivals = channel->arrivals;
	return channel->first ? POLLIN : 0;
}

static const struct descriptor_kind channel_kind = {.ready = channel_ready};

static struct cm_channel *new_channel(struct cm *cm)
{
	struct cm_channel *channel;

	if (sim_fails(FAIL_MEMORY))
		return errno_null(ENOMEM);
	channel = ground_alloc(below(cm), sizeof(*channel));
	int fd = descriptor_open(sim_of_cm(cm), host_of_cm(cm)->number, &channel_kind, channel);
	if (fd < 0)
		return errno_null(-fd);
	channel->cm = cm;
	channel->user.fd = fd;
	channel->last = &channel->first;
	return channel;
}

static void free_channel(struct cm_channel *channel)
{
	descriptor_free(sim_of_cm(channel->cm), host_of_cm(channel->cm)->number, channel->user.fd);
}

static int get(struct cm_channel *channel, struct cm_event **event)
{
	if (!host_await(host_of_cm(channel->cm), &channel_kind, channel, channel, channel->user.fd))
		return -1;
	*event = cm_retrieve(channel);
	return 0;
}

static void arrived(struct cm_channel *channel, struct cm_event *event)
{
	host_put(host_of_cm(channel->cm), channel, event->nth);
}

static void retrieved(struct cm_channel *channel, struct cm_event *event)
{
	const struct host *host = host_of_cm(channel->cm);
	struct actor *actor = sim_actor(host_sim(host));

	host_took(host, channel, event->nth);
	if (actor && host->number == HOST_SERVER && event->op.client)
		actor_label(actor, event->op);
}

static void wait_for_ack(struct cm_id *id)
{
	host_wait(host_of_cm(id->cm), &id->unacked);
}

static void acked(struct cm_id *id)
{
	sim_wake(sim_of_cm(id->cm), &id->unacked);
}

/* --- messages --- */

static bool has_died(const struct cm *cm)
{
	return sim_machine_died(sim_of_cm(cm), host_of_cm(cm)->number);
}

/* The name of the next message that this host sends. */
static struct packet_name next_name(struct cm *cm)
{
	struct host *host = host_of_cm(cm);
	struct actor *actor = &host->talker;
	struct op_label op = op_of(cm);

	if (!*actor->name)
		sim_name_actor(host_sim(host), actor, host->number, "cm", 0);
	if (!op_label_equal(actor->op, op))
		actor_label(actor, op);
	return (struct packet_name){.who = actor,
				    .op = op,
				    .occurrence = actor->occurrence,
				    .message = ++actor->count[COUNT_MESSAGE],
				    .index = 1,
				    .round = 1,
				    .operation = IBV_WR_SEND,
				    .send = true};
}

static int send_message(struct cm *cm, struct cm_id *id, const union ibv_gid *to,
			const struct cm_message *message)
{
	struct host *host = host_of_cm(cm);
	struct rnic_net *net = host->all->net;
	struct packet_name once, *name = id ? &((struct place *)id)->name : &once;

	if (id && id->sends)
		name->round++;
	else
		*name = next_name(cm);
	if (has_died(cm))
		return 0;
	struct packet *pkt = packet_get(net, MAD_BYTES);
	pkt->service = SERVICE_UD;
	pkt->opcode = OP_SEND_ONLY;
	pkt->src_qpn = pkt->dest_qpn = QPN_MANAGEMENT;
	pkt->qkey = MAD_QKEY;
	pkt->psn = host->psn++ & PSN_MASK;
	pkt->peer = (uint32_t)net->link->resolve(net->link, to);
	pkt->name = *name;
	mad_encode(message, pkt->payload);
	net->link->send(net->link, host->number, pkt);
	return 0;
}

/* A datagram for queue pair 1 has come in. */
static void take_packet(struct rnic_net *net, struct packet *pkt)
{
	struct cm *cm = &host_of(net, pkt->peer)->cm;
	const struct op_label op = pkt->name.op;
	union ibv_gid from;

	assert(pkt->service == SERVICE_UD && pkt->qkey == MAD_QKEY && pkt->len == MAD_BYTES);
	net->link->gid(net->link, pkt->from, &from);
	cm->cause = &op;
	if (!has_died(cm))
		cm_take(cm, &from, pkt->payload);
	cm->cause = NULL;
	packet_put(net, pkt);
}

static uint8_t timeout(void)
{
	return TIMEOUT;
}

static void choose_number(struct cm_id *id)
{
	struct host *host = host_of_cm(id->cm);

	id->number = ++host->last_number;
	/* As different as those of real ones, and the same in every run. */
	id->conn.local.psn = (id->number * 4096 + host->number) & PSN_MASK;
}

static void no_listener(struct cm *cm, const union ibv_gid *from)
{
	struct link *link = host_of_cm(cm)->all->net->link;

	sim_refuse(sim_of_cm(cm), (unsigned)link->resolve(link, from));
}

/* --- time --- */

static void timed_out(void *arg)
{
	const struct op_label none = {0};
	struct place *place = arg;
	struct cm *cm = place->id.cm;

	if (!alarm_fired(below(cm), &place->alarm) || has_died(cm))
		return;
	cm->cause = place->id.state == CM_TIMEWAIT ? &none : &place->name.op;
	cm_timed_out(&place->id);
	cm->cause = NULL;
}

static bool set_alarm(struct cm_id *id, uint64_t ns)
{
	struct place *place = (struct place *)id;

	place->alarm.at = 0;
	/* Nothing is to come for one that has said all. */
	if (ground_scheduled(below(id->cm)) ||
	    (id->kernels && id->state >= CM_TIMEWAIT && has_died(id->cm)))
		return false;
	if (ns)
		alarm_set(below(id->cm), &place->alarm, CHAIN_OTHER, ns, timed_out, place);
	return true;
}

static void given_up(struct cm_id *id)
{
	struct host *host = host_of_cm(id->cm);
	struct link *link = host->all->net->link;

	ground_given_up(below(id->cm), host->number, (unsigned)link->resolve(link, &id->peer_gid),
			id->tries);
}

/* --- the device, addresses, ports --- */

static int device(struct cm *cm)
{
	struct process *process = host_of_cm(cm)->process;

	assert(process);
	if (!process->pd)
		process->pd = rnic_alloc_pd(&process->hca->verbs.context);
	if (!process->pd)
		return -errno;
	cm->verbs = &process->hca->verbs.context;
	cm->pd = process->pd;
	cm->gid = process->hca->gid;
	return 0;
}

static bool has_port(const struct cm_id *id, __be16 port)
{
	return id->bound && id->user.route.addr.src_sin.sin_port == port;
}

static int reserve(struct cm_id *id)
{
	__be16 *own = &id->user.route.addr.src_sin.sin_port, asked = *own;
	struct host *host = host_of_cm(id->cm);

	for (unsigned n = 0; n < CM_PORT_COUNT; n++) {
		const struct cm_id *other = id->cm->ids;

		if (!asked)
			*own = htons((uint16_t)(CM_PORT_FIRST + host->last_port++ % CM_PORT_COUNT));
		while (other && (other == id || !has_port(other, *own) || cm_may_share(id, other)))
			other = other->next;
		if (!other)
			return 0;
		if (asked)
			return -EADDRINUSE;
	}
	return -EADDRNOTAVAIL;
}

static int listen_at(struct cm_id *id)
{
	for (struct cm_id *other = id->cm->ids; other; other = other->next)
		if (other != id && other->state == CM_LISTEN &&
		    has_port(other, id->user.route.addr.src_sin.sin_port))
			return -EADDRINUSE;
	return 0;
}

/* The host's own address, in the destination's family. */
static int source(struct cm_id *id)
{
	struct rdma_addr *at = &id->user.route.addr;
	struct sockaddr_storage own = {.ss_family = at->dst_storage.ss_family};
	uint32_t address = RNIC_ADDRESS(host_of_cm(id->cm)->number);
	union ibv_gid gid;

	rnic_gid(address, &gid);
	if (own.ss_family == AF_INET)
		((struct sockaddr_in *)&own)->sin_addr.s_addr = htonl(address);
	else
		memcpy(&((struct sockaddr_in6 *)&own)->sin6_addr, gid.raw, sizeof(gid));
	if (id->state == CM_IDLE)
		return cm_bind(id, (struct sockaddr *)&own);
	if (sockaddr_is_any(&at->src_addr)) {
		((struct sockaddr_in *)&own)->sin_port = at->src_sin.sin_port;
		at->src_storage = own;
	}
	return 0;
}

static int route(struct cm_id *id, union ibv_gid *gid, uint8_t *mtu)
{
	struct ibv_port_attr port;
	int error = mtu ? rnic_query_port_ex(id->user.verbs, 1, &port, sizeof(port)) : 0;

	if (error)
		return -error;
	if (mtu)
		*mtu = (uint8_t)port.active_mtu;
	rnic_gid(RNIC_ADDRESS(HOST_SERVER), gid);
	return 0;
}

/* An IPv4 address by its numbers; any other name is the server's. */
static int find(const char *node, const char *service, const struct rdma_addrinfo *hints,
		struct sockaddr_storage *at)
{
	bool passive = hints && hints->ai_flags & RAI_PASSIVE;
	struct sockaddr_in in = {.sin_family = AF_INET};
	uint64_t port = 0;

	if (service && !text_number(service, 0, UINT16_MAX, &port))
		return EAI_SERVICE;
	in.sin_port = htons((uint16_t)port);
	if (!node)
		in.sin_addr.s_addr = htonl(passive ? INADDR_ANY : INADDR_LOOPBACK);
	else if (inet_pton(AF_INET, node, &in.sin_addr) != 1)
		in.sin_addr.s_addr = htonl(RNIC_ADDRESS(HOST_SERVER));
	cm_copy_address(at, (struct sockaddr *)&in);
	return 0;
}

/* --- */

static const struct cm_ground ground = {
	.here = here,
	.call = call,
	.fails = sim_fails,
	.new_id = new_id,
	.free_id = free_id,
	.new_event = new_event,
	.free_event = free_event,
	.calloc = sim_calloc,
	.free = sim_free_memory,
	.load = load,
	.new_channel = new_channel,
	.free_channel = free_channel,
	.get = get,
	.arrived = arrived,
	.retrieved = retrieved,
	.wait_for_ack = wait_for_ack,
	.acked = acked,
	.alarm = set_alarm,
	.timeout = timeout,
	.given_up = given_up,
	.send = send_message,
	.choose_number = choose_number,
	.no_listener = no_listener,
	.device = device,
	.reserve = reserve,
	.listen = listen_at,
	.source = source,
	.route = route,
	.find = find,
	.create_comp_channel = rnic_create_comp_channel,
	.destroy_comp_channel = rnic_destroy_comp_channel,
	.create_cq = rnic_create_cq,
	.destroy_cq = rnic_host_destroy_cq,
	.create_qp = rnic_create_qp_ex,
	.modify_qp = rnic_modify_qp,
	.destroy_qp = rnic_host_destroy_qp,
	.create_srq = rnic_create_srq,
	.destroy_srq = rnic_host_destroy_srq,
};

__attribute__((constructor)) static void stand(void)
{
	cm_ground = &ground;
}

void host_cm_start(struct rnic_net *net)
{
	net->management = take_packet;
}

void host_cm_init(struct host *host)
{
	host->cm = (struct cm){.mtu = IBV_MTU_4096,
			       .limits = {MAX_RD_ATOMIC, MAX_RD_ATOMIC},
			       .linger_ns = LINGER_NS};
}

void host_cm_process_ended(struct host *host)
{
	const struct op_label none = {0};
	struct cm *cm = &host->cm;
	struct cm_id *next;

	cm->cause = &none;
	for (struct cm_id *id = cm->ids; id; id = next) {
		next = id->next;
		if (id->kernels)
			continue;
		id->unacked = 0; /* there is no one who could acknowledge it */
		cm_close(id);
	}
	cm->cause = NULL;
}
