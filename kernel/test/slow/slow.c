// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes functions of the kernel slow, the parameter "function" (several with
 * commas), so that what may happen before they begin does happen. Each call
 * keeps its processor for "microseconds", with "task:" before the name only a
 * call by a task, not one by an interrupt; "hits" counts the calls.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#define SLOW_MAX 4

static char *function[SLOW_MAX];
static int functions;
module_param_array(function, charp, &functions, 0444);
static unsigned int microseconds = 200000;
module_param(microseconds, uint, 0444);
static unsigned int hits;
module_param(hits, uint, 0444);

static int slow_down(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int left;

	hits++;
	for (left = microseconds; left; left -= min(left, 1000u))
		udelay(min(left, 1000u));
	return 0;
}

static int slow_down_task(struct kprobe *probe, struct pt_regs *regs)
{
	return in_task() ? slow_down(probe, regs) : 0;
}

static struct kprobe slow_probes[SLOW_MAX];

static int slow_add(struct kprobe *probe, const char *name)
{
	bool tasks = str_has_prefix(name, "task:");

	probe->symbol_name = tasks ? name + strlen("task:") : name;
	probe->pre_handler = tasks ? slow_down_task : slow_down;
	return register_kprobe(probe);
}

static int __init slow_init(void)
{
	int i, error;

	for (i = 0; i < functions; i++) {
		error = slow_add(&slow_probes[i], function[i]);
		if (error)
			goto fail;
	}
	return 0;
fail:
	while (i--)
		unregister_kprobe(&slow_probes[i]);
	return error;
}

static void __exit slow_exit(void)
{
	int i;

	for (i = 0; i < functions; i++)
		unregister_kprobe(&slow_probes[i]);
}

module_init(slow_init);
module_exit(slow_exit);

MODULE_DESCRIPTION("makes functions slow for a test");
MODULE_LICENSE("GPL");
