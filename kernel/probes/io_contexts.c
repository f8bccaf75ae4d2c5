// SPDX-License-Identifier: GPL-2.0-only
// needed: io contexts by ioc_find_get_icq() and ioc_lookup_icq() of the queue
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/iocontext.h>
#include "blk.h"

struct io_cq *(*get)(struct request_queue *) = ioc_find_get_icq;
struct io_cq *(*lookup)(struct request_queue *) = ioc_lookup_icq;
