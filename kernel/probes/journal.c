// SPDX-License-Identifier: GPL-2.0-only
// optional: a probe on jbd2's wait for a commit (fprobe with registers); without it no task yields to the journal
#include <linux/fprobe.h>
#include <linux/jbd2.h>

#ifndef CONFIG_FPROBE
#error no fprobe
#endif

int entry(struct fprobe *, unsigned long, unsigned long, struct pt_regs *, void *);
int entry(struct fprobe *probe, unsigned long ip, unsigned long ret_ip, struct pt_regs *regs, void *data)
{
	journal_t *journal = (journal_t *)regs_get_kernel_argument(regs, 0);

	return journal->j_task != NULL;
}
struct fprobe probe = { .entry_handler = entry };
