/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' functions of XRC (core/rnic/objects/xrc.c): domains, and opening a queue pair again.
 *
 * All domains that this process opens for the same file are one, whatever the descriptor and the
 * context. Another process has another NIC: it has a domain of its own for that file, and cannot
 * reach anything of this one.
 */
#include <sys/stat.h>
#include "core/provider/verbs/verbs.h"
#include "core/rnic/objects/xrc.h"

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct stat file;

	if (attr->fd == -1 || xrc_check(context, attr))
		return LOCKED(struct ibv_xrcd *, rnic_open_xrcd(context, attr));
	if (fstat(attr->fd, &file))
		return NULL;
	return LOCKED(struct ibv_xrcd *, xrc_open(context, file.st_dev, file.st_ino, attr->oflags));
}

static int close_xrcd(struct ibv_xrcd *xrcd)
{
	return CALL(rnic_close_xrcd(xrcd));
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	return NAMED(LOCKED(struct ibv_qp *, rnic_open_qp(context, attr)));
}

void verbs_enable_xrc(struct ibv_context *context)
{
	struct verbs_context *verbs = &to_hca(context)->verbs;

	verbs->open_xrcd = open_xrcd;
	verbs->close_xrcd = close_xrcd;
	verbs->open_qp = open_qp;
}
