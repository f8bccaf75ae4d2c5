// SPDX-License-Identifier: GPL-2.0-only
/*
 * What comes and goes without the lock. A request that arrives, and one that is
 * done, is put on one list without a lock, with its time; the processor that
 * takes the lock next tells the core of all of it, in order (fl_catch_up). As
 * blk-mq asks for a request after each arrival, that is nearly always the one
 * that dispatches: it does the work of all, and they do not wait for each other.
 *
 * Only a completion that the core was waiting for takes the lock itself. For
 * that, who withholds the queue looks at the list once more, and who puts
 * something on it looks whether it is withheld.
 *
 * Who takes the list need not be one who dispatches: it may be a bio that is merged,
 * or a completion. The task whose request is on the list then runs the queue, and
 * must not be told that there is no work while its request is between the list and
 * the core: fl_has_work() says that there is, all that time (catching_up).
 */
#include <trace/events/block.h>

#include "shim.h"

/* When the request in a slot was done. */
struct fl_done {
	struct llist_node node;
	u64 at;
};

int fl_events_enter(struct fl_queue *fq)
{
	init_llist_head(&fq->events);
	fq->done = kvcalloc(fq->requests_max, sizeof(*fq->done), GFP_NOIO | __GFP_NOWARN);
	return fq->done ? 0 : -ENOMEM;
}

void fl_events_leave(struct fl_queue *fq)
{
	kvfree(fq->done);
}

/* Requests from plain inserts, each on its own list entry; the list is empty afterwards. */
void fl_arrive(struct fl_queue *fq, struct list_head *list, u64 now)
{
	struct llist_node *newest = NULL, *oldest = NULL;
	struct request *rq, *next;

	/* All of them go: none is taken out of the list by itself. */
	list_for_each_entry_safe(rq, next, list, queuelist) {
		INIT_LIST_HEAD(&rq->queuelist);
		rq->fifo_time = now;
		fl_set_place(rq, FL_ARRIVING);
		trace_block_rq_insert(rq);
		rq->ipi_list.next = newest;
		newest = &rq->ipi_list;
		if (!oldest)
			oldest = newest;
	}
	if (!newest)
		return;
	INIT_LIST_HEAD(list);
	llist_add_batch(newest, oldest, &fq->events);
	if (!READ_ONCE(fq->arrived))
		WRITE_ONCE(fq->arrived, true);
}

/* The request in slot is done. Does the core wait for that, or a thread for its tag? */
bool fl_note_done(struct fl_queue *fq, u32 slot, u64 now)
{
	fq->done[slot].at = now;
	llist_add(&fq->done[slot].node, &fq->events);
	return READ_ONCE(fq->withheld) || READ_ONCE(fq->writes_waiting);
}

static bool fl_is_done_event(struct fl_queue *fq, struct llist_node *node)
{
	return (void *)node >= (void *)fq->done && (void *)node < (void *)(fq->done + fq->requests_max);
}

/*
 * Under the lock, before the core is asked or told anything else. Requests that
 * were merged into others are put on merged, to be freed without the lock; where
 * that cannot be it is NULL, and nothing is merged.
 */
void fl_catch_up(struct fl_queue *fq, struct list_head *merged)
{
	struct llist_node *node, *next;

	if (llist_empty(&fq->events) && !READ_ONCE(fq->arrived))
		return;
	/* Pairs with fl_has_work(): who no longer finds arrived set finds this one. */
	WRITE_ONCE(fq->catching_up, true);
	smp_wmb();
	/* Before the list is taken: who finds it still set has put his request on this list. */
	WRITE_ONCE(fq->arrived, false);
	node = llist_reverse_order(llist_del_all(&fq->events));
	llist_for_each_safe(node, next, node) {
		if (fl_is_done_event(fq, node)) {
			struct fl_done *done = container_of(node, struct fl_done, node);

			fl_slot_is_done(fq, done - fq->done, done->at);
		} else {
			struct request *rq = container_of(node, struct request, ipi_list);

			INIT_HLIST_NODE(&rq->hash);
			fl_set_place(rq, FL_OUTSIDE);
			if (!merged || !fl_insert_merge(fq, rq, rq->fifo_time, merged))
				fl_insert(fq, rq, false, rq->fifo_time);
		}
	}
	smp_store_release(&fq->catching_up, false);
	if (unlikely(fq->writes_waiting))
		fl_let_writes_go(fq, blk_time_get_ns());
}

void fl_free_merged(struct list_head *merged)
{
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, merged, queuelist) {
		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

/* ---- how long the lock is held ---- */

/* Under the lock, at its end. */
void fl_note_hold(struct fl_queue *fq, enum fl_hold hold)
{
	struct fl_holds *holds = &fq->holds[hold];
	u64 ns = ktime_get_mono_fast_ns() - fq->held_since;

	holds->count++;
	holds->ns += ns;
	holds->ns_max = max(holds->ns_max, ns);
	holds->by_log2[min(fls64(ns), FL_HOLD_BUCKETS - 1)]++;
}

int fl_holds_show(void *data, struct seq_file *m)
{
	static const char * const names[FL_HOLDS] = {
		[FL_HOLD_MERGE] = "merge", [FL_HOLD_INSERT] = "insert", [FL_HOLD_DISPATCH] = "dispatch", [FL_HOLD_DONE] = "done",
	};
	struct fl_queue *fq = fl_queue_of(data);
	struct fl_holds holds;
	int i, bucket;

	for (i = 0; i < FL_HOLDS; i++) {
		spin_lock_irq(&fq->lock);
		holds = fq->holds[i];
		spin_unlock_irq(&fq->lock);
		seq_printf(m, "%s count %llu ns %llu longest %llu", names[i], holds.count, holds.ns, holds.ns_max);
		for (bucket = 0; bucket < FL_HOLD_BUCKETS; bucket++) {
			if (holds.by_log2[bucket])
				seq_printf(m, " <%llu:%llu", 1ull << bucket, holds.by_log2[bucket]);
		}
		seq_putc(m, '\n');
	}
	return 0;
}

/* 1 counts from now on, 0 ends that. */
ssize_t fl_holds_write(void *data, const char __user *text, size_t length, loff_t *pos)
{
	struct fl_queue *fq = fl_queue_of(data);
	bool wanted;
	int error = kstrtobool_from_user(text, length, &wanted);

	if (error)
		return error;
	spin_lock_irq(&fq->lock);
	if (wanted)
		memset(fq->holds, 0, sizeof(fq->holds));
	fq->counts_holds = wanted;
	fq->held_since = ktime_get_mono_fast_ns();
	spin_unlock_irq(&fq->lock);
	return length;
}
