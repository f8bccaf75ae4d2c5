//! What a bio is called on its way: its operation and group, or what a controller knows it by.

use crate::engine::OpId;
use crate::group::Cgroup;
use crate::kernel::controller::Ticket;
use crate::kernel::rq_qos::Slot;

/// A bio's cookie: its operation, and the group it is counted for.
pub(super) const fn cookie(op: OpId, cgroup: Cgroup) -> u64 {
    op.0 as u64 | (cgroup.0 as u64) << 32
}

pub(super) const fn from_cookie(cookie: u64) -> (OpId, Cgroup) {
    (OpId(cookie as u32), Cgroup((cookie >> 32) as u16))
}

/// In a cookie: it is a controller's ticket.
pub(super) const TICKET: u64 = 1 << 63;

pub(super) fn ticket_of(cookie: u64) -> Option<Ticket> {
    (cookie & TICKET != 0).then_some(cookie as Ticket)
}

/// In a cookie: it is what the controllers between merging and the request slot know a bio by.
pub(super) const QOS: u64 = 1 << 62;

pub(super) fn slot_of(cookie: u64) -> Option<Slot> {
    (cookie & (TICKET | QOS) == QOS).then_some(cookie as Slot)
}
