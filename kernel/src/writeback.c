// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writeback: Linux writes each cgroup's dirty pages back from a kernel thread of
 * the root, and such threads take tags in order of arrival, whatever the weights
 * of the cgroups are. Here each cgroup that writes back has its part of the tags,
 * by weight, among those that do; the core says which (crates/kernel, writeback).
 * A thread that wants more waits where the block layer asks how many tags it may
 * take, as it would for a tag, until requests of its cgroup are done.
 *
 * For which cgroup it writes is not known there. It is that of the bio that the
 * hook bio_merge was asked about just before; parts of a bio that is too large for
 * the disk do not pass that hook, and are taken to be for the cgroup of the
 * thread's last request.
 *
 * As weights decide only where requests wait, so does this: while the elevator
 * has none and there are tags, no thread waits.
 */
#include "shim.h"

/* Threads that go on in one go under the lock. */
#define FL_WRITERS_BATCH	32
/* A thread that may go on has sent its request after this time, if it was not merged. */
#define FL_WRITER_COMES_NS	(10 * NSEC_PER_MSEC)

static u32 fl_write_tags(struct fl_queue *fq)
{
	return min(fl_async_depth(fq), fq->q->nr_requests) * fl_pools(fq->q);
}

/* Under the lock, as all of the lines. */
static void fl_writes_add(struct fl_queue *fq, u32 number, struct bio *sender)
{
	bio_list_add(&fq->writes[number].bios, sender);
	fq->writes[number].length++;
	WRITE_ONCE(fq->writes_waiting, fq->writes_waiting + 1);
}

static struct bio *fl_writes_pop(struct fl_queue *fq, u32 number)
{
	struct bio *sender = bio_list_pop(&fq->writes[number].bios);

	if (sender) {
		fq->writes[number].length--;
		WRITE_ONCE(fq->writes_waiting, fq->writes_waiting - 1);
	}
	return sender;
}

/* Has the running task to wait before it takes a tag for an async write? */
void fl_hold_writer(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct fl_sender *sender;
	bool waits;
	u32 group;
	u64 now;

	/* Requests kept for later would pass by here. */
	data->nr_tags = 1;
	if ((opf & REQ_OP_MASK) != (__force blk_opf_t)REQ_OP_WRITE || opf & (REQ_META | REQ_SWAP) ||
	    data->flags & BLK_MQ_REQ_NOWAIT || fl_is_outlet() || fl_is_journal_thread())
		return;
	sender = fl_sender_new();
	if (!sender)
		return;
	spin_lock_irq(&fq->lock);
	fl_catch_up(fq, NULL);
	now = blk_time_get_ns();
	group = current->flags & PF_KTHREAD ? fl_thread_sends_for(fq) : fl_current_group(fq->q);
	waits = group && fairlift_hold_write(fq->core, group, fl_thread_unsent(fq), fl_write_tags(fq), now);
	if (waits) {
		fl_writes_add(fq, group, fl_sender_bio(sender));
		/* Pairs with llist_add(): who is done from now on sees that it waits. */
		smp_mb();
		if (!llist_empty(&fq->events))
			fl_catch_up(fq, NULL);
		fl_let_writes_go(fq, now);
	}
	spin_unlock_irq(&fq->lock);
	if (waits)
		fl_sender_waits(fq, sender);
	else
		fl_sender_free(sender);
}

/* Something was done: whose turn is it? Under the lock. */
void fl_let_writes_go(struct fl_queue *fq, u64 now)
{
	struct bio *sender;
	u32 group;
	int count;

	if (!fq->writes_waiting)
		return;
	if (unlikely(fairlift_has_given_up(fq->core))) {
		fl_end_writes(fq);
		return;
	}
	for (count = 0; count < FL_WRITERS_BATCH; count++) {
		group = fairlift_next_write(fq->core, fl_write_tags(fq), now);
		sender = 2 * group < fq->lines_max ? fl_writes_pop(fq, group) : NULL;
		if (!sender)
			break;
		fl_sender_goes(sender);
	}
	if (count && !hrtimer_is_queued(&fq->writes_timer))
		hrtimer_start(&fq->writes_timer, ns_to_ktime(now + FL_WRITER_COMES_NS), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart fl_writes_timer(struct hrtimer *timer)
{
	struct fl_queue *fq = container_of(timer, struct fl_queue, writes_timer);
	unsigned long flags;

	spin_lock_irqsave(&fq->lock, flags);
	fl_catch_up(fq, NULL);
	fairlift_writes_came(fq->core);
	fl_let_writes_go(fq, blk_time_get_ns());
	spin_unlock_irqrestore(&fq->lock, flags);
	return HRTIMER_NORESTART;
}

/* All that wait go on. Under the lock. */
void fl_end_writes(struct fl_queue *fq)
{
	struct bio *sender;
	u32 number;

	for (number = 0; fq->writes_waiting && 2 * number < fq->lines_max; number++) {
		while ((sender = fl_writes_pop(fq, number)))
			fl_sender_goes(sender);
	}
}

/* Group number is about to go. Its line waits behind that of its heir; the root has none. Under the lock. */
void fl_writes_move(struct fl_queue *fq, u32 number, u32 heir, u64 now)
{
	struct bio *sender;

	while ((sender = fl_writes_pop(fq, number))) {
		if (heir)
			fl_writes_add(fq, heir, sender);
		else
			fl_sender_goes(sender);
	}
	fairlift_move_writes(fq->core, number, heir, now);
	fl_let_writes_go(fq, now);
}

int fl_writes_enter(struct fl_queue *fq)
{
	hrtimer_init(&fq->writes_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	fq->writes_timer.function = fl_writes_timer;
	fq->writes = kvcalloc(fq->lines_max / 2, sizeof(*fq->writes), GFP_NOIO | __GFP_NOWARN);
	return fq->writes ? 0 : -ENOMEM;
}

/* The queue is frozen: who waited has gone on, and some left their places. */
void fl_writes_leave(struct fl_queue *fq)
{
	hrtimer_cancel(&fq->writes_timer);
	spin_lock_irq(&fq->lock);
	fl_end_writes(fq);
	spin_unlock_irq(&fq->lock);
	hrtimer_cancel(&fq->writes_timer);
	kvfree(fq->writes);
}
