// SPDX-License-Identifier: GPL-2.0-only
/*
 * Merging. The block layer does it and owns the rules of the device; the core
 * says which request a bio may be put in front of, who is whose neighbour, and
 * whether its policy minds. All hooks run under the queue's lock, which
 * fl_bio_merge and fl_insert_requests take.
 */
#include "shim.h"

u16 fl_flags(blk_opf_t opf)
{
	u16 flags = op_is_sync(opf) ? FAIRLIFT_SYNC : 0;

	/* Most requests: a read without more. */
	if (likely(!op_is_write(opf) && !(opf & (REQ_META | REQ_FUA | REQ_PREFLUSH | REQ_RAHEAD | REQ_NOMERGE))))
		return flags;
	if (opf & REQ_META)
		flags |= FAIRLIFT_META;
	/* Today's kernel marks the writes that will be followed by more, not those that will not. */
	if (op_is_write(opf) && op_is_sync(opf) && !(opf & REQ_IDLE))
		flags |= FAIRLIFT_NOIDLE;
	if (opf & REQ_FUA)
		flags |= FAIRLIFT_FUA;
	if (opf & REQ_PREFLUSH)
		flags |= FAIRLIFT_PREFLUSH;
	if (opf & REQ_RAHEAD)
		flags |= FAIRLIFT_READAHEAD;
	if (opf & REQ_NOMERGE)
		flags |= FAIRLIFT_NOMERGE;
	return flags;
}

static u8 fl_op(blk_opf_t opf)
{
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		return FAIRLIFT_READ;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return FAIRLIFT_DISCARD;
	default:
		return FAIRLIFT_WRITE;
	}
}

/* Any task may send writeback: its sender says nothing of where the task is. Nor does what counts as the root's. */
static u16 fl_own(struct request *rq)
{
	blk_opf_t opf = rq->cmd_flags;

	return op_is_sync(opf) && !(opf & (REQ_META | REQ_SWAP)) && fl_sends_for_itself(rq->elv.icq) ? FAIRLIFT_OWN : 0;
}

/* A write that a flush precedes or follows makes something durable; the flush machine took the flags that said so. */
static u16 fl_durable(struct request *rq)
{
	return rq->rq_flags & RQF_FLUSH_SEQ ? FAIRLIFT_FUA : 0;
}

void fl_describe_request(struct request *rq, struct fairlift_arrival *arrival)
{
	*arrival = (struct fairlift_arrival) {
		.sector = blk_rq_pos(rq),
		.sectors = blk_rq_sectors(rq),
		.context = fl_context_of(rq->elv.icq),
		.group = fl_bio_group(rq->q, rq->bio),
		.flags = fl_flags(rq->cmd_flags) | fl_own(rq) | fl_durable(rq),
		.op = fl_op(rq->cmd_flags),
		.ioprio = fl_ioprio(req_get_ioprio(rq)),
	};
}

/* The context of a bio is that of the task that is submitting it, left in bio_context by fl_bio_merge. */
static void fl_describe_bio(struct fl_queue *fq, struct bio *bio, struct fairlift_arrival *arrival)
{
	*arrival = (struct fairlift_arrival) {
		.sector = bio->bi_iter.bi_sector,
		.sectors = bio_sectors(bio),
		.context = fq->bio_context,
		.group = fl_bio_group(fq->q, bio),
		.flags = fl_flags(bio->bi_opf),
		.op = fl_op(bio->bi_opf),
		.ioprio = fl_ioprio(bio_prio(bio)),
	};
}

bool fl_bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs)
{
	struct fl_queue *fq = fl_queue_of(q);
	struct request *free = NULL;
	LIST_HEAD(gone);
	u32 context;
	bool merged;

	/* It waits for a limit of its group: for the block layer it is merged. */
	if (unlikely(READ_ONCE(fq->limited)) && fl_hold_bio(fq, bio))
		return true;
	/* Nothing to merge with: on a fast disk the common case, for which no lock is needed. */
	if (!READ_ONCE(fq->queued) && !READ_ONCE(fq->arrived))
		return false;
	context = fl_current_context(fq);
	local_irq_disable();
	fl_lock(fq);
	fl_catch_up(fq, &gone);
	fq->bio_context = context;
	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	if (merged)
		fl_bio_merged(bio);
	else if (!op_is_sync(bio->bi_opf) && current->flags & PF_KTHREAD && READ_ONCE(fq->has_groups))
		fl_thread_sends_bio(fq, bio);
	fl_unlock(fq, FL_HOLD_MERGE);
	local_irq_enable();
	fl_free_merged(&gone);
	if (free)
		blk_mq_free_request(free);
	return merged;
}

static sector_t fl_end(struct request *rq)
{
	return blk_rq_pos(rq) + blk_rq_sectors(rq);
}

/* The queued request that goes before rq on the disk: what the block layer would merge it into. */
static struct request *fl_before(struct request_queue *q, struct request *rq)
{
	struct request *before = q->last_merge;
	sector_t start = blk_rq_pos(rq);

	if (before && fl_end(before) == start)
		return before;
	if (blk_queue_noxmerges(q))
		return NULL;
	hash_for_each_possible(q->elevator->hash, before, hash, start) {
		if (fl_end(before) == start && rq_mergeable(before))
			return before;
	}
	return NULL;
}

/*
 * Is rq merged into a queued one as it comes? The block layer asks whether the
 * policy minds for bios only, and merges a request that was refused as a bio.
 */
bool fl_insert_merge(struct fl_queue *fq, struct request *rq, u64 now, struct list_head *merged)
{
	struct request_queue *q = fq->q;
	struct fairlift_arrival arrival;
	struct request *before;

	if (!fq->queued || blk_queue_nomerges(q) || !rq_mergeable(rq))
		return false;
	before = fl_before(q, rq);
	if (!before || fl_place(before) != FL_QUEUED)
		return false;
	fl_describe_request(rq, &arrival);
	return fairlift_allow_merge(fq->core, fl_slot(before), &arrival, now) &&
	       blk_mq_sched_try_insert_merge(q, rq, merged);
}

bool fl_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio)
{
	struct fl_queue *fq = fl_queue_of(q);
	struct fairlift_arrival arrival;

	if (fl_place(rq) != FL_QUEUED)
		return false;
	fl_describe_bio(fq, bio, &arrival);
	return fairlift_allow_merge(fq->core, fl_slot(rq), &arrival, blk_time_get_ns());
}

int fl_request_merge(struct request_queue *q, struct request **found, struct bio *bio)
{
	struct fl_queue *fq = fl_queue_of(q);
	struct fairlift_arrival arrival;
	struct request *rq;
	u32 slot;

	fl_describe_bio(fq, bio, &arrival);
	slot = fairlift_find_front(fq->core, &arrival, blk_time_get_ns());
	if (slot >= fq->requests_max)
		return ELEVATOR_NO_MERGE;
	rq = fq->slots[slot];
	if (!rq || blk_discard_mergable(rq) || !elv_bio_merge_ok(rq, bio))
		return ELEVATOR_NO_MERGE;
	*found = rq;
	return ELEVATOR_FRONT_MERGE;
}

void fl_request_merged(struct request_queue *q, struct request *rq, enum elv_merge type)
{
	struct fl_queue *fq = fl_queue_of(q);

	if (fl_place(rq) == FL_QUEUED)
		fairlift_grew(fq->core, fl_slot(rq), type == ELEVATOR_FRONT_MERGE,
			      blk_rq_pos(rq), blk_rq_sectors(rq), blk_time_get_ns());
}

/* gone was queued, or was about to be inserted. */
void fl_requests_merged(struct request_queue *q, struct request *rq, struct request *gone)
{
	struct fl_queue *fq = fl_queue_of(q);

	if (fl_place(gone) != FL_QUEUED) {
		fl_request_merged(q, rq, ELEVATOR_BACK_MERGE);
		return;
	}
	fl_forget_merge(q, gone);
	fairlift_absorbed(fq->core, fl_slot(rq), fl_slot(gone), blk_rq_sectors(rq), blk_time_get_ns());
	fq->slots[fl_slot(gone)] = NULL;
	fl_set_place(gone, FL_OUTSIDE);
	WRITE_ONCE(fq->queued, fq->queued - 1);
}

static struct request *fl_neighbour(struct request_queue *q, struct request *rq,
				    u32 (*ask)(struct fairlift_core *, u32, u64))
{
	struct fl_queue *fq = fl_queue_of(q);
	u32 slot;

	if (fl_place(rq) != FL_QUEUED)
		return NULL;
	slot = ask(fq->core, fl_slot(rq), blk_time_get_ns());
	return slot < fq->requests_max ? fq->slots[slot] : NULL;
}

struct request *fl_former_request(struct request_queue *q, struct request *rq)
{
	return fl_neighbour(q, rq, fairlift_former);
}

struct request *fl_next_request(struct request_queue *q, struct request *rq)
{
	return fl_neighbour(q, rq, fairlift_latter);
}
