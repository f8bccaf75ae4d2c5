// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who sends data that the block layer puts between two flushes (PREFLUSH, or
 * FUA on a disk that has none) waits here for its turn, before it has a tag.
 * The kernel's flush machine sends no flush while such data is in flight, of
 * any group: were it to wait for its turn in the queue, the fsync of all groups
 * would wait with it, at weight 1 beside 1000 for half a minute.
 *
 * The task sleeps where the block layer asks how many tags it may take. The
 * core gets a request in its name, a place; when that is dispatched the task
 * goes on, takes a tag, and its request has the place: it goes to the device at
 * once, and the place is done when it is. Of the tasks of a group and class the
 * first has a place, so these are few, however many tasks wait. A task that finds
 * none waiting goes before what else its group has queued, one that waits in a
 * line goes behind it, so that a group's reads do not wait for its many writers.
 *
 * The device idles no longer than FL_TURN_LATE_NS for a task that has the turn: it
 * may need a tag, and the tasks that have the tags may wait for it. Then its place is
 * done, and paid for with that time; when it comes it goes without one.
 */
#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "shim.h"

#define FL_TURN_LATE_NS		(10 * NSEC_PER_MSEC)
/* A sleeping task keeps the queue from being frozen: it looks that often whether the block layer wants to freeze it. */
#define FL_TURN_LOOKS		(HZ / 20)
/* Looks that a kernel thread waits for a turn: 100 ms. It may have others' I/O to send next. */
#define FL_TURN_LOOKS_OF_THREAD	2
/* Tasks that may be coming at a time, however deep the device's queue is. */
#define FL_TURNS_MAX		32
/* Lines of a group: by the class of the task, since nothing goes past the first of a line. */
#define FL_TURN_LINES		3

enum fl_turn_state {
	FL_TURN_WAITS,			/* in a line */
	FL_TURN_COMES,			/* it is its turn */
	FL_TURN_NONE,			/* there is none for it: the task goes without */
};

struct fl_turn {
	struct list_head node;		/* in a line, or of those who come and are not late */
	struct hlist_node by_task;	/* of all who come */
	struct list_head *line;
	struct task_struct *task;
	bool is_thread;			/* of the kernel (threads.c) */
	struct completion decided;
	struct fairlift_arrival arrival;
	enum fl_turn_state state;
	u32 place;			/* the core's slot, of the first of a line and of one who comes */
	u64 late;			/* when the device no longer idles for it */
};

/* Does the block layer put data sent with these flags between flushes? A flush alone has the same flags: it waits for its turn, too. */
static bool fl_is_between_flushes(struct request_queue *q, blk_opf_t opf)
{
	if (!op_is_write(opf) || !(opf & (REQ_PREFLUSH | REQ_FUA)) || !blk_queue_write_cache(q))
		return false;
	return opf & REQ_PREFLUSH || !(q->limits.features & BLK_FEAT_FUA);
}

/* ---- the lines, under the queue's lock ---- */

static bool fl_is_first(struct fl_turn *turn)
{
	return turn->line->next == &turn->node;
}

static void fl_decide(struct fl_turn *turn, enum fl_turn_state state)
{
	turn->state = state;
	complete(&turn->decided);
}

/* A place for the first of a line. When the core has none left no task of the line has a turn. */
static void fl_ask_for_place(struct fl_queue *fq, struct list_head *line, bool at_head, u64 now)
{
	struct fl_turn *first;

	while (!list_empty(line)) {
		first = list_first_entry(line, struct fl_turn, node);
		first->arrival.sector = fq->position;
		first->place = at_head ? fairlift_insert_head(fq->core, &first->arrival, now) :
					 fairlift_insert(fq->core, &first->arrival, now);
		if (first->place != FAIRLIFT_NO_SLOT) {
			fq->turns[first->place] = first;
			WRITE_ONCE(fq->queued, fq->queued + 1);
			WRITE_ONCE(fq->withheld, false);
			return;
		}
		list_del(&first->node);
		fl_decide(first, FL_TURN_NONE);
	}
}

/* Its place stays behind without a task: fl_next() passes it over. */
static void fl_leave_turns(struct fl_queue *fq, struct fl_turn *turn, u64 now)
{
	bool was_first = fl_is_first(turn);

	list_del(&turn->node);
	if (!was_first)
		return;
	fq->turns[turn->place] = NULL;
	WRITE_ONCE(fq->queued, fq->queued - 1);
	fl_ask_for_place(fq, turn->line, false, now);
}

/* May the core be asked for more, or are enough coming? */
bool fl_turns_are_full(struct fl_queue *fq)
{
	return fq->coming >= fq->coming_max;
}

/* The core dispatched a place: its task goes on. */
void fl_turn_begins(struct fl_queue *fq, u32 place, u64 now)
{
	struct fl_turn *turn = fq->turns[place];

	fq->turns[place] = NULL;
	WRITE_ONCE(fq->queued, fq->queued - 1);
	fq->in_flight++;
	/* Not from now, which may be the time at which a plug began. */
	turn->late = ktime_get_ns() + FL_TURN_LATE_NS;
	if (!fq->coming++)
		hrtimer_start(&fq->turn_timer, ns_to_ktime(turn->late), HRTIMER_MODE_ABS);
	list_move_tail(&turn->node, &fq->comers);
	hash_add(fq->comers_by_task, &turn->by_task, (uintptr_t)turn->task);
	fl_ask_for_place(fq, turn->line, false, now);
	fq->turns_taken++;
	fl_decide(turn, FL_TURN_COMES);
}

/* The device no longer idles for it. */
static void fl_turn_is_late(struct fl_queue *fq, struct fl_turn *turn, u64 now)
{
	list_del(&turn->node);
	fq->coming--;
	fq->in_flight--;
	fq->turns_late++;
	fairlift_complete(fq->core, turn->place, now);
	turn->place = FAIRLIFT_NO_SLOT;
}

static enum hrtimer_restart fl_turn_timer(struct hrtimer *timer)
{
	struct fl_queue *fq = container_of(timer, struct fl_queue, turn_timer);
	struct fl_turn *turn, *next;
	unsigned long flags;
	bool waits;
	u64 now;

	spin_lock_irqsave(&fq->lock, flags);
	now = ktime_get_ns();
	list_for_each_entry_safe(turn, next, &fq->comers, node) {
		if (turn->late > now) {
			hrtimer_start(timer, ns_to_ktime(turn->late), HRTIMER_MODE_ABS);
			break;
		}
		fl_turn_is_late(fq, turn, now);
	}
	waits = fl_wake(fq);
	spin_unlock_irqrestore(&fq->lock, flags);
	if (waits)
		blk_mq_run_hw_queues(fq->q, true);
	return HRTIMER_NORESTART;
}

/* Group number is gone: who still waits in its name goes without a turn. */
void fl_turns_of_group_end(struct fl_queue *fq, u32 number)
{
	struct fl_turn *turn, *next;
	int i;

	fl_threads_forget(fq, number);
	for (i = 0; i < FL_TURN_LINES; i++) {
		struct list_head *line = &fq->turn_lines[FL_TURN_LINES * number + i];

		if (!list_empty(line)) {
			fq->turns[list_first_entry(line, struct fl_turn, node)->place] = NULL;
			WRITE_ONCE(fq->queued, fq->queued - 1);
		}
		list_for_each_entry_safe(turn, next, line, node) {
			list_del(&turn->node);
			fl_decide(turn, FL_TURN_NONE);
		}
	}
}

/* ---- the task ---- */

static struct list_head *fl_turn_line(struct fl_queue *fq, const struct fairlift_arrival *arrival)
{
	u8 class = arrival->ioprio >> 4;
	u32 which = class == IOPRIO_CLASS_RT ? 0 : class == IOPRIO_CLASS_IDLE ? 2 : 1;

	return &fq->turn_lines[FL_TURN_LINES * arrival->group + which];
}

static void fl_enter_line_of_turns(struct fl_queue *fq, struct fl_turn *turn)
{
	spin_lock_irq(&fq->lock);
	turn->arrival.group = turn->is_thread ? fl_thread_sends_for(fq) : fl_current_group(fq->q);
	turn->line = fl_turn_line(fq, &turn->arrival);
	turn->state = FL_TURN_WAITS;
	list_add_tail(&turn->node, turn->line);
	if (fl_is_first(turn))
		fl_ask_for_place(fq, turn->line, true, ktime_get_ns());
	spin_unlock_irq(&fq->lock);
	/* Often it is its turn at once, and there is no need to sleep. */
	blk_mq_run_hw_queues(fq->q, false);
}

/* Sleep until it is decided, or until the queue is about to be frozen; a kernel thread no longer than its bound. */
static void fl_wait_for_turn(struct fl_queue *fq, struct fl_turn *turn)
{
	unsigned int looks = 0;

	while (!wait_for_completion_io_timeout(&turn->decided, FL_TURN_LOOKS)) {
		looks++;
		if (!fl_runs_dry(fq->q) && !(turn->is_thread && looks >= FL_TURN_LOOKS_OF_THREAD))
			continue;
		spin_lock_irq(&fq->lock);
		if (turn->state == FL_TURN_WAITS) {
			fl_leave_turns(fq, turn, ktime_get_ns());
			fl_decide(turn, FL_TURN_NONE);
		}
		spin_unlock_irq(&fq->lock);
	}
}

/*
 * Before a task takes a tag: wait for its turn, if it is to send data between
 * flushes. REQ_NOWAIT does not help it past that: to send I/O may sleep anyway,
 * and there is no way to refuse it here. A kernel thread waits in the name of
 * the cgroup it sent for last; a journal's never, since all tasks wait for that.
 */
void fl_await_turn(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	bool is_thread = current->flags & PF_KTHREAD;
	struct fl_turn *turn;

	if (!fl_is_between_flushes(fq->q, opf) || opf & (REQ_META | REQ_SWAP) || fl_is_journal_thread())
		return;
	turn = kzalloc(sizeof(*turn), GFP_NOIO | __GFP_NOWARN);
	if (!turn)
		return;
	/* Requests kept for later would pass by here. */
	data->nr_tags = 1;
	turn->task = current;
	turn->is_thread = is_thread;
	turn->arrival = (struct fairlift_arrival) {
		.sectors = 1,
		.context = is_thread ? 0 : fl_current_context(fq),
		.flags = fl_flags(opf | REQ_SYNC),
		.op = FAIRLIFT_WRITE,
		.ioprio = fl_ioprio(get_current_ioprio()),
	};
	init_completion(&turn->decided);
	fl_enter_line_of_turns(fq, turn);
	fl_wait_for_turn(fq, turn);
	if (is_thread)
		data->rq_flags |= FL_RQF_THREAD;
	if (turn->state == FL_TURN_COMES)
		data->rq_flags |= FL_RQF_TURN;
	else
		kfree(turn);
}

/* The task has a tag, for rq. */
void fl_turn_is_used(struct fl_queue *fq, struct request *rq)
{
	struct fl_turn *turn;
	bool waits = false;

	if (unlikely((__force u32)(rq->rq_flags & FL_RQF_THREAD)))
		fl_note_thread(rq, 0);
	if (likely(!((__force u32)(rq->rq_flags & FL_RQF_TURN))))
		return;
	rq->rq_flags &= ~FL_RQF_TURN;
	spin_lock_irq(&fq->lock);
	hash_for_each_possible(fq->comers_by_task, turn, by_task, (uintptr_t)current) {
		if (turn->task != current)
			continue;
		hash_del(&turn->by_task);
		if (turn->place != FAIRLIFT_NO_SLOT) {
			list_del(&turn->node);
			fq->coming--;
			waits = fl_wake(fq);
		}
		if (turn->is_thread)
			fl_note_thread(rq, turn->arrival.group);
		fl_set_slot(rq, turn->place);
		fl_set_place(rq, FL_EXPECTED);
		kfree(turn);
		break;
	}
	spin_unlock_irq(&fq->lock);
	if (waits)
		blk_mq_run_hw_queues(fq->q, true);
}

/* ---- its request, under the queue's lock ---- */

/*
 * Its turn has come, or it is data between flushes for which there is no turn:
 * the flushes of all groups would wait for it.
 */
bool fl_goes_past_queue(struct fl_queue *fq, struct request *rq)
{
	if (fl_place(rq) == FL_EXPECTED)
		return true;
	return unlikely((__force u32)(rq->rq_flags & RQF_FLUSH_SEQ)) && fl_place(rq) == FL_OUTSIDE && READ_ONCE(fq->has_groups);
}

/* Its place in the core; FAIRLIFT_NO_SLOT if it has none, because it was late. */
static void fl_take_place(struct fl_queue *fq, struct request *rq, u32 group, u64 now)
{
	bool is_thread = (__force u32)(rq->rq_flags & FL_RQF_THREAD);
	bool is_its_own = !is_thread || fl_thread_waited_for(fq, rq, group);
	u32 place = fl_slot(rq);

	if (place == FAIRLIFT_NO_SLOT)
		return;
	fairlift_fill(fq->core, place, blk_rq_pos(rq), is_its_own ? blk_rq_sectors(rq) : 0, now);
	if (!is_its_own) {
		fl_slot_is_done(fq, place, now);
		fl_set_slot(rq, FAIRLIFT_NO_SLOT);
		fl_set_place(rq, FL_OUTSIDE);
	}
}

/* It goes to the device before all others; without a turn its group is billed. */
void fl_send_past_queue(struct fl_queue *fq, struct request *rq, u64 now)
{
	struct fairlift_arrival arrival;

	fl_describe_request(rq, &arrival);
	fl_take_place(fq, rq, arrival.group, now);
	if (fl_place(rq) == FL_OUTSIDE) {
		fl_set_slot(rq, fairlift_issue_around(fq->core, &arrival, now));
		fq->in_flight += fl_slot(rq) != FAIRLIFT_NO_SLOT;
		fq->sent_at_once++;
	}
	if (fl_slot(rq) != FAIRLIFT_NO_SLOT)
		fq->slots[fl_slot(rq)] = rq;
	if (unlikely(READ_ONCE(fq->limited)))
		fl_charge_request(fq, rq, arrival.group, now);
	fl_set_place(rq, FL_DUE);
	list_add_tail(&rq->queuelist, &fq->due);
}

/* ---- with the elevator ---- */

/* What it takes is given back by fl_turns_leave(), whatever it says. */
int fl_turns_enter(struct fl_queue *fq)
{
	u32 lines = FL_TURN_LINES * (fairlift_lines(fq->core) / 2), i;

	fq->turns = kvcalloc(fq->requests_max, sizeof(*fq->turns), GFP_NOIO | __GFP_NOWARN);
	fq->turn_lines = kvcalloc(lines, sizeof(*fq->turn_lines), GFP_NOIO | __GFP_NOWARN);
	if (!fq->turns || !fq->turn_lines)
		return -ENOMEM;
	for (i = 0; i < lines; i++)
		INIT_LIST_HEAD(&fq->turn_lines[i]);
	INIT_LIST_HEAD(&fq->comers);
	hash_init(fq->comers_by_task);
	INIT_LIST_HEAD(&fq->due);
	fq->coming_max = clamp(fq->q->tag_set->queue_depth, 1u, FL_TURNS_MAX + 0u);
	hrtimer_init(&fq->turn_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	fq->turn_timer.function = fl_turn_timer;
	return 0;
}

/* The queue is frozen: no task waits. */
void fl_turns_leave(struct fl_queue *fq)
{
	hrtimer_cancel(&fq->turn_timer);
	kvfree(fq->turns);
	kvfree(fq->turn_lines);
}
