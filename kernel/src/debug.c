// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/block/DISK/sched/: state (what the queue holds), record
 * (every call of the core with its answer, from the elevator's start; the
 * module parameter "record" says how many), found (what the elevator found
 * out about the device), lock_holds (how long the lock was
 * held, in ns, since 1 was written there) and give_up (1 once the core found
 * itself broken: first come, first served until an elevator is selected anew;
 * whatever is written there brings that about).
 */
#include <linux/seq_file.h>

#include "shim.h"

static int fl_state_show(void *data, struct seq_file *m)
{
	struct fl_queue *fq = fl_queue_of(data);
	struct fairlift_state state;
	unsigned int queued, in_flight;
	u64 overflowed, vanished, in_parents, journal_waits, held, turns_taken, turns_late, sent_at_once, writes_waiting;
	bool withheld;

	spin_lock_irq(&fq->lock);
	fl_catch_up(fq, NULL);
	fairlift_state(fq->core, &state);
	queued = fq->queued;
	in_flight = fq->in_flight;
	overflowed = fq->overflowed;
	vanished = fq->vanished;
	in_parents = fq->groups_in_parents;
	journal_waits = fq->journal_waits;
	turns_taken = fq->turns_taken;
	turns_late = fq->turns_late;
	sent_at_once = fq->sent_at_once;
	withheld = fq->withheld;
	held = fq->held;
	writes_waiting = fq->writes_waiting;
	spin_unlock_irq(&fq->lock);

	seq_printf(m, "queued %u\nin_flight %u\nwithheld %d\n", queued, in_flight, withheld);
	seq_printf(m, "core: queued %u, held %llu, in flight %u async + %u sync, requests %u of %u, contexts %u, groups %u\n",
		   state.queued, held, state.in_flight[0], state.in_flight[1], state.requests,
		   fq->requests_max, state.contexts, state.groups);
	seq_printf(m, "writes_waiting %llu\n", writes_waiting);
	seq_printf(m, "turns_taken %llu\nturns_late %llu\nsent_at_once %llu\n", turns_taken, turns_late, sent_at_once);
	seq_printf(m, "overflowed %llu\nvanished %llu\ngroups_in_parents %llu\njournal_waits %llu\nrecord_lost %llu\n",
		   overflowed, vanished, in_parents, journal_waits, state.record_lost);
	return 0;
}

static void *fl_record_at(struct seq_file *m, loff_t *pos)
{
	struct fl_queue *fq = fl_queue_of(m->private);
	struct fairlift_state state;

	spin_lock_irq(&fq->lock);
	fairlift_state(fq->core, &state);
	spin_unlock_irq(&fq->lock);
	return *pos < state.record_lines ? (void *)(uintptr_t)(*pos + 1) : NULL;
}

static void *fl_record_next(struct seq_file *m, void *at, loff_t *pos)
{
	++*pos;
	return fl_record_at(m, pos);
}

static void fl_record_stop(struct seq_file *m, void *at)
{
}

static int fl_record_show(struct seq_file *m, void *at)
{
	struct fl_queue *fq = fl_queue_of(m->private);
	char line[200];

	spin_lock_irq(&fq->lock);
	fairlift_record_line(fq->core, (uintptr_t)at - 1, line, sizeof(line));
	spin_unlock_irq(&fq->lock);
	seq_puts(m, line);
	return 0;
}

static const struct seq_operations fl_record_ops = {
	.start	= fl_record_at,
	.next	= fl_record_next,
	.stop	= fl_record_stop,
	.show	= fl_record_show,
};

static int fl_found_show(void *data, struct seq_file *m)
{
	struct fl_queue *fq = fl_queue_of(data);
	char line[120];
	int length;
	u32 i;

	for (i = 0; ; i++) {
		spin_lock_irq(&fq->lock);
		length = fairlift_finding(fq->core, i, ktime_get_ns(), line, sizeof(line));
		spin_unlock_irq(&fq->lock);
		if (!length)
			return 0;
		seq_puts(m, line);
	}
}

static int fl_give_up_show(void *data, struct seq_file *m)
{
	struct fl_queue *fq = fl_queue_of(data);
	bool gave_up;

	spin_lock_irq(&fq->lock);
	gave_up = fairlift_has_given_up(fq->core);
	spin_unlock_irq(&fq->lock);
	seq_printf(m, "%d\n", gave_up);
	return 0;
}

static ssize_t fl_give_up(void *data, const char __user *text, size_t length, loff_t *pos)
{
	struct fl_queue *fq = fl_queue_of(data);

	spin_lock_irq(&fq->lock);
	fairlift_give_up(fq->core);
	WRITE_ONCE(fq->withheld, false);
	fl_let_in(fq, ktime_get_ns());
	fl_end_writes(fq);
	spin_unlock_irq(&fq->lock);
	blk_mq_run_hw_queues(fq->q, true);
	return length;
}

const struct blk_mq_debugfs_attr fl_debugfs_attrs[] = {
	{ "state", 0400, fl_state_show },
	{ "record", 0400, .seq_ops = &fl_record_ops },
	{ "found", 0400, fl_found_show },
	{ "lock_holds", 0600, fl_holds_show, .write = fl_holds_write },
	{ "give_up", 0600, fl_give_up_show, .write = fl_give_up },
	{},
};
