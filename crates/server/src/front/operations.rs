//! Requests in flight: each in parts that the device's queue takes, and the answer for its client.

use std::ops::Range;

use crate::io::{Action, Fault, Io, Ios};

/// Parts of a trim or zeroing in flight at a time; a read or write has all of its own at once, as their memory is bounded.
const PARTS_MAX: u32 = 64;
/// Memory kept for later, pieces and bytes of each.
const SPARE_MAX: usize = 256;
const SPARE_BYTES_MAX: usize = 68 << 10;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Operation<R> {
    pub(super) request: R,
    pub(super) action: Action,
    fua: bool,
    /// Parts of a read by their number, as they come back.
    pub(super) parts: Vec<Option<Box<Io>>>,
    /// Parts in flight.
    left: u32,
    /// Where the next part begins, and the end, on the device.
    rest: (u64, u64),
    /// Largest part, bytes.
    part_max: u32,
    pub(super) error: Option<Fault>,
}

/// The requests of a connection that are in flight.
#[derive(Debug)]
pub(super) struct Operations<R> {
    slots: Vec<Option<Operation<R>>>,
    free: Vec<u32>,
    spare: Ios,
    /// Lists of parts, empty, kept for their memory.
    spare_parts: Vec<Vec<Option<Box<Io>>>>,
    /// Largest part, bytes.
    part_max: u32,
    /// What memory begins at a multiple of.
    align: u32,
}

impl<R> Operations<R> {
    pub(super) fn new(max_sectors: u32, align: u32) -> Operations<R> {
        let (slots, free, spare, spare_parts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Operations { slots, free, spare, spare_parts, part_max: max_sectors * 512, align }
    }

    /// How many are in flight.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A bio, from what is spare if there is some.
    fn io(&mut self, tag: u64, action: Action, offset: u64, bytes: u32) -> Box<Io> {
        let mut io = self.spare.pop().unwrap_or_else(|| Box::new(Io::new(0, action, 0, 0)));
        let mut data = std::mem::take(&mut io.data);
        let len = if matches!(action, Action::Read | Action::Write) { bytes as usize } else { 0 };
        data.resize(len, self.align);
        *io = Io { data, ..Io::new(tag, action, offset, bytes) };
        io
    }

    /// `io` is not needed any more.
    pub(super) fn recycle(&mut self, io: Box<Io>) {
        if self.spare.len() < SPARE_MAX && io.data.capacity() <= SPARE_BYTES_MAX {
            self.spare.push(io);
        }
    }

    /// A list of parts is not needed any more.
    pub(super) fn recycle_list(&mut self, mut parts: Vec<Option<Box<Io>>>) {
        parts.clear();
        if self.spare_parts.len() < SPARE_MAX && parts.capacity() <= SPARE_MAX {
            self.spare_parts.push(parts);
        }
    }

    /// Begin `request`, which is about these bytes of the device; its first parts go to `ios`. The elevator wants no part with more than
    /// `wanted_max` bytes: that counts for data which need not be durable at once.
    pub(super) fn begin(
        &mut self,
        request: R,
        action: Action,
        fua: bool,
        bytes: Range<u64>,
        wanted_max: u32,
        ios: &mut Ios,
    ) -> u32 {
        let is_data = action == Action::Read || action == Action::Write && !fua;
        let part_max = if is_data { self.part_max.min(wanted_max) } else { self.part_max };
        let operation = Operation {
            request,
            action,
            fua: fua && action != Action::Read,
            parts: self.spare_parts.pop().unwrap_or_default(),
            left: 0,
            rest: (bytes.start, bytes.end),
            part_max,
            error: None,
        };
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[at as usize] = Some(operation);
        if action == Action::Flush {
            let io = self.io(u64::from(at) << 32, action, 0, 0);
            self.add(at, io, ios);
        } else {
            self.more_parts(at, ios);
        }
        at
    }

    fn add(&mut self, at: u32, io: Box<Io>, ios: &mut Ios) {
        if let Some(operation) = &mut self.slots[at as usize] {
            operation.left += 1;
            if operation.action == Action::Read {
                operation.parts.push(None);
            }
        }
        ios.push(io);
    }

    /// Submit of what is left as much as may be in flight.
    fn more_parts(&mut self, at: u32, ios: &mut Ios) {
        while let Some(operation) = &mut self.slots[at as usize] {
            let (start, end) = operation.rest;
            let bounded = matches!(operation.action, Action::Read | Action::Write);
            if start == end || (!bounded && operation.left >= PARTS_MAX) {
                return;
            }
            // A part that does not begin with a sector must not touch more of them than a request may have.
            let most = u64::from(operation.part_max) - start % 512;
            let bytes = (end - start).min(most) as u32;
            operation.rest.0 += u64::from(bytes);
            let number = if operation.action == Action::Read { operation.parts.len() as u64 } else { 0 };
            let (action, fua) = (operation.action, operation.fua);
            let mut io = self.io(u64::from(at) << 32 | number, action, start, bytes);
            io.fua = fua;
            self.add(at, io, ios);
        }
    }

    /// A part came back; more of it goes to `ios`. When that was the last: the operation.
    pub(super) fn part_done(&mut self, io: Box<Io>, ios: &mut Ios) -> Option<Operation<R>> {
        let (at, number) = ((io.tag >> 32) as u32, (io.tag & 0xffff_ffff) as usize);
        let operation = self.slots.get_mut(at as usize)?.as_mut()?;
        operation.left -= 1;
        if let Err(fault) = io.result {
            operation.error.get_or_insert(fault);
            operation.rest.0 = operation.rest.1; // what is left would be in vain
        }
        if operation.action == Action::Read {
            operation.parts[number] = Some(io);
        } else {
            self.recycle(io);
        }
        self.more_parts(at, ios);
        self.take_done(at)
    }

    /// The request of the operation at `at`.
    pub(super) fn request(&self, at: u32) -> Option<&R> {
        self.slots.get(at as usize)?.as_ref().map(|operation| &operation.request)
    }

    /// The operation at `at` if it is done.
    pub(super) fn take_done(&mut self, at: u32) -> Option<Operation<R>> {
        let slot = &mut self.slots[at as usize];
        let done = slot.take_if(|operation| operation.left == 0 && operation.rest.0 == operation.rest.1);
        if done.is_some() {
            self.free.push(at);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the parts of a request have, bytes, where the elevator wants no more than 64 KiB at a time.
    fn parts(action: Action, fua: bool, bytes: Range<u64>) -> Vec<u32> {
        let (mut operations, mut ios) = (Operations::new(2048, 1), Ios::new());
        operations.begin((), action, fua, bytes, 64 << 10, &mut ios);
        ios.iter().map(|io| io.bytes).collect()
    }

    #[test]
    fn data_goes_in_the_parts_that_the_elevator_wants() {
        const MIB: u64 = 1 << 20;
        for action in [Action::Read, Action::Write] {
            assert_eq!(parts(action, false, 0..MIB), [64 << 10; 16]);
        }
        // The first ends where a part of whole sectors would.
        assert_eq!(parts(Action::Read, false, 100..(64 << 10) + 100), [(64 << 10) - 100, 100]);
        // What has to be durable at once and what carries no data stay whole.
        assert_eq!(parts(Action::Write, true, 0..MIB), [1 << 20]);
        assert_eq!(parts(Action::Trim, false, 0..MIB), [1 << 20]);
    }
}
