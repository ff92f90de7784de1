/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device tide0 says of itself, and does not have: queries against each other, refusals by
 * their documented errors, sysfs, device memory, paging on demand, opening often, closing with
 * objects left.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "core/clock.h"
#include "tests/core/provider/nic_fabric.h"

/* Not in libibverbs' headers; programs of rdma-core's own call them. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
const char *ibv_get_sysfs_path(void);

static struct ibv_device **list;
static struct ibv_context *context;

static void setup(void)
{
	int n = 0;

	list = ibv_get_device_list(&n);
	ck_assert_ptr_nonnull(list);
	ck_assert_int_eq(n, 1);
	ck_assert_ptr_null(list[1]);
	context = ibv_open_device(list[0]);
	ck_assert_ptr_nonnull(context);
}

TEST(device)
{
	struct ibv_device_attr_ex attr;
	struct ibv_device_attr plain;

	ck_assert_str_eq(ibv_get_device_name(list[0]), "tide0");
	ck_assert_int_eq(list[0]->node_type, IBV_NODE_CA);
	ck_assert_ptr_eq(context->device, list[0]);
	ck_assert_int_eq(ibv_query_device(context, &plain), 0);
	ck_assert_uint_eq(plain.node_guid, ibv_get_device_guid(list[0]));
	ck_assert_uint_ne(plain.vendor_id, 0);
	ck_assert_int_eq(plain.phys_port_cnt, 1);
	memset(&attr, 0xff, sizeof(attr));
	ck_assert_int_eq(ibv_query_device_ex(context, NULL, &attr), 0);
	/* Not its bytes: there are gaps in it. */
	ck_assert_str_eq(attr.orig_attr.fw_ver, plain.fw_ver);
	ck_assert_uint_eq(attr.orig_attr.node_guid, plain.node_guid);
	ck_assert_uint_eq(attr.orig_attr.max_mr_size, plain.max_mr_size);
	ck_assert_uint_eq(attr.orig_attr.device_cap_flags, plain.device_cap_flags);
	ck_assert_int_eq(attr.orig_attr.max_qp, plain.max_qp);
	ck_assert_int_eq(attr.orig_attr.max_srq_wr, plain.max_srq_wr);
	ck_assert_int_eq(attr.orig_attr.phys_port_cnt, plain.phys_port_cnt);
	ck_assert_uint_eq(attr.comp_mask | attr.tso_caps.max_tso | attr.rss_caps.supported_qpts |
				  attr.raw_packet_caps | attr.tm_caps.max_num_tags |
				  attr.packet_pacing_caps.supported_qpts,
			  0);
	ck_assert_uint_eq(plain.device_cap_flags & IBV_DEVICE_XRC, 0);
	ck_assert_uint_eq(attr.phys_port_cnt_ex, 1);
}

/* Its ticks are what it says that they are. */
START_TEST(device_clock)
{
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
	struct ibv_device_attr_ex attr;
	uint64_t ns, start;

	ck_assert_int_eq(ibv_query_device_ex(context, NULL, &attr), 0);
	ck_assert_uint_ne(attr.completion_timestamp_mask, 0);
	start = clock_ns();
	ck_assert_int_eq(ibv_query_rt_values_ex(context, &before), 0);
	usleep(20000);
	ck_assert_int_eq(ibv_query_rt_values_ex(context, &after), 0);
	ns = (uint64_t)(after.raw_clock.tv_nsec - before.raw_clock.tv_nsec) * 1000000 /
	     attr.hca_core_clock;
	ck_assert_uint_ge(ns, 20000000);
	ck_assert_uint_le(ns, clock_ns() - start);
}
END_TEST

TEST(port)
{
	struct ibv_port_attr attr, other;

	memset(&attr, 0xff, sizeof(attr));
	ck_assert_int_eq(ibv_query_port(context, 1, &attr), 0);
	ck_assert_int_eq(attr.state, IBV_PORT_ACTIVE);
	ck_assert_int_eq(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	ck_assert_uint_eq(attr.flags, IBV_QPF_GRH_REQUIRED);
	ck_assert_uint_eq(attr.port_cap_flags2, 0);
	ck_assert_uint_eq(attr.lid, 0);
	ck_assert_int_ge(attr.gid_tbl_len, 1);
	/* The old way shows the same, as far as its structure goes. */
	memset(&other, 0xee, sizeof(other));
#undef ibv_query_port
	ck_assert_int_eq(ibv_query_port(context, 1, (struct _compat_ibv_port_attr *)&other), 0);
	ck_assert_mem_eq(&attr, &other, offsetof(struct ibv_port_attr, port_cap_flags2));
	ck_assert_uint_eq(other.port_cap_flags2, 0xeeee);
	ck_assert_int_eq(ibv_query_port(context, 2, (struct _compat_ibv_port_attr *)&other),
			 EINVAL);
	ck_assert_int_eq(ibv_query_port(context, 0, (struct _compat_ibv_port_attr *)&other),
			 EINVAL);
}

/* Beyond the port's table of GIDs, which test_nic_paths.c has, and of partitions' keys. */
TEST(gids)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr attr;
	union ibv_gid gid, empty;
	static const union ibv_gid none;
	__be16 pkey;
	int type;

	ck_assert_int_eq(verbs_get_ctx(context)->query_port(context, 1, &attr, sizeof(attr)), 0);
	ck_assert(attr.active_mtu <= attr.max_mtu && attr.max_msg_sz > 0);
	ck_assert_int_eq(ibv_query_gid(context, 1, 0, &gid), 0);
	ck_assert_mem_ne(&gid, &none, sizeof(gid));
	ck_assert_int_eq(ibv_query_gid(context, 1, attr.gid_tbl_len, &gid), -1);
	ck_assert_int_eq(ibv_query_gid(context, 1, -1, &gid), -1);
	static const uint8_t ports[] = {0, 2, 255};
	for (unsigned i = 0; i < ROWS_OF(ports); i++) {
		ck_assert_int_eq(ibv_query_gid(context, ports[i], 0, &gid), -1);
		ck_assert_int_eq(ibv_query_pkey(context, ports[i], 0, &pkey), -1);
		ck_assert_int_eq(ibv_get_pkey_index(context, ports[i], htobe16(0xffff)), -1);
	}
	ck_assert_int_eq(ibv_query_gid_type(context, 1, 99, &type), -1);
	ck_assert_int_eq(ibv_query_gid_ex(context, 1, 0, &entry, 1), EINVAL);
	ck_assert_int_eq(ibv_query_gid_ex(context, 1, 99, &entry, 0), EINVAL);
	/* Some entries of the table are empty. */
	for (int i = 4; i < attr.gid_tbl_len; i++) {
		ck_assert_int_eq(ibv_query_gid(context, 1, i, &empty), 0);
		ck_assert_mem_eq(&empty, &none, sizeof(none));
		ck_assert_int_eq(ibv_query_gid_ex(context, 1, (uint32_t)i, &entry, 0), ENODATA);
	}
	ck_assert_int_eq(ibv_query_pkey(context, 1, 0, &pkey), 0);
	ck_assert_uint_eq(pkey, 0xffff);
	ck_assert_int_eq(ibv_query_pkey(context, 1, 1, &pkey), -1);
	ck_assert_int_eq(ibv_get_pkey_index(context, 1, htobe16(0xffff)), 0);
	ck_assert_int_eq(ibv_get_pkey_index(context, 1, htobe16(0x1234)), -1);
}

TEST(sysfs)
{
	char buf[64], uuid[64];
	uint64_t guid = be64toh(ibv_get_device_guid(list[0]));

	ck_assert_int_eq(ibv_read_sysfs_file(list[0]->ibdev_path, "node_type", buf, sizeof(buf)),
			 5);
	ck_assert_str_eq(buf, "1: CA");
	ck_assert_int_gt(ibv_read_sysfs_file(list[0]->dev_path, "ibdev", buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "tide0");
	ck_assert_int_gt(ibv_read_sysfs_file(list[0]->ibdev_path, "node_guid", buf, sizeof(buf)),
			 0);
	snprintf(uuid, sizeof(uuid), "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
		 (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
		 (unsigned)guid & 0xffff);
	ck_assert_str_eq(buf, uuid);
	ck_assert_int_gt(
		ibv_read_sysfs_file(list[0]->ibdev_path, "ports/1/gids/0", buf, sizeof(buf)), 0);
	ck_assert_uint_eq(strlen(buf), 39);
	ck_assert_int_eq(
		ibv_read_sysfs_file(list[0]->ibdev_path, "ports/9/gids/0", buf, sizeof(buf)), -1);
	ck_assert_int_eq(ibv_read_sysfs_file(list[0]->ibdev_path, "node_type", buf, 3), -1);
	/* In other directories: the contents of the file, without the last newline. */
	ck_assert_int_gt(ibv_read_sysfs_file("/proc/sys/kernel", "ostype", buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "Linux");
	ck_assert_str_eq(ibv_get_sysfs_path(), "/sys");
}

/* A program that looks for the driver's node finds one. */
TEST(node)
{
	struct stat st;

	ck_assert_int_eq(stat("/dev/infiniband/uverbs0", &st), 0);
	ck_assert(S_ISCHR(st.st_mode));
	ck_assert_int_eq(access("/dev/infiniband/uverbs0", R_OK | W_OK), 0);
	ck_assert_int_eq(stat("/dev/infiniband/uverbs99", &st), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(access("/dev/infiniband/uverbs99", F_OK), -1);
	ck_assert_int_eq(stat("/dev/shm", &st), 0);
	ck_assert(S_ISDIR(st.st_mode));
	ck_assert_int_eq(access("/dev/shm", X_OK), 0);
	ck_assert_int_eq(lstat("/proc/self", &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
}

#define SYSFS "/sys/class/infiniband/tide0"

/* The entries of a directory, but for "." and "..": how many, and the last one's name. */
static unsigned entries_of(const char *path, char *last, size_t size)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			snprintf(last, size, "%s", entry->d_name);
			n++;
		}
	ck_assert_int_eq(closedir(dir), 0);
	return n;
}

/* The port's network interface, for programs that look for it. */
TEST(network_interface)
{
	char name[256], path[600], text[64];
	struct ibv_gid_entry gid;
	struct statx x;
	struct stat st;
	FILE *file;

	ck_assert_int_eq(ibv_query_gid_ex(context, 1, 0, &gid, 0), 0);
	ck_assert_uint_eq(entries_of(SYSFS "/device/net", name, sizeof(name)), 1);
	ck_assert_uint_eq(if_nametoindex(name), gid.ndev_ifindex);
	ck_assert_int_eq(stat(SYSFS "/device/net/", &st), 0);
	ck_assert(S_ISDIR(st.st_mode));
	snprintf(path, sizeof(path), SYSFS "/device/net/%s", name);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISDIR(st.st_mode));
	ck_assert_int_eq(statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &x), 0);
	ck_assert(S_ISDIR(x.stx_mode));
	ck_assert_uint_gt(entries_of(path, text, sizeof(text)), 1);
	snprintf(path, sizeof(path), SYSFS "/device/net/%s/ifindex", name);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	ck_assert_uint_eq(strtoul(text, NULL, 10), gid.ndev_ifindex);
	fclose(file);
	snprintf(path, sizeof(path), SYSFS "/device/net/%sx", name);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(errno, ENOENT);
	/* Other directories are what they are. */
	ck_assert_uint_ge(entries_of("/sys/class/net", text, sizeof(text)), 1);
	ck_assert_uint_gt(entries_of("/", text, sizeof(text)), 3);
	ck_assert_ptr_null(opendir(SYSFS "/nothing"));
}

/* Files of the device's directory, opened as any file. */
TEST(sysfs_files)
{
	char text[64] = "", name[] = "/tmp/tidemark-test-XXXXXX";
	struct stat st;
	FILE *file;
	int fd;

	ck_assert_int_eq(stat(SYSFS, &st), 0);
	ck_assert(S_ISDIR(st.st_mode));
	ck_assert_int_eq(access(SYSFS "/node_guid", R_OK), 0);
	fd = open(SYSFS "/ports/1/gid_attrs/types/1", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(read(fd, text, sizeof(text)), 8);
	ck_assert_str_eq(text, "RoCE v2\n");
	close(fd);
	file = fopen(SYSFS "/ports/1/gids/0", "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	ck_assert_uint_eq(strlen(text), 40);
	fclose(file);
	ck_assert_int_eq(open(SYSFS "/node_guid", O_WRONLY), -1);
	ck_assert_int_eq(errno, EACCES);
	ck_assert_ptr_null(fopen(SYSFS "/node_guid", "r+"));
	ck_assert_int_eq(open(SYSFS "/nothing", O_RDONLY), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(open(SYSFS "/ports/1/gid_attrs/types/7", O_RDONLY), -1);
	ck_assert_int_eq(open("/sys/class/infiniband/tide00/node_guid", O_RDONLY), -1);
	/* Other files are what they are. */
	fd = mkstemp(name);
	close(fd);
	unlink(name);
	umask(0);
	fd = open(name, O_CREAT | O_RDWR | O_EXCL, 0640);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	close(fd);
	unlink(name);
}

/* Names and rates are those of the system's library, for numbers that mean nothing, too. */
TEST(names)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	ck_assert_str_eq(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR),
			 "transport retry counter exceeded");
	ck_assert_str_eq(ibv_event_type_str((enum ibv_event_type)99), "unknown");
	ck_assert_int_eq(ibv_rate_to_mbps(IBV_RATE_5_GBPS), 5000);
	ck_assert_int_eq(mbps_to_ibv_rate(5000), IBV_RATE_5_GBPS);
	ck_assert_int_eq(mult_to_ibv_rate(2), IBV_RATE_5_GBPS);
	if (!lib)
		return;
#define SAME_NAME(call, type)                                                                     \
	do {                                                                                      \
		const char *(*theirs)(enum type) = (const char *(*)(enum type))dlsym(lib, #call); \
		ck_assert(theirs &&theirs != call);                                               \
		for (int i = -1; i < 40; i++)                                                     \
			ck_assert_str_eq(call((enum type)i), theirs((enum type)i));               \
	} while (0)
#define SAME_NUMBER(call, result, type, from, to)                                                 \
	do {                                                                                      \
		result (*theirs)(type) = (result(*)(type))dlsym(lib, #call);                      \
		ck_assert(theirs &&theirs != call);                                               \
		for (int i = from; i < to; i++)                                                   \
			ck_assert_msg(call((type)i) == theirs((type)i), #call "(%d): %d, not %d", \
				      i, (int)call((type)i), (int)theirs((type)i));               \
	} while (0)
	SAME_NAME(ibv_wc_status_str, ibv_wc_status);
	SAME_NAME(ibv_event_type_str, ibv_event_type);
	SAME_NAME(ibv_node_type_str, ibv_node_type);
	SAME_NAME(ibv_port_state_str, ibv_port_state);
	SAME_NUMBER(ibv_rate_to_mult, int, enum ibv_rate, -1, 40);
	SAME_NUMBER(ibv_rate_to_mbps, int, enum ibv_rate, -1, 40);
	SAME_NUMBER(mult_to_ibv_rate, enum ibv_rate, int, -1, 500);
	SAME_NUMBER(mbps_to_ibv_rate, enum ibv_rate, int, -1, 700000);
}

TEST(what_there_is_not)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_rwq_ind_table_init_attr table = {0};
	struct ibv_flow_attr flow = {0};
	struct ibv_qp_init_attr raw = {
		.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pd, &raw);
	struct ibv_qp_rate_limit_attr limit = {0};
	struct ibv_ece ece = {.vendor_id = 1};

	ck_assert_ptr_nonnull(qp);
	NOT_MADE(ibv_import_device(context->cmd_fd), EOPNOTSUPP);
	NOT_MADE(ibv_import_pd(context, 1), EOPNOTSUPP);
	NOT_MADE(ibv_import_mr(pd, 1), EOPNOTSUPP);
	NOT_MADE(ibv_import_dm(context, 1), EOPNOTSUPP);
	NOT_MADE(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, 0), EOPNOTSUPP);
	NOT_MADE(ibv_create_wq(context, &wq), EOPNOTSUPP);
	NOT_MADE(ibv_create_rwq_ind_table(context, &table), EOPNOTSUPP);
	NOT_MADE(ibv_create_counters(context, &counters), EOPNOTSUPP);
	NOT_MADE(ibv_create_flow(qp, &flow), EOPNOTSUPP);
	NOT_MADE(ibv_create_flow_action_esp(context, NULL), EOPNOTSUPP);
	ck_assert_int_eq(ibv_modify_qp_rate_limit(qp, &limit), EOPNOTSUPP);
	ck_assert_int_eq(ibv_set_ece(qp, &ece), EOPNOTSUPP);
	ck_assert_int_eq(ibv_query_ece(qp, &ece), EOPNOTSUPP);
	ck_assert_uint_eq(ece.vendor_id, 0);
	ck_assert_int_eq(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
	raw.qp_type = IBV_QPT_RAW_PACKET;
	NOT_MADE(ibv_create_qp(pd, &raw), EOPNOTSUPP);
	ck_assert_int_eq(ibv_fork_init(), 0);
	ck_assert_int_eq(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	NOT_MADE(ibv_open_device(&(struct ibv_device){0}), ENODEV);
}

/* More than was asked for, as cards grant it; both ways of asking say so. */
TEST(inline_data)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 4, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_qp_init_attr_ex ex = {.send_cq = cq,
					 .recv_cq = cq,
					 .cap = {1, 1, 2, 1, 5},
					 .qp_type = IBV_QPT_UD,
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = ibv_alloc_pd(context)};
	struct ibv_qp_init_attr found;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp = ibv_create_qp(ex.pd, &init);

	ck_assert_ptr_nonnull(qp);
	ck_assert_uint_eq(init.cap.max_inline_data, 64);
	ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_CAP, &found), 0);
	ck_assert_uint_eq(attr.cap.max_inline_data, 64);
	ck_assert_uint_eq(found.cap.max_inline_data, 64);
	ck_assert_ptr_nonnull(ibv_create_qp_ex(context, &ex));
	ck_assert_uint_eq(ex.cap.max_inline_data, 32);
	/* What was asked for, if that is more. */
	init.cap.max_inline_data = 100;
	ck_assert_ptr_nonnull(ibv_create_qp(ex.pd, &init));
	ck_assert_uint_eq(init.cap.max_inline_data, 100);
	/* A refusal changes nothing. */
	init.cap = (struct ibv_qp_cap){1, 1000000, 4, 1, 0};
	ck_assert_ptr_null(ibv_create_qp(ex.pd, &init));
	ck_assert_uint_eq(init.cap.max_inline_data, 0);
}

/* What returns an error number leaves it in errno, too. */
#define BOTH(call, error)                       \
	do {                                    \
		errno = 0;                      \
		ck_assert_int_eq(call, error);  \
		ck_assert_int_eq(errno, error); \
	} while (0)

TEST(error_numbers)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &shared);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_send_wr send = {0}, *bad_send;
	struct ibv_recv_wr recv = {.num_sge = 2}, *bad_recv;
	struct ibv_modify_cq_attr moderate = {.attr_mask = 1u << 31};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid = {0};

	ck_assert(qp && srq);
	BOTH(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	BOTH(ibv_post_send(qp, &send, &bad_send), EINVAL);
	BOTH(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	BOTH(ibv_post_srq_recv(srq, &recv, &bad_recv), EINVAL);
	BOTH(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), EINVAL);
	BOTH(ibv_resize_cq(cq, 0), EINVAL);
	BOTH(ibv_modify_cq(cq, &moderate), EINVAL);
	BOTH(ibv_dealloc_pd(pd), EBUSY);
	BOTH(ibv_destroy_cq(cq), EBUSY);
	BOTH(ibv_attach_mcast(qp, &gid, 0), EOPNOTSUPP);
	BOTH(verbs_get_ctx(context)->query_port(context, 9, &port, sizeof(port)), EINVAL);
	BOTH(ibv_query_gid_ex(context, 9, 0, &entry, 0), EINVAL);
	qp->handle++;
	BOTH(ibv_destroy_qp(qp), ENOENT);
}

/* Contexts do not know each other's objects; each goes by itself, and takes what is left along. */
TEST(opened_often)
{
	struct ibv_context *many[16];
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	for (unsigned i = 0; i < 16; i++) {
		many[i] = ibv_open_device(list[0]);
		ck_assert_ptr_nonnull(many[i]);
		ck_assert_ptr_ne(many[i], context);
	}
	init.send_cq = init.recv_cq = ibv_create_cq(many[0], 4, NULL, NULL, 0);
	NOT_MADE(ibv_create_qp(pd, &init), EINVAL);
	init.send_cq = init.recv_cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	ck_assert_ptr_nonnull(ibv_create_qp(pd, &init));
	for (unsigned i = 0; i < 16; i++) {
		ck_assert_int_eq(ibv_close_device(many[i]), 0);
		ck_assert_int_eq(ibv_close_device(many[i]), EINVAL);
	}
	ibv_free_device_list(list); /* a context outlives the list */
	ck_assert_int_eq(ibv_close_device(context), 0);
}

/* Files in the fabric's directory, which may not exist. */
static unsigned files_of_fabric(void)
{
	DIR *dir = opendir(getenv("TIDEMARK_FABRIC"));
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* A process that may have so many descriptors: 0, it can open the device; 1, not. */
static int open_with(rlim_t descriptors)
{
	struct rlimit before, limit;
	struct ibv_device **devices;
	bool opened;
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		close(STDERR_FILENO); /* it says why */
		if (getrlimit(RLIMIT_NOFILE, &before))
			_exit(2);
		limit = (struct rlimit){descriptors, before.rlim_max};
		if (setrlimit(RLIMIT_NOFILE, &limit))
			_exit(2);
		devices = ibv_get_device_list(NULL);
		opened = devices && devices[0] && ibv_open_device(devices[0]);
		setrlimit(RLIMIT_NOFILE, &before); /* a sanitizer may have something to say */
		exit(!opened);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Whichever resource is missing: a NIC that cannot be made leaves nothing in the fabric. */
START_TEST(few_descriptors)
{
	rlim_t n = 3;

	while (open_with(n) == 1) {
		ck_assert_uint_eq(files_of_fabric(), 0);
		ck_assert_uint_lt(++n, 100);
	}
	ck_assert_uint_gt(n, 3);
	ck_assert_int_eq(open_with(n), 0);
	ck_assert_uint_eq(files_of_fabric(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = listed_suite(setup, NULL);
	TCase *tc = tcase_create("clock");
	tcase_set_tags(tc, "real_time");
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, device_clock);
	suite_add_tcase(suite, tc);
	tc = tcase_create("nic_device without one");
	tcase_add_test(tc, few_descriptors);
	suite_add_tcase(suite, tc);
	return nic_fabric_run(suite);
}
