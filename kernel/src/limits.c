// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file io.fairlift.max: limits of a cgroup on a disk, in the words of
 * io.max. Who is over one waits in lines.c, before it has a tag. Also: from how
 * many tags a task may take, so that others find some.
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
		pr_warn_ratelimited("io.fairlift.max: '%*pE' is none of rbps=, wbps=, riops=, wiops= with 'max' or a number from 1 to %llu\n",
				    fl_shown(word), word, fairlift_rate_max());
		return -EINVAL;
	}
	return 0;
}

/* Under the disk's queue lock. */
static int fl_group_limit(struct fl_group *group, const u64 *limits)
{
	struct fl_queue *fq = group->fq;
	bool has_slot;
	u64 now;

	spin_lock(&fq->lock);
	has_slot = fl_group_settle(group);
	if (has_slot) {
		memcpy(group->limits, limits, sizeof(group->limits));
		now = ktime_get_ns();
		fairlift_group_limit(fq->core, group->number, &limits[FL_RBPS], &limits[FL_RIOPS], now);
		fl_let_in(fq, now);
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
 * that is no question. One that has too many: three quarters. Others: all,
 * though one at a time, for a batch is not counted before it is taken.
 */
unsigned int fl_group_depth(struct fl_queue *fq)
{
	unsigned int tags = fq->q->nr_requests, depth = 0;
	struct blkcg_gq *blkg;
	struct fl_group *group;
	unsigned long flags;
	u32 number = 0;

	/* What has arrived only just is not counted yet. */
	if (!fl_is_crowded(fq) && !READ_ONCE(fq->arrived))
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
	fl_catch_up(fq, NULL);
	if (fl_is_crowded(fq))
		depth = fairlift_takes_too_many(fq->core, number, tags) ? max(tags * 3 / 4, 1u) : tags;
	spin_unlock_irqrestore(&fq->lock, flags);
	return depth;
}
