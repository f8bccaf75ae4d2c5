/* SPDX-License-Identifier: GPL-2.0-only */
/* The tracepoints fairlift:*: what the core decided, for perf, bpftrace and trace-cmd. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fairlift

#if !defined(FAIRLIFT_DECISIONS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FAIRLIFT_DECISIONS_TRACE_H

#include <linux/blktrace_api.h>
#include <linux/tracepoint.h>

/* A request of another group than the last one goes to the device. */
TRACE_EVENT(fairlift_turn,
	TP_PROTO(dev_t dev, u32 group, u64 cgroup),
	TP_ARGS(dev, group, cgroup),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, group)
		__field(u64, cgroup)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->group = group;
		__entry->cgroup = cgroup;
	),
	TP_printk("%d,%d group=%u cgroup=%llu", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->group, __entry->cgroup)
);

/* Requests are queued, and the device is kept idle for one that may come, for so long at most. */
TRACE_EVENT(fairlift_idle,
	TP_PROTO(dev_t dev, u32 group, u64 wait_ns),
	TP_ARGS(dev, group, wait_ns),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, group)
		__field(u64, wait_ns)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->group = group;
		__entry->wait_ns = wait_ns;
	),
	TP_printk("%d,%d group=%u wait_ns=%llu", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->group, __entry->wait_ns)
);

/* A bio waits for a limit. */
TRACE_EVENT(fairlift_held,
	TP_PROTO(dev_t dev, u32 group, bool write, u64 bytes, u64 held),
	TP_ARGS(dev, group, write, bytes, held),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, group)
		__field(bool, write)
		__field(u64, bytes)
		__field(u64, held)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->group = group;
		__entry->write = write;
		__entry->bytes = bytes;
		__entry->held = held;
	),
	TP_printk("%d,%d group=%u %s bytes=%llu held=%llu", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->group,
		  __entry->write ? "write" : "read", __entry->bytes, __entry->held)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE decisions_trace
#include <trace/define_trace.h>
