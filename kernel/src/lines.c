// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who waits for a limit (io.fairlift.max) waits here, before it has a tag:
 *
 * - A bio. The hook bio_merge sees it first and may say that it is merged: then
 *   it is ours. It goes on as if it came just now when the core lets it in, from
 *   a work item. Its submitter is not held up.
 * - A sender: a task whose bio that hook does not see (with a flush or FUA, a
 *   part of a split one, on a queue with nomerges 2). It sleeps where the block
 *   layer asks how many tags it may take, and is charged for one bio and a
 *   sector; the rest when the request comes, and nothing if it is a flush alone. What it sends is never held: the
 *   kernel's flush machine would hold back the flushes of all groups with it.
 *
 * So nothing that waits has a tag, a slot or a hardware queue. A line is one of
 * a group of the core in one direction, first come, first served; of each the
 * core knows the first. Journal threads wait for nothing, since all wait for
 * them: what they send for a limited group goes, and is owed.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "shim.h"

/* Bios let go in one go under the lock; then the timer comes again at once. */
#define FL_BATCH	32
/* What a sender is charged before one knows what it sends. */
#define FL_SENDER_BYTES	SECTOR_SIZE
/* A sleeping sender keeps the queue from being frozen: it looks that often whether the block layer wants to freeze it. */
#define FL_SENDER_LOOKS	(HZ / 20)

/* A sender in a line, as a bio that goes nowhere. */
struct fl_sender {
	struct bio bio;			/* must be first */
	struct completion may_go;
	bool is_gone;			/* the task did not wait; under the queue's lock */
};

/* Where bios go on from. It may be the last to know a disk that has another elevator already. */
struct fl_outlet {
	struct work_struct work;
	spinlock_t lock;
	struct bio_list bios;
	bool ends;			/* the elevator is gone: the next run is the last */
};

static struct workqueue_struct *fl_workers;

/* bi_flags has two bits that no code uses. This one says: charged, and may pass. */
#define FL_BIO_CHARGED	15
static_assert(BIO_FLAG_LAST <= FL_BIO_CHARGED);

static void fl_sender_marker(struct bio *bio)
{
	WARN_ON_ONCE(1);
}

static struct fl_sender *fl_as_sender(struct bio *bio)
{
	return bio->bi_end_io == fl_sender_marker ? container_of(bio, struct fl_sender, bio) : NULL;
}

/* A discard moves no data. */
static u64 fl_bytes(struct bio *bio)
{
	switch (bio_op(bio)) {
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return SECTOR_SIZE;
	default:
		return bio->bi_iter.bi_size;
	}
}

static u64 fl_bytes_of_waiter(struct bio *bio)
{
	return fl_as_sender(bio) ? FL_SENDER_BYTES : fl_bytes(bio);
}

bool fl_is_journal_thread(void)
{
	return current->flags & PF_KTHREAD && str_has_prefix(current->comm, "jbd2/");
}

/* ---- going on ---- */

static void fl_outlet_run(struct work_struct *work)
{
	struct fl_outlet *outlet = container_of(work, struct fl_outlet, work);
	struct bio_list going;
	struct blk_plug plug;
	struct bio *bio;
	bool ends;

	spin_lock_irq(&outlet->lock);
	going = outlet->bios;
	bio_list_init(&outlet->bios);
	/* Begun before the end and queued for it again: then that run is the last. */
	ends = outlet->ends && !work_pending(work);
	spin_unlock_irq(&outlet->lock);

	blk_start_plug(&plug);
	while ((bio = bio_list_pop(&going)))
		submit_bio_noacct(bio);
	blk_finish_plug(&plug);
	if (ends)
		kfree(outlet);
}

/* Does the running task send what was let go? What it sends is not its own. */
bool fl_is_outlet(void)
{
	return current->flags & PF_WQ_WORKER && current_work() && current_work()->func == fl_outlet_run;
}

struct fl_sender *fl_sender_new(void)
{
	struct fl_sender *sender = kzalloc(sizeof(*sender), GFP_NOIO | __GFP_NOWARN);

	if (sender) {
		sender->bio.bi_end_io = fl_sender_marker;
		init_completion(&sender->may_go);
	}
	return sender;
}

struct bio *fl_sender_bio(struct fl_sender *sender)
{
	return &sender->bio;
}

void fl_sender_free(struct fl_sender *sender)
{
	kfree(sender);
}

/* Is this bio a sender? Then it goes on. Under the queue's lock. */
bool fl_sender_goes(struct bio *bio)
{
	struct fl_sender *sender = fl_as_sender(bio);

	if (sender && sender->is_gone)
		kfree(sender);
	else if (sender)
		complete(&sender->may_go);
	return sender;
}

/* bio goes on, or its sender does. Under the queue's lock. */
static void fl_go_on(struct fl_queue *fq, struct bio *bio)
{
	if (fl_sender_goes(bio))
		return;
	bio_set_flag(bio, FL_BIO_CHARGED);
	spin_lock(&fq->outlet->lock);
	bio_list_add(&fq->outlet->bios, bio);
	spin_unlock(&fq->outlet->lock);
	queue_work(fl_workers, &fq->outlet->work);
}

/* ---- the lines, under the queue's lock ---- */

static struct bio *fl_leave_line(struct fl_queue *fq, u32 number)
{
	struct fl_line *line = &fq->lines[number];

	line->length--;
	fq->held--;
	return bio_list_pop(&line->bios);
}

static void fl_enter_line(struct fl_queue *fq, u32 number, struct bio *bio)
{
	struct fl_line *line = &fq->lines[number];

	bio_list_add(&line->bios, bio);
	line->length++;
	fq->held++;
}

/* The first of a line may be new to the core; who may go at once goes. */
static void fl_ask_for_first(struct fl_queue *fq, u32 number, u64 now)
{
	struct bio *bio;

	while ((bio = bio_list_peek(&fq->lines[number].bios))) {
		u32 line = fairlift_ask(fq->core, number / 2, number & 1, fl_bytes_of_waiter(bio), now);

		if (line < fq->lines_max)
			return;
		fl_go_on(fq, fl_leave_line(fq, number));
	}
}

/* Let go the bios and senders that the limits allow by now, and come again when they allow the next. */
void fl_let_in(struct fl_queue *fq, u64 now)
{
	u64 until = 0;
	int count;
	u32 line;

	for (count = 0; count < FL_BATCH; count++) {
		line = fairlift_let_in(fq->core, now, &until);
		if (line >= fq->lines_max)
			break;
		fl_go_on(fq, fl_leave_line(fq, line));
		fl_ask_for_first(fq, line, now);
	}
	if (count == FL_BATCH)
		until = now;
	if (count == FL_BATCH || line == FAIRLIFT_IDLE)
		hrtimer_start(&fq->limit_timer, fl_timer_at(now, until), HRTIMER_MODE_ABS);
	WRITE_ONCE(fq->limited, fairlift_limits_are_used(fq->core));
}

static enum hrtimer_restart fl_limit_timer(struct hrtimer *timer)
{
	struct fl_queue *fq = container_of(timer, struct fl_queue, limit_timer);
	unsigned long flags;

	spin_lock_irqsave(&fq->lock, flags);
	fl_let_in(fq, ktime_get_ns());
	spin_unlock_irqrestore(&fq->lock, flags);
	return HRTIMER_NORESTART;
}

/* Group number is about to go: all but the first of its lines, which the core knows, wait in those of the group above. */
void fl_lines_move(struct fl_queue *fq, u32 number, u32 parent, u64 now)
{
	int direction;

	for (direction = READ; direction <= WRITE; direction++) {
		struct fl_line *from = &fq->lines[2 * number + direction];
		u32 to = 2 * parent + direction;
		struct bio *first = bio_list_pop(&from->bios);
		bool is_new = !fq->lines[to].length;
		struct bio *bio;

		if (!first)
			continue;
		while ((bio = bio_list_pop(&from->bios))) {
			fq->held--;
			fl_enter_line(fq, to, bio);
		}
		bio_list_add(&from->bios, first);
		from->length = 1;
		if (is_new)
			fl_ask_for_first(fq, to, now);
	}
}

/* ---- who comes ---- */

/* Has this bio to wait? Then it is ours. Called by its submitter. */
bool fl_hold_bio(struct fl_queue *fq, struct bio *bio)
{
	bool write = op_is_write(bio_op(bio));
	u32 group, line = FAIRLIFT_NO_SLOT;
	u64 now;

	if (bio_flagged(bio, FL_BIO_CHARGED) || !bio->bi_iter.bi_size || fl_is_journal_thread())
		return false;
	spin_lock_irq(&fq->lock);
	group = fl_bio_group(fq->q, bio);
	now = ktime_get_ns();
	if (group && fairlift_is_limited(fq->core, group, write)) {
		line = fairlift_ask(fq->core, group, write, fl_bytes(bio), now);
		if (line >= fq->lines_max)
			bio_set_flag(bio, FL_BIO_CHARGED);
	}
	if (line < fq->lines_max) {
		/* It was accepted: the worker that sends it on may wait for a tag, and no task looks for its completion. */
		bio->bi_opf &= ~(REQ_NOWAIT | REQ_POLLED);
		fl_enter_line(fq, line, bio);
		if (fl_is_told(fq, held))
			fl_tell_held(fq, bio, group);
		if (fq->lines[line].length == 1)
			fl_let_in(fq, now);
	}
	spin_unlock_irq(&fq->lock);
	return line < fq->lines_max;
}

/* It has become part of a request, which was charged with it. */
void fl_bio_merged(struct bio *bio)
{
	bio_clear_flag(bio, FL_BIO_CHARGED);
}

/* In a line until it may go, or until the queue is about to be frozen: then it goes, and its place in the line pays for it. */
void fl_sender_waits(struct fl_queue *fq, struct fl_sender *sender)
{
	bool gone = false;

	while (!gone && !wait_for_completion_io_timeout(&sender->may_go, FL_SENDER_LOOKS)) {
		if (!fl_runs_dry(fq->q))
			continue;
		spin_lock_irq(&fq->lock);
		gone = sender->is_gone = !completion_done(&sender->may_go);
		spin_unlock_irq(&fq->lock);
	}
	if (!gone)
		kfree(sender);
}

/* Before a task of a limited group takes a tag for something that fl_hold_bio does not see. */
void fl_hold_sender(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	bool seen = !(opf & REQ_NOMERGE_FLAGS) && !blk_queue_nomerges(fq->q);
	bool write = op_is_write(opf);
	struct fl_sender *sender;
	u32 group, line = FAIRLIFT_NO_SLOT;
	u64 now;

	/* Requests kept for later would pass by here. */
	data->nr_tags = 1;
	if (seen || opf & (REQ_META | REQ_SWAP) || data->flags & BLK_MQ_REQ_NOWAIT || current->flags & PF_KTHREAD)
		return;
	sender = fl_sender_new();
	if (!sender)
		return;
	spin_lock_irq(&fq->lock);
	group = fl_current_group(fq->q);
	now = ktime_get_ns();
	if (group && fairlift_is_limited(fq->core, group, write)) {
		line = fairlift_ask(fq->core, group, write, FL_SENDER_BYTES, now);
		data->rq_flags |= FL_RQF_CHARGED;
	}
	if (line < fq->lines_max) {
		fl_enter_line(fq, line, &sender->bio);
		if (fq->lines[line].length == 1)
			fl_let_in(fq, now);
	}
	spin_unlock_irq(&fq->lock);
	if (line < fq->lines_max)
		fl_sender_waits(fq, sender);
	else
		kfree(sender);
}

/* Its sender was charged: for which group, should it turn out to be a flush without data. Called by the sender. */
void fl_note_sender(struct fl_queue *fq, struct request *rq)
{
	if (likely(!(__force u32)(rq->rq_flags & FL_RQF_CHARGED)))
		return;
	spin_lock_irq(&fq->lock);
	fl_set_sender_group(rq, fl_current_group(fq->q));
	spin_unlock_irq(&fq->lock);
}

/* A request is done that was never inserted: it carried nothing. */
void fl_refund_sender(struct fl_queue *fq, struct request *rq)
{
	unsigned long flags;
	u64 now;

	if (likely(!(__force u32)(rq->rq_flags & FL_RQF_CHARGED)))
		return;
	rq->rq_flags &= ~FL_RQF_CHARGED;
	spin_lock_irqsave(&fq->lock, flags);
	now = ktime_get_ns();
	fairlift_refund(fq->core, fl_sender_group(rq), op_is_write(req_op(rq)), FL_SENDER_BYTES, now);
	fl_let_in(fq, now);
	spin_unlock_irqrestore(&fq->lock, flags);
}

/* A request is with the core: what of it was not charged is charged now. Under the lock. */
void fl_charge_request(struct fl_queue *fq, struct request *rq, u32 group, u64 now)
{
	bool begun = (__force u32)(rq->rq_flags & FL_RQF_CHARGED);
	bool write = op_is_write(req_op(rq));
	struct bio *bio;

	rq->rq_flags &= ~FL_RQF_CHARGED;
	__rq_for_each_bio(bio, rq) {
		u64 bytes = fl_bytes(bio);

		if (bio_flagged(bio, FL_BIO_CHARGED))
			bio_clear_flag(bio, FL_BIO_CHARGED);
		else if (group && bytes)
			fairlift_charge(fq->core, group, write, begun ? bytes - FL_SENDER_BYTES : bytes, !begun, now);
		begun = false;
	}
}

/* ---- with the elevator and the module ---- */

int fl_lines_enter(struct fl_queue *fq)
{
	fq->lines_max = fairlift_lines(fq->core);
	fq->lines = kvcalloc(fq->lines_max, sizeof(*fq->lines), GFP_NOIO | __GFP_NOWARN);
	fq->outlet = kzalloc(sizeof(*fq->outlet), GFP_NOIO | __GFP_NOWARN);
	if (!fq->lines || !fq->outlet || fl_writes_enter(fq)) {
		kvfree(fq->lines);
		kfree(fq->outlet);
		return -ENOMEM;
	}
	INIT_WORK(&fq->outlet->work, fl_outlet_run);
	spin_lock_init(&fq->outlet->lock);
	bio_list_init(&fq->outlet->bios);
	hrtimer_init(&fq->limit_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	fq->limit_timer.function = fl_limit_timer;
	return 0;
}

/* The queue is frozen, which is no matter to those who wait: they go on, and wait for that. */
void fl_lines_leave(struct fl_queue *fq)
{
	u32 line;

	fl_writes_leave(fq);
	hrtimer_cancel(&fq->limit_timer);
	spin_lock_irq(&fq->lock);
	for (line = 0; line < fq->lines_max; line++) {
		while (fq->lines[line].length)
			fl_go_on(fq, fl_leave_line(fq, line));
	}
	spin_unlock_irq(&fq->lock);
	/* What is left is sent to whichever elevator there is. It never runs twice at once, and the last run frees it. */
	spin_lock_irq(&fq->outlet->lock);
	fq->outlet->ends = true;
	queue_work(fl_workers, &fq->outlet->work);
	spin_unlock_irq(&fq->outlet->lock);
	kvfree(fq->lines);
}

int fl_lines_start(void)
{
	fl_workers = alloc_workqueue("fairlift", WQ_MEM_RECLAIM | WQ_UNBOUND | WQ_HIGHPRI, 0);
	return fl_workers ? 0 : -ENOMEM;
}

void fl_lines_stop(void)
{
	destroy_workqueue(fl_workers);
}
