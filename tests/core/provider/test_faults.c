/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults of live links: the language, which packets a rule hits, and what the tap in front of a
 * link makes of it. The link below it only writes down what it is given.
 */
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "core/provider/base/engine.h"
#include "core/provider/base/faults.h"
#include "core/provider/link/link_shm.h"
#include "core/provider/link/link_tap.h"
#include "core/provider/base/fabric_dir.h"
#include "core/provider/base/stats_page.h"
#include "core/rnic/count.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/link.h"
#include "tests/suite.h"

#define PEER 2
#define MS   1000000ull

static struct faults faults;

static void rules(const char *text, uint64_t seed)
{
	char why[200] = "";
	ck_assert_msg(!faults_parse(&faults, text, seed, why, sizeof(why)), "%s: %s", text, why);
}

static struct packet packet(uint8_t opcode, uint32_t psn)
{
	static uint8_t payload[4096];
	return (struct packet){.opcode = opcode,
			       .src_qpn = 0x010010,
			       .dest_qpn = 0x020010,
			       .psn = psn,
			       .len = 1024,
			       .payload = payload};
}

static struct fault_fate judge(uint8_t opcode, uint32_t psn)
{
	struct packet pkt = packet(opcode, psn);
	return faults_judge(&faults, FAULT_OUT, &pkt, PEER, 1);
}

/* --- the language --- */

TESTS(test_good, 15)
{
	static const struct {
		const char *text;
		unsigned rules;
	} good[] = {
		{"", 0},
		{"  ; ;\n", 0},
		{"lose 100%", 1},
		{"lose 5%", 1},
		{"lose 0.5%;duplicate 2%; reorder 10% by 3", 3},
		{"in corrupt 1% ack\nboth delay 1.5ms jitter 200us", 2},
		{"rate 1.5gbit, peer 10.0.0.2", 1},
		{"partition peer 3 after 10ms for 2s", 1},
		{"drop write 3 packet 2 qp 0x10010 times 4", 1},
		{"lose read 2 after 100 packets once", 1},
		{"tear write at 64", 1},
		{"lose 5%; duplicate; off", 0},
		{"off; lose once", 1},
		{"lose atomic_write 3 5%", 1},
		{"lose write 5%", 1},
	};
	rules(good[_i].text, 0);
	ck_assert_uint_eq(faults.rules, good[_i].rules);
}

TESTS(test_bad, 27)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"lose", "lose: expected which packets"},
		{"both drop", "lose: expected which packets"},
		{"duplicate; corrupt", "corrupt: expected which packets"},
		{"loose", "\"loose\": expected lose"},
		{"out", "but the rule ends"},
		{"lose 101%", "\"101%\": expected a share"},
		{"lose 5", "\"5\": expected a share"},
		{"lose -5%", "\"-5%\": expected"},
		{"lose write 0", "\"0\": expected a message's number"},
		{"lose packet", "expected a packet's number, from 1 on, but the rule ends"},
		{"lose packet x", "\"x\": expected a packet's number"},
		{"lose write ack", "\"ack\": expected one kind"},
		{"lose qp 16777216", "a queue pair's number"},
		{"lose peer nobody", "an IPv4 address"},
		{"lose after 5", "\"packets\""},
		{"lose after x", "a time, or a number of packets"},
		{"lose for 5", "a time, such as"},
		{"delay", "a time, such as"},
		{"delay 1parsec", "\"1parsec\""},
		{"rate 0mbit", "a rate"},
		{"reorder by 0", "from 1 to 1000"},
		{"lose by 3", "\"by\": expected"},
		{"out tear", "memory is torn where it is written"},
		{"tear ack", "write or send"},
		{"off now", "nothing after off"},
		{"lose 5%; \x01\x02", "\"??\": expected"},
		{"lose times 18446744073709551616", "a number from 1 on"},
	};
	char why[200] = "";
	ck_assert_int_eq(faults_parse(&faults, bad[_i].text, 0, why, sizeof(why)), -EINVAL);
	ck_assert_msg(strstr(why, bad[_i].says), "%s: %s", bad[_i].text, why);
}

TEST(test_too_many)
{
	char text[10 * FAULT_RULES] = "", why[200];
	for (unsigned i = 0; i <= FAULT_RULES; i++)
		strcat(text, "lose 5%;");
	ck_assert_int_eq(faults_parse(&faults, text, 0, why, sizeof(why)), -EINVAL);
	text[8 * FAULT_RULES] = '\0';
	ck_assert_int_eq(faults_parse(&faults, text, 0, why, sizeof(why)), 0);
}

/* Words in any order, bytes changed: an answer, and a message that fits. */
TEST(test_garbage)
{
	static const char *const words[] = {
		"lose",	 "reorder", "by", "5%", "write", "packet", "3",	 "18446744073709551615",
		"delay", "1ms",	    "in", ";",	"tear",	 "at",	   "qp", "peer"};
	unsigned good = 0;
	srand(1);
	for (unsigned n = 0; n < 100000; n++) {
		char text[200] = "", why[64];
		for (unsigned i = 0; i < n % 8; i++) {
			strcat(text, words[(unsigned)rand() % 16]);
			strcat(text, " ");
		}
		if (n % 2 && text[0])
			text[(unsigned)rand() % strlen(text)] = (char)rand();
		good += !faults_parse(&faults, text, n, why, sizeof(why));
		judge(OP_WRITE_ONLY, n & PSN_MASK);
	}
	ck_assert_uint_gt(good, 100);
}

/* --- which packets --- */

static unsigned lost_of(unsigned packets, uint8_t *pattern)
{
	unsigned lost = 0;
	for (unsigned i = 0; i < packets; i++) {
		bool is = judge(OP_WRITE_ONLY, i & PSN_MASK).lost;
		lost += is;
		if (pattern)
			pattern[i] = is;
	}
	return lost;
}

TEST(test_share)
{
	rules("lose 10%", 1);
	unsigned lost = lost_of(100000, NULL);
	ck_assert_uint_gt(lost, 9700);
	ck_assert_uint_lt(lost, 10300);
	rules("lose 0%", 1);
	ck_assert_uint_eq(lost_of(1000, NULL), 0);
	rules("lose 100%", 1);
	ck_assert_uint_eq(lost_of(1000, NULL), 1000);
}

TEST(test_seed)
{
	static uint8_t first[1000], again[1000], other[1000];
	struct packet in = packet(OP_SEND_ONLY, 7);
	rules("both lose 30%", 5);
	lost_of(1000, first);
	rules("both lose 30%", 6);
	lost_of(1000, other);
	ck_assert(memcmp(first, other, sizeof(first)));
	/* What comes in draws from another generator. */
	rules("both lose 30%", 5);
	for (unsigned i = 0; i < 1000; i++) {
		faults_judge(&faults, FAULT_IN, &in, PEER, 1);
		again[i] = judge(OP_WRITE_ONLY, i).lost;
	}
	ck_assert(!memcmp(first, again, sizeof(first)));
}

static const uint8_t write_of_three[] = {OP_WRITE_FIRST, OP_WRITE_MIDDLE, OP_WRITE_LAST};

TEST(test_one_packet)
{
	rules("drop write 3 packet 2", 1);
	for (uint32_t message = 0; message < 6; message++)
		for (uint32_t i = 0; i < 3; i++)
			ck_assert_int_eq(judge(write_of_three[i], 3 * message + i).lost,
					 message == 2 && i == 1);
	/* Sent again, from the middle of that message on. */
	for (uint32_t psn = 7; psn < 18; psn++)
		ck_assert(!judge(write_of_three[psn % 3], psn).lost);
}

TEST(test_retransmissions_too)
{
	rules("drop write 1 packet 2 times 3", 1);
	for (unsigned round = 0; round < 5; round++)
		for (uint32_t i = 0; i < 3; i++)
			ck_assert_int_eq(judge(write_of_three[i], psn_add(PSN_MASK - 1, i)).lost,
					 i == 1 && round < 3);
}

/* Other kinds do not count; every third packet of SENDs is hit when no message is named. */
TEST(test_kinds)
{
	rules("lose send packet 3; lose read 2", 1);
	ck_assert(!judge(OP_SEND_FIRST, 10).lost);
	ck_assert(!judge(OP_SEND_MIDDLE, 11).lost);
	ck_assert(judge(OP_SEND_LAST, 12).lost);
	ck_assert(!judge(OP_READ_REQUEST, 13).lost);
	ck_assert(!judge(OP_WRITE_ONLY, 14).lost);
	ck_assert(judge(OP_READ_REQUEST, 15).lost);
	ck_assert(!judge(OP_READ_REQUEST, 16).lost);
	ck_assert(!judge(OP_SEND_FIRST, 17).lost);
	ck_assert(!judge(OP_SEND_MIDDLE, 18).lost);
	ck_assert(judge(OP_SEND_MIDDLE, 19).lost);
}

TEST(test_queue_pair)
{
	struct packet one = packet(OP_WRITE_ONLY, 0), two = packet(OP_WRITE_ONLY, 0);
	two.src_qpn = 0x010011;
	rules("lose write 2 qp 0x10011", 1);
	for (unsigned i = 0; i < 5; i++, one.psn++, two.psn++) {
		ck_assert(!faults_judge(&faults, FAULT_OUT, &one, PEER, 1).lost);
		ck_assert_int_eq(faults_judge(&faults, FAULT_OUT, &two, PEER, 1).lost, i == 1);
	}
}

TEST(test_naks)
{
	struct packet ack = packet(OP_ACKNOWLEDGE, 5);
	rules("lose nak; lose ack 2", 1);
	ack.syndrome = AETH_NAK_SEQUENCE;
	ck_assert(faults_judge(&faults, FAULT_OUT, &ack, PEER, 1).lost);
	ack.syndrome = AETH_ACK;
	ck_assert(!faults_judge(&faults, FAULT_OUT, &ack, PEER, 1).lost);
	ck_assert(faults_judge(&faults, FAULT_OUT, &ack, PEER, 1).lost);
	ck_assert(!faults_judge(&faults, FAULT_OUT, &ack, PEER, 1).lost);
}

TEST(test_when)
{
	struct packet pkt = packet(OP_WRITE_ONLY, 0);
	rules("lose after 3 packets times 2", 1);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(judge(OP_WRITE_ONLY, i).lost, i == 3 || i == 4);
	rules("lose after 10ms for 5ms", 1);
	for (uint64_t ms = 0; ms < 20; ms++) {
		bool lost = faults_judge(&faults, FAULT_OUT, &pkt, PEER, MS + ms * MS).lost;
		ck_assert_int_eq(lost, ms >= 10 && ms < 15);
	}
}

TEST(test_partition)
{
	struct packet pkt = packet(OP_WRITE_ONLY, 0);
	rules("partition peer 10.0.0.2", 1);
	for (enum fault_direction d = FAULT_OUT; d <= FAULT_IN; d++) {
		ck_assert(faults_judge(&faults, d, &pkt, 0x0a000002, 1).lost);
		ck_assert(!faults_judge(&faults, d, &pkt, 0x0a000003, 1).lost);
	}
}

TEST(test_tear_where)
{
	struct packet pkt = packet(OP_WRITE_ONLY, 0);
	bool differs = false;
	rules("tear write at 100", 1);
	ck_assert(!faults_judge(&faults, FAULT_OUT, &pkt, PEER, 1).tear);
	struct fault_fate fate = faults_judge(&faults, FAULT_IN, &pkt, PEER, 1);
	ck_assert(fate.tear);
	ck_assert_uint_eq(fate.tear_at, 100);
	rules("tear write", 1);
	for (unsigned i = 0; i < 100; i++) {
		uint32_t at = faults_judge(&faults, FAULT_IN, &pkt, PEER, 1).tear_at;
		ck_assert_uint_le(at, pkt.len);
		ck_assert_uint_eq(at % 8, 0);
		differs |= at != fate.tear_at;
	}
	ck_assert(differs);
}

/* --- the tap --- */

static struct rnic_net net;
static struct engine *engine;
static struct nic_link *tap;
static uint64_t *count;
static char directory[64];
static struct nic_config config;
static uint32_t sent[512], sents; /* sequence numbers that the link below was given */
static unsigned arrives;	  /* packets that it hands up */

static void below_send(struct link *link, unsigned from, struct packet *pkt)
{
	ck_assert_uint_lt(sents, 512);
	/* What waited has its own copy of the payload. */
	ck_assert_uint_eq(pkt->payload[0], (uint8_t)pkt->psn);
	sent[sents++] = pkt->psn;
	packet_put(&net, pkt);
}

static struct packet *make_packet(uint8_t opcode, uint32_t psn)
{
	struct packet *pkt = packet_get(&net, 1024);
	memset(pkt->payload, (uint8_t)psn, pkt->len);
	pkt->opcode = opcode;
	pkt->src_qpn = 0x010010;
	pkt->dest_qpn = 0x020010;
	pkt->psn = psn;
	return pkt;
}

static struct packet *below_take(struct nic_link *nic, struct rnic_net *to)
{
	return arrives ? make_packet(OP_WRITE_ONLY, arrives--) : NULL;
}

static void below_leave(struct nic_link *nic)
{
}

static void below_gid(struct link *link, uint32_t number, union ibv_gid *gid)
{
	rnic_gid(number, gid);
}

static void open_tap(const char *text)
{
	static struct nic_link below = {.link = {.send = below_send, .gid = below_gid},
					.qpn_first = 0x010010,
					.take = below_take,
					.leave = below_leave,
					.sender = PEER};
	char line[300];
	nic_config_default(&config);
	snprintf(directory, sizeof(directory), "/dev/shm/tidemark-test-faults.%d", getpid());
	ck_assert_int_eq(nic_config_set(&config, SETTING_FABRIC, directory), 0);
	ck_assert_int_eq(nic_config_set(&config, SETTING_FAULTS, text), 0);
	ck_assert_int_eq(fabric_dir_make(directory), 0);
	engine = engine_new();
	net.ground = *engine_ground(engine);
	engine_tick(engine);
	ck_assert_msg(!link_tap_open(&tap, &below, engine, &config, line, sizeof(line)), "%s",
		      line);
	link_tap_net(tap, &net);
	count = net.count;
}

static void close_tap(void)
{
	if (!tap)
		return;
	tap->leave(tap);
	ck_assert_int_eq(rmdir(directory), 0);
}

static void send_psn(uint32_t psn)
{
	tap->link.send(&tap->link, 0, make_packet(OP_SEND_ONLY, psn));
}

/* What is due within so many ms happens. */
static void wait_ms(unsigned ms)
{
	for (unsigned i = 0; i < ms; i++) {
		const struct timespec moment = {.tv_nsec = 1000000};
		nanosleep(&moment, NULL);
		engine_tick(engine);
		engine_run(engine);
	}
}

/* Until so many are sent; how long that took, ms. A busy machine may let it take longer. */
static uint64_t wait_until_sent(unsigned n)
{
	uint64_t start = engine_now(engine);

	for (unsigned i = 0; i < 10000 && sents < n; i++)
		wait_ms(1);
	return (engine_now(engine) - start) / 1000000;
}

static void expect_sent(unsigned n, const uint32_t *psns)
{
	ck_assert_uint_eq(sents, n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(sent[i], psns[i]);
}

static const struct tapped {
	const char *rules;
	unsigned given, moment; /* packets 0, 1, ...; ms after each */
	uint32_t sent[5];
	unsigned n;
	enum rnic_count what;
	unsigned counted;
} tapped[] = {
	{"", 3, 0, {0, 1, 2}, 3, COUNT_bytes_sent, 3 * (HEADER_BYTES + 1024)},
	{"lose after 1 packets once", 4, 0, {0, 2, 3}, 3, COUNT_fault_lost, 1},
	{"lose after 1 packets once", 4, 0, {0, 2, 3}, 3, COUNT_packets_sent, 3},
	{"duplicate once", 2, 1, {0, 0, 1}, 3, COUNT_fault_duplicated, 1},
	{"reorder by 2 once", 4, 0, {1, 2, 0, 3}, 4, COUNT_packets_sent, 4},
	{"reorder by 2 once", 1, 0, {0}, 1, COUNT_packets_sent, 1}, /* none overtakes it */
};

/* Whatever comes late, nothing comes once more. */
TESTS(test_tap, ROWS_OF(tapped))
{
	const struct tapped *t = &tapped[_i];

	open_tap(t->rules);
	for (uint32_t psn = 0; psn < t->given; psn++) {
		send_psn(psn);
		wait_ms(t->moment);
	}
	wait_ms(15);
	expect_sent(t->n, t->sent);
	ck_assert_uint_eq(count[t->what], t->counted);
}

TEST(test_tap_arrivals)
{
	open_tap("");
	arrives = 2;
	for (unsigned i = 0; i < 2; i++)
		packet_put(&net, tap->take(tap, &net));
	ck_assert_ptr_null(tap->take(tap, &net));
	ck_assert_uint_eq(count[COUNT_packets_received], 2);
}

TEST(test_tap_loses_arrivals)
{
	open_tap("in lose after 1 packets once");
	arrives = 3;
	for (unsigned i = 0; i < 2; i++) {
		struct packet *pkt = tap->take(tap, &net);
		ck_assert_uint_eq(pkt->psn, i ? 1 : 3);
		packet_put(&net, pkt);
	}
	ck_assert_uint_eq(count[COUNT_packets_received], 3);
}

TEST(test_tap_delays)
{
	open_tap("delay 200ms once");
	send_psn(0);
	send_psn(1);
	expect_sent(1, (const uint32_t[]){1});
	ck_assert_uint_ge(wait_until_sent(2), 200);
	expect_sent(2, (const uint32_t[]){1, 0});
	ck_assert_uint_eq(count[COUNT_fault_delayed], 1);
}

TEST(test_tap_delayed_survive)
{
	open_tap("delay 20s; reorder by 3");
	send_psn(0);
	send_psn(1);
	ck_assert_uint_eq(sents, 0);
	tap->leave(tap);
	expect_sent(2, (const uint32_t[]){0, 1});
	tap = NULL;
	ck_assert_int_eq(rmdir(directory), 0);
}

/* 8 Mbit/s: a millisecond for 1000 bytes. */
TEST(test_tap_limits)
{
	open_tap("rate 8mbit");
	for (uint32_t psn = 0; psn < 20; psn++)
		send_psn(psn);
	ck_assert_uint_lt(sents, 3);
	ck_assert_uint_ge(wait_until_sent(20), 17);
	ck_assert_uint_eq(sents, 20);
	for (uint32_t psn = 20; psn < 400; psn++)
		send_psn(psn);
	ck_assert_uint_gt(count[COUNT_fault_lost],
			  100); /* as a switch would: its queue has an end */
	sents = 0;
}

TEST(test_tap_corrupts)
{
	open_tap("corrupt 100%; in corrupt 100%");
	for (uint32_t psn = 0; psn < 50; psn++)
		send_psn(psn);
	arrives = 50;
	ck_assert_ptr_null(tap->take(tap, &net));
	ck_assert_uint_eq(sents, 0);
	ck_assert_uint_eq(count[COUNT_fault_corrupted], 100);
	/* Most of a packet is payload; a header may be refused for what it says. */
	ck_assert_uint_gt(count[COUNT_bad_icrc], 80);
	ck_assert_uint_eq(count[COUNT_bad_icrc] + count[COUNT_bad_opcode] +
				  count[COUNT_bad_length] + count[COUNT_bad_partition],
			  100);
}

TEST(test_tap_tears)
{
	open_tap("tear write at 24");
	arrives = 1;
	struct packet *pkt = tap->take(tap, &net);
	ck_assert_uint_eq(pkt->torn, 25);
	packet_put(&net, pkt);
}

/* Rules that another process gives. */
static void give(const char *text)
{
	pid_t child = fork();
	int status;
	if (!child)
		_exit(stats_page_give(directory, "nic.1", text, 1) ? 1 : 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

TEST(test_tap_is_told)
{
	open_tap("lose 100%");
	send_psn(0);
	ck_assert_uint_eq(sents, 0);
	give("");
	send_psn(1);
	give("lose once");
	send_psn(2);
	send_psn(3);
	give("nonsense"); /* never from the command line, which looks first */
	send_psn(4);
	expect_sent(3, (const uint32_t[]){1, 3, 4});
}

TEST(test_files)
{
	struct stat is;
	char path[128];
	open_tap("");
	snprintf(path, sizeof(path), "%s/nic.1", directory);
	ck_assert_int_eq(stat(path, &is), 0);
	ck_assert_uint_eq(is.st_mode & 0777, 0600);
	ck_assert_int_eq(stat(directory, &is), 0);
	ck_assert_uint_eq(is.st_mode & 0777, 0700);
}

RUN_TESTS(NULL, close_tap)
