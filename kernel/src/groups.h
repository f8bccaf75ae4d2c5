/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files about groups share. */
#ifndef FAIRLIFT_GROUPS_H
#define FAIRLIFT_GROUPS_H

#include "shim.h"
#include "blk-cgroup.h"

/* What is set for a cgroup; 0: nothing. */
struct fl_entitlement {
	u32 weight;
	u32 leaf_weight;		/* of its own tasks beside its child cgroups */
	u32 class;			/* as in ioprio */
};

/* What io.fairlift.max can limit, a second; reads before writes, as the core wants them. */
enum fl_limit { FL_RBPS, FL_WBPS, FL_RIOPS, FL_WIOPS, FL_LIMITS };

/* A cgroup's, on all disks. */
struct fl_cgroup {
	struct blkcg_policy_data data;	/* must be first */
	struct fl_entitlement set;
};

/* A cgroup on one disk. */
struct fl_group {
	struct blkg_policy_data data;	/* must be first */
	struct fl_queue *fq;
	struct fl_entitlement set;
	u64 limits[FL_LIMITS];		/* 0: none */

	/* Under the core's lock. */
	u32 number;			/* of the core; 0 for the root */
	bool has_slot;			/* the number is its own, not that of a group above it */
	bool gone;			/* the cgroup is removed, or the elevator leaves */
	unsigned long asked;		/* when the core had no room for it, jiffies */
};

extern struct blkcg_policy fl_policy;

/* How much of a text written into a file goes to the log, by %*pE: any user may have written it, and the log is read on a terminal. */
static inline int fl_shown(const char *text)
{
	return strnlen(text, 64);
}

static inline struct fl_group *fl_group_of(struct blkcg_gq *blkg)
{
	struct blkg_policy_data *data = blkg_to_pd(blkg, &fl_policy);

	return data ? container_of(data, struct fl_group, data) : NULL;
}

/* groups.c */
bool fl_group_settle(struct fl_group *group);
void fl_ask_again(struct fl_queue *fq);
int fl_find_disk(struct blkcg *blkcg, char *text, struct blkg_conf_ctx *place, const char *file);
void fl_show_disk(struct seq_file *m, struct blkcg_gq *blkg);

/* limits.c */
int fl_max_show(struct seq_file *m, void *unused);
ssize_t fl_max_write(struct kernfs_open_file *of, char *buffer, size_t bytes, loff_t offset);

#endif
