// SPDX-License-Identifier: GPL-2.0-only
// needed: the elevator interface of Linux 6.12 (init_sched with the elevator's type, depth_updated per hardware queue, insert flags)
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include "elevator.h"

int (*init_sched)(struct request_queue *, struct elevator_type *);
void (*depth_updated)(struct blk_mq_hw_ctx *);
void (*limit_depth)(blk_opf_t, struct blk_mq_alloc_data *);
void (*insert_requests)(struct blk_mq_hw_ctx *, struct list_head *, blk_insert_t);

void probe(struct elevator_mq_ops *ops);
void probe(struct elevator_mq_ops *ops)
{
	ops->init_sched = init_sched;
	ops->depth_updated = depth_updated;
	ops->limit_depth = limit_depth;
	ops->insert_requests = insert_requests;
}
