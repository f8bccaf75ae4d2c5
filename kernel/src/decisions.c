// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the core decided, for those who listen: tracepoints (decisions_trace.h),
 * and messages in the trace of the disk (`m` rows of blktrace, as cfq's were).
 * It costs nothing while no program listens (fl_is_told).
 */
#include <linux/cgroup.h>

#include "shim.h"
#ifdef FAIRLIFT_GROUPS
#include "groups.h"
#endif

#define CREATE_TRACE_POINTS
#include "decisions_trace.h"

static dev_t fl_dev(struct fl_queue *fq)
{
	return disk_devt(fq->q->disk);
}

static u64 fl_cgroup_id(struct request *rq)
{
#ifdef FAIRLIFT_GROUPS
	if (rq->bio && rq->bio->bi_blkg)
		return cgroup_id(rq->bio->bi_blkg->blkcg->css.cgroup);
#endif
	return 0;
}

/* rq goes to the device: whose turn is it? Under the lock. */
void fl_tell_turn(struct fl_queue *fq, struct request *rq)
{
	u32 group = fl_bio_group(fq->q, rq->bio);

	if (group == fq->told_group)
		return;
	fq->told_group = group;
	trace_fairlift_turn(fl_dev(fq), group, fl_cgroup_id(rq));
	blk_add_trace_msg(fq->q, "fairlift turn group %u", group);
}

/* Under the lock. */
void fl_tell_idle(struct fl_queue *fq, u64 now, u64 until)
{
	u64 wait = until > now ? until - now : 0;

	trace_fairlift_idle(fl_dev(fq), fq->told_group, wait);
	blk_add_trace_msg(fq->q, "fairlift idle group %u for %llu us", fq->told_group, div_u64(wait, NSEC_PER_USEC));
}

/* Under the lock. */
void fl_tell_held(struct fl_queue *fq, struct bio *bio, u32 group)
{
	bool write = op_is_write(bio_op(bio));

	trace_fairlift_held(fl_dev(fq), group, write, bio->bi_iter.bi_size, fq->held);
	blk_add_trace_msg(fq->q, "fairlift held group %u %s %llu + %u, %llu wait", group, write ? "write" : "read",
			  (u64)bio->bi_iter.bi_sector, bio_sectors(bio), fq->held);
}
