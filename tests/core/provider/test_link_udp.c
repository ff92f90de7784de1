/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The udp link between processes: packets carry their sender's address, foreign and damaged packets
 * are refused, and a process that shares an address may die.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "core/provider/base/engine.h"
#include "core/provider/link/link_udp.h"
#include "core/provider/base/fabric_dir.h"
#include "core/provider/link/wire.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/packet.h"
#include "tests/suite.h"

#define SHARED	strange(0x8000)
#define PACKETS 100
#define WAIT_NS 60000000000ull

static char directory[64];
static uint32_t others; /* loopback addresses of this test run, outside of what links choose for
			   themselves */
static struct rnic_net net;

static void setup(void)
{
	snprintf(directory, sizeof(directory), "/dev/shm/tidemark-test-udp.%d", getpid());
	others = 0x7f800000 + ((uint32_t)getpid() % 127 << 16);
	ck_assert_int_eq(fabric_dir_make(directory), 0);
	struct engine *engine = engine_new();
	ck_assert_ptr_nonnull(engine);
	net.ground = *engine_ground(engine);
}

static uint32_t strange(uint32_t n)
{
	return others + n;
}

/* All packets to queue pair 1 are for this process. */
static unsigned own_slot(const struct packet *pkt, const char *fabric, unsigned own)
{
	return own;
}

static struct nic_link *open_link(uint32_t address)
{
	struct nic_link *link;
	int rc = link_udp_open(&link, directory, address, own_slot);

	ck_assert_msg(!rc, "%s", strerror(-rc));
	return link;
}

/* The next packet within WAIT_NS; NULL: none. */
static struct packet *await(struct nic_link *link, uint64_t ns)
{
	struct packet *pkt = link->take(link, &net);

	for (unsigned tries = 0; !pkt && tries < 100 && ns; tries++) {
		link->sleep(link, ns);
		pkt = link->take(link, &net);
		if (ns != WAIT_NS)
			break;
	}
	return pkt;
}

static uint32_t known(struct nic_link *link, uint32_t address)
{
	union ibv_gid gid;
	int number;

	rnic_gid(address, &gid);
	number = link->link.resolve(&link->link, &gid);
	ck_assert_int_ge(number, 0);
	return (uint32_t)number;
}

static uint32_t address_of(struct nic_link *link, uint32_t number)
{
	union ibv_gid gid;
	uint32_t address;

	link->link.gid(&link->link, number, &gid);
	memcpy(&address, gid.raw + 12, sizeof(address));
	return ntohl(address);
}

static struct packet *make(uint8_t service, uint32_t dest_qpn, uint32_t psn)
{
	struct packet *pkt = packet_get(&net, 200);

	pkt->service = service;
	pkt->opcode = OP_SEND_ONLY;
	pkt->dest_qpn = dest_qpn;
	pkt->psn = psn;
	memset(pkt->payload, (int)psn, pkt->len);
	return pkt;
}

/* An end that is not in the fabric. */
static int stranger(uint32_t address, uint16_t port)
{
	struct sockaddr_in own = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), never = IP_PMTUDISC_DO;

	ck_assert_int_eq(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof(never)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	return fd;
}

static void send_raw(int fd, uint32_t dst, struct packet *pkt, unsigned damage)
{
	struct sockaddr_in own, to = {.sin_family = AF_INET,
				      .sin_port = htons(ROCE_PORT),
				      .sin_addr.s_addr = htonl(dst)};
	socklen_t size = sizeof(own);
	struct wire_ends ends = {.dst = dst, .dport = ROCE_PORT};
	uint8_t buf[WIRE_PACKET];
	int len;

	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&own, &size), 0);
	ends.src = ntohl(own.sin_addr.s_addr);
	ends.sport = ntohs(own.sin_port);
	len = wire_encode(pkt, &ends, buf, sizeof(buf));
	buf[20] ^= (uint8_t)damage;
	ck_assert_int_eq(sendto(fd, buf, (size_t)len, 0, (struct sockaddr *)&to, sizeof(to)), len);
	packet_put(&net, pkt);
}

static void say(int fd, const void *what, size_t size)
{
	ck_assert_int_eq(write(fd, what, size), size);
}

static void hear(int fd, void *what, size_t size)
{
	ck_assert_int_eq(read(fd, what, size), size);
}

static bool ended_well(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(own_addresses)
{
	struct nic_link *link = open_link(0);
	uint32_t from, number;
	int there[2];
	pid_t pid;

	ck_assert_uint_eq(link->address >> 24, 127);
	ck_assert_uint_eq(link->mtu, 4096);
	ck_assert_int_eq(pipe(there), 0);
	pid = fork();
	if (pid == 0) {
		struct nic_link *other = open_link(0);

		ck_assert_uint_ne(other->address, link->address);
		ck_assert_uint_ne(other->qpn_first, link->qpn_first);
		say(there[1], &other->address, 4);
		for (uint32_t i = 0; i < PACKETS; i++) {
			struct packet *pkt = make(SERVICE_RC, link->qpn_first, i);

			pkt->peer = known(other, link->address);
			other->link.send(&other->link, 0, pkt);
		}
		other->leave(other);
		_exit(0);
	}
	hear(there[0], &from, 4);
	number = known(link, from);
	for (uint32_t i = 0; i < PACKETS; i++) {
		struct packet *pkt = await(link, WAIT_NS);

		ck_assert_ptr_nonnull(pkt);
		ck_assert_uint_eq(pkt->psn, i);
		ck_assert_uint_eq(pkt->from, number);
		ck_assert_uint_eq(pkt->payload[199], (uint8_t)i);
		packet_put(&net, pkt);
	}
	ck_assert(ended_well(pid));
	ck_assert_uint_eq(address_of(link, number), from);
	link->leave(link);
	ck_assert_int_ne(access(directory, F_OK), 0);
}

TEST(forged_messages)
{
	struct nic_link *link = open_link(0);
	int good = stranger(strange(0x101), ROCE_PORT), other_port = stranger(strange(0x102), 0);
	int unknown = stranger(strange(0x103), ROCE_PORT);
	struct packet *pkt;

	known(link, strange(0x101));
	known(link, strange(0x102));
	send_raw(good, link->address, make(SERVICE_RC, link->qpn_first, 1), 1);
	send_raw(good, link->address, make(SERVICE_RC, link->qpn_limit, 2), 0);
	send_raw(good, link->address, make(SERVICE_RC, 1, 3), 0);
	send_raw(other_port, link->address, make(SERVICE_RC, link->qpn_first, 4), 0);
	send_raw(unknown, link->address, make(SERVICE_RC, link->qpn_first, 5), 0);
	ck_assert_ptr_null(await(link, 50000000));
	/* Datagrams may come from any address. */
	send_raw(unknown, link->address, make(SERVICE_UD, link->qpn_first, 6), 0);
	send_raw(good, link->address, make(SERVICE_RC, link->qpn_first, 7), 0);
	pkt = await(link, WAIT_NS);
	ck_assert_ptr_nonnull(pkt);
	ck_assert_uint_eq(pkt->psn, 6);
	ck_assert_uint_eq(address_of(link, pkt->from), strange(0x103));
	pkt = await(link, WAIT_NS);
	ck_assert_ptr_nonnull(pkt);
	ck_assert_uint_eq(pkt->psn, 7);
	link->leave(link);
}

/* Datagrams of so many senders that the table of addresses is full: known addresses still work. */
TEST(many_senders)
{
	struct nic_link *link = open_link(0);
	uint32_t number = known(link, strange(0x101));
	int good = stranger(strange(0x101), ROCE_PORT);
	struct packet *pkt;
	unsigned heard = 0;

	for (uint32_t i = 0; i < 3000; i++) {
		int fd = stranger(strange(0x1000 + i), ROCE_PORT);

		send_raw(fd, link->address, make(SERVICE_UD, link->qpn_first, i), 0);
		close(fd);
		pkt = await(link, 0);
		if (pkt)
			heard++;
	}
	while (heard < 2047 && await(link, WAIT_NS))
		heard++;
	ck_assert_uint_eq(heard, 2047);
	ck_assert_ptr_null(await(link, 50000000));
	send_raw(good, link->address, make(SERVICE_RC, link->qpn_first, 7), 0);
	pkt = await(link, WAIT_NS);
	ck_assert_ptr_nonnull(pkt);
	ck_assert_uint_eq(pkt->from, number);
	ck_assert_uint_ne(known(link, strange(0x9000)), number);
	link->leave(link);
}

TEST(address_of_another_kind)
{
	struct nic_link *link = open_link(0);
	union ibv_gid gid;

	for (unsigned i = 0; i < 4; i++) {
		static const uint32_t bad[] = {0, 0x0a000001, 0xe0000001, 0xffffffff};

		rnic_gid(bad[i], &gid);
		ck_assert_int_lt(link->link.resolve(&link->link, &gid), 0);
	}
	memset(&gid, 0, sizeof(gid));
	gid.raw[15] = 1;
	ck_assert_int_lt(link->link.resolve(&link->link, &gid), 0);
	link->leave(link);
	/* TEST-NET-1: an address of no host. */
	ck_assert_int_eq(fabric_dir_make(directory), 0);
	ck_assert_int_eq(link_udp_open(&link, directory, 0xc0000201, own_slot), -EADDRNOTAVAIL);
	ck_assert_int_ne(access(directory, F_OK), 0);
}

/* A child that lives on does not keep its parent's address. */
TEST(child)
{
	struct nic_link *link = open_link(0);
	uint32_t address = link->address;
	int there[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(there), 0);
	pid = fork();
	if (pid == 0) {
		link->forked(link);
		say(there[1], "x", 1);
		for (;;)
			pause();
	}
	hear(there[0], &status, 1);
	link->leave(link);
	ck_assert_int_eq(fabric_dir_make(directory), 0);
	link = open_link(0);
	ck_assert_uint_eq(link->address, address);
	link->leave(link);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* One of the processes that share an address; it knows the senders' addresses. */
static void take_own(int tell, int senders)
{
	struct nic_link *link = open_link(SHARED);
	uint32_t sum = 0;

	for (int i = 0; i < senders; i++)
		known(link, strange(0x201) + (uint32_t)i);
	say(tell, &link->qpn_first, 4);
	for (int i = 0; i < PACKETS; i++) {
		struct packet *pkt = await(link, WAIT_NS);

		ck_assert_ptr_nonnull(pkt);
		ck_assert_uint_eq(pkt->dest_qpn, link->qpn_first);
		ck_assert_uint_eq(address_of(link, pkt->from),
				  strange(0x201) + pkt->psn / 2 % (uint32_t)senders);
		sum += pkt->psn;
		packet_put(&net, pkt);
	}
	ck_assert_ptr_null(await(link, 0));
	say(tell, &sum, 4);
	for (;;)
		if (await(link, WAIT_NS))
			say(tell, "x", 1);
}

TEST(shared_address)
{
	enum { SENDERS = 8, PROCESSES = 3 };
	uint32_t qpn[PROCESSES], expected[PROCESSES] = {0}, sum;
	int there[PROCESSES][2], fd[SENDERS], status;
	pid_t pid[PROCESSES];

	for (int i = 0; i < SENDERS; i++)
		fd[i] = stranger(strange(0x201) + (uint32_t)i, ROCE_PORT);
	for (int i = 0; i < PROCESSES; i++) {
		ck_assert_int_eq(pipe(there[i]), 0);
		pid[i] = fork();
		if (pid[i] == 0)
			take_own(there[i][1], SENDERS);
		hear(there[i][0], &qpn[i], 4);
	}
	/* The last one dies: what would have come to its socket comes to the others'. */
	ck_assert_int_eq(kill(pid[2], SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid[2], &status, 0), pid[2]);
	for (uint32_t n = 0; n < 2 * PACKETS; n++) {
		send_raw(fd[n / 2 % SENDERS], SHARED, make(SERVICE_RC, qpn[n % 2], n), 0);
		expected[n % 2] += n;
	}
	for (int i = 0; i < 2; i++) {
		hear(there[i][0], &sum, 4);
		ck_assert_uint_eq(sum, expected[i]);
	}
	/* It sleeps, and some of these come to the other's socket. */
	for (int i = 0; i < SENDERS; i++) {
		struct pollfd answer = {there[0][0], POLLIN, 0};
		char byte;

		usleep(20000);
		send_raw(fd[i], SHARED, make(SERVICE_RC, qpn[0], (uint32_t)i), 0);
		ck_assert_int_eq(poll(&answer, 1, 30000), 1);
		hear(there[0][0], &byte, 1);
	}
	for (int i = 0; i < 2; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
	}
	/* Killed, they left their inboxes. */
	ck_assert_int_eq(fabric_dir_sweep(directory, false), 0);
}

RUN_TESTS(setup, NULL)
