/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The C interface of the core (crates/kernel/src/abi.rs). All calls for one
 * queue are made under that queue's lock, except fairlift_new/free and those
 * without a queue.
 */
#ifndef FAIRLIFT_CORE_H
#define FAIRLIFT_CORE_H

#include <linux/types.h>

struct fairlift_core;

#define FAIRLIFT_NO_SLOT	((u32)-1)
#define FAIRLIFT_IDLE		((u32)-2)
#define FAIRLIFT_UNKNOWN	((u32)-1)

enum fairlift_elevator {
	FAIRLIFT_NOOP,
	FAIRLIFT_DEADLINE,
	FAIRLIFT_ANTICIPATORY,
	FAIRLIFT_CFQ,
	FAIRLIFT_FAIR,
	FAIRLIFT_ELEVATORS,
};

struct fairlift_setup {
	u32 elevator;		/* enum fairlift_elevator */
	u32 profile;
	u32 requests_max;
	u32 contexts_max;
	u32 records_max;
	u32 rotational;
	u32 groups_max;
	u32 reserved;
};

enum {
	FAIRLIFT_SYNC		= 1 << 0,
	FAIRLIFT_META		= 1 << 1,
	FAIRLIFT_NOIDLE		= 1 << 2,
	FAIRLIFT_FUA		= 1 << 3,
	FAIRLIFT_PREFLUSH	= 1 << 4,
	FAIRLIFT_READAHEAD	= 1 << 5,
	FAIRLIFT_NOMERGE	= 1 << 6,
	FAIRLIFT_OWN		= 1 << 7,	/* sent by the context's task for itself */
};

enum {
	FAIRLIFT_READ,
	FAIRLIFT_WRITE,
	FAIRLIFT_DISCARD,
};

struct fairlift_arrival {
	u64 sector;
	u32 sectors;
	u32 context;
	u32 group;
	u16 flags;
	u8 op;
	u8 ioprio;		/* class << 4 | level */
};

struct fairlift_state {
	u32 queued;
	u32 in_flight[2];	/* async, sync */
	u32 requests;
	u32 contexts;
	u32 groups;
	u32 record_lines;
	u32 reserved;
	u64 record_lost;
};

/* Arrays: reads, writes, discards. */
struct fairlift_group_stats {
	u64 ios[3];
	u64 sectors[3];
	u64 merged;
	u64 queued;
	u64 time_ns;
	u64 wait_ns;
	u64 service_ns;
	u64 idle_ns;
	u64 dequeued;
};

static_assert(sizeof(struct fairlift_setup) == 32);
static_assert(sizeof(struct fairlift_arrival) == 24);
static_assert(sizeof(struct fairlift_state) == 40);
static_assert(sizeof(struct fairlift_group_stats) == 104);

struct fairlift_core *fairlift_new(const struct fairlift_setup *setup);
void fairlift_free(struct fairlift_core *core);

u32 fairlift_insert(struct fairlift_core *core, const struct fairlift_arrival *arrival, u64 now);
u32 fairlift_insert_head(struct fairlift_core *core, const struct fairlift_arrival *arrival, u64 now);
/* It goes to the device at once, out of turn, and its group is billed. */
u32 fairlift_issue_around(struct fairlift_core *core, const struct fairlift_arrival *arrival, u64 now);
/* A dispatched request that was inserted before its task had sent it is this one. */
void fairlift_fill(struct fairlift_core *core, u32 slot, u64 sector, u32 sectors, u64 now);
/* The block layer sends flushes past the elevator: is one in the device from now on? */
void fairlift_flushing(struct fairlift_core *core, bool flushing, u64 now);
/*
 * The disk has so many tags; an async request finds one while fewer than
 * for_async are taken. The core idles for no cgroup that finds none.
 */
void fairlift_request_slots(struct fairlift_core *core, u32 all, u32 for_async, u64 now);
u32 fairlift_dispatch(struct fairlift_core *core, u64 now, u64 *until);
void fairlift_complete(struct fairlift_core *core, u32 slot, u64 now);
void fairlift_take_back(struct fairlift_core *core, u32 slot, u64 now);
void fairlift_insert_again(struct fairlift_core *core, u32 slot);

bool fairlift_allow_merge(struct fairlift_core *core, u32 slot, const struct fairlift_arrival *bio, u64 now);
u32 fairlift_find_front(struct fairlift_core *core, const struct fairlift_arrival *bio, u64 now);
void fairlift_grew(struct fairlift_core *core, u32 slot, bool front, u64 sector, u32 sectors, u64 now);
void fairlift_absorbed(struct fairlift_core *core, u32 slot, u32 gone, u32 sectors, u64 now);
u32 fairlift_former(struct fairlift_core *core, u32 slot, u64 now);
u32 fairlift_latter(struct fairlift_core *core, u32 slot, u64 now);

u32 fairlift_context_new(struct fairlift_core *core, u32 group, u8 ioprio);
void fairlift_context_exit(struct fairlift_core *core, u32 context, u64 now);
bool fairlift_yields(struct fairlift_core *core);
void fairlift_yield(struct fairlift_core *core, u32 from, u32 to, u64 now);

/* Groups: 0 is the root; class as in ioprio: 1 real time, 2 best effort, 3 idle. */
u32 fairlift_group_new(struct fairlift_core *core, u32 parent, u32 weight, u8 class);
void fairlift_group_set(struct fairlift_core *core, u32 group, u32 weight, u8 class);
/* The weight of its own tasks beside its child groups. */
void fairlift_group_leaf(struct fairlift_core *core, u32 group, u32 weight);
void fairlift_group_remove(struct fairlift_core *core, u32 group, u64 now);
/* Reads, writes; 0: no limit. False: no such group. */
bool fairlift_group_limit(struct fairlift_core *core, u32 group, const u64 bytes_per_s[2], const u64 ios_per_s[2], u64 now);
u64 fairlift_rate_max(void);

/*
 * Who waits for a limit stands in a line: 2 x group + direction, reads first.
 * The lines are ours, the core knows who is first. fairlift_ask: FAIRLIFT_NO_SLOT
 * = it goes, and is charged; else the line at whose end it waits.
 * fairlift_let_in: the line whose first goes, or FAIRLIFT_IDLE, or NO_SLOT.
 */
u32 fairlift_lines(struct fairlift_core *core);
bool fairlift_limits_are_used(struct fairlift_core *core);
bool fairlift_is_limited(struct fairlift_core *core, u32 group, bool write);
u32 fairlift_ask(struct fairlift_core *core, u32 group, bool write, u64 bytes, u64 now);
u32 fairlift_let_in(struct fairlift_core *core, u64 now, u64 *until);
void fairlift_charge(struct fairlift_core *core, u32 group, bool write, u64 bytes, bool whole, u64 now);
void fairlift_refund(struct fairlift_core *core, u32 group, bool write, u64 bytes, u64 now);

/*
 * Each cgroup that writes dirty pages back has its part, by weight, of the tags
 * that async requests can have; a thread that wants more stands in a line of
 * ours. fairlift_hold_write: does this one, which has so many requests that are
 * not with the core yet? fairlift_next_write: the group whose first goes on, or
 * NO_SLOT. fairlift_writes_came: all of those have sent theirs by now.
 * fairlift_move_writes: the group goes, and its line waits behind its heir's.
 */
bool fairlift_hold_write(struct fairlift_core *core, u32 group, u32 unsent, u32 tags, u64 now);
u32 fairlift_next_write(struct fairlift_core *core, u32 tags, u64 now);
void fairlift_writes_came(struct fairlift_core *core);
void fairlift_move_writes(struct fairlift_core *core, u32 group, u32 heir, u64 now);

bool fairlift_takes_too_many(struct fairlift_core *core, u32 group, u32 tags);
void fairlift_group_stats(struct fairlift_core *core, u32 group, struct fairlift_group_stats *stats);

/* From now on first come, first served, without weights and limits. */
void fairlift_give_up(struct fairlift_core *core);
bool fairlift_has_given_up(struct fairlift_core *core);
void fairlift_state(struct fairlift_core *core, struct fairlift_state *state);
int fairlift_record_line(struct fairlift_core *core, u32 index, char *buffer, size_t size);
int fairlift_finding(struct fairlift_core *core, u32 index, u64 now, char *buffer, size_t size);

int fairlift_profile_name(u32 elevator, u32 index, char *buffer, size_t size);
int fairlift_tunable_name(u32 elevator, u32 profile, u32 index, char *buffer, size_t size);
int fairlift_tunable_parse(u32 elevator, u32 profile, u32 index, const char *value, size_t length,
			   u64 *parsed, char *reason, size_t size);
int fairlift_tunable_show(struct fairlift_core *core, u32 index, char *buffer, size_t size);
void fairlift_tunable_set(struct fairlift_core *core, u32 index, u64 value);

#endif
