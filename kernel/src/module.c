// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading: the elevators, and what can be set when the module is loaded. */
#include <linux/module.h>

#include "shim.h"

unsigned int fl_requests_max;
module_param_named(requests_max, fl_requests_max, uint, 0644);
MODULE_PARM_DESC(requests_max, "requests a disk's queue has room for; more wait in order of arrival (default 0: twice the tags, 1024 at least)");

/* Of tasks and cgroups there are as many places in reserve, for those whose subtree has not taken the others. */
unsigned int fl_contexts_max = 256;
module_param_named(contexts_max, fl_contexts_max, uint, 0644);
MODULE_PARM_DESC(contexts_max, "tasks a disk's queue tells apart, and as many in reserve; more share a place per cgroup (default 256)");

unsigned int fl_groups_max = 72;
module_param_named(groups_max, fl_groups_max, uint, 0644);
MODULE_PARM_DESC(groups_max, "cgroups a disk's queue tells apart, and as many in reserve; more count as their parents' tasks (default 72)");

unsigned int fl_record;
module_param_named(record, fl_record, uint, 0644);
MODULE_PARM_DESC(record, "calls of the core to record per disk, from the elevator's start (default 0)");

static char *cfq_version = "2.6.37";
module_param(cfq_version, charp, 0444);
MODULE_PARM_DESC(cfq_version, "which kernel's CFQ fl-cfq is: 2.6.31, 2.6.34 or 2.6.37 (default)");

/* By enum fairlift_elevator. */
static struct elevator_type fl_types[FAIRLIFT_ELEVATORS] = {
	[FAIRLIFT_NOOP]		= { .elevator_name = "fl-noop" },
	[FAIRLIFT_DEADLINE]	= { .elevator_name = "fl-deadline" },
	[FAIRLIFT_ANTICIPATORY]	= { .elevator_name = "fl-as" },
	[FAIRLIFT_CFQ]		= { .elevator_name = "fl-cfq" },
	[FAIRLIFT_FAIR]		= { .elevator_name = "fl-fair" },
};

static u32 fl_cfq_profile;

u32 fl_elevator_number(struct elevator_type *type)
{
	return type - fl_types;
}

bool fl_is_ours(struct elevator_queue *eq)
{
	return eq->type >= fl_types && eq->type < fl_types + FAIRLIFT_ELEVATORS;
}

u32 fl_profile(u32 elevator)
{
	return elevator == FAIRLIFT_CFQ ? fl_cfq_profile : 0;
}

static int fl_find_cfq_version(void)
{
	char name[16];
	u32 i;

	for (i = 0; fairlift_profile_name(FAIRLIFT_CFQ, i, name, sizeof(name)); i++) {
		if (!strcmp(name, cfq_version)) {
			fl_cfq_profile = i;
			return 0;
		}
	}
	pr_err("fairlift: cfq_version: '%s' is none of 2.6.31, 2.6.34, 2.6.37\n", cfq_version);
	return -EINVAL;
}

static int fl_register(u32 elevator)
{
	struct elevator_type *type = &fl_types[elevator];
	int error = fl_make_attributes(elevator, fl_profile(elevator), &type->elevator_attrs);

	if (error)
		return error;
	type->ops = fl_ops;
	type->elevator_owner = THIS_MODULE;
	if (fl_wants_contexts(elevator)) {
		type->icq_size = sizeof(struct fl_icq);
		type->icq_align = __alignof__(struct fl_icq);
		type->ops.init_icq = fl_init_icq;
		type->ops.exit_icq = fl_exit_icq;
	}
#ifdef CONFIG_BLK_DEBUG_FS
	type->queue_debugfs_attrs = fl_debugfs_attrs;
#endif
	error = elv_register(type);
	if (error)
		fl_free_attributes(type->elevator_attrs);
	return error;
}

static void fl_unregister(u32 elevator)
{
	elv_unregister(&fl_types[elevator]);
	fl_free_attributes(fl_types[elevator].elevator_attrs);
}

static int __init fl_init(void)
{
	int error = fl_find_cfq_version() ?: fl_find_depth_meaning() ?: fl_lines_start();
	u32 i;

	if (error)
		return error;
	/* The core is called with interrupts off, from a timer's interrupt too: no place for locks that sleep. */
	BUILD_BUG_ON(IS_ENABLED(CONFIG_PREEMPT_RT));
	/* An elevator may be selected as soon as it is registered. */
	fl_groups_start();
	for (i = 0; !error && i < FAIRLIFT_ELEVATORS; i++) {
		error = fl_register(i);
		if (error)
			break;
	}
	if (error) {
		while (i--)
			fl_unregister(i);
		fl_groups_stop();
		fl_lines_stop();
		return error;
	}
	fl_journal_start();
	return 0;
}

static void __exit fl_exit(void)
{
	u32 i;

	fl_journal_stop();
	for (i = FAIRLIFT_ELEVATORS; i--; )
		fl_unregister(i);
	fl_groups_stop();
	fl_lines_stop();
}

module_init(fl_init);
module_exit(fl_exit);

MODULE_DESCRIPTION("fairlift: noop, deadline, anticipatory, CFQ and fair from one core");
MODULE_LICENSE("GPL");
MODULE_AUTHOR("the fairlift maintainers");
MODULE_VERSION(FL_VERSION);
MODULE_ALIAS("fl-noop-iosched");
MODULE_ALIAS("fl-deadline-iosched");
MODULE_ALIAS("fl-as-iosched");
MODULE_ALIAS("fl-cfq-iosched");
MODULE_ALIAS("fl-fair-iosched");
