// SPDX-License-Identifier: GPL-2.0-only
// optional: policies of the io controller (cgroup v2) per disk; without them there are no groups
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/cgroup.h>
#include <linux/seq_file.h>
#include "blk-cgroup.h"

#ifndef CONFIG_BLK_CGROUP
#error no io controller
#endif

struct blkg_policy_data *alloc(struct gendisk *, struct blkcg *, gfp_t);
struct blkcg_policy policy = { .pd_alloc_fn = alloc };
int (*activate)(struct gendisk *, const struct blkcg_policy *) = blkcg_activate_policy;
int (*prepare)(struct blkcg *, const struct blkcg_policy *, struct blkg_conf_ctx *) = blkg_conf_prep;
struct blkcg_gq *(*lookup)(struct blkcg *, struct request_queue *) = blkg_lookup;

bool online(struct bio *bio);
bool online(struct bio *bio)
{
	return bio->bi_blkg->pd[policy.plid]->blkg->parent && css_to_blkcg(bio_blkcg_css(bio)) &&
	       task_css(current, io_cgrp_id);
}
