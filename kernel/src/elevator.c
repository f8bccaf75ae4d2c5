// SPDX-License-Identifier: GPL-2.0-only
/*
 * The elevator's hooks, in the order a request meets them. The core decides;
 * here its answers become what blk-mq expects.
 */
#include <linux/sbitmap.h>
#include <trace/events/block.h>

#include "shim.h"

static enum hrtimer_restart fl_timer(struct hrtimer *timer);

/*
 * Bytes the core takes for itself and for each request, context, group and
 * recorded call, rounded up: what crates/kernel/tests/memory.rs measures for the
 * largest elevator. Contexts and groups come with one in reserve each.
 */
#define FL_BYTES		16384
#define FL_BYTES_PER_REQUEST	704
#define FL_BYTES_PER_CONTEXT	2432
#define FL_BYTES_PER_GROUP	6336
#define FL_BYTES_PER_RECORD	96
/* There is room for so many requests at least, since nr_requests may become larger. */
#define FL_REQUESTS_MIN		1024

/*
 * Room for requests: what the parameter says, else twice the tags there are now.
 * Should nr_requests become larger still, what has no room waits in order of
 * arrival.
 */
static u32 fl_slots_wanted(struct request_queue *q)
{
	u32 tags = q->nr_requests;

	if (fl_requests_max)
		return fl_requests_max;
	if (!blk_mq_is_shared_tags(q->tag_set->flags))
		tags *= max(q->nr_hw_queues, 1u);
	return max(2 * tags, FL_REQUESTS_MIN);
}

static struct fl_queue *fl_queue_alloc(struct request_queue *q, u32 elevator)
{
	struct fairlift_setup setup = {
		.elevator = elevator,
		.profile = fl_profile(elevator),
		.requests_max = fl_slots_wanted(q),
		.contexts_max = fl_wants_contexts(elevator) ? fl_contexts_max : 0,
		.records_max = READ_ONCE(fl_record),
		.rotational = !blk_queue_nonrot(q),
		.groups_max = fl_groups_max,
	};
	size_t bytes = FL_BYTES + FL_BYTES_PER_REQUEST * (size_t)setup.requests_max +
		       FL_BYTES_PER_CONTEXT * (size_t)setup.contexts_max +
		       FL_BYTES_PER_GROUP * ((size_t)setup.groups_max + 1) +
		       FL_BYTES_PER_RECORD * (size_t)setup.records_max;
	struct fl_queue *fq;

	fq = kzalloc_node(sizeof(*fq), GFP_NOIO | __GFP_NOWARN, q->node);
	if (!fq)
		return NULL;
	/* The largest first: what is more than there is, is refused at once. */
	fq->core = fl_core_new(&fq->arena, &setup, bytes);
	if (fq->core)
		fq->slots = kvcalloc(setup.requests_max, sizeof(*fq->slots), GFP_NOIO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
	fq->q = q;
	fq->elevator = elevator;
	fq->profile = setup.profile;
	fq->requests_max = setup.requests_max;
	if (!fq->slots || fl_events_enter(fq) || fl_turns_enter(fq) || fl_lines_enter(fq)) {
		if (fq->core)
			fl_core_free(&fq->arena, fq->core);
		fl_events_leave(fq);
		kvfree(fq->turns);
		kvfree(fq->turn_lines);
		kvfree(fq->slots);
		kfree(fq);
		return NULL;
	}
	spin_lock_init(&fq->lock);
	INIT_LIST_HEAD(&fq->waiting);
	hrtimer_init(&fq->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	fq->timer.function = fl_timer;
	return fq;
}

static void fl_queue_free(struct fl_queue *fq)
{
	fl_lines_leave(fq);
	fl_turns_leave(fq);
	fl_events_leave(fq);
	fl_core_free(&fq->arena, fq->core);
	kvfree(fq->slots);
	kfree(fq);
}

static int fl_init_sched(struct request_queue *q, struct elevator_type *type)
{
	struct elevator_queue *eq = elevator_alloc(q, type);
	struct fl_queue *fq;

	if (!eq)
		return -ENOMEM;
	fq = fl_queue_alloc(q, fl_elevator_number(type));
	if (!fq) {
		pr_warn("fairlift: no memory for %s\n", type->elevator_name);
		kobject_put(&eq->kobj);
		return -ENOMEM;
	}
	eq->elevator_data = fq;
	q->elevator = eq;
	if (fl_groups_enter(q)) {
		pr_warn("fairlift: no memory for the groups of %s\n", type->elevator_name);
		q->elevator = NULL;
		fl_queue_free(fq);
		kobject_put(&eq->kobj);
		return -ENOMEM;
	}
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	/*
	 * Groups share out the disk for writes as well. Writeback throttling has
	 * its few slots before us and for all groups together: a task that has one
	 * and waits here for a turn or a limit keeps the flushes of all groups out.
	 */
	set_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
	wbt_disable_default(q->disk);
	return 0;
}

/* The queue is frozen: no request is left. */
static void fl_exit_sched(struct elevator_queue *eq)
{
	struct fl_queue *fq = eq->elevator_data;

	fl_note_yield(fq, false);
	fl_groups_leave(fq->q);
	hrtimer_cancel(&fq->timer);
	spin_lock_irq(&fq->lock);
	fl_catch_up(fq, NULL);
	spin_unlock_irq(&fq->lock);
	WARN_ON_ONCE(fq->queued || fq->in_flight || !list_empty(&fq->waiting));
	clear_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
	wbt_enable_default(fq->q->disk);
	fl_queue_free(fq);
}

/* Called before q->nr_requests is the new one. */
static void fl_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	struct fl_queue *fq = fl_queue_of(hctx->queue);

	WRITE_ONCE(fq->async_depth, 0);
	fq->word_tags = 1u << hctx->sched_tags->bitmap_tags.sb.shift;
	sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags, 1);
}

static int fl_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	fl_depth_updated(hctx);
	return 0;
}

/*
 * Does a shallow depth mean so many of each word of a pool, as in older
 * kernels, or so many in all, as in 6.12.117? Asked by trying.
 */
static bool fl_depth_is_by_word;

int fl_find_depth_meaning(void)
{
	struct sbitmap_queue pool;
	unsigned int taken = 0;
	int error = sbitmap_queue_init_node(&pool, 256, 6, false, GFP_KERNEL, NUMA_NO_NODE);

	if (error)
		return error;
	sbitmap_queue_min_shallow_depth(&pool, 1);
	while (taken < 256 && sbitmap_queue_get_shallow(&pool, 32) >= 0)
		taken++;
	fl_depth_is_by_word = taken > 32;
	sbitmap_queue_free(&pool);
	return 0;
}

/* From how many tags a request may take. */
static void fl_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct fl_queue *fq = fl_queue_of(data->q);
	unsigned long tags = max(data->q->nr_requests, 1ul);
	unsigned long depth;

	if (unlikely(READ_ONCE(fq->limited)))
		fl_hold_sender(fq, opf, data);
	if (unlikely(op_is_flush(opf)) && READ_ONCE(fq->has_groups))
		fl_await_turn(fq, opf, data);
	if (!op_is_sync(opf) && !op_is_flush(opf) && READ_ONCE(fq->has_groups))
		fl_hold_writer(fq, opf, data);
	depth = fl_group_depth(fq);
	if (!op_is_sync(opf))
		depth = min_not_zero(depth, (unsigned long)fl_async_depth(fq));
	if (depth && fl_depth_is_by_word)
		depth = max(depth * fq->word_tags / tags, 1ul);
	if (depth)
		data->shallow_depth = depth;
}

static void fl_prepare_request(struct request *rq)
{
	struct fl_queue *fq = fl_queue_of(rq->q);

	/* What waited for a limit is sent by another: it counts as one of the tasks of its group that have no context. */
	rq->elv.icq = fl_wants_contexts(fq->elevator) && !fl_is_outlet() ? fl_get_icq(rq->q) : NULL;
	rq->elv.priv[0] = NULL;
	fl_set_place(rq, FL_OUTSIDE);
	if (unlikely((__force u32)(rq->rq_flags & (FL_RQF_CHARGED | FL_RQF_TURN | FL_RQF_THREAD)))) {
		fl_note_sender(fq, rq);
		fl_turn_is_used(fq, rq);
	}
	if (unlikely(op_is_flush(rq->cmd_flags))) {
		rq->rq_flags |= FL_RQF_WANTS_FLUSH;
		atomic_inc(&fq->want_flush);
	}
	if (!op_is_sync(rq->cmd_flags) && !op_is_flush(rq->cmd_flags) && current->flags & PF_KTHREAD && READ_ONCE(fq->has_groups))
		fl_thread_has(fq, rq);
}

/* Let bios and requests be merged into rq. Discards of several ranges grow without a word to the elevator: not these. */
static void fl_remember_merge(struct request_queue *q, struct request *rq)
{
	if (!rq_mergeable(rq) || blk_discard_mergable(rq))
		return;
	elv_rqhash_add(q, rq);
	if (!q->last_merge)
		q->last_merge = rq;
}

void fl_forget_merge(struct request_queue *q, struct request *rq)
{
	elv_rqhash_del(q, rq);
	if (q->last_merge == rq)
		q->last_merge = NULL;
}

/* Hand rq to the core; false when it has no slot. */
static bool fl_hand_over(struct fl_queue *fq, struct request *rq, bool at_head, u64 now)
{
	struct fairlift_arrival arrival;
	u32 slot;

	fl_describe_request(rq, &arrival);
	slot = at_head ? fairlift_insert_head(fq->core, &arrival, now) : fairlift_insert(fq->core, &arrival, now);
	if (slot == FAIRLIFT_NO_SLOT)
		return false;
	if (unlikely(READ_ONCE(fq->limited)))
		fl_charge_request(fq, rq, arrival.group, now);
	fq->slots[slot] = rq;
	fl_set_slot(rq, slot);
	fl_set_place(rq, FL_QUEUED);
	if (!op_is_sync(rq->cmd_flags) && !op_is_flush(rq->cmd_flags))
		fl_thread_sent_for(fq, rq, arrival.group);
	if (!at_head)
		fl_remember_merge(fq->q, rq);
	return true;
}

/* Not a part of others: test/wake slows it down. */
noinline __noclone void fl_insert(struct fl_queue *fq, struct request *rq, bool at_head, u64 now)
{
	if (fl_goes_past_queue(fq, rq)) {
		fl_send_past_queue(fq, rq, now);
	} else if (fl_place(rq) == FL_TAKEN_BACK) {
		fairlift_insert_again(fq->core, fl_slot(rq));
		fl_set_place(rq, FL_QUEUED);
		fq->in_flight--;
	} else if (!list_empty(&fq->waiting) || !fl_hand_over(fq, rq, at_head, now)) {
		fq->overflowed++;
		fl_set_place(rq, FL_WAITING);
		if (at_head)
			list_add(&rq->queuelist, &fq->waiting);
		else
			list_add_tail(&rq->queuelist, &fq->waiting);
	}
	WRITE_ONCE(fq->queued, fq->queued + 1);
	WRITE_ONCE(fq->withheld, false);
}

/* May all of these wait for the next who takes the lock? Not what goes before others, nor what was here before. */
static bool fl_may_wait(struct list_head *list, bool at_head)
{
	struct request *rq;

	if (at_head)
		return false;
	list_for_each_entry(rq, list, queuelist) {
		if (fl_place(rq) != FL_OUTSIDE)
			return false;
	}
	return true;
}

static void fl_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, blk_insert_t flags)
{
	struct request_queue *q = hctx->queue;
	struct fl_queue *fq = fl_queue_of(q);
	bool at_head = flags & BLK_MQ_INSERT_AT_HEAD;
	struct request *rq, *next;
	LIST_HEAD(merged);
	u64 now;

	if (current->flags & PF_KTHREAD && READ_ONCE(fq->has_groups))
		fl_thread_sent(fq);
	if (likely(fl_may_wait(list, at_head))) {
		fl_arrive(fq, list, blk_time_get_ns());
		return;
	}
	local_irq_disable();
	fl_lock(fq);
	fl_catch_up(fq, &merged);
	now = blk_time_get_ns();
	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		if (fl_place(rq) == FL_OUTSIDE && fl_insert_merge(fq, rq, now, &merged))
			continue;
		trace_block_rq_insert(rq);
		fl_insert(fq, rq, at_head, now);
	}
	fl_unlock(fq, FL_HOLD_INSERT);
	local_irq_enable();
	if (unlikely(!list_empty(&merged)))
		fl_free_merged(&merged);
}

/* Without a look at the lock: blk-mq asks often, and asks again after every insert, completion and timer. */
static bool fl_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct fl_queue *fq = fl_queue_of(hctx->queue);

	if (READ_ONCE(fq->arrived))
		return true;
	/* Pairs with fl_catch_up(): what arrived is either on its way to the core still, or counted. */
	smp_rmb();
	if (smp_load_acquire(&fq->catching_up))
		return true;
	return READ_ONCE(fq->queued) && (!READ_ONCE(fq->withheld) || fl_runs_dry(fq->q));
}

/* Requests for which there was no slot, while there are some now. */
static void fl_refill(struct fl_queue *fq, u64 now)
{
	while (!list_empty(&fq->waiting)) {
		struct request *rq = list_first_entry(&fq->waiting, struct request, queuelist);

		if (!fl_hand_over(fq, rq, false, now))
			return;
		list_del_init(&rq->queuelist);
	}
}

/*
 * Flush commands pass the elevator by, and one that holds back while the device
 * flushes has to be told. There is one only while a request that wants one is
 * alive. Nothing says when it is done; while nothing else is in the device it
 * is looked for at this interval.
 */
#define FL_FLUSH_LOOK_NS	(250 * NSEC_PER_USEC)

static bool fl_is_flushing(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned int i;

	/* Not queue_for_each_hw_ctx(): it looks for the next one in 64 places, for 2,000 instructions. */
	for (i = 0; i < q->nr_hw_queues; i++) {
		hctx = xa_load(&q->hctx_table, i);
		if (hctx && hctx->fq->flush_pending_idx != hctx->fq->flush_running_idx)
			return true;
	}
	return false;
}

static void fl_look_for_flushes(struct fl_queue *fq, u64 now)
{
	bool flushing;

	if (!fq->flushing && !atomic_read(&fq->want_flush))
		return;
	flushing = fl_is_flushing(fq->q);
	if (flushing == fq->flushing)
		return;
	fq->flushing = flushing;
	fairlift_flushing(fq->core, flushing, now);
}

/*
 * The core wants to wait, for a time or for a completion. Until then blk-mq
 * need not ask; it would every 3 ms. An answer that waits for nothing (the
 * core promises that there is none) is left to these 3 ms.
 */
static void fl_withhold(struct fl_queue *fq, u32 answer, u64 now, u64 until)
{
	if (fl_is_told(fq, idle) && answer == FAIRLIFT_IDLE)
		fl_tell_idle(fq, now, until);
	if (answer == FAIRLIFT_IDLE)
		hrtimer_start(&fq->timer, fl_timer_at(now, until), HRTIMER_MODE_ABS);
	if (fq->flushing && answer != FAIRLIFT_IDLE && fq->queued && !fq->in_flight) {
		hrtimer_start(&fq->timer, fl_timer_at(now, now + FL_FLUSH_LOOK_NS), HRTIMER_MODE_ABS);
		answer = FAIRLIFT_IDLE;
	}
	if (fq->queued && (answer == FAIRLIFT_IDLE || fq->in_flight))
		WRITE_ONCE(fq->withheld, true);
}

/* The request the core gives away; NULL if it waits or has none. */
static struct request *fl_next(struct fl_queue *fq, u64 now)
{
	u64 until = 0;
	u32 slot;

	if (unlikely(!list_empty(&fq->due))) {
		struct request *rq = list_first_entry(&fq->due, struct request, queuelist);

		list_del_init(&rq->queuelist);
		return rq;
	}
	for (;;) {
		/* One who has his turn is about to come: then we are asked again. */
		if (unlikely(fl_turns_are_full(fq))) {
			WRITE_ONCE(fq->withheld, true);
			return NULL;
		}
		slot = fairlift_dispatch(fq->core, now, &until);
		if (slot >= fq->requests_max) {
			fl_withhold(fq, slot, now, until);
			return NULL;
		}
		if (fq->slots[slot])
			return fq->slots[slot];
		if (fq->turns[slot]) {
			fl_turn_begins(fq, slot, now);
			continue;
		}
		/* It was freed while queued (see fl_finish_request): done at once. */
		fairlift_complete(fq->core, slot, now);
	}
}

/*
 * How many tags there are: the core idles for no cgroup that finds none.
 */
static void fl_tell_tags(struct fl_queue *fq, u64 now)
{
	u32 queues, tags = fq->q->nr_requests, for_async = READ_ONCE(fq->async_depth);

	/* The number of queues does not change under an elevator. */
	if (likely(tags == fq->told_tags[1] && for_async == fq->told_tags[0]))
		return;
	fq->told_tags[0] = for_async;
	fq->told_tags[1] = tags;
	queues = fl_pools(fq->q);
	for_async = min(fl_async_depth(fq), tags);
	/* Rounded up to a word's part, as fl_limit_depth() has it. */
	if (fl_depth_is_by_word)
		for_async = min(max(for_async * fq->word_tags / max(tags, 1u), 1u) * DIV_ROUND_UP(tags, fq->word_tags), tags);
	tags *= queues;
	for_async *= queues;
	fairlift_request_slots(fq->core, tags, for_async, now);
}

/* The same, after all that has happened until then. */
static struct request *fl_next_of_all(struct fl_queue *fq, struct list_head *merged, u64 now)
{
	struct request *rq;

	for (;;) {
		fl_catch_up(fq, merged);
		if (fq->elevator == FAIRLIFT_FAIR)
			fl_look_for_flushes(fq, now);
		if (READ_ONCE(fq->has_groups))
			fl_tell_tags(fq, now);
		rq = fl_next(fq, now);
		if (rq || !fq->withheld)
			return rq;
		/* Pairs with llist_add(): who is done from now on sees that it is withheld. */
		smp_mb();
		if (llist_empty(&fq->events))
			return NULL;
		WRITE_ONCE(fq->withheld, false);
	}
}

static struct request *fl_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct request_queue *q = hctx->queue;
	struct fl_queue *fq = fl_queue_of(q);
	struct request *rq;
	LIST_HEAD(merged);
	u64 now;

	local_irq_disable();
	fl_lock(fq);
	now = blk_time_get_ns();
	rq = fl_next_of_all(fq, &merged, now);
	/* Without its elevator it has no limits either. */
	if (unlikely(fq->held) && fairlift_has_given_up(fq->core))
		fl_let_in(fq, now);
	if (rq) {
		fl_forget_merge(q, rq);
		/* What was due has been in flight since its turn began. */
		if (fl_place(rq) != FL_DUE)
			fq->in_flight++;
		fl_set_place(rq, FL_ISSUED);
		WRITE_ONCE(fq->queued, fq->queued - 1);
		fq->position = blk_rq_pos(rq) + blk_rq_sectors(rq);
		rq->rq_flags |= RQF_STARTED;
		if (fl_is_told(fq, turn))
			fl_tell_turn(fq, rq);
	}
	fl_unlock(fq, FL_HOLD_DISPATCH);
	local_irq_enable();
	if (unlikely(!list_empty(&merged)))
		fl_free_merged(&merged);
	return rq;
}

static enum hrtimer_restart fl_timer(struct hrtimer *timer)
{
	struct fl_queue *fq = container_of(timer, struct fl_queue, timer);
	unsigned long flags;
	bool waits;

	spin_lock_irqsave(&fq->lock, flags);
	waits = fl_wake(fq);
	spin_unlock_irqrestore(&fq->lock, flags);
	if (waits)
		blk_mq_run_hw_queues(fq->q, true);
	return HRTIMER_NORESTART;
}

/* A slot's request is done: it is free again. Under the lock. */
void fl_slot_is_done(struct fl_queue *fq, u32 slot, u64 now)
{
	fq->slots[slot] = NULL;
	fairlift_complete(fq->core, slot, now);
	fq->in_flight--;
	fl_refill(fq, now);
}

static void fl_done(struct fl_queue *fq, struct request *rq, u64 now)
{
	/* It had its turn and never came: it was a flush alone. */
	if (unlikely(fl_place(rq) == FL_EXPECTED))
		fairlift_fill(fq->core, fl_slot(rq), fq->position, 0, now);
	fl_set_place(rq, FL_OUTSIDE);
	if (likely(fl_slot(rq) != FAIRLIFT_NO_SLOT))
		fl_slot_is_done(fq, fl_slot(rq), now);
}

/* At the time of completion, now. Also called for requests that were never inserted: an empty flush. */
static void fl_completed_request(struct request *rq, u64 now)
{
	struct fl_queue *fq = fl_queue_of(rq->q);
	unsigned long flags;
	bool waits;

	if (fl_place(rq) == FL_ISSUED && likely(fl_slot(rq) != FAIRLIFT_NO_SLOT)) {
		fl_set_place(rq, FL_OUTSIDE);
		if (likely(!fl_note_done(fq, fl_slot(rq), now)))
			return;
	} else if (fl_place(rq) != FL_ISSUED && fl_place(rq) != FL_TAKEN_BACK && fl_place(rq) != FL_EXPECTED) {
		return;
	}
	local_irq_save(flags);
	fl_lock(fq);
	fl_catch_up(fq, NULL);
	if (fl_place(rq) != FL_OUTSIDE)
		fl_done(fq, rq, now);
	waits = fl_wake(fq);
	fl_unlock(fq, FL_HOLD_DONE);
	local_irq_restore(flags);
	if (waits)
		blk_mq_run_hw_queues(fq->q, true);
}

/* It comes back by an insert at the head, or goes to the device past us. */
static void fl_requeue_request(struct request *rq)
{
	struct fl_queue *fq = fl_queue_of(rq->q);
	unsigned long flags;

	spin_lock_irqsave(&fq->lock, flags);
	if (fl_place(rq) == FL_ISSUED && fl_slot(rq) == FAIRLIFT_NO_SLOT) {
		fl_set_place(rq, FL_EXPECTED);
	} else if (fl_place(rq) == FL_ISSUED) {
		fairlift_take_back(fq->core, fl_slot(rq), ktime_get_ns());
		fl_set_place(rq, FL_TAKEN_BACK);
	}
	spin_unlock_irqrestore(&fq->lock, flags);
}

/*
 * A request that ends while it is queued has no business to: the block layer
 * frees only what it took out. Should it do so nevertheless, the core must not
 * hand out a dead request: the slot is left empty, and passed over.
 */
static void fl_vanish(struct fl_queue *fq, struct request *rq)
{
	fq->vanished++;
	WRITE_ONCE(fq->queued, fq->queued - 1);
	if (fl_place(rq) == FL_WAITING) {
		list_del_init(&rq->queuelist);
		return;
	}
	if (fl_place(rq) == FL_DUE) {
		list_del_init(&rq->queuelist);
		fl_done(fq, rq, ktime_get_ns());
		return;
	}
	fl_forget_merge(fq->q, rq);
	fq->slots[fl_slot(rq)] = NULL;
}

/* The only hook every request passes, dispatched or not. */
static void fl_finish_request(struct request *rq)
{
	struct fl_queue *fq = fl_queue_of(rq->q);
	unsigned long flags;

	if (fl_place(rq) != FL_OUTSIDE) {
		spin_lock_irqsave(&fq->lock, flags);
		fl_catch_up(fq, NULL);
		if (fl_place(rq) == FL_ISSUED || fl_place(rq) == FL_TAKEN_BACK || fl_place(rq) == FL_EXPECTED)
			fl_done(fq, rq, ktime_get_ns());
		else
			fl_vanish(fq, rq);
		fl_set_place(rq, FL_OUTSIDE);
		spin_unlock_irqrestore(&fq->lock, flags);
	}
	if (unlikely(rq->rq_flags & FL_RQF_WANTS_FLUSH)) {
		rq->rq_flags &= ~FL_RQF_WANTS_FLUSH;
		atomic_dec(&fq->want_flush);
	}
	fl_refund_sender(fq, rq);
	if (rq->elv.icq) {
		put_io_context(rq->elv.icq->ioc);
		rq->elv.icq = NULL;
	}
}

const struct elevator_mq_ops fl_ops = {
	.init_sched		= fl_init_sched,
	.exit_sched		= fl_exit_sched,
	.init_hctx		= fl_init_hctx,
	.depth_updated		= fl_depth_updated,
	.bio_merge		= fl_bio_merge,
	.allow_merge		= fl_allow_merge,
	.request_merge		= fl_request_merge,
	.request_merged		= fl_request_merged,
	.requests_merged	= fl_requests_merged,
	.former_request		= fl_former_request,
	.next_request		= fl_next_request,
	.limit_depth		= fl_limit_depth,
	.prepare_request	= fl_prepare_request,
	.insert_requests	= fl_insert_requests,
	.has_work		= fl_has_work,
	.dispatch_request	= fl_dispatch_request,
	.completed_request	= fl_completed_request,
	.requeue_request	= fl_requeue_request,
	.finish_request		= fl_finish_request,
};
