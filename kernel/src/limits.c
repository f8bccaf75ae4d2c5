// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file io.fairlift.max: limits of a cgroup on a disk, in the words of
 * io.max. The core holds back what is over a limit. It does so with requests,
 * which have a tag each: so that others find some, a group of which many are
 * held, or that has most of them, takes its tags from a part of the pool.
 */
#include <linux/cgroup.h>
#include <linux/kstrtox.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "groups.h"

static const char * const fl_limit_names[FL_LIMITS] = {
	[FL_RBPS] = "rbps", [FL_WBPS] = "wbps", [FL_RIOPS] = "riops", [FL_WIOPS] = "wiops",
};

/* "max", or a number of bytes or requests a second. */
static bool fl_parse_rate(const char *text, u64 *rate)
{
	if (!strcmp(text, "max")) {
		*rate = 0;
		return true;
	}
	return !kstrtou64(text, 10, rate) && *rate > 0 && *rate <= fairlift_rate_max();
}

/* "NAME=RATE" */
static bool fl_parse_limit(char *word, u64 *limits)
{
	char *value = strchr(word, '=');
	int i;

	if (!value)
		return false;
	*value = 0;
	i = match_string(fl_limit_names, FL_LIMITS, word);
	*value++ = '=';
	return i >= 0 && fl_parse_rate(value, &limits[i]);
}

/* What is not named stays as it is. */
static int fl_parse_limits(char *text, u64 *limits)
{
	char *word;

	while ((word = strsep(&text, " \t\n"))) {
		if (!*word || fl_parse_limit(word, limits))
			continue;
		pr_warn_ratelimited("io.fairlift.max: '%s' is none of rbps=, wbps=, riops=, wiops= with 'max' or a number from 1 to %llu\n",
				    word, fairlift_rate_max());
		return -EINVAL;
	}
	return 0;
}

/* Under the disk's queue lock. */
static int fl_group_limit(struct fl_group *group, const u64 *limits)
{
	struct fl_queue *fq = group->fq;
	bool has_slot;

	spin_lock(&fq->lock);
	has_slot = fl_group_settle(group);
	if (has_slot) {
		memcpy(group->limits, limits, sizeof(group->limits));
		fairlift_group_limit(fq->core, group->number, &limits[FL_RBPS], &limits[FL_RIOPS], ktime_get_ns());
		WRITE_ONCE(fq->limited, true);
		fl_ask_again(fq);
	}
	spin_unlock(&fq->lock);
	if (!has_slot) {
		pr_warn_ratelimited("io.fairlift.max: the disk has no room for this group (groups_max, or its levels)\n");
		return -ENOSPC;
	}
	return 0;
}

/* "MAJ:MIN NAME=RATE..." */
ssize_t fl_max_write(struct kernfs_open_file *of, char *buffer, size_t bytes, loff_t offset)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	struct blkg_conf_ctx place;
	struct fl_group *group;
	u64 limits[FL_LIMITS];
	int error;

	error = fl_find_disk(blkcg, strim(buffer), &place, "max");
	if (!error) {
		group = fl_group_of(place.blkg);
		memcpy(limits, group->limits, sizeof(limits));
		error = fl_parse_limits(place.body, limits) ?: fl_group_limit(group, limits);
	}
	blkg_conf_exit(&place);
	return error ?: bytes;
}

static u64 fl_max_show_on_disk(struct seq_file *m, struct blkg_policy_data *data, int unused)
{
	struct fl_group *group = container_of(data, struct fl_group, data);
	int i;

	if (!data || !data->blkg->q->disk || !memchr_inv(group->limits, 0, sizeof(group->limits)))
		return 0;
	fl_show_disk(m, data->blkg);
	for (i = 0; i < FL_LIMITS; i++) {
		if (group->limits[i])
			seq_printf(m, "%s=%llu", fl_limit_names[i], group->limits[i]);
		else
			seq_printf(m, "%s=max", fl_limit_names[i]);
		seq_putc(m, i + 1 < FL_LIMITS ? ' ' : '\n');
	}
	return 0;
}

int fl_max_show(struct seq_file *m, void *unused)
{
	blkcg_print_blkgs(m, css_to_blkcg(seq_css(m)), fl_max_show_on_disk, &fl_policy, 0, false);
	return 0;
}

/* Is half of the tags taken? Without a look at the lock. */
static bool fl_is_crowded(struct fl_queue *fq)
{
	return 2ul * (READ_ONCE(fq->queued) + READ_ONCE(fq->in_flight)) >= fq->q->nr_requests;
}

/*
 * From how many tags the running task may take, so that others find some; 0 if
 * that is no question. A group of which many are held: an eighth. One that has
 * too many: three quarters, since those held may fill that eighth. Others: all,
 * though one at a time, for a batch is not counted before it is taken.
 */
unsigned int fl_group_depth(struct fl_queue *fq)
{
	unsigned int tags = fq->q->nr_requests, depth = 0;
	bool crowded = fl_is_crowded(fq);
	struct blkcg_gq *blkg;
	struct fl_group *group;
	unsigned long flags;
	u32 number = 0;

	if (!READ_ONCE(fq->limited) && !crowded)
		return 0;
	rcu_read_lock();
	blkg = blkg_lookup(css_to_blkcg(task_css(current, io_cgrp_id)), fq->q);
	group = blkg ? fl_group_of(blkg) : NULL;
	if (group)
		number = READ_ONCE(group->number);
	rcu_read_unlock();
	if (!number)
		return 0;
	spin_lock_irqsave(&fq->lock, flags);
	if (fairlift_has_its_share(fq->core, number, tags))
		depth = max(tags / 8, 1u);
	else if (crowded && fairlift_takes_too_many(fq->core, number, tags))
		depth = max(tags * 3 / 4, 1u);
	else if (crowded)
		depth = tags;
	spin_unlock_irqrestore(&fq->lock, flags);
	return depth;
}
