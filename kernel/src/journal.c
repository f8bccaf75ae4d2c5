// SPDX-License-Identifier: GPL-2.0-only
/*
 * A task that waits for jbd2 to commit a transaction waits for the journal
 * thread's I/O: idling for the task is in vain, so it yields the disk to the
 * thread. Nothing in the kernel says so; a probe on the function in which it
 * waits does. It is on while a queue has the tunable yield; without it
 * everything else works as before.
 */
#include <linux/fprobe.h>
#include <linux/jbd2.h>
#include <linux/module.h>
#include <linux/sched/task.h>
#include <linux/workqueue.h>

#include "shim.h"

static bool journal_yield = true;
module_param(journal_yield, bool, 0444);
MODULE_PARM_DESC(journal_yield, "notice tasks that wait for a jbd2 commit, for the tunable yield (default on)");

static DEFINE_MUTEX(fl_probe_lock);
static bool fl_probed;

/* The core's context of another task; FAIRLIFT_UNKNOWN if it has none. */
static u32 fl_task_context(struct request_queue *q, struct task_struct *task)
{
	struct io_context *ioc;
	struct io_cq *icq;
	unsigned long flags;
	u32 context = 0;

	task_lock(task);
	ioc = task->io_context;
	if (ioc)
		atomic_long_inc(&ioc->refcount);
	task_unlock(task);
	if (!ioc)
		return FAIRLIFT_UNKNOWN;

	/* An icq is removed under the queue's lock: with it held, what is found stays. */
	spin_lock_irqsave(&q->queue_lock, flags);
	rcu_read_lock();
	icq = radix_tree_lookup(&ioc->icq_tree, q->id);
	if (icq && icq->q == q)
		context = fl_context_of(icq);
	rcu_read_unlock();
	spin_unlock_irqrestore(&q->queue_lock, flags);
	put_io_context(ioc);
	return context ?: FAIRLIFT_UNKNOWN;
}

static void fl_yield_to_journal(struct request_queue *q, journal_t *journal)
{
	struct fl_queue *fq = fl_queue_of(q);
	struct task_struct *thread = READ_ONCE(journal->j_task);
	u32 from = fl_current_context(fq);
	u32 to = FAIRLIFT_UNKNOWN;
	unsigned long flags;
	bool waits;

	if (!from || thread == current)
		return;
	/* The journal may be on another disk, or its thread may have sent nothing yet. */
	if (thread && bdev_get_queue(journal->j_dev) == q)
		to = fl_task_context(q, thread);

	spin_lock_irqsave(&fq->lock, flags);
	/* The task waits because its own writes are done: the core has to know that, or ignores the yield. */
	fl_catch_up(fq, NULL);
	fq->journal_waits++;
	fairlift_yield(fq->core, from, to, ktime_get_ns());
	waits = fl_wake(fq);
	spin_unlock_irqrestore(&fq->lock, flags);
	if (waits)
		blk_mq_run_hw_queues(q, true);
}

/* On entry of jbd2_log_wait_commit(journal, tid). */
static int fl_commit_waited_for(struct fprobe *probe, unsigned long ip, unsigned long ret_ip,
				struct pt_regs *regs, void *data)
{
	journal_t *journal = (journal_t *)regs_get_kernel_argument(regs, 0);
	tid_t tid = regs_get_kernel_argument(regs, 1);
	struct request_queue *q = bdev_get_queue(journal->j_fs_dev);

	if (!tid_gt(tid, READ_ONCE(journal->j_commit_sequence)))
		return 0;
	/* While we hold this reference, the queue cannot be frozen, and its elevator stays. */
	if (!percpu_ref_tryget_live(&q->q_usage_counter))
		return 0;
	if (q->elevator && fl_is_ours(q->elevator) && READ_ONCE(fl_queue_of(q)->yields))
		fl_yield_to_journal(q, journal);
	percpu_ref_put(&q->q_usage_counter);
	return 0;
}

static struct fprobe fl_probe;

/* Why there may be no probe although the tunable asks for it. */
static void fl_say_no_probe(int error)
{
	void *wait = __symbol_get("jbd2_log_wait_commit");

	/* Without jbd2 there is nothing to notice: the probe comes with it. */
	if (!wait)
		return;
	__symbol_put("jbd2_log_wait_commit");
	pr_warn("fairlift: no probe on jbd2_log_wait_commit (error %d; is ftrace off?): nobody yields to the journal\n", error);
}

/*
 * The probe is there if a queue wants it and jbd2 is loaded. 6.12 leaves
 * pointers in it that it has freed: each time it begins from nothing.
 */
static void fl_set_probe(bool wanted)
{
	int error = 0;

	mutex_lock(&fl_probe_lock);
	if (wanted && !fl_probed) {
		fl_probe = (struct fprobe) { .entry_handler = fl_commit_waited_for };
		error = register_fprobe(&fl_probe, "jbd2_log_wait_commit", NULL);
		fl_probed = !error;
	} else if (!wanted && fl_probed) {
		unregister_fprobe(&fl_probe);
		fl_probed = false;
	}
	mutex_unlock(&fl_probe_lock);
	if (error)
		fl_say_no_probe(error);
}

/* Queues whose tunable yield is on. */
static atomic_t fl_yielding = ATOMIC_INIT(0);

/* Not where an elevator leaves: its queue is frozen, and the probe takes memory. */
static void fl_probe_work_fn(struct work_struct *work)
{
	fl_set_probe(atomic_read(&fl_yielding) > 0);
}

static DECLARE_WORK(fl_probe_work, fl_probe_work_fn);

/* A queue has yield on, or has it on no more. */
void fl_journal_use(bool yields)
{
	if (!journal_yield)
		return;
	if (yields)
		atomic_inc(&fl_yielding);
	else
		atomic_dec(&fl_yielding);
	schedule_work(&fl_probe_work);
}

static int fl_module_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct module *module = data;

	if (strcmp(module->name, "jbd2"))
		return NOTIFY_DONE;
	if (event == MODULE_STATE_LIVE)
		fl_set_probe(atomic_read(&fl_yielding) > 0);
	else if (event == MODULE_STATE_GOING)
		fl_set_probe(false);
	return NOTIFY_DONE;
}

static struct notifier_block fl_module_notifier = { .notifier_call = fl_module_event };

void fl_journal_start(void)
{
	if (journal_yield)
		register_module_notifier(&fl_module_notifier);
}

/* No queue of ours is left. */
void fl_journal_stop(void)
{
	if (!journal_yield)
		return;
	unregister_module_notifier(&fl_module_notifier);
	cancel_work_sync(&fl_probe_work);
	fl_set_probe(false);
}
