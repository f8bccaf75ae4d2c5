// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: a policy of the io controller. Every cgroup that has sent I/O to a
 * disk (a blkg) is a group of that disk's core, below its parent's, with the
 * weight and class of the cgroup's files io.fairlift.*. One for which the core
 * has no room counts as the own tasks of the nearest above it that has a place,
 * and asks again when it sends I/O and when its files are written.
 *
 * Locks: a blkg comes and goes under the disk's queue lock and the cgroup's
 * lock; the core's is taken last. What a blkg_policy_data points to is there
 * as long as it is, because it goes first when an elevator leaves.
 */
#include <linux/kstrtox.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "groups.h"

#define FL_WEIGHT_MIN		1
#define FL_WEIGHT_MAX		10000
#define FL_WEIGHT_DEFAULT	100

/* A group without a place asks for one with its I/O, not more often than this. */
#define FL_ASK_AGAIN_AFTER	(HZ / 10)
/* Levels it looks upwards for one that has none either. */
#define FL_LEVELS_MAX		16

static bool fl_registered;

static struct fl_cgroup *fl_cgroup_of(struct blkcg *blkcg)
{
	return container_of(blkcg_to_cpd(blkcg, &fl_policy), struct fl_cgroup, data);
}

/*
 * The disk's own, else the cgroup's, else the default. Under the core's lock:
 * who changes them does so before it takes that (fl_group_apply).
 */
static struct fl_entitlement fl_entitlement(struct fl_group *group)
{
	struct fl_cgroup *cgroup = fl_cgroup_of(group->data.blkg->blkcg);
	u32 weight = READ_ONCE(group->set.weight), class = READ_ONCE(group->set.class);
	u32 leaf_weight = READ_ONCE(group->set.leaf_weight);

	return (struct fl_entitlement) {
		.weight = weight ?: READ_ONCE(cgroup->set.weight) ?: FL_WEIGHT_DEFAULT,
		.leaf_weight = leaf_weight ?: READ_ONCE(cgroup->set.leaf_weight) ?: FL_WEIGHT_DEFAULT,
		.class = class ?: READ_ONCE(cgroup->set.class) ?: IOPRIO_CLASS_BE,
	};
}

/* NULL for the root's. */
static struct fl_group *fl_parent(struct fl_group *group)
{
	struct blkcg_gq *parent = group->data.blkg->parent;

	return parent ? fl_group_of(parent) : NULL;
}

/*
 * A place in the core for a group that has none: the nearest above it that has
 * none either goes first, so that no group stands beside those it is below.
 * Then it is the others' turn, one at each call. Under the core's lock.
 */
bool fl_group_settle(struct fl_group *group)
{
	struct fl_queue *fq = group->fq;
	struct fl_group *first = group, *parent = fl_parent(group);
	struct fl_entitlement is;
	int level;
	u32 number;

	if (group->has_slot || group->gone || !parent)
		return group->has_slot;
	for (level = 0; !parent->has_slot && level < FL_LEVELS_MAX && fl_parent(parent); level++) {
		first = parent;
		parent = fl_parent(parent);
	}
	if (parent->has_slot && !first->gone) {
		is = fl_entitlement(first);
		number = fairlift_group_new(fq->core, parent->number, is.weight, is.class);
		if (number != FAIRLIFT_UNKNOWN) {
			fairlift_group_leaf(fq->core, number, is.leaf_weight);
			WRITE_ONCE(first->number, number);
			first->has_slot = true;
			WRITE_ONCE(fq->has_groups, true);
			fq->groups_in_parents--;
		} else {
			first->asked = jiffies;
		}
	}
	if (group->has_slot)
		return true;
	/* The place it counts for may be nearer by now; with room for that there may be room for more. */
	WRITE_ONCE(group->number, first->has_slot ? first->number : parent->number);
	group->asked = first->has_slot ? jiffies - FL_ASK_AGAIN_AFTER : jiffies;
	return false;
}

/* Under the core's lock. */
static u32 fl_number(struct fl_group *group)
{
	if (likely(group->has_slot))
		return group->number;
	/* Found by one of its tasks while another is making it: it counts for the root this once. */
	if (unlikely(!group->fq))
		return 0;
	/* The numbers of those that are gone may be others' by now. */
	while (unlikely(group->gone)) {
		group = fl_parent(group);
		if (!group)
			return 0;
	}
	if (!group->has_slot && time_after_eq(jiffies, group->asked + FL_ASK_AGAIN_AFTER))
		fl_group_settle(group);
	return group->number;
}

/* The group of a bio on q: a number, 0 for the root. Under the core's lock. */
u32 fl_bio_group(struct request_queue *q, struct bio *bio)
{
	struct fl_group *group;

	/* Others wait for the file system's metadata and for memory, whichever task asked for it first. */
	if (!fl_registered || !bio || !bio->bi_blkg || bio_issue_as_root_blkg(bio))
		return 0;
	/* The bio holds its blkg; q is not frozen, so its policy stays. */
	if (bio->bi_blkg->q != q)
		return 0;
	group = fl_group_of(bio->bi_blkg);
	return group ? fl_number(group) : 0;
}

/* The group of the running task, or the nearest above it that sent something to q. Under the core's lock. */
u32 fl_current_group(struct request_queue *q)
{
	struct blkcg_gq *blkg = NULL;
	struct cgroup_subsys_state *css;
	struct fl_group *group;
	u32 number = 0;

	if (!fl_registered)
		return 0;
	rcu_read_lock();
	/* Nearly always its own: the bio that is being sent has just been given to it. */
	for (css = task_css(current, io_cgrp_id); css && !blkg; css = css->parent)
		blkg = blkg_lookup(css_to_blkcg(css), q);
	group = blkg ? fl_group_of(blkg) : NULL;
	if (group)
		number = fl_number(group);
	rcu_read_unlock();
	return number;
}

static struct blkcg_policy_data *fl_cgroup_alloc(gfp_t gfp)
{
	struct fl_cgroup *cgroup = kzalloc(sizeof(*cgroup), gfp);

	return cgroup ? &cgroup->data : NULL;
}

static void fl_cgroup_free(struct blkcg_policy_data *data)
{
	kfree(container_of(data, struct fl_cgroup, data));
}

static struct blkg_policy_data *fl_group_alloc(struct gendisk *disk, struct blkcg *blkcg, gfp_t gfp)
{
	struct fl_group *group = kzalloc_node(sizeof(*group), gfp, disk->node_id);

	return group ? &group->data : NULL;
}

static void fl_group_free(struct blkg_policy_data *data)
{
	kfree(container_of(data, struct fl_group, data));
}

/* Parents come before their children. */
static void fl_group_online(struct blkg_policy_data *data)
{
	struct fl_group *group = container_of(data, struct fl_group, data);
	struct fl_queue *fq = fl_queue_of(data->blkg->q);

	spin_lock(&fq->lock);
	group->fq = fq;
	/* The root is there already. */
	if (!data->blkg->parent) {
		group->has_slot = true;
		fairlift_group_leaf(fq->core, 0, fl_entitlement(group).leaf_weight);
		spin_unlock(&fq->lock);
		return;
	}
	fq->groups_in_parents++;
	fl_group_settle(group);
	spin_unlock(&fq->lock);
}

/* The cgroup is removed, or the elevator leaves. What it still sends counts as its parent's. */
static void fl_group_offline(struct blkg_policy_data *data)
{
	struct fl_group *group = container_of(data, struct fl_group, data);
	struct fl_group *parent = fl_parent(group);
	struct fl_queue *fq = group->fq;
	u64 now = ktime_get_ns();

	if (!data->blkg->parent)
		return;
	spin_lock(&fq->lock);
	if (group->has_slot) {
		fl_turns_of_group_end(fq, group->number);
		fl_lines_move(fq, group->number, parent ? parent->number : 0, now);
		fl_writes_move(fq, group->number, parent ? parent->number : 0, now);
		fairlift_group_remove(fq->core, group->number, now);
		fl_let_in(fq, now);
	} else {
		fq->groups_in_parents--;
	}
	group->gone = true;
	group->has_slot = false;
	WRITE_ONCE(group->number, parent ? parent->number : 0);
	spin_unlock(&fq->lock);
}

/* Have the core asked again by the timer, at once: running the queue takes the disk's queue lock. Under the core's. */
void fl_ask_again(struct fl_queue *fq)
{
	hrtimer_start(&fq->timer, 0, HRTIMER_MODE_ABS);
}

/* Let the core know. Under the cgroup's lock. */
static void fl_group_apply(struct fl_group *group)
{
	struct fl_queue *fq = group->fq;
	struct fl_entitlement is;

	spin_lock(&fq->lock);
	if (fl_group_settle(group)) {
		is = fl_entitlement(group);
		/* The root has none above it that its weight and class would count for. */
		if (group->data.blkg->parent)
			fairlift_group_set(fq->core, group->number, is.weight, is.class);
		fairlift_group_leaf(fq->core, group->number, is.leaf_weight);
		fl_ask_again(fq);
	}
	spin_unlock(&fq->lock);
}

/* The files io.fairlift.weight, io.fairlift.leaf_weight and io.fairlift.ioprio_class. */

enum fl_file { FL_WEIGHT, FL_LEAF_WEIGHT, FL_CLASS };

static const char * const fl_file_names[] = { [FL_WEIGHT] = "weight", [FL_LEAF_WEIGHT] = "leaf_weight", [FL_CLASS] = "ioprio_class" };
static const char * const fl_classes[] = { [IOPRIO_CLASS_RT] = "rt", [IOPRIO_CLASS_BE] = "be", [IOPRIO_CLASS_IDLE] = "idle" };

static u32 *fl_field(struct fl_entitlement *set, enum fl_file file)
{
	return file == FL_WEIGHT ? &set->weight : file == FL_LEAF_WEIGHT ? &set->leaf_weight : &set->class;
}

/* 0 for "default", where the disk may fall back to the cgroup. */
static int fl_parse(const char *text, enum fl_file file, bool may_fall_back, u32 *value)
{
	int class;

	if (may_fall_back && !strcmp(text, "default")) {
		*value = 0;
		return 0;
	}
	if (file != FL_CLASS) {
		if (!kstrtouint(text, 10, value) && *value >= FL_WEIGHT_MIN && *value <= FL_WEIGHT_MAX)
			return 0;
		pr_warn_ratelimited("io.fairlift.%s: '%*pE' is not a number from %d to %d\n", fl_file_names[file],
				    fl_shown(text), text, FL_WEIGHT_MIN, FL_WEIGHT_MAX);
		return -EINVAL;
	}
	for (class = IOPRIO_CLASS_RT; class <= IOPRIO_CLASS_IDLE; class++) {
		if (!strcmp(text, fl_classes[class])) {
			*value = class;
			return 0;
		}
	}
	pr_warn_ratelimited("io.fairlift.ioprio_class: '%*pE' is none of: rt be idle\n", fl_shown(text), text);
	return -EINVAL;
}

/* "[default] VALUE": for all disks that have none of their own. */
static int fl_set_default(struct blkcg *blkcg, char *text, enum fl_file file)
{
	struct blkcg_gq *blkg;
	u32 value;
	int error = fl_parse(text, file, false, &value);

	if (error)
		return error;
	spin_lock_irq(&blkcg->lock);
	*fl_field(&fl_cgroup_of(blkcg)->set, file) = value;
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
		struct fl_group *group = fl_group_of(blkg);

		if (group)
			fl_group_apply(group);
	}
	spin_unlock_irq(&blkcg->lock);
	return 0;
}

/* Begin with "MAJ:MIN ...": to be ended with blkg_conf_exit(), whatever comes of it. Takes the disk's queue lock. */
int fl_find_disk(struct blkcg *blkcg, char *text, struct blkg_conf_ctx *place, const char *file)
{
	int error;

	blkg_conf_init(place, text);
	error = blkg_conf_prep(blkcg, &fl_policy, place);
	if (error == -EINVAL)
		pr_warn_ratelimited("io.fairlift.%s: '%*pE' is not a disk, MAJ:MIN, with a value after it\n",
				    file, fl_shown(text), text);
	return error;
}

/* "MAJ:MIN VALUE", or "MAJ:MIN default". */
static int fl_set_on_disk(struct blkcg *blkcg, char *text, enum fl_file file)
{
	struct blkg_conf_ctx place;
	struct fl_group *group;
	u32 value;
	int error;

	error = fl_find_disk(blkcg, text, &place, fl_file_names[file]);
	if (!error)
		error = fl_parse(strim(place.body), file, true, &value);
	group = error ? NULL : fl_group_of(place.blkg);
	if (group) {
		spin_lock(&blkcg->lock);
		*fl_field(&group->set, file) = value;
		fl_group_apply(group);
		spin_unlock(&blkcg->lock);
	}
	blkg_conf_exit(&place);
	return error;
}

static ssize_t fl_write(struct kernfs_open_file *of, char *buffer, size_t bytes, loff_t offset)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	enum fl_file file = of_cft(of)->private;
	char *text = strim(buffer);
	int error;

	if (strchr(text, ':')) {
		error = fl_set_on_disk(blkcg, text, file);
	} else {
		if (str_has_prefix(text, "default "))
			text = strim(text + strlen("default "));
		error = fl_set_default(blkcg, text, file);
	}
	return error ?: bytes;
}

static void fl_show_value(struct seq_file *m, u32 value, enum fl_file file)
{
	if (file != FL_CLASS)
		seq_printf(m, "%u\n", value);
	else
		seq_printf(m, "%s\n", fl_classes[value]);
}

void fl_show_disk(struct seq_file *m, struct blkcg_gq *blkg)
{
	seq_printf(m, "%d:%d ", blkg->q->disk->major, blkg->q->disk->first_minor);
}

static u64 fl_show_on_disk(struct seq_file *m, struct blkg_policy_data *data, int file)
{
	struct fl_group *group = container_of(data, struct fl_group, data);
	u32 value = data && data->blkg->q->disk ? *fl_field(&group->set, file) : 0;

	if (value) {
		fl_show_disk(m, data->blkg);
		fl_show_value(m, value, file);
	}
	return 0;
}

static int fl_show(struct seq_file *m, void *unused)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(m));
	enum fl_file file = seq_cft(m)->private;
	u32 value = *fl_field(&fl_cgroup_of(blkcg)->set, file);

	seq_puts(m, "default ");
	fl_show_value(m, value ?: file != FL_CLASS ? FL_WEIGHT_DEFAULT : IOPRIO_CLASS_BE, file);
	blkcg_print_blkgs(m, blkcg, fl_show_on_disk, &fl_policy, file, false);
	return 0;
}

/* The file io.fairlift.stat. */

static u64 fl_show_stat_on_disk(struct seq_file *m, struct blkg_policy_data *data, int unused)
{
	struct fl_group *group = container_of(data, struct fl_group, data);
	struct fairlift_group_stats got;
	u64 held;

	if (!data || !data->blkg->q->disk)
		return 0;
	fl_show_disk(m, data->blkg);
	if (data->blkg->parent && !group->has_slot) {
		seq_puts(m, "in_parent=1\n");
		return 0;
	}
	spin_lock(&group->fq->lock);
	fl_catch_up(group->fq, NULL);
	fairlift_group_stats(group->fq->core, group->number, &got);
	held = group->fq->lines[2 * group->number].length + group->fq->lines[2 * group->number + 1].length +
	       group->fq->writes[group->number].length;
	spin_unlock(&group->fq->lock);
	seq_printf(m, "rbytes=%llu wbytes=%llu rios=%llu wios=%llu dbytes=%llu dios=%llu",
		   got.sectors[0] << SECTOR_SHIFT, got.sectors[1] << SECTOR_SHIFT, got.ios[0], got.ios[1],
		   got.sectors[2] << SECTOR_SHIFT, got.ios[2]);
	seq_printf(m, " merged=%llu queued=%llu held=%llu time_usec=%llu wait_usec=%llu service_usec=%llu idle_usec=%llu dequeued=%llu\n",
		   got.merged, got.queued, held, div_u64(got.time_ns, NSEC_PER_USEC), div_u64(got.wait_ns, NSEC_PER_USEC),
		   div_u64(got.service_ns, NSEC_PER_USEC), div_u64(got.idle_ns, NSEC_PER_USEC), got.dequeued);
	return 0;
}

static int fl_show_stat(struct seq_file *m, void *unused)
{
	blkcg_print_blkgs(m, css_to_blkcg(seq_css(m)), fl_show_stat_on_disk, &fl_policy, 0, false);
	return 0;
}

static struct cftype fl_files[] = {
	{
		.name = "fairlift.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.private = FL_WEIGHT,
		.seq_show = fl_show,
		.write = fl_write,
	},
	{
		/* On the root as well: its own tasks beside all cgroups. */
		.name = "fairlift.leaf_weight",
		.private = FL_LEAF_WEIGHT,
		.seq_show = fl_show,
		.write = fl_write,
	},
	{
		.name = "fairlift.ioprio_class",
		.flags = CFTYPE_NOT_ON_ROOT,
		.private = FL_CLASS,
		.seq_show = fl_show,
		.write = fl_write,
	},
	{
		.name = "fairlift.max",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = fl_max_show,
		.write = fl_max_write,
	},
	{
		.name = "fairlift.stat",
		.seq_show = fl_show_stat,
	},
	{},
};

struct blkcg_policy fl_policy = {
	.dfl_cftypes	= fl_files,
	.cpd_alloc_fn	= fl_cgroup_alloc,
	.cpd_free_fn	= fl_cgroup_free,
	.pd_alloc_fn	= fl_group_alloc,
	.pd_free_fn	= fl_group_free,
	.pd_online_fn	= fl_group_online,
	.pd_offline_fn	= fl_group_offline,
};

/* The queue has our elevator: its cgroups become groups of its core. */
int fl_groups_enter(struct request_queue *q)
{
	return fl_registered ? blkcg_activate_policy(q->disk, &fl_policy) : 0;
}

void fl_groups_leave(struct request_queue *q)
{
	if (fl_registered)
		blkcg_deactivate_policy(q->disk, &fl_policy);
}

void fl_groups_start(void)
{
	int error = blkcg_policy_register(&fl_policy);

	fl_registered = !error;
	if (error)
		pr_warn("fairlift: the io controller has no place for another policy (error %d): no groups\n", error);
}

void fl_groups_stop(void)
{
	if (fl_registered)
		blkcg_policy_unregister(&fl_policy);
}
