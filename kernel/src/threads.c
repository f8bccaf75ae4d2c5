// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel threads that send data between flushes (turns.c) for cgroups: dm-crypt's
 * writer, workers of stacked disks. The cgroup of the next one is not known before
 * there is a tag. Most likely it is that of the last one: the thread waits for
 * that group's turn, but not longer than FL_TURN_LOOKS_OF_THREAD looks, since it
 * may have others' I/O to send. What it then sends without a turn, or for
 * another group, goes to the device at once, and its own group is billed.
 *
 * A request of such a thread carries the group in whose name it waited, and the
 * thread's place in the table, to remember its task.
 */
#include <linux/hash.h>

#include "shim.h"

#define FL_THREAD_BITS	5
static_assert(1 << FL_THREAD_BITS == FL_THREADS);

static u32 fl_thread_index(void)
{
	return hash_ptr(current, FL_THREAD_BITS);
}

/* The cgroup that the running thread sent for last; the root, if that is not known. Under the lock. */
u32 fl_thread_sends_for(struct fl_queue *fq)
{
	struct fl_thread *thread = &fq->threads[fl_thread_index()];

	if (thread->task != current) {
		thread->task = current;
		thread->group = 0;
		thread->unsent = 0;
	}
	return thread->group;
}

/*
 * Writeback (writeback.c) has one thread for each cgroup, and a thread keeps up to
 * a plug's requests to itself before it sends them. Such a request carries the
 * thread's place in the table. Without the lock: only the thread writes there, or
 * another that takes its place.
 */

/* The running thread has got rq. */
void fl_thread_has(struct fl_queue *fq, struct request *rq)
{
	u32 index = fl_thread_index();
	struct fl_thread *thread = &fq->threads[index];

	if (READ_ONCE(thread->task) != current)
		return;
	WRITE_ONCE(thread->unsent, READ_ONCE(thread->unsent) + 1);
	fl_set_sender_group(rq, index + 1);
}

/* The running thread sends all it has. */
void fl_thread_sent(struct fl_queue *fq)
{
	struct fl_thread *thread = &fq->threads[fl_thread_index()];

	if (READ_ONCE(thread->task) == current && READ_ONCE(thread->unsent))
		WRITE_ONCE(thread->unsent, 0);
}

u32 fl_thread_unsent(struct fl_queue *fq)
{
	struct fl_thread *thread = &fq->threads[fl_thread_index()];

	return READ_ONCE(thread->task) == current ? READ_ONCE(thread->unsent) : 0;
}

/* The running thread is about to take a tag for bio. Under the lock. */
void fl_thread_sends_bio(struct fl_queue *fq, struct bio *bio)
{
	fl_thread_sends_for(fq);
	fq->threads[fl_thread_index()].group = fl_bio_group(fq->q, bio);
}

/* rq, which a thread sent, is for this group. Under the lock. */
void fl_thread_sent_for(struct fl_queue *fq, struct request *rq, u32 group)
{
	u32 place = fl_sender_group(rq);

	if (place && place <= FL_THREADS)
		fq->threads[place - 1].group = group;
}

/* rq is the running thread's, which waited in group's name, or not at all. */
void fl_note_thread(struct request *rq, u32 group)
{
	rq->elv.priv[0] = (void *)((uintptr_t)(group * FL_THREADS + fl_thread_index()) << 32);
}

/* rq, of such a thread, is for this group. Did the thread wait in that one's name? Under the lock. */
bool fl_thread_waited_for(struct fl_queue *fq, struct request *rq, u32 group)
{
	u32 note = (uintptr_t)rq->elv.priv[0] >> 32;

	fq->threads[note % FL_THREADS].group = group;
	return note / FL_THREADS == group;
}

/* Group number is gone. Under the lock. */
void fl_threads_forget(struct fl_queue *fq, u32 number)
{
	int i;

	for (i = 0; i < FL_THREADS; i++) {
		if (fq->threads[i].group == number)
			fq->threads[i].group = 0;
	}
}
