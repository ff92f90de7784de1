/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See link_udp.h. The slot, and with it the range of queue pair numbers, comes from link_shm.
 * Processes that share an address forward each other's packets through its inboxes. A process that
 * forwards a packet then rings the receiver's bell: a datagram socket on which the receiver may be
 * asleep.
 *
 * The socket is not connected and may not fragment (IP_PMTUDISC_DO), so that Linux sends the IPv4
 * identification 0, which the ICRC covers. Packets that something other than Linux's UDP has sent,
 * such as rdma_rxe, have other identifications; see wire.c. Packets that do not fit into the
 * socket's buffer are lost, as on a wire.
 *
 * The transport numbers the ends of a link. Here the number of an end is the place of its IPv4
 * address in a hash table. An address is entered when the program makes it known to the transport,
 * or, until the table is half full, when a datagram arrives from it. A connected service's packet
 * from an address that is not in the table cannot come from a peer.
 */
#include "core/provider/link/link_udp.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/provider/link/gids.h"
#include "core/provider/link/link_shm.h"
#include "core/provider/link/wire.h"
#include "core/rnic/count.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/link.h"

#define BATCH	     32 /* packets received by one call */
#define PEERS	     4096
#define PEERS_HEARD  (PEERS / 2) /* beyond this only the program itself adds addresses */
#define NO_NUMBER    UINT32_MAX
#define BUFFER_BYTES (8 << 20)
#define NS_PER_S     1000000000ull
#define TTL	     64
#define SKB_BYTES    320 /* Linux's own data after and about a packet */
#define BURST_LEAST  8

/* Addresses of this process: 127.77.0.0/16; if another fabric uses that range, the next 16 bits,
 * and so on. */
#define OWN_FIRST 77
#define OWN_LIMIT 127

struct link_udp {
	struct nic_link nic;
	struct nic_link *shm;
	bool shared;	/* the address is shared with other processes */
	int fd, event;	/* event: wake() */
	int bell;	/* rung after a packet was put into the inbox */
	struct stat at; /* the fabric's directory: part of the bells' names */
	char *directory;
	management_slot_fn *management_slot;
	uint32_t peer[PEERS], peers;
	unsigned got, next; /* got: received by the last call; next: to be taken */
	/* Packets that are received and not taken yet: the socket does not wake a sleeper for
	 * these. */
	_Atomic unsigned left;
	_Atomic bool sleeping;
	struct mmsghdr msg[BATCH];
	struct iovec iov[BATCH];
	struct sockaddr_in from[BATCH];
	_Alignas(struct cmsghdr) uint8_t control[BATCH][CMSG_SPACE(1)];
	uint8_t buf[BATCH][WIRE_PACKET + 4];
};

static bool is_loopback(uint32_t address)
{
	return address >> 24 == IN_LOOPBACKNET;
}

/* --- ends --- */

/* The number of an address; NO_NUMBER: it has none, and there is no room for another below
 * `limit`. */
static uint32_t number_of(struct link_udp *udp, uint32_t address, uint32_t limit)
{
	uint32_t at = address * 2654435761u >> 20;

	assert(at < PEERS && udp->peers < PEERS); /* the search ends at a free place */
	assert(limit < PEERS);
	for (; udp->peer[at]; at = (at + 1) % PEERS)
		if (udp->peer[at] == address)
			return at;
	if (udp->peers >= limit)
		return NO_NUMBER;
	udp->peer[at] = address;
	udp->peers++;
	return at;
}

static int resolve(struct link *link, const union ibv_gid *gid)
{
	struct link_udp *udp = (struct link_udp *)link;
	uint32_t address;

	if (!gid_to_address(gid, &address) || !address || IN_MULTICAST(address) ||
	    IN_BADCLASS(address))
		return -ENETUNREACH;
	if (is_loopback(address) != is_loopback(udp->nic.address))
		return -ENETUNREACH;
	uint32_t number = number_of(udp, address, PEERS - 1);
	return number == NO_NUMBER ? -ENOMEM : (int)number;
}

static void gid_of(struct link *link, uint32_t number, union ibv_gid *gid)
{
	rnic_gid(((struct link_udp *)link)->peer[number % PEERS], gid);
}

/* As large as is allowed: the forced option may exceed the limit. */
static void enlarge(int fd, int option, int forced)
{
	int bytes = BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
}

/* --- out --- */

/* Send; a datagram with its own type of service. */
static ssize_t hand_over(const struct link_udp *udp, struct sockaddr_in *to, void *bytes,
			 size_t len, int tos)
{
	_Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof(tos))];
	struct iovec iov = {bytes, len};
	struct msghdr msg = {
		.msg_name = to, .msg_namelen = sizeof(*to), .msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *head;

	if (tos) {
		msg.msg_control = room;
		msg.msg_controllen = sizeof(room);
		head = CMSG_FIRSTHDR(&msg);
		*head = (struct cmsghdr){CMSG_LEN(sizeof(tos)), IPPROTO_IP, IP_TOS};
		memcpy(CMSG_DATA(head), &tos, sizeof(tos));
	}
	/* Not by libc: a recorder would take it for something that the program tells. */
	return syscall(SYS_sendmsg, udp->fd, &msg, MSG_DONTWAIT);
}

static void send_out(struct link *link, unsigned from, struct packet *pkt)
{
	struct link_udp *udp = (struct link_udp *)link;
	struct wire_ends ends = {.src = udp->nic.address,
				 .dst = udp->peer[pkt->peer % PEERS],
				 .sport = ROCE_PORT,
				 .dport = ROCE_PORT,
				 .ttl = TTL};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(ROCE_PORT),
				 .sin_addr.s_addr = htonl(ends.dst)};
	uint8_t buf[WIRE_PACKET];
	int len = wire_encode(pkt, &ends, buf, sizeof(buf));

	if (len > 0 && udp->nic.flip) /* link_tap.c */
		buf[(udp->nic.flip - 1) / 8 % (uint32_t)len] ^= (uint8_t)(1 << (udp->nic.flip - 1) %
										       8);
	udp->nic.flip = 0;
	if (len > 0 && hand_over(udp, &to, buf, (size_t)len,
				 pkt->service == SERVICE_UD ? pkt->traffic_class : 0) < 0)
		link_count(udp->nic.count, COUNT_link_full);
	packet_put(pkt->net, pkt);
}

static socklen_t name_bell(const struct link_udp *udp, unsigned slot, struct sockaddr_un *name)
{
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* An abstract name disappears with its owner. */
	int len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "tidemark/%jx/%jx/%u",
			   (uintmax_t)udp->at.st_dev, (uintmax_t)udp->at.st_ino, slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static void ring(const struct link_udp *udp, unsigned slot)
{
	struct sockaddr_un name;
	socklen_t len = name_bell(udp, slot, &name);

	syscall(SYS_sendto, udp->bell, "", 1, MSG_DONTWAIT, &name, len);
}

/* Forward a packet to the process of the fabric whose packet it is. */
static void pass_on(struct link_udp *udp, struct packet *pkt, uint32_t src, unsigned slot)
{
	pkt->from = src; /* the address: that process has another table */
	pkt->peer = slot;
	udp->shm->link.send(&udp->shm->link, 0, pkt);
	ring(udp, slot);
}

/* --- in --- */

static bool receive(struct link_udp *udp)
{
	assert(udp->next == udp->got); /* else packets were lost */
	for (unsigned i = 0; i < BATCH; i++) {
		udp->iov[i] = (struct iovec){udp->buf[i], sizeof(udp->buf[i])};
		udp->msg[i].msg_hdr = (struct msghdr){.msg_name = &udp->from[i],
						      .msg_namelen = sizeof(udp->from[i]),
						      .msg_iov = &udp->iov[i],
						      .msg_iovlen = 1,
						      .msg_control = udp->control[i],
						      .msg_controllen = sizeof(udp->control[i])};
	}
	int got = recvmmsg(udp->fd, udp->msg, BATCH, MSG_DONTWAIT, NULL);
	udp->next = 0;
	udp->got = got > 0 ? (unsigned)got : 0;
	assert(udp->got <= BATCH);
	return udp->got;
}

/* Set the packet's source by number. NULL: the address has none and gets none, and the packet is
 * dropped. */
static struct packet *from_address(struct link_udp *udp, struct packet *pkt, uint32_t src)
{
	pkt->from = number_of(udp, src, pkt->service == SERVICE_UD ? PEERS_HEARD : 0);
	if (pkt->from != NO_NUMBER)
		return pkt;
	link_count(udp->nic.count, COUNT_wrong_source);
	packet_put(pkt->net, pkt);
	return NULL;
}

/* Decode a packet that has arrived at address `to`; NULL: it is refused. */
static struct packet *decode(struct link_udp *udp, struct rnic_net *net,
			     const struct sockaddr_in *from, uint32_t to, const uint8_t *bytes,
			     size_t len)
{
	struct wire_ends ends = {.src = ntohl(from->sin_addr.s_addr),
				 .dst = to,
				 .sport = ntohs(from->sin_port),
				 .dport = ROCE_PORT};
	struct packet *pkt;
	int rc;

	ends.any_id = !is_loopback(ends.src);
	if (is_loopback(ends.src) && ends.sport != ROCE_PORT) {
		link_count(udp->nic.count, COUNT_wrong_source);
		return NULL;
	}
	rc = wire_decode(net, bytes, len, &ends, true, &pkt);
	if (!rc)
		return pkt;
	link_count(udp->nic.count, link_refusal(rc));
	return NULL;
}

/* The type of service of a received datagram. */
static uint8_t tos_of(struct msghdr *msg)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(msg);

	return head && head->cmsg_level == IPPROTO_IP && head->cmsg_type == IP_TOS
		       ? *CMSG_DATA(head)
		       : 0;
}

static struct packet *parse(struct link_udp *udp, struct rnic_net *net, unsigned i)
{
	unsigned own = udp->nic.qpn_first >> SHM_QPN_SHIFT;
	const struct sockaddr_in *from = &udp->from[i];
	struct packet *pkt;

	assert(i < udp->got);
	if (udp->msg[i].msg_hdr.msg_namelen < sizeof(*from)) {
		link_count(udp->nic.count, COUNT_wrong_source);
		return NULL;
	}
	pkt = decode(udp, net, from, udp->nic.address, udp->buf[i], udp->msg[i].msg_len);
	if (!pkt)
		return NULL;
	if (pkt->service == SERVICE_UD)
		pkt->traffic_class = tos_of(&udp->msg[i].msg_hdr);
	uint32_t src = ntohl(from->sin_addr.s_addr);
	unsigned slot = pkt->dest_qpn >> SHM_QPN_SHIFT;
	if (pkt->dest_qpn == QPN_MANAGEMENT && pkt->service == SERVICE_UD)
		slot = udp->shared ? udp->management_slot(pkt, udp->directory, own) : own;
	if (slot == own)
		return from_address(udp, pkt, src);
	if (udp->shared)
		pass_on(udp, pkt, src, slot);
	else {
		link_count(udp->nic.count, COUNT_unknown_qp);
		packet_put(net, pkt);
	}
	return NULL;
}

static void wake(struct nic_link *nic)
{
	uint64_t one = 1;

	/* If the counter is full, the thread is awake. */
	if (write(((struct link_udp *)nic)->event, &one, sizeof(one)) < 0)
		return;
}

static struct packet *take_datagram(struct nic_link *nic, struct rnic_net *net)
{
	struct link_udp *udp = (struct link_udp *)nic;
	struct packet *pkt;

	while (udp->shared && (pkt = udp->shm->take(udp->shm, net)))
		if ((pkt = from_address(udp, pkt, pkt->from)))
			return pkt;
	pkt = NULL;
	while (!pkt && (udp->next < udp->got || receive(udp)))
		pkt = parse(udp, net, udp->next++);
	assert(udp->next <= udp->got);
	atomic_store(&udp->left, udp->got - udp->next);
	if (udp->next < udp->got && atomic_exchange(&udp->sleeping, false))
		wake(nic);
	return pkt;
}

static void sleep_until_mail(struct nic_link *nic, uint64_t ns)
{
	struct link_udp *udp = (struct link_udp *)nic;
	struct timespec most = {.tv_sec = (time_t)(ns / NS_PER_S),
				.tv_nsec = (long)(ns % NS_PER_S)};
	struct pollfd fds[3] = {
		{udp->fd, POLLIN, 0}, {udp->event, POLLIN, 0}, {udp->bell, POLLIN, 0}};
	uint64_t count;
	char rings[64];

	atomic_store(&udp->sleeping, true);
	if (atomic_load(&udp->left))
		return;
	if (ppoll(fds, 3, ns == UINT64_MAX ? NULL : &most, NULL) <= 0)
		return;
	if (fds[1].revents && read(udp->event, &count, sizeof(count)) < 0)
		return;
	while (fds[2].revents && recv(udp->bell, rings, sizeof(rings), MSG_DONTWAIT) >= 0)
		;
}

/* --- coming and going --- */

/* A child of fork() that kept the sockets would keep the port, and its share of the packets to a
 * shared address. */
static void let_go(struct nic_link *nic)
{
	struct link_udp *udp = (struct link_udp *)nic;

	close(udp->fd);
	close(udp->event);
	close(udp->bell);
}

static void leave(struct nic_link *nic)
{
	struct link_udp *udp = (struct link_udp *)nic;

	let_go(nic);
	udp->shm->leave(udp->shm);
}

/* The path's MTU that fits into packets of the interface with our address. 0: no interface has
 * it. */
static unsigned mtu_of(const struct link_udp *udp)
{
	struct ifaddrs *all, *at;
	struct ifreq request = {0};
	unsigned mtu = WIRE_PAYLOAD;

	if (is_loopback(udp->nic.address))
		strcpy(request.ifr_name, "lo");
	if (getifaddrs(&all))
		return 0;
	for (at = all; at; at = at->ifa_next) {
		struct sockaddr_in *addr = (struct sockaddr_in *)at->ifa_addr;

		if (addr && addr->sin_family == AF_INET &&
		    ntohl(addr->sin_addr.s_addr) == udp->nic.address)
			snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", at->ifa_name);
	}
	freeifaddrs(all);
	if (ioctl(udp->fd, SIOCGIFMTU, &request))
		return 0;
	while (mtu && (int)(WIRE_IP_UDP + WIRE_HEADERS + mtu + 4) > request.ifr_mtu)
		mtu /= 2;
	return mtu < 256 ? 0 : mtu;
}

/* The number of packets that the socket's buffer holds, less a quarter for acknowledgements.
 * Linux counts the memory that it allocates. */
static uint32_t burst_of(const struct link_udp *udp)
{
	uint32_t room = 512;
	socklen_t size = sizeof(int);
	int bytes;

	while (room < WIRE_IP_UDP + WIRE_HEADERS + udp->nic.mtu + SKB_BYTES)
		room *= 2;
	if (getsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) || bytes < 0)
		return BURST_LEAST;
	room = (uint32_t)bytes / (room + SKB_BYTES) * 3 / 4;
	return room < BURST_LEAST ? BURST_LEAST : room;
}

/* Make the socket. -EADDRINUSE: the address is in use. */
static int bind_to(struct link_udp *udp, uint32_t address)
{
	int never = IP_PMTUDISC_DO, yes = 1;
	struct sockaddr_in own = {.sin_family = AF_INET,
				  .sin_port = htons(ROCE_PORT),
				  .sin_addr.s_addr = htonl(address)};
	int rc;

	udp->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (udp->fd < 0)
		return -errno;
	enlarge(udp->fd, SO_RCVBUF, SO_RCVBUFFORCE);
	enlarge(udp->fd, SO_SNDBUF, SO_SNDBUFFORCE);
	rc = setsockopt(udp->fd, IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof(never)) ||
			     setsockopt(udp->fd, IPPROTO_IP, IP_RECVTOS, &yes, sizeof(yes))
		     ? -errno
		     : 0;
	if (!rc && udp->shared && setsockopt(udp->fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)))
		rc = -errno;
	if (!rc && bind(udp->fd, (struct sockaddr *)&own, sizeof(own)))
		rc = -errno;
	if (!rc) {
		udp->nic.address = address;
		return 0;
	}
	close(udp->fd);
	udp->fd = -1;
	return rc;
}

static int bind_own(struct link_udp *udp)
{
	uint32_t slot = udp->nic.qpn_first >> SHM_QPN_SHIFT;
	int rc = -EADDRINUSE;

	for (uint32_t net = OWN_FIRST; net < OWN_LIMIT && rc == -EADDRINUSE; net++)
		rc = bind_to(udp, (uint32_t)IN_LOOPBACKNET << 24 | net << 16 | slot);
	return rc;
}

static int open_bell(struct link_udp *udp, const char *directory)
{
	struct sockaddr_un name;

	if (stat(directory, &udp->at))
		return -errno;
	socklen_t len = name_bell(udp, udp->nic.qpn_first >> SHM_QPN_SHIFT, &name);
	udp->bell = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return udp->bell < 0 || bind(udp->bell, (struct sockaddr *)&name, len) ? -errno : 0;
}

/* The sockets, and what depends on them. */
static int open_sockets(struct link_udp *udp, const char *directory, uint32_t address)
{
	int rc = address ? bind_to(udp, address) : bind_own(udp);

	if (!rc)
		rc = open_bell(udp, directory);
	if (rc)
		return rc;
	udp->nic.mtu = mtu_of(udp);
	udp->nic.link.burst = burst_of(udp);
	udp->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return !udp->nic.mtu ? -EMSGSIZE : udp->event < 0 ? -errno : 0;
}

int link_udp_open(struct nic_link **out, const char *directory, uint32_t address,
		  management_slot_fn *management_slot)
{
	struct link_udp *udp = calloc(1, sizeof(*udp));
	int rc = udp ? link_shm_open(&udp->shm, directory) : -ENOMEM;

	if (rc) {
		free(udp);
		return rc;
	}
	udp->fd = udp->bell = udp->event = -1;
	udp->nic = (struct nic_link){
		.link = {.send = send_out,
			 .resolve = resolve,
			 .gid = gid_of,
			 .silence_ns = LINK_SILENCE_NS,
			 .lossy = true},
		.qpn_first = udp->shm->qpn_first,
		.qpn_limit = udp->shm->qpn_limit,
		.take = take_datagram,
		.sleep = sleep_until_mail,
		.wake = wake,
		.leave = leave,
		.forked = let_go,
	};
	udp->shared = address != 0;
	udp->management_slot = management_slot;
	udp->directory = strdup(directory);
	rc = udp->directory ? open_sockets(udp, directory, address) : -ENOMEM;
	if (!rc) {
		*out = &udp->nic;
		return 0;
	}
	leave(&udp->nic);
	free(udp->directory);
	free(udp);
	return rc;
}
