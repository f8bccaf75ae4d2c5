// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the test "birth": makes a function of the kernel slow, the parameter
 * "function", so that what may happen before it begins does happen. It keeps
 * its processor for "milliseconds"; "hits" counts its calls.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static char *function = "";
module_param(function, charp, 0444);
static unsigned int milliseconds = 200;
module_param(milliseconds, uint, 0444);
static unsigned int hits;
module_param(hits, uint, 0444);

static int slow_down(struct kprobe *probe, struct pt_regs *regs)
{
	hits++;
	mdelay(milliseconds);
	return 0;
}

static struct kprobe slow_probe = { .pre_handler = slow_down };

static int __init slow_init(void)
{
	slow_probe.symbol_name = function;
	return register_kprobe(&slow_probe);
}

static void __exit slow_exit(void)
{
	unregister_kprobe(&slow_probe);
}

module_init(slow_init);
module_exit(slow_exit);

MODULE_DESCRIPTION("makes a function slow for a test");
MODULE_LICENSE("GPL");
