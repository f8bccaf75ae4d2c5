// SPDX-License-Identifier: GPL-2.0-only
/*
 * io contexts: one of the core's per task and disk, from the task's first
 * request to its exit, kept in the block layer's icq.
 */
#include "shim.h"

/* By enum fairlift_elevator: noop and deadline do not ask whose a request is; looking it up would cost them a lock per request. */
bool fl_wants_contexts(u32 elevator)
{
	return elevator >= FAIRLIFT_ANTICIPATORY;
}

/* Class and level as the core wants them. */
u8 fl_ioprio(unsigned short ioprio)
{
	return IOPRIO_PRIO_CLASS(ioprio) << 4 | IOPRIO_PRIO_LEVEL(ioprio);
}

/* Called with the io context's and the queue's lock held, by the task. */
void fl_init_icq(struct io_cq *icq)
{
	struct fl_queue *fq = fl_queue_of(icq->q);
	struct fl_icq *ours = container_of(icq, struct fl_icq, icq);

	ours->is_kernel = current->flags & PF_KTHREAD;
	spin_lock(&fq->lock);
	WRITE_ONCE(ours->context,
		   fairlift_context_new(fq->core, fl_current_group(icq->q), fl_ioprio(icq->ioc->ioprio)));
	spin_unlock(&fq->lock);
}

/* Called with the io context's lock held, when its last task exits or the elevator goes. */
void fl_exit_icq(struct io_cq *icq)
{
	struct fl_queue *fq = fl_queue_of(icq->q);
	struct fl_icq *ours = container_of(icq, struct fl_icq, icq);
	unsigned long flags;

	spin_lock_irqsave(&fq->lock, flags);
	fairlift_context_exit(fq->core, ours->context, ktime_get_ns());
	WRITE_ONCE(ours->context, 0);
	spin_unlock_irqrestore(&fq->lock, flags);
}

u32 fl_context_of(struct io_cq *icq)
{
	return icq ? READ_ONCE(container_of(icq, struct fl_icq, icq)->context) : 0;
}

/* A task that moves takes its context with it. What a kernel thread sends, it sends for others. */
bool fl_sends_for_itself(struct io_cq *icq)
{
	return icq && !container_of(icq, struct fl_icq, icq)->is_kernel;
}

/* The running task's icq, if it is the one it used last; else NULL. Its task and the queue, which is in use, keep it. */
static struct io_cq *fl_last_icq(struct request_queue *q)
{
	struct io_cq *icq;

	rcu_read_lock();
	icq = rcu_dereference(current->io_context->icq_hint);
	if (icq && icq->q != q)
		icq = NULL;
	rcu_read_unlock();
	return icq;
}

/* The running task's icq, with a reference to its io context; made if there is none. Most often without a lock. */
struct io_cq *fl_get_icq(struct request_queue *q)
{
	struct io_cq *icq = current->io_context ? fl_last_icq(q) : NULL;

	if (likely(icq)) {
		atomic_long_inc(&current->io_context->refcount);
		return icq;
	}
	return ioc_find_get_icq(q);
}

/* Of the running task; 0 if it has none yet. Must not be called under fq->lock. */
u32 fl_current_context(struct fl_queue *fq)
{
	unsigned long flags;
	struct io_cq *icq;
	u32 context = 0;

	if (!fl_wants_contexts(fq->elevator) || !current->io_context)
		return 0;
	icq = fl_last_icq(fq->q);
	if (likely(icq))
		return fl_context_of(icq);
	spin_lock_irqsave(&fq->q->queue_lock, flags);
	context = fl_context_of(ioc_lookup_icq(fq->q));
	spin_unlock_irqrestore(&fq->q->queue_lock, flags);
	return context;
}
