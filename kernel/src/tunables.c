// SPDX-License-Identifier: GPL-2.0-only
/*
 * queue/iosched/: the files are the core's list of tunables, so that names,
 * units and ranges are those of the lab. A hook is not told which file it is
 * for; hence one pair of hooks for each place in the list.
 */
#include <linux/slab.h>

#include "shim.h"

#define FL_TUNABLES_MAX	24
#define FL_NAME_MAX	32

static ssize_t fl_show(struct elevator_queue *eq, char *page, u32 index)
{
	struct fl_queue *fq = eq->elevator_data;
	ssize_t length;

	spin_lock_irq(&fq->lock);
	length = fairlift_tunable_show(fq->core, index, page, PAGE_SIZE);
	spin_unlock_irq(&fq->lock);
	return length;
}

/* Does the queue want to know who waits for the journal? Called by one at a time: sysfs, or the elevator that leaves. */
void fl_note_yield(struct fl_queue *fq, bool yields)
{
	if (fq->yields == yields)
		return;
	WRITE_ONCE(fq->yields, yields);
	fl_journal_use(yields);
}

static ssize_t fl_store(struct elevator_queue *eq, const char *page, size_t length, u32 index)
{
	struct fl_queue *fq = eq->elevator_data;
	char reason[160];
	bool yields;
	u64 value;

	if (fairlift_tunable_parse(fq->elevator, fq->profile, index, page, length,
				   &value, reason, sizeof(reason))) {
		pr_warn("%s: %*pE\n", eq->type->elevator_name, (int)strlen(reason), reason);
		return -EINVAL;
	}
	spin_lock_irq(&fq->lock);
	fairlift_tunable_set(fq->core, index, value);
	yields = fairlift_yields(fq->core);
	WRITE_ONCE(fq->withheld, false);
	spin_unlock_irq(&fq->lock);
	fl_note_yield(fq, yields);
	blk_mq_run_hw_queues(fq->q, true);
	return length;
}

#define FL_EACH_INDEX(F) \
	F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) \
	F(12) F(13) F(14) F(15) F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23)

#define FL_HOOKS(n) \
static ssize_t fl_show_##n(struct elevator_queue *eq, char *page) \
{ \
	return fl_show(eq, page, n); \
} \
static ssize_t fl_store_##n(struct elevator_queue *eq, const char *page, size_t length) \
{ \
	return fl_store(eq, page, length, n); \
}
FL_EACH_INDEX(FL_HOOKS)

static const struct {
	ssize_t (*show)(struct elevator_queue *, char *);
	ssize_t (*store)(struct elevator_queue *, const char *, size_t);
} fl_hooks[] = {
#define FL_PAIR(n) { fl_show_##n, fl_store_##n },
	FL_EACH_INDEX(FL_PAIR)
};

static_assert(ARRAY_SIZE(fl_hooks) == FL_TUNABLES_MAX);

/* Tags, and so what is kept for sync requests, are the kernel's and not the core's. */
static ssize_t fl_async_depth_show(struct elevator_queue *eq, char *page)
{
	struct fl_queue *fq = eq->elevator_data;

	return sysfs_emit(page, "%u\n", fl_async_depth(fq));
}

static ssize_t fl_async_depth_store(struct elevator_queue *eq, const char *page, size_t length)
{
	struct fl_queue *fq = eq->elevator_data;
	unsigned long depth_max = fq->q->nr_requests;
	unsigned int depth;

	if (kstrtouint(page, 10, &depth) || depth < 1 || depth > depth_max) {
		pr_warn("%s: async_depth: not a number from 1 to %lu requests\n",
			eq->type->elevator_name, depth_max);
		return -EINVAL;
	}
	WRITE_ONCE(fq->async_depth, depth);
	return length;
}

/* The files and, behind them in the same piece of memory, their names. */
struct fl_attributes {
	struct elv_fs_entry entries[FL_TUNABLES_MAX + 2];
	char names[FL_TUNABLES_MAX][FL_NAME_MAX];
};

int fl_make_attributes(u32 elevator, u32 profile, struct elv_fs_entry **entries)
{
	struct fl_attributes *made = kzalloc(sizeof(*made), GFP_KERNEL);
	u32 i;

	if (!made)
		return -ENOMEM;
	for (i = 0; i < FL_TUNABLES_MAX; i++) {
		if (!fairlift_tunable_name(elevator, profile, i, made->names[i], FL_NAME_MAX))
			break;
		made->entries[i] = (struct elv_fs_entry) {
			.attr = { .name = made->names[i], .mode = 0644 },
			.show = fl_hooks[i].show,
			.store = fl_hooks[i].store,
		};
		/* For lockdep, since it is not static. */
		sysfs_attr_init(&made->entries[i].attr);
	}
	made->entries[i] = (struct elv_fs_entry) {
		.attr = { .name = "async_depth", .mode = 0644 },
		.show = fl_async_depth_show,
		.store = fl_async_depth_store,
	};
	sysfs_attr_init(&made->entries[i].attr);
	*entries = made->entries;
	return 0;
}

void fl_free_attributes(struct elv_fs_entry *entries)
{
	if (entries)
		kfree(container_of(entries, struct fl_attributes, entries[0]));
}
