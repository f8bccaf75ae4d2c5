//! blktrace's binary records: layout, action and category numbers, both ways.
//!
//! Source: Linux `include/uapi/linux/blktrace_api.h` (v7 since 2.6.17; v8, `blk_io_trace2`, since 6.19).

use crate::event::{Action, DeviceNumber, Flags, Op};

/// Upper 24 bits of the first word.
pub(crate) const MAGIC: u32 = 0x6561_7400;
pub(crate) const V7_BYTES: usize = 48;
pub(crate) const V8_BYTES: usize = 64;

/// Bits of the category half of the action word.
pub(crate) mod category {
    pub const READ: u64 = 1;
    pub const WRITE: u64 = 1 << 1;
    pub const FLUSH: u64 = 1 << 2;
    pub const SYNC: u64 = 1 << 3;
    pub const QUEUE: u64 = 1 << 4;
    pub const REQUEUE: u64 = 1 << 5;
    pub const ISSUE: u64 = 1 << 6;
    pub const COMPLETE: u64 = 1 << 7;
    pub const FS: u64 = 1 << 8;
    pub const PC: u64 = 1 << 9;
    pub const NOTIFY: u64 = 1 << 10;
    pub const AHEAD: u64 = 1 << 11;
    pub const META: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const DRIVER: u64 = 1 << 14;
    pub const FUA: u64 = 1 << 15;
    pub const ZONE_APPEND: u64 = 1 << 16;
    pub const ZONE_RESET: u64 = 1 << 17;
    pub const ZONE_RESET_ALL: u64 = 1 << 18;
    pub const ZONE_FINISH: u64 = 1 << 19;
    pub const ZONE_OPEN: u64 = 1 << 20;
    pub const ZONE_CLOSE: u64 = 1 << 21;
    pub const WRITE_ZEROES: u64 = 1 << 22;
}
use category as c;

/// Set in the action number when the payload begins with a cgroup.
pub(crate) const CGROUP: u64 = 1 << 8;

/// Operations that only v8 can tell.
const WIDE: [(Op, u64); 7] = [
    (Op::ZoneAppend, c::ZONE_APPEND),
    (Op::ZoneReset, c::ZONE_RESET),
    (Op::ZoneResetAll, c::ZONE_RESET_ALL),
    (Op::ZoneFinish, c::ZONE_FINISH),
    (Op::ZoneOpen, c::ZONE_OPEN),
    (Op::ZoneClose, c::ZONE_CLOSE),
    (Op::WriteZeroes, c::WRITE_ZEROES),
];

/// A record's fields, whichever its version.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    pub sequence: u32,
    pub time_ns: u64,
    pub sector: u64,
    pub bytes: u32,
    pub action: u64,
    pub pid: u32,
    pub device: u32,
    pub cpu: u32,
    pub error: u16,
    pub payload_bytes: u16,
}

/// The byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let word = [bytes[at], bytes[at + 1]];
        if self == Self::Little { u16::from_le_bytes(word) } else { u16::from_be_bytes(word) }
    }

    pub fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes[at..at + 4].try_into().expect("four bytes");
        if self == Self::Little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
    }

    pub fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let word = bytes[at..at + 8].try_into().expect("eight bytes");
        if self == Self::Little { u64::from_le_bytes(word) } else { u64::from_be_bytes(word) }
    }
}

/// Byte order and version of the record that starts with these bytes; `None` when it is no record.
pub(crate) fn identify(first: [u8; 4]) -> Option<(Order, u8)> {
    for (order, word) in [(Order::Little, u32::from_le_bytes(first)), (Order::Big, u32::from_be_bytes(first))]
    {
        if word & 0xffff_ff00 == MAGIC {
            return Some((order, (word & 0xff) as u8));
        }
    }
    None
}

/// Bytes of a record's head.
pub(crate) const fn head_bytes(version: u8) -> Option<usize> {
    match version {
        7 => Some(V7_BYTES),
        8 => Some(V8_BYTES),
        _ => None,
    }
}

impl Record {
    /// Decodes a head. `head` is [`head_bytes`] long.
    #[inline]
    pub fn decode(head: &[u8], order: Order, version: u8) -> Self {
        let o = order;
        let head = &head[..if version == 8 { V8_BYTES } else { V7_BYTES }];
        let (action, pid, tail) = if version == 8 {
            (o.u64(head, 32), o.u32(head, 28), 40)
        } else {
            (u64::from(o.u32(head, 28)), o.u32(head, 32), 36)
        };
        Self {
            sequence: o.u32(head, 4),
            time_ns: o.u64(head, 8),
            sector: o.u64(head, 16),
            bytes: o.u32(head, 24),
            action,
            pid,
            device: o.u32(head, tail),
            cpu: o.u32(head, tail + 4),
            error: o.u16(head, tail + 8),
            payload_bytes: o.u16(head, tail + 10),
        }
    }

    /// Encodes a head in this machine's byte order, as the kernel does.
    pub fn encode(&self, version: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(&(MAGIC | u32::from(version)).to_ne_bytes());
        out.extend_from_slice(&self.sequence.to_ne_bytes());
        out.extend_from_slice(&self.time_ns.to_ne_bytes());
        out.extend_from_slice(&self.sector.to_ne_bytes());
        out.extend_from_slice(&self.bytes.to_ne_bytes());
        if version == 8 {
            out.extend_from_slice(&self.pid.to_ne_bytes());
            out.extend_from_slice(&self.action.to_ne_bytes());
        } else {
            // The caller keeps wide categories out of v7, so the action fits 32 bits.
            out.extend_from_slice(&(self.action as u32).to_ne_bytes());
            out.extend_from_slice(&self.pid.to_ne_bytes());
        }
        out.extend_from_slice(&self.device.to_ne_bytes());
        out.extend_from_slice(&self.cpu.to_ne_bytes());
        out.extend_from_slice(&self.error.to_ne_bytes());
        out.extend_from_slice(&self.payload_bytes.to_ne_bytes());
        if version == 8 {
            out.extend_from_slice(&[0; 12]);
        }
    }
}

/// The action of an action word and the record's own payload (behind the cgroup). `None`: unknown number.
#[inline]
pub(crate) fn action(word: u64, payload: &[u8], order: Order) -> Option<Action> {
    let number = word & 0xffff & !CGROUP;
    let be32 = |at: usize| payload.get(at..at + 4).map(|b| Order::Big.u32(b, 0));
    let be64 = |at: usize| payload.get(at..at + 8).map(|b| Order::Big.u64(b, 0));
    if word >> 16 & c::NOTIFY != 0 {
        return Some(match number {
            0 => Action::Process,
            1 => {
                let own = |at: usize| payload.get(at..at + 4).map_or(0, |b| order.u32(b, 0));
                Action::Timestamp { seconds: own(0), nanoseconds: own(4) }
            }
            2 => Action::Message,
            _ => return None,
        });
    }
    Some(match number {
        1 => Action::Queue,
        2 => Action::BackMerge,
        3 => Action::FrontMerge,
        4 => Action::GetRequest,
        5 => Action::SleepRequest,
        6 => Action::Requeue,
        7 => Action::Issue,
        8 => Action::Complete,
        9 => Action::Plug,
        10 => Action::Unplug { count: be64(0).unwrap_or(0), by_timer: false },
        11 => Action::Unplug { count: be64(0).unwrap_or(0), by_timer: true },
        12 => Action::Insert,
        13 => Action::Split { to: be64(0).unwrap_or(0) },
        14 => Action::Bounce,
        15 => Action::Remap {
            from: DeviceNumber(be32(0).unwrap_or(0)),
            to: DeviceNumber(be32(4).unwrap_or(0)),
            sector: be64(8).unwrap_or(0),
        },
        16 => Action::Abort,
        17 => Action::DriverData,
        18 => Action::ZonePlug,
        19 => Action::ZoneUnplug,
        _ => return None,
    })
}

/// Number and category of an action; `None` for those blktrace does not have. Fills `payload` with the action's own.
pub(crate) fn action_word(action: Action, payload: &mut Vec<u8>) -> Option<u64> {
    let (number, category) = match action {
        Action::Queue => (1, c::QUEUE),
        Action::BackMerge => (2, c::QUEUE),
        Action::FrontMerge => (3, c::QUEUE),
        Action::GetRequest => (4, c::QUEUE),
        Action::SleepRequest => (5, c::QUEUE),
        Action::Requeue => (6, c::REQUEUE),
        Action::Issue => (7, c::ISSUE),
        Action::Complete => (8, c::COMPLETE),
        Action::Plug => (9, c::QUEUE),
        Action::Unplug { count, by_timer } => {
            payload.extend_from_slice(&count.to_be_bytes());
            (if by_timer { 11 } else { 10 }, c::QUEUE)
        }
        Action::Insert => (12, c::QUEUE),
        Action::Split { to } => {
            payload.extend_from_slice(&to.to_be_bytes());
            (13, 0)
        }
        Action::Bounce => (14, 0),
        Action::Remap { from, sector, to } => {
            payload.extend_from_slice(&from.0.to_be_bytes());
            payload.extend_from_slice(&to.0.to_be_bytes());
            payload.extend_from_slice(&sector.to_be_bytes());
            (15, c::QUEUE)
        }
        Action::Abort => (16, c::QUEUE),
        Action::DriverData => (17, c::DRIVER),
        Action::ZonePlug => (18, c::QUEUE),
        Action::ZoneUnplug => (19, c::QUEUE),
        Action::Process => (0, c::NOTIFY),
        Action::Timestamp { seconds, nanoseconds } => {
            payload.extend_from_slice(&seconds.to_ne_bytes());
            payload.extend_from_slice(&nanoseconds.to_ne_bytes());
            (1, c::NOTIFY)
        }
        Action::Message | Action::Lost { .. } => (2, c::NOTIFY),
        Action::RequestMerge
        | Action::BioComplete
        | Action::Error
        | Action::IoStart
        | Action::IoDone
        | Action::FileAdd
        | Action::FileOpen
        | Action::FileClose => return None,
    };
    Some(category << 16 | number)
}

/// Operation and flags of a category half.
#[inline]
pub(crate) fn operation(word: u64, bytes: u32) -> (Op, Flags) {
    let bits = word >> 16;
    let is = |bit: u64| bits & bit != 0;
    if is(c::NOTIFY) {
        return (Op::None, Flags::NONE);
    }
    let mut flags = Flags::when(is(c::SYNC), Flags::SYNC)
        .with(Flags::when(is(c::META), Flags::META))
        .with(Flags::when(is(c::FUA), Flags::FUA))
        .with(Flags::when(is(c::FLUSH), Flags::PREFLUSH))
        .with(Flags::when(is(c::AHEAD), Flags::READAHEAD))
        .with(Flags::when(is(c::PC), Flags::PASSTHROUGH))
        .with(Flags::when(is(c::FS), Flags::FS));
    // A record without data and direction carries the read bit too; blkparse prints N for it.
    let op = if bits >> 16 != 0 {
        WIDE.iter().find(|(_, bit)| is(*bit)).map_or(Op::None, |(op, _)| *op)
    } else if is(c::DISCARD) {
        Op::Discard
    } else if is(c::WRITE) {
        Op::Write
    } else if bytes > 0 && is(c::READ) {
        Op::Read
    } else if is(c::FLUSH) {
        flags = flags.without(Flags::PREFLUSH);
        Op::Flush
    } else {
        Op::None
    };
    (op, flags)
}

/// The category half of operation and flags, without the action's own bit.
pub(crate) fn operation_word(op: Op, flags: Flags) -> u64 {
    let direction = match op {
        Op::Write | Op::WriteZeroes | Op::ZoneAppend => c::WRITE,
        Op::Discard | Op::SecureErase => c::DISCARD | c::WRITE,
        Op::ZoneReset | Op::ZoneResetAll | Op::ZoneFinish | Op::ZoneOpen | Op::ZoneClose => c::WRITE,
        Op::Flush => c::FLUSH | c::READ,
        Op::None | Op::Read | Op::Sync | Op::DataSync => c::READ,
    };
    let wide = WIDE.iter().find(|(wide, _)| *wide == op).map_or(0, |(_, bit)| *bit);
    let set = [
        (Flags::SYNC, c::SYNC),
        (Flags::META, c::META),
        (Flags::FUA, c::FUA),
        (Flags::PREFLUSH, c::FLUSH),
        (Flags::READAHEAD, c::AHEAD),
        (Flags::PASSTHROUGH, c::PC),
        (Flags::FS, c::FS),
    ];
    let flags = set.iter().filter(|(flag, _)| flags.has(*flag)).fold(0, |bits, (_, bit)| bits | bit);
    (direction | wide | flags) << 16
}
