// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writeback: Linux writes each cgroup's dirty pages back from a kernel thread of
 * the root, and such threads take tags in order of arrival, whatever the weights
 * of the cgroups are. Here each cgroup that writes back has its part of the tags,
 * by weight, among those that do; the core says which (crates/kernel, writeback).
 * A bio beyond that waits here, before it has a tag: the hook bio_merge says
 * that it is merged, and a work item sends it on when its cgroup's requests are
 * done. Its submitter is not held up. How many wait is bounded by the dirty pages
 * that the kernel allows.
 *
 * All parts but the last of a bio that is too large for the disk do not pass that
 * hook. For them the thread itself waits, where the block layer asks how many tags
 * it may take. For which cgroup it writes is not known there: for that of its last
 * request that came.
 *
 * As weights decide only where requests wait, so does this: while the elevator
 * has none and there are tags, nothing is held.
 */
#include "shim.h"

/* Bios sent on in one go under the lock; the next go when they have come. */
#define FL_WRITES_BATCH	32
/* A thread that may go on has sent its request after this time, if it was not merged. */
#define FL_WRITER_COMES_NS	(10 * NSEC_PER_MSEC)

static u32 fl_write_tags(struct fl_queue *fq)
{
	return min(fl_async_depth(fq), fq->q->nr_requests) * fl_pools(fq->q);
}

/* Under the lock. */
static void fl_writes_add(struct fl_queue *fq, u32 number, struct bio *bio)
{
	bio_list_add(&fq->writes[number].bios, bio);
	fq->writes[number].length++;
	WRITE_ONCE(fq->writes_waiting, fq->writes_waiting + 1);
}

static struct bio *fl_writes_pop(struct fl_queue *fq, u32 number)
{
	struct bio *bio = bio_list_pop(&fq->writes[number].bios);

	if (bio) {
		fq->writes[number].length--;
		WRITE_ONCE(fq->writes_waiting, fq->writes_waiting - 1);
	}
	return bio;
}

/* Is it for a group that has its part? Then it is counted among those that wait. Under the lock. */
static bool fl_has_to_wait(struct fl_queue *fq, u32 group)
{
	return group && fairlift_hold_write(fq->core, group, fl_thread_unsent(fq), fl_write_tags(fq), blk_time_get_ns());
}

static void fl_writes_wait(struct fl_queue *fq, u32 group, struct bio *bio, struct list_head *merged)
{
	fl_writes_add(fq, group, bio);
	/* Pairs with llist_add(): who is done from now on sees that it waits. */
	smp_mb();
	if (!llist_empty(&fq->events))
		fl_catch_up(fq, merged);
	fl_let_writes_go(fq, blk_time_get_ns());
}

/*
 * Has this bio, which was not merged, to wait? Then it is ours. Called by its
 * submitter, under the lock.
 */
bool fl_hold_write(struct fl_queue *fq, struct bio *bio, struct list_head *merged)
{
	u32 group;

	if (!READ_ONCE(fq->has_groups) || bio_op(bio) != REQ_OP_WRITE || op_is_sync(bio->bi_opf) ||
	    !bio->bi_iter.bi_size || fl_is_outlet() || fl_is_journal_thread())
		return false;
	group = fl_bio_group(fq->q, bio);
	if (!fl_has_to_wait(fq, group))
		return false;
	/* The worker that sends it on may wait for a tag, and no task looks for its completion. */
	bio->bi_opf &= ~(REQ_NOWAIT | REQ_POLLED);
	fl_writes_wait(fq, group, bio, merged);
	return true;
}

/* Has the running task to wait before it takes a tag for something that fl_hold_write does not see? */
void fl_hold_writer(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	bool seen = !(opf & REQ_NOMERGE_FLAGS) && !blk_queue_nomerges(fq->q);
	struct fl_sender *sender;
	u32 group;
	bool waits;

	/* Requests kept for later would pass by here. */
	data->nr_tags = 1;
	if ((opf & REQ_OP_MASK) != (__force blk_opf_t)REQ_OP_WRITE || opf & (REQ_META | REQ_SWAP) || data->flags & BLK_MQ_REQ_NOWAIT ||
	    fl_is_outlet() || fl_is_journal_thread())
		return;
	sender = seen ? NULL : fl_sender_new();
	spin_lock_irq(&fq->lock);
	fl_catch_up(fq, NULL);
	group = current->flags & PF_KTHREAD ? fl_thread_sends_for(fq) : fl_current_group(fq->q);
	waits = sender && fl_has_to_wait(fq, group);
	if (waits)
		fl_writes_wait(fq, group, fl_sender_bio(sender), NULL);
	spin_unlock_irq(&fq->lock);
	if (waits)
		fl_sender_waits(fq, sender);
	else
		fl_sender_free(sender);
}

/* Something was done: whose turn is it? Under the lock. */
void fl_let_writes_go(struct fl_queue *fq, u64 now)
{
	struct bio_list going;
	struct bio *bio;
	u32 group;
	int count;

	if (!fq->writes_waiting)
		return;
	if (unlikely(fairlift_has_given_up(fq->core))) {
		fl_end_writes(fq);
		return;
	}
	bio_list_init(&going);
	for (count = 0; count < FL_WRITES_BATCH; count++) {
		group = fairlift_next_write(fq->core, fl_write_tags(fq), now);
		bio = 2 * group < fq->lines_max ? fl_writes_pop(fq, group) : NULL;
		if (!bio)
			break;
		if (!fl_sender_goes(bio))
			bio_list_add(&going, bio);
	}
	if (!bio_list_empty(&going))
		fl_outlet_send(fq->writes_outlet, &going);
	else if (count && !hrtimer_is_queued(&fq->writes_timer))
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
	struct bio_list going;
	struct bio *bio;
	u32 number;

	bio_list_init(&going);
	for (number = 0; fq->writes_waiting && 2 * number < fq->lines_max; number++) {
		while ((bio = fl_writes_pop(fq, number))) {
			if (!fl_sender_goes(bio))
				bio_list_add(&going, bio);
		}
	}
	if (!bio_list_empty(&going))
		fl_outlet_send(fq->writes_outlet, &going);
}

/* Group number is about to go. Its line waits behind that of its heir; the root has none. Under the lock. */
void fl_writes_move(struct fl_queue *fq, u32 number, u32 heir, u64 now)
{
	struct bio_list going;
	struct bio *bio;

	bio_list_init(&going);
	while ((bio = fl_writes_pop(fq, number))) {
		if (heir)
			fl_writes_add(fq, heir, bio);
		else if (!fl_sender_goes(bio))
			bio_list_add(&going, bio);
	}
	fairlift_move_writes(fq->core, number, heir, now);
	if (!bio_list_empty(&going))
		fl_outlet_send(fq->writes_outlet, &going);
	else if (fq->writes_waiting)
		fl_let_writes_go(fq, now);
}

int fl_writes_enter(struct fl_queue *fq)
{
	hrtimer_init(&fq->writes_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	fq->writes_timer.function = fl_writes_timer;
	fq->writes = kvcalloc(fq->lines_max / 2, sizeof(*fq->writes), GFP_NOIO | __GFP_NOWARN);
	fq->writes_outlet = fl_outlet_new(&fq->writes_timer);
	if (fq->writes && fq->writes_outlet)
		return 0;
	kvfree(fq->writes);
	kfree(fq->writes_outlet);
	return -ENOMEM;
}

/* The queue is frozen, which is no matter to those that wait: they go on, and wait for that. */
void fl_writes_leave(struct fl_queue *fq)
{
	spin_lock_irq(&fq->lock);
	fl_end_writes(fq);
	spin_unlock_irq(&fq->lock);
	fl_outlet_end(fq->writes_outlet);
	hrtimer_cancel(&fq->writes_timer);
	kvfree(fq->writes);
}
