// SPDX-License-Identifier: GPL-2.0-only
/* What the core's library needs: memory while a queue is made, and an end when it is broken. */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/panic.h>
#include <linux/slab.h>

#include "shim.h"

void *fairlift_shim_alloc(size_t bytes);
void fairlift_shim_free(void *memory);
void __noreturn fairlift_shim_panic(const char *message);

/*
 * The library cannot handle a failed allocation, so there is none:
 * fl_memory_suffices() has looked before. Only making and freeing a queue
 * comes here; under its lock interrupts are off.
 */
void *fairlift_shim_alloc(size_t bytes)
{
	WARN_ON_ONCE(irqs_disabled());
	return kvmalloc(bytes, GFP_NOIO | __GFP_NOFAIL);
}

void fairlift_shim_free(void *memory)
{
	WARN_ON_ONCE(irqs_disabled());
	kvfree(memory);
}

void fairlift_shim_panic(const char *message)
{
	panic("fairlift: %s", message);
}

/* Is there that much memory just now? */
bool fl_memory_suffices(size_t bytes)
{
	void *trial = kvmalloc(bytes, GFP_NOIO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);

	kvfree(trial);
	return trial;
}
