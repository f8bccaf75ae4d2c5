// SPDX-License-Identifier: GPL-2.0-only
// needed: wbt_disable_default() by disk, and the elevator's flag that goes with it
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include "elevator.h"
#include "blk-wbt.h"

int flag = ELEVATOR_FLAG_DISABLE_WBT;
void (*disable)(struct gendisk *) = wbt_disable_default;
