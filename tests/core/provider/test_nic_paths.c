/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways to the peer: each GID of the port as source and as destination; with the link layer
 * InfiniBand (TIDEMARK_LAYER), LIDs without a GRH; several devices (TIDEMARK_DEVICES).
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

#define BYTES  4096u
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define GIDS   4u

static void setup(void)
{
	open_side(&a, BYTES, ACCESS);
	open_side(&b, BYTES, ACCESS);
}

static void setup_infiniband(void)
{
	setenv("TIDEMARK_LAYER", "infiniband", 1);
	setup();
}

static struct ibv_port_attr port_of(const struct side *s)
{
	struct ibv_port_attr port;

	ck_assert_int_eq(ibv_query_port(s->context, 1, &port), 0);
	return port;
}

static const char *file(const char *name, char *buf, size_t size)
{
	if (ibv_read_sysfs_file(a.context->device->ibdev_path, name, buf, size) < 0)
		return strerror(errno);
	return buf;
}

TEST(table)
{
	static const struct {
		enum ibv_gid_type type;
		const char *text;
		bool v4;
	} expected[GIDS] = {
		{IBV_GID_TYPE_ROCE_V2, "RoCE v2", true},
		{IBV_GID_TYPE_ROCE_V2, "RoCE v2", false},
		{IBV_GID_TYPE_ROCE_V1, "IB/RoCE v1", true},
		{IBV_GID_TYPE_ROCE_V1, "IB/RoCE v1", false},
	};
	struct ibv_gid_entry entry, entries[8];
	char name[40], buf[64], compact[INET6_ADDRSTRLEN], same[INET6_ADDRSTRLEN];
	uint8_t in6[16];
	union ibv_gid gid;
	int type;

	ck_assert_int_ge(port_of(&a).gid_tbl_len, (int)GIDS);
	ck_assert_int_eq(ibv_query_gid_table(a.context, entries, 8, 0), GIDS);
	ck_assert_int_eq(ibv_query_gid_table(a.context, entries, GIDS - 1, 0), -EINVAL);
	for (unsigned i = 0; i < GIDS; i++) {
		ck_assert_int_eq(ibv_query_gid(a.context, 1, (int)i, &gid), 0);
		ck_assert_int_eq(ibv_query_gid_ex(a.context, 1, i, &entry, 0), 0);
		ck_assert_mem_eq(&entry, &entries[i], sizeof(entry));
		ck_assert_mem_eq(&entry.gid, &gid, sizeof(gid));
		ck_assert_uint_eq(entry.gid_index, i);
		ck_assert_uint_eq(entry.port_num, 1);
		ck_assert_uint_eq(entry.gid_type, expected[i].type);
		ck_assert_uint_ne(entry.ndev_ifindex, 0);
		ck_assert_int_eq(ibv_query_gid_type(a.context, 1, i, &type), 0);
		ck_assert_int_eq(type, expected[i].type == IBV_GID_TYPE_ROCE_V2);
		if (expected[i].v4)
			ck_assert_mem_eq(&gid, &a.gid, sizeof(gid));
		else
			ck_assert_uint_eq(be64toh(gid.global.subnet_prefix), 0xfe80ull << 48);
		snprintf(name, sizeof(name), "ports/1/gids/%u", i);
		ck_assert_int_eq(inet_pton(AF_INET6, file(name, buf, sizeof(buf)), in6), 1);
		ck_assert_str_eq(inet_ntop(AF_INET6, in6, compact, sizeof(compact)),
				 inet_ntop(AF_INET6, gid.raw, same, sizeof(same)));
		snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%u", i);
		ck_assert_str_eq(file(name, buf, sizeof(buf)), expected[i].text);
		snprintf(name, sizeof(name), "ports/1/gid_attrs/ndevs/%u", i);
		ck_assert_uint_eq(if_nametoindex(file(name, buf, sizeof(buf))), entry.ndev_ifindex);
	}
	ck_assert_str_eq(file("ports/1/gids/7", buf, sizeof(buf)),
			 "0000:0000:0000:0000:0000:0000:0000:0000");
	ck_assert_str_eq(file("ports/1/gid_attrs/types/7", buf, sizeof(buf)), strerror(EINVAL));
	ck_assert_str_eq(file("ports/1/gids/8", buf, sizeof(buf)), strerror(ENOENT));
	ck_assert_str_eq(file("ports/1/gids/", buf, sizeof(buf)), strerror(ENOENT));
	ck_assert_str_eq(file("ports/1/gids/00", buf, sizeof(buf)), strerror(ENOENT));
	ck_assert_str_eq(file("ports/1/link_layer", buf, sizeof(buf)), "Ethernet");
	ck_assert_str_eq(file("ports/1/lid", buf, sizeof(buf)), "0x0");
	ck_assert_str_eq(file("ports/1/lid/", buf, sizeof(buf)), strerror(ENOENT));
}

/* To RTS by this path. */
static void go_by(struct side *s, const struct side *peer, struct ibv_ah_attr path)
{
	for (unsigned i = 0; i < TRANSITIONS; i++) {
		struct ibv_qp_attr attr = attr_to(s, peer, transitions[i].to);

		attr.ah_attr = path;
		if (transitions[i].type == IBV_QPT_RC)
			ck_assert_int_eq(
				ibv_modify_qp(s->qp, &attr, transitions[i].mask | IBV_QP_STATE), 0);
	}
}

static void write_by(struct ibv_ah_attr there, struct ibv_ah_attr back)
{
	make_qp(&a, IBV_QPT_RC);
	make_qp(&b, IBV_QPT_RC);
	go_by(&a, &b, there);
	go_by(&b, &a, back);
	post_op(&a, IBV_WR_RDMA_WRITE, 64, 7);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ibv_destroy_qp(a.qp);
	ibv_destroy_qp(b.qp);
}

TEST(connections)
{
	union ibv_gid gid;

	for (unsigned to = 0; to < GIDS; to++)
		for (uint8_t from = 0; from < GIDS; from++) {
			struct ibv_ah_attr path, back = path_to(&a.gid);

			ck_assert_int_eq(ibv_query_gid(b.context, 1, (int)to, &gid), 0);
			path = path_to(&gid);
			path.grh.sgid_index = from;
			write_by(path, back);
		}
}

/* A datagram by this path, from a to b; its completion there. */
static struct ibv_wc datagram_by(struct ibv_ah_attr path)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_of(&a, IBV_WR_SEND, &sge, 8, 7);
	struct ibv_wc wc;

	wr.wr.ud.ah = ibv_create_ah(a.pd, &path);
	wr.wr.ud.remote_qpn = b.qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	ck_assert_ptr_nonnull(wr.wr.ud.ah);
	give(&b, GRH + 8, 9);
	post_wr(&a, &wr);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, GRH + 8);
	ck_assert_int_eq(ibv_destroy_ah(wr.wr.ud.ah), 0);
	return wc;
}

TEST(datagrams)
{
	struct ibv_ah_attr path;
	union ibv_gid gid;

	connect_both(IBV_QPT_UD);
	for (unsigned i = 0; i < GIDS; i++) {
		ck_assert_int_eq(ibv_query_gid(b.context, 1, (int)i, &gid), 0);
		path = path_to(&gid);
		path.grh.sgid_index = (uint8_t)i;
		ck_assert_uint_eq(datagram_by(path).wc_flags, IBV_WC_GRH);
	}
}

static void refused(struct ibv_ah_attr path, int error)
{
	errno = 0;
	ck_assert_ptr_null(ibv_create_ah(a.pd, &path));
	ck_assert_int_eq(errno, error);
}

TEST(no_paths)
{
	struct ibv_ah_attr path = path_to(&b.gid);
	union ibv_gid gid;

	path.grh.sgid_index = GIDS;
	refused(path, EINVAL);
	ck_assert_int_eq(ibv_query_gid(b.context, 1, 1, &gid), 0);
	gid.raw[15] ^= 0xff;
	refused(path_to(&gid), ENETUNREACH);
	gid.raw[15] ^= 0xff;
	gid.raw[9] ^= 1; /* another vendor's MAC */
	refused(path_to(&gid), ENETUNREACH);
	refused((struct ibv_ah_attr){.port_num = 1, .dlid = 1}, EINVAL);
}

/* --- InfiniBand --- */

START_TEST(infiniband_port)
{
	const struct ibv_port_attr port = port_of(&a);
	struct ibv_gid_entry entry;
	char buf[64];

	ck_assert_int_eq(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
	ck_assert_uint_ne(port.lid, 0);
	ck_assert_uint_ne(port.sm_lid, 0);
	ck_assert_uint_eq(port.flags, 0);
	ck_assert_int_eq(ibv_query_gid_ex(a.context, 1, 0, &entry, 0), 0);
	ck_assert_uint_eq(entry.gid_type, IBV_GID_TYPE_IB);
	ck_assert_int_eq(ibv_query_gid_ex(a.context, 1, 1, &entry, 0), ENODATA);
	ck_assert_str_eq(file("ports/1/link_layer", buf, sizeof(buf)), "InfiniBand");
	ck_assert_uint_eq(strtoul(file("ports/1/lid", buf, sizeof(buf)), NULL, 16), port.lid);
	ck_assert_uint_eq(strtoul(file("ports/1/sm_lid", buf, sizeof(buf)), NULL, 16), port.sm_lid);
}
END_TEST

START_TEST(by_lid)
{
	const struct ibv_ah_attr there = {.port_num = 1, .dlid = port_of(&b).lid},
				 back = {.port_num = 1, .dlid = port_of(&a).lid};
	struct ibv_wc wc;
	struct ibv_ah *ah;

	write_by(there, back);
	write_by(there, path_to(&a.gid)); /* a GRH may be there */
	connect_both(IBV_QPT_UD);
	wc = datagram_by(there);
	ck_assert_uint_eq(wc.wc_flags & IBV_WC_GRH, 0);
	ck_assert_uint_eq(wc.slid, back.dlid);
	/* The way back. */
	ah = ibv_create_ah_from_wc(b.pd, &wc, NULL, 1);
	ck_assert_ptr_nonnull(ah);
	refused((struct ibv_ah_attr){.port_num = 1}, EINVAL);
	refused((struct ibv_ah_attr){.port_num = 1, .dlid = 999}, ENETUNREACH);
}
END_TEST

/* --- several devices --- */

#define DEVICES 2

static void setup_devices(void)
{
	setenv("TIDEMARK_DEVICES", "2", 1);
}

static void setup_devices_infiniband(void)
{
	setenv("TIDEMARK_LAYER", "infiniband", 1);
	setup_devices();
}

/* A side on each device. */
static void open_both(void)
{
	struct ibv_device **list;
	struct ibv_context *second;
	int n;

	setup();
	list = ibv_get_device_list(&n);
	ck_assert_int_eq(n, DEVICES);
	ck_assert_ptr_null(list[DEVICES]);
	for (unsigned i = 0; i < DEVICES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "tide%u", i);
		ck_assert_str_eq(ibv_get_device_name(list[i]), name);
		ck_assert_int_eq(ibv_get_device_index(list[i]), (int)i);
	}
	ck_assert_uint_ne(ibv_get_device_guid(list[0]), ibv_get_device_guid(list[1]));
	second = ibv_open_device(list[1]);
	ck_assert_ptr_nonnull(second);
	ck_assert_ptr_eq(second->device, list[1]);
	b = (struct side){.context = second, .buf = b.buf, .attr = b.attr};
	b.pd = ibv_alloc_pd(second);
	b.scq = b.rcq = ibv_create_cq(second, 64, NULL, NULL, 0);
	b.mr = ibv_reg_mr(b.pd, b.buf, BYTES, ACCESS);
	ck_assert(b.pd && b.scq && b.mr);
	ck_assert_int_eq(ibv_query_gid(second, 1, 0, &b.gid), 0);
	ibv_free_device_list(list);
}

START_TEST(two_devices)
{
	struct ibv_device_attr attr;
	union ibv_gid gid;
	uint8_t in6[16];
	char buf[64];

	open_both();
	ck_assert_mem_ne(&a.gid, &b.gid, sizeof(a.gid));
	ck_assert_int_eq(ibv_query_device(b.context, &attr), 0);
	ck_assert_uint_eq(attr.node_guid, ibv_get_device_guid(b.context->device));
	for (int i = 0; i < (int)GIDS; i++) {
		ck_assert_int_eq(ibv_query_gid(b.context, 1, i, &gid), 0);
		write_by(path_to(&gid), path_to(&a.gid));
	}
	connect_both(IBV_QPT_UD);
	ck_assert_uint_eq(datagram_by(path_to(&b.gid)).wc_flags, IBV_WC_GRH);
	ck_assert_int_gt(ibv_read_sysfs_file("/sys/class/infiniband/tide1", "ports/1/gids/0", buf,
					     sizeof(buf)),
			 0);
	ck_assert_int_eq(inet_pton(AF_INET6, buf, in6), 1);
	ck_assert_mem_eq(in6, b.gid.raw, sizeof(in6));
	ck_assert_int_eq(access("/sys/class/infiniband/tide1/ports/1/gids/0", R_OK), 0);
	ck_assert_int_eq(access("/sys/class/infiniband/tide2", F_OK), -1);
	ck_assert_int_eq(access("/dev/infiniband/uverbs1", F_OK), 0);
	ck_assert_int_eq(access("/dev/infiniband/uverbs2", F_OK), -1);
}
END_TEST

START_TEST(two_lids)
{
	struct ibv_port_attr one, two;

	open_both();
	one = port_of(&a);
	two = port_of(&b);
	ck_assert_uint_ne(one.lid, two.lid);
	ck_assert_uint_eq(one.sm_lid, two.sm_lid);
	write_by((struct ibv_ah_attr){.port_num = 1, .dlid = two.lid},
		 (struct ibv_ah_attr){.port_num = 1, .dlid = one.lid});
}
END_TEST

int main(void)
{
	Suite *suite = listed_suite(setup, NULL);
	TCase *tc = tcase_create("lids");
	tcase_add_checked_fixture(tc, setup_infiniband, NULL);
	tcase_add_test(tc, infiniband_port);
	tcase_add_test(tc, by_lid);
	suite_add_tcase(suite, tc);
	tc = tcase_create("devices");
	tcase_add_checked_fixture(tc, setup_devices, NULL);
	tcase_add_test(tc, two_devices);
	suite_add_tcase(suite, tc);
	tc = tcase_create("devices and lids");
	tcase_add_checked_fixture(tc, setup_devices_infiniband, NULL);
	tcase_add_test(tc, two_lids);
	suite_add_tcase(suite, tc);
	return nic_fabric_run(suite);
}
