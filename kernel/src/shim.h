/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the module share. */
#ifndef FAIRLIFT_SHIM_H
#define FAIRLIFT_SHIM_H

#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/bio.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/iocontext.h>
#include <linux/ioprio.h>
#include <linux/llist.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/tracepoint-defs.h>

/* Private headers of the block layer, from the kernel's source package. */
#include "elevator.h"
#include "blk.h"
#include "blk-mq.h"
#include "blk-mq-sched.h"
#include "blk-mq-debugfs.h"
#include "blk-wbt.h"

#include "core.h"

/* The memory of a core (runtime.c). */
struct fl_arena {
	void *memory;
	size_t size, used;
};

/* Who waits for a limit of one group in one direction (lines.c). */
struct fl_line {
	struct bio_list bios;
	unsigned int length;
};

/* A task in a line, as a bio that goes nowhere (lines.c). */
struct fl_sender;

/* Kernel threads in the table of threads.c, and the cgroup that one sent for last. */
#define FL_THREADS 32
struct fl_thread {
	struct task_struct *task;	/* for comparison only */
	u32 group;
	u32 unsent;			/* async requests it has and has not sent yet */
};

/* What the lock is taken for, and how long it is held (events.c). */
enum fl_hold { FL_HOLD_MERGE, FL_HOLD_INSERT, FL_HOLD_DISPATCH, FL_HOLD_DONE, FL_HOLDS };
#define FL_HOLD_BUCKETS	32

struct fl_holds {
	u64 count, ns, ns_max;
	u64 by_log2[FL_HOLD_BUCKETS];	/* of less than 2^i ns */
};

/* One disk's queue under one of our elevators. */
struct fl_queue {
	struct request_queue *q;
	u32 elevator;			/* enum fairlift_elevator */
	u32 profile;
	u32 requests_max;
	unsigned int async_depth;	/* scheduler tags async requests may take; 0: see fl_async_depth() */
	unsigned int word_tags;		/* tags in each word of the pool */
	bool limited;			/* a group has a limit, or a bio waits for one it had */
	bool yields;			/* the tunable yield is on */
	bool has_groups;		/* a cgroup sent something */

	atomic_t want_flush;		/* requests that a flush goes before or after */

	/* What came and went since the core was told (events.c), whether something came, and whether the core is being told. */
	struct llist_head events ____cacheline_aligned_in_smp;
	bool arrived;
	bool catching_up;
	struct fl_done *done;		/* by the core's slot */

	spinlock_t lock ____cacheline_aligned_in_smp; /* everything below, and the core */
	struct fairlift_core *core;
	struct fl_arena arena;
	struct request **slots;		/* by the core's slot; NULL: free, or gone while queued */
	struct list_head waiting;	/* requests for which the core had no slot, first come first served */
	unsigned int queued;		/* with the core or waiting */
	unsigned int in_flight;		/* dispatched, and neither done nor inserted again */
	u32 bio_context;		/* of the bio fl_bio_merge is about */
	u32 told_tags[2];		/* what the tags were when the core was told: async_depth, nr_requests */
	bool flushing;			/* a flush command is in the device, or about to be; of fl-fair only */
	bool withheld;			/* the last answer was to wait, and nothing happened since */
	struct hrtimer timer;		/* when the core wants to be asked again */

	/* Those who wait for limits, before they have a tag. */
	struct fl_line *lines;		/* by the core's number */
	u32 lines_max;
	u64 held;			/* in all lines */
	struct hrtimer limit_timer;	/* when the first of them may go */
	struct fl_outlet *outlet;	/* where they go on */

	/* Threads that write back and wait for their group's part of the tags (writeback.c). */
	struct fl_line *writes;		/* by the core's number */
	u64 writes_waiting;		/* in all of them */
	struct hrtimer writes_timer;	/* those that went have come */

	/* Those who wait for their turn, before they have a tag (turns.c). */
	struct fl_turn **turns;		/* by the core's slot: who has that place */
	struct list_head *turn_lines;	/* by group and class */
	struct list_head comers;	/* they have the turn and are coming */
	DECLARE_HASHTABLE(comers_by_task, 5);
	unsigned int coming, coming_max;
	struct list_head due;		/* their requests, which go before all others */
	struct fl_thread threads[FL_THREADS];
	struct hrtimer turn_timer;	/* when the first of them is late */
	u64 position;			/* sector behind what was dispatched last */
	u32 told_group;			/* of the last decision that was told (decisions.c) */

	/* Counters for debugfs. */
	bool counts_holds;
	u64 held_since;
	struct fl_holds holds[FL_HOLDS];
	u64 turns_taken;		/* by tasks that waited for theirs */
	u64 turns_late;			/* they did not come in time */
	u64 sent_at_once;		/* data between flushes for which no task had a turn */
	u64 overflowed;			/* requests that had to wait for a slot */
	u64 vanished;			/* requests freed while queued */
	u64 journal_waits;		/* tasks seen waiting for a commit */
	u64 groups_in_parents;		/* cgroups for which the core has no room */
};

/* Where a request is: in rq->elv.priv[1]. Its slot + 1 is in the lower half of priv[0]. */
enum fl_place {
	FL_OUTSIDE,			/* not inserted yet, or done */
	FL_ARRIVING,			/* on fl_queue.events */
	FL_WAITING,			/* on fl_queue.waiting */
	FL_EXPECTED,			/* it is its turn already, and it is not inserted yet */
	FL_DUE,				/* on fl_queue.due */
	FL_QUEUED,			/* with the core */
	FL_ISSUED,			/* with the device, as far as we know */
	FL_TAKEN_BACK,			/* requeued, and on its way back to us or to the device */
};

/*
 * Flags of a request that the kernel leaves free. Its sender was charged for
 * one bio and a sector (lines.c); it waited for its turn, which has come (turns.c).
 */
#define FL_RQF_CHARGED	((__force req_flags_t)(1u << 31))
#define FL_RQF_TURN	((__force req_flags_t)(1u << 30))
/* Its sender is a kernel thread, and it has fl_note_thread()'s note. */
#define FL_RQF_THREAD	((__force req_flags_t)(1u << 29))
/* It is counted in fl_queue.want_flush. */
#define FL_RQF_WANTS_FLUSH	((__force req_flags_t)(1u << 28))
static_assert(__RQF_BITS <= 28);

/* By default a quarter of the tags is kept for requests that a task waits for: writeback alone must not take all. */
static inline unsigned int fl_async_depth(struct fl_queue *fq)
{
	return READ_ONCE(fq->async_depth) ?: max(fq->q->nr_requests * 3 / 4, 1ul);
}

/* Pools of that many tags: of each hardware queue one, if they do not share one. Those for polling are not counted. */
static inline unsigned int fl_pools(struct request_queue *q)
{
	return blk_mq_is_shared_tags(q->tag_set->flags) ? 1 : max(q->tag_set->map[HCTX_TYPE_DEFAULT].nr_queues, 1u);
}

static inline enum fl_place fl_place(struct request *rq)
{
	return (uintptr_t)rq->elv.priv[1];
}

static inline void fl_set_place(struct request *rq, enum fl_place place)
{
	rq->elv.priv[1] = (void *)(uintptr_t)place;
}

static inline u32 fl_slot(struct request *rq)
{
	return (u32)(uintptr_t)rq->elv.priv[0] - 1;
}

static inline void fl_set_slot(struct request *rq, u32 slot)
{
	rq->elv.priv[0] = (void *)(((uintptr_t)rq->elv.priv[0] & ~(uintptr_t)U32_MAX) | (u32)(slot + 1));
}

/* The group whose limit its sender was charged for (lines.c). */
static inline u32 fl_sender_group(struct request *rq)
{
	return (uintptr_t)rq->elv.priv[0] >> 32;
}

static inline void fl_set_sender_group(struct request *rq, u32 group)
{
	rq->elv.priv[0] = (void *)((uintptr_t)group << 32);
}

/* Something happened that may change the core's mind: does anything wait for that? Under the lock. */
static inline bool fl_wake(struct fl_queue *fq)
{
	bool waits = fq->withheld && fq->queued;

	WRITE_ONCE(fq->withheld, false);
	return waits;
}

/* Is the queue being frozen, to change its elevator or its size? blk-mq runs it then, and waits until it is empty. */
static inline bool fl_runs_dry(struct request_queue *q)
{
	return percpu_ref_is_dying(&q->q_usage_counter);
}

/* A timer is not asked for the past, nor for a time that it cannot count. */
static inline ktime_t fl_timer_at(u64 now, u64 until)
{
	return ns_to_ktime(clamp(until, now, now + 3600ull * NSEC_PER_SEC));
}

static inline struct fl_queue *fl_queue_of(struct request_queue *q)
{
	return q->elevator->elevator_data;
}

/* events.c */
int fl_events_enter(struct fl_queue *fq);
void fl_events_leave(struct fl_queue *fq);
void fl_arrive(struct fl_queue *fq, struct list_head *list, u64 now);
bool fl_note_done(struct fl_queue *fq, u32 slot, u64 now);
void fl_catch_up(struct fl_queue *fq, struct list_head *merged);
void fl_free_merged(struct list_head *merged);
void fl_note_hold(struct fl_queue *fq, enum fl_hold hold);
int fl_holds_show(void *data, struct seq_file *m);
ssize_t fl_holds_write(void *data, const char __user *text, size_t length, loff_t *pos);

/* Interrupts are off; the lock of the hooks that every request passes. */
static inline void fl_lock(struct fl_queue *fq)
{
	spin_lock(&fq->lock);
	if (unlikely(fq->counts_holds))
		fq->held_since = ktime_get_mono_fast_ns();
}

static inline void fl_unlock(struct fl_queue *fq, enum fl_hold hold)
{
	if (unlikely(fq->counts_holds))
		fl_note_hold(fq, hold);
	spin_unlock(&fq->lock);
}

/* elevator.c */
extern const struct elevator_mq_ops fl_ops;
void fl_insert(struct fl_queue *fq, struct request *rq, bool at_head, u64 now);
void fl_slot_is_done(struct fl_queue *fq, u32 slot, u64 now);
void fl_forget_merge(struct request_queue *q, struct request *rq);

/* turns.c */
bool fl_turns_are_full(struct fl_queue *fq);
void fl_turn_begins(struct fl_queue *fq, u32 place, u64 now);
void fl_turns_of_group_end(struct fl_queue *fq, u32 number);
void fl_await_turn(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data);
void fl_turn_is_used(struct fl_queue *fq, struct request *rq);
bool fl_goes_past_queue(struct fl_queue *fq, struct request *rq);
void fl_send_past_queue(struct fl_queue *fq, struct request *rq, u64 now);
int fl_turns_enter(struct fl_queue *fq);
void fl_turns_leave(struct fl_queue *fq);

/* threads.c */
u32 fl_thread_sends_for(struct fl_queue *fq);
void fl_note_thread(struct request *rq, u32 group);
bool fl_thread_waited_for(struct fl_queue *fq, struct request *rq, u32 group);
void fl_thread_has(struct fl_queue *fq, struct request *rq);
void fl_thread_sent(struct fl_queue *fq);
u32 fl_thread_unsent(struct fl_queue *fq);
void fl_thread_sent_for(struct fl_queue *fq, struct request *rq, u32 group);
void fl_thread_sends_bio(struct fl_queue *fq, struct bio *bio);
void fl_threads_forget(struct fl_queue *fq, u32 number);

/* merge.c */
u16 fl_flags(blk_opf_t opf);
void fl_describe_request(struct request *rq, struct fairlift_arrival *arrival);
bool fl_bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs);
bool fl_insert_merge(struct fl_queue *fq, struct request *rq, u64 now, struct list_head *merged);
bool fl_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio);
int fl_request_merge(struct request_queue *q, struct request **rq, struct bio *bio);
void fl_request_merged(struct request_queue *q, struct request *rq, enum elv_merge type);
void fl_requests_merged(struct request_queue *q, struct request *rq, struct request *gone);
struct request *fl_former_request(struct request_queue *q, struct request *rq);
struct request *fl_next_request(struct request_queue *q, struct request *rq);

/* context.c */
struct fl_icq {
	struct io_cq icq;		/* must be first */
	u32 context;			/* of the core; 0 after the task's exit */
	bool is_kernel;			/* a kernel thread, which sends things for others */
};

int fl_find_depth_meaning(void);
bool fl_wants_contexts(u32 elevator);
void fl_init_icq(struct io_cq *icq);
void fl_exit_icq(struct io_cq *icq);
u8 fl_ioprio(unsigned short ioprio);
u32 fl_context_of(struct io_cq *icq);
struct io_cq *fl_get_icq(struct request_queue *q);
bool fl_sends_for_itself(struct io_cq *icq);
u32 fl_current_context(struct fl_queue *fq);

/* groups.c, where the kernel has what it needs */
#ifdef FAIRLIFT_GROUPS
u32 fl_bio_group(struct request_queue *q, struct bio *bio);
u32 fl_current_group(struct request_queue *q);
unsigned int fl_group_depth(struct fl_queue *fq);
int fl_groups_enter(struct request_queue *q);
void fl_groups_leave(struct request_queue *q);
void fl_groups_start(void);
void fl_groups_stop(void);
#else
static inline u32 fl_bio_group(struct request_queue *q, struct bio *bio) { return 0; }
static inline u32 fl_current_group(struct request_queue *q) { return 0; }
static inline unsigned int fl_group_depth(struct fl_queue *fq) { return 0; }
static inline int fl_groups_enter(struct request_queue *q) { return 0; }
static inline void fl_groups_leave(struct request_queue *q) {}
static inline void fl_groups_start(void) {}
static inline void fl_groups_stop(void) {}
#endif

/* writeback.c, for groups */
#ifdef FAIRLIFT_GROUPS
void fl_hold_writer(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data);
void fl_let_writes_go(struct fl_queue *fq, u64 now);
void fl_end_writes(struct fl_queue *fq);
void fl_writes_move(struct fl_queue *fq, u32 number, u32 heir, u64 now);
int fl_writes_enter(struct fl_queue *fq);
void fl_writes_leave(struct fl_queue *fq);
#else
static inline void fl_hold_writer(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data) {}
static inline void fl_let_writes_go(struct fl_queue *fq, u64 now) {}
static inline void fl_end_writes(struct fl_queue *fq) {}
static inline int fl_writes_enter(struct fl_queue *fq) { return 0; }
static inline void fl_writes_leave(struct fl_queue *fq) {}
#endif

/* lines.c, for groups */
#ifdef FAIRLIFT_GROUPS
struct fl_sender *fl_sender_new(void);
struct bio *fl_sender_bio(struct fl_sender *sender);
void fl_sender_free(struct fl_sender *sender);
bool fl_sender_goes(struct bio *bio);
void fl_sender_waits(struct fl_queue *fq, struct fl_sender *sender);
bool fl_is_outlet(void);
bool fl_is_journal_thread(void);
void fl_let_in(struct fl_queue *fq, u64 now);
void fl_lines_move(struct fl_queue *fq, u32 number, u32 parent, u64 now);
bool fl_hold_bio(struct fl_queue *fq, struct bio *bio);
void fl_bio_merged(struct bio *bio);
void fl_hold_sender(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data);
void fl_note_sender(struct fl_queue *fq, struct request *rq);
void fl_refund_sender(struct fl_queue *fq, struct request *rq);
void fl_charge_request(struct fl_queue *fq, struct request *rq, u32 group, u64 now);
int fl_lines_enter(struct fl_queue *fq);
void fl_lines_leave(struct fl_queue *fq);
int fl_lines_start(void);
void fl_lines_stop(void);
#else
static inline bool fl_is_outlet(void) { return false; }
static inline bool fl_is_journal_thread(void) { return false; }
static inline bool fl_hold_bio(struct fl_queue *fq, struct bio *bio) { return false; }
static inline void fl_bio_merged(struct bio *bio) {}
static inline void fl_hold_sender(struct fl_queue *fq, blk_opf_t opf, struct blk_mq_alloc_data *data) {}
static inline void fl_note_sender(struct fl_queue *fq, struct request *rq) {}
static inline void fl_refund_sender(struct fl_queue *fq, struct request *rq) {}
static inline void fl_charge_request(struct fl_queue *fq, struct request *rq, u32 group, u64 now) {}
static inline int fl_lines_enter(struct fl_queue *fq) { return 0; }
static inline void fl_lines_leave(struct fl_queue *fq) {}
static inline int fl_lines_start(void) { return 0; }
static inline void fl_lines_stop(void) {}
#endif

/* tunables.c */
void fl_note_yield(struct fl_queue *fq, bool yields);
int fl_make_attributes(u32 elevator, u32 profile, struct elv_fs_entry **entries);
void fl_free_attributes(struct elv_fs_entry *entries);

/* debug.c */
extern const struct blk_mq_debugfs_attr fl_debugfs_attrs[];

/* decisions.c */
DECLARE_TRACEPOINT(fairlift_turn);
DECLARE_TRACEPOINT(fairlift_idle);
DECLARE_TRACEPOINT(fairlift_held);
void fl_tell_turn(struct fl_queue *fq, struct request *rq);
void fl_tell_idle(struct fl_queue *fq, u64 now, u64 until);
void fl_tell_held(struct fl_queue *fq, struct bio *bio, u32 group);

/* Is the disk traced with blktrace? */
static inline bool fl_is_traced(struct fl_queue *fq)
{
#ifdef CONFIG_BLK_DEV_IO_TRACE
	return unlikely(rcu_access_pointer(fq->q->blk_trace));
#else
	return false;
#endif
}

/* Is the tracepoint of this decision on: turn, idle or held? */
#define fl_is_told(fq, decision) (tracepoint_enabled(fairlift_##decision) || fl_is_traced(fq))

/* journal.c, where the kernel has what it needs */
#ifdef FAIRLIFT_JOURNAL
void fl_journal_start(void);
void fl_journal_stop(void);
void fl_journal_use(bool yields);
#else
static inline void fl_journal_use(bool yields)
{
	if (yields)
		pr_warn_once("fairlift: this kernel has no fprobe: nobody yields to the journal\n");
}
static inline void fl_journal_start(void) {}
static inline void fl_journal_stop(void) {}
#endif

/* module.c */
bool fl_is_ours(struct elevator_queue *eq);
u32 fl_elevator_number(struct elevator_type *type);
u32 fl_profile(u32 elevator);
extern unsigned int fl_requests_max, fl_contexts_max, fl_groups_max, fl_record;

/* runtime.c */
struct fairlift_core *fl_core_new(struct fl_arena *arena, const struct fairlift_setup *setup, size_t bytes);
void fl_core_free(struct fl_arena *arena, struct fairlift_core *core);

#endif
