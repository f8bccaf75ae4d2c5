// SPDX-License-Identifier: GPL-2.0-only
/*
 * All that a request passes on its way, compiled as one file: the compiler sees
 * both sides of each call, and a request takes fewer instructions.
 */
#include "elevator.c"
#include "events.c"
#include "merge.c"
#include "context.c"
#include "turns.c"
#include "threads.c"
#ifdef FAIRLIFT_GROUPS
#include "groups.c"
#include "limits.c"
#include "lines.c"
#include "writeback.c"
#endif
