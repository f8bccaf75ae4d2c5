/* SPDX-License-Identifier: GPL-2.0-only */
/* A long no-operation with an address that is in no other program. */
#define MARK 0x0f, 0x1f, 0x84, 0x00, 0x66, 0x6c, 0x69, 0x66
