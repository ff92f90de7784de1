/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libibverbs and librdmacm have and the soft RNIC has not: every call is refused with the
 * error that rdma-core documents for a device without it, and no attribute promises it.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define BUF 4096

#define REFUSED(call, result, error)            \
	do {                                    \
		errno = 0;                      \
		ck_assert((call) == (result));  \
		ck_assert_int_eq(errno, error); \
	} while (0)

static void setup(void)
{
	open_side(&a, BUF, IBV_ACCESS_LOCAL_WRITE);
}

TEST(device_memory)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm dm = {.context = a.context};
	struct ibv_device_attr_ex device;

	ck_assert_int_eq(ibv_query_device_ex(a.context, NULL, &device), 0);
	ck_assert_uint_eq(device.max_dm_size, 0);
	REFUSED(ibv_alloc_dm(a.context, &attr), NULL, EOPNOTSUPP);
	REFUSED(ibv_reg_dm_mr(a.pd, &dm, 0, 64, IBV_ACCESS_ZERO_BASED), NULL, EOPNOTSUPP);
	ck_assert_int_eq(ibv_free_dm(&dm), EOPNOTSUPP);
}

TEST(paging_on_demand)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
	struct ibv_sge sge = {(uintptr_t)a.buf, BUF, a.mr->lkey};
	struct ibv_device_attr_ex device;

	ck_assert_int_eq(ibv_query_device_ex(a.context, NULL, &device), 0);
	ck_assert_uint_eq(device.odp_caps.general_caps, 0);
	ck_assert_uint_eq(device.odp_caps.per_transport_caps.rc_odp_caps |
				  device.odp_caps.per_transport_caps.uc_odp_caps |
				  device.odp_caps.per_transport_caps.ud_odp_caps |
				  device.xrc_odp_caps,
			  0);
	REFUSED(ibv_reg_mr(a.pd, a.buf, BUF, access), NULL, EOPNOTSUPP);
	REFUSED(ibv_reg_mr(a.pd, NULL, SIZE_MAX, access), NULL, EOPNOTSUPP);
	ck_assert_int_eq(ibv_advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
			 EOPNOTSUPP);
}

TEST(extended_reliable)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
	struct ibv_qp_open_attr open = {0};
	struct ibv_qp_init_attr init = {.send_cq = a.scq, .recv_cq = a.rcq, .cap = {1, 1, 1, 1, 0}};

	REFUSED(ibv_open_xrcd(a.context, &domain), NULL, EOPNOTSUPP);
	REFUSED(ibv_open_qp(a.context, &open), NULL, EOPNOTSUPP);
	init.qp_type = IBV_QPT_XRC_SEND;
	REFUSED(ibv_create_qp(a.pd, &init), NULL, EOPNOTSUPP);
	init.qp_type = IBV_QPT_XRC_RECV;
	REFUSED(ibv_create_qp(a.pd, &init), NULL, EOPNOTSUPP);
}

TEST(multicast)
{
	const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
	struct ibv_qp_init_attr init = {
		.send_cq = a.scq, .recv_cq = a.rcq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
	struct ibv_ah_attr path = path_to(&group);
	struct ibv_qp *qp = ibv_create_qp(a.pd, &init);
	struct ibv_device_attr device;

	ck_assert_ptr_nonnull(qp);
	ck_assert_int_eq(ibv_query_device(a.context, &device), 0);
	ck_assert_int_eq(device.max_mcast_grp | device.max_mcast_qp_attach |
				 device.max_total_mcast_qp_attach,
			 0);
	ck_assert_int_eq(ibv_attach_mcast(qp, &group, 0), EOPNOTSUPP);
	ck_assert_int_eq(ibv_detach_mcast(qp, &group, 0), EOPNOTSUPP);
	REFUSED(ibv_create_ah(a.pd, &path), NULL, ENETUNREACH);
}

/* --- librdmacm --- */

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;

	ck_assert_int_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

TEST(groups)
{
	struct sockaddr_in group = {.sin_family = AF_INET,
				    .sin_addr.s_addr = inet_addr("239.1.2.3")};
	struct sockaddr *addr = (struct sockaddr *)&group;
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					       .addr = addr};
	struct rdma_cm_id *id = new_id();

	REFUSED(rdma_join_multicast(id, addr, NULL), -1, EOPNOTSUPP);
	REFUSED(rdma_join_multicast_ex(id, &attr, NULL), -1, EOPNOTSUPP);
	REFUSED(rdma_leave_multicast(id, addr), -1, EADDRNOTAVAIL);
	REFUSED(rdma_join_multicast(id, NULL, NULL), -1, EINVAL);
	REFUSED(rdma_join_multicast_ex(id, NULL, NULL), -1, EINVAL);
	REFUSED(rdma_leave_multicast(id, NULL), -1, EINVAL);
	rdma_destroy_id(id);
}

/* Port spaces other than that of reliable connections: lookups of datagrams' queue pairs, XRC. */
TEST(port_spaces)
{
	static const enum rdma_port_space spaces[] = {RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB};
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *res;
	struct rdma_cm_id *id;

	for (unsigned i = 0; i < 3; i++) {
		REFUSED(rdma_create_id(NULL, &id, NULL, spaces[i]), -1, EINVAL);
		hints.ai_port_space = (int)spaces[i];
		ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), EAI_SERVICE);
	}
	hints.ai_port_space = RDMA_PS_TCP;
	hints.ai_qp_type = IBV_QPT_UD;
	ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), EAI_SOCKTYPE);
	hints.ai_qp_type = IBV_QPT_XRC_SEND;
	ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), EAI_SOCKTYPE);
}

TEST(types_and_families)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_storage ib = {.ss_family = 27}; /* AF_IB */
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0}};
	struct rdma_cm_id *id = new_id();

	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&ib), -1, EAFNOSUPPORT);
	REFUSED(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ib, 1000), -1, EAFNOSUPPORT);
	ck_assert_int_eq(rdma_bind_addr(id, (struct sockaddr *)&here), 0);
	for (unsigned i = 0; i < 3; i++) {
		init.qp_type = types[i];
		REFUSED(rdma_create_qp(id, NULL, &init), -1, EINVAL);
	}
	rdma_destroy_id(id);
}

TEST(rsockets)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct pollfd poll = {.fd = 1};
	socklen_t size = sizeof(to);
	char byte = 0;

	REFUSED(rsocket(AF_INET, SOCK_STREAM, 0), -1, ENOTSUP);
	REFUSED(rsocket(AF_INET6, SOCK_DGRAM, 0), -1, ENOTSUP);
	REFUSED(rbind(1, (struct sockaddr *)&to, size), -1, EBADF);
	REFUSED(rlisten(1, 1), -1, EBADF);
	REFUSED(raccept(1, (struct sockaddr *)&to, &size), -1, EBADF);
	REFUSED(rconnect(1, (struct sockaddr *)&to, size), -1, EBADF);
	REFUSED(rsend(1, &byte, 1, 0), -1, EBADF);
	REFUSED(rrecv(1, &byte, 1, 0), -1, EBADF);
	REFUSED(rpoll(&poll, 1, 0), -1, EBADF);
	REFUSED(riomap(1, &byte, 1, 0, 0, 0), -1, EBADF);
	REFUSED(riowrite(1, &byte, 1, 0, 0), (size_t)-1, EBADF);
	REFUSED(rclose(1), -1, EBADF);
}

int main(void)
{
	return nic_fabric_run(listed_suite(setup, NULL));
}
