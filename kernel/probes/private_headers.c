// SPDX-License-Identifier: GPL-2.0-only
// needed: the private headers of the block layer (block/elevator.h and others), of the same version as the kernel's headers
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include "elevator.h"
#include "blk.h"
#include "blk-mq.h"
#include "blk-mq-sched.h"
#include "blk-mq-debugfs.h"
#include "blk-wbt.h"
