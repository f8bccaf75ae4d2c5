// SPDX-License-Identifier: GPL-2.0-only
// needed: blk_time_get_ns(), the block layer's clock
#include <linux/blkdev.h>
#include "blk.h"

u64 now(void);
u64 now(void)
{
	return blk_time_get_ns();
}
