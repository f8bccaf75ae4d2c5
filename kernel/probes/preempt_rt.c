// SPDX-License-Identifier: GPL-2.0-only
// needed: a kernel without PREEMPT_RT, whose spinlocks sleep
#include <linux/spinlock.h>

#ifdef CONFIG_PREEMPT_RT
#error PREEMPT_RT
#endif
