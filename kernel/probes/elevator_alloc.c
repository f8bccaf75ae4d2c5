// SPDX-License-Identifier: GPL-2.0-only
// needed: elevator_alloc(), by which an elevator of Linux 6.12 makes its queue
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include "elevator.h"

struct elevator_queue *(*alloc)(struct request_queue *, struct elevator_type *) = elevator_alloc;
