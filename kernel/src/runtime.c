// SPDX-License-Identifier: GPL-2.0-only
/* What the core's library needs: memory while a queue is made, and an end when it is broken. */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/panic.h>
#include <linux/slab.h>

#include "shim.h"

void *fairlift_shim_alloc(size_t bytes, size_t align);
void fairlift_shim_free(void *memory);
void __noreturn fairlift_shim_panic(const char *message);
void fairlift_shim_gave_up(void);

/*
 * The library cannot handle a failed allocation. So all that a queue needs is
 * taken in one piece, or refused, before the library begins; it gets its memory
 * from there, and gives nothing back before all is freed. One queue at a time
 * is made or freed.
 */
static DEFINE_MUTEX(fl_arena_lock);
static struct fl_arena *fl_arena;

static bool fl_is_in(const struct fl_arena *arena, const void *memory)
{
	return arena && memory >= arena->memory && memory < arena->memory + arena->size;
}

void *fairlift_shim_alloc(size_t bytes, size_t align)
{
	size_t start;

	/* Not from a hook: these must not come here at all. */
	if (WARN_ON_ONCE(irqs_disabled() || !fl_arena || align > PAGE_SIZE))
		return NULL;
	start = ALIGN(fl_arena->used, max_t(size_t, align, sizeof(u64)));
	if (start <= fl_arena->size && bytes <= fl_arena->size - start) {
		fl_arena->used = start + bytes;
		return fl_arena->memory + start;
	}
	/* FL_BYTES_* in elevator.c are too small, which crates/kernel/tests/memory.rs says they are not. */
	WARN_ON_ONCE(1);
	return kvmalloc(bytes, GFP_NOIO | __GFP_NOFAIL);
}

void fairlift_shim_free(void *memory)
{
	WARN_ON_ONCE(irqs_disabled());
	if (!fl_is_in(fl_arena, memory))
		kvfree(memory);
}

void fairlift_shim_panic(const char *message)
{
	panic("fairlift: %s", message);
}

void fairlift_shim_gave_up(void)
{
	pr_warn_once("fairlift: a queue's order is broken, which is a fault of fairlift: first come, first served without weights and limits until an elevator is selected anew\n");
}

/* A core in bytes of memory; NULL if these are not to be had. */
struct fairlift_core *fl_core_new(struct fl_arena *arena, const struct fairlift_setup *setup, size_t bytes)
{
	struct fairlift_core *core;

	*arena = (struct fl_arena) {
		.memory = kvmalloc(bytes, GFP_NOIO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL),
		.size = bytes,
	};
	if (!arena->memory)
		return NULL;
	mutex_lock(&fl_arena_lock);
	fl_arena = arena;
	core = fairlift_new(setup);
	fl_arena = NULL;
	mutex_unlock(&fl_arena_lock);
	if (!core)
		kvfree(arena->memory);
	return core;
}

void fl_core_free(struct fl_arena *arena, struct fairlift_core *core)
{
	mutex_lock(&fl_arena_lock);
	fl_arena = arena;
	fairlift_free(core);
	fl_arena = NULL;
	mutex_unlock(&fl_arena_lock);
	kvfree(arena->memory);
}
