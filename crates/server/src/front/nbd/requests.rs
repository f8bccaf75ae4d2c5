//! What a request asks for, and whether it may.

use super::wire::{Error, Request, command, flag};
use super::{PAYLOAD_MAX, Session};
use crate::io::Action;

/// What is to be done for a request that may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    /// This on the device.
    Do(Action),
    /// Tell what is allocated; one extent only?
    Status {
        /// See there.
        one: bool,
    },
    /// Say good-bye.
    Disconnect,
}

/// Does its payload follow it?
pub(super) fn has_payload(request: &Request) -> bool {
    request.command == command::WRITE
}

/// Is it whole blocks of the export, as its client was told?
fn is_aligned(request: &Request, session: &Session) -> bool {
    let block = u64::from(session.export.device.back().block_bytes());
    (request.offset | u64::from(request.bytes)).is_multiple_of(block)
}

/// What `request` asks for, or the error that the protocol wants.
pub(super) fn check(request: &Request, session: &Session) -> Result<Task, Error> {
    let Request { flags, bytes, .. } = *request;
    let (task, allowed) = match request.command {
        command::READ => {
            (Task::Do(Action::Read), if session.structured { flag::FUA | flag::DF } else { flag::FUA })
        }
        command::WRITE => (Task::Do(Action::Write), flag::FUA),
        command::DISCONNECT => return Ok(Task::Disconnect),
        command::FLUSH => (Task::Do(Action::Flush), flag::FUA),
        command::TRIM => (Task::Do(Action::Trim), flag::FUA),
        command::WRITE_ZEROES => {
            let (punch, fast) = (flags & flag::NO_HOLE == 0, flags & flag::FAST_ZERO != 0);
            (Task::Do(Action::Zero { punch, fast }), flag::FUA | flag::NO_HOLE | flag::FAST_ZERO)
        }
        command::BLOCK_STATUS => {
            let one = flags & flag::REQ_ONE != 0;
            (Task::Status { one }, flag::FUA | flag::REQ_ONE)
        }
        _ => return Err(Error::Invalid),
    };
    if flags & !allowed != 0 {
        return Err(Error::Invalid);
    }
    let writes = matches!(task, Task::Do(Action::Write | Action::Trim | Action::Zero { .. }));
    if writes && session.export.is_read_only() {
        return Err(Error::Perm);
    }
    let end = request.offset.checked_add(bytes.into());
    let inside = end.is_some_and(|end| end <= session.export.bytes());
    match task {
        Task::Do(Action::Flush) if request.offset != 0 || bytes != 0 => Err(Error::Invalid),
        Task::Do(Action::Write | Action::Zero { .. }) if !inside => Err(Error::NoSpace),
        _ if !inside => Err(Error::Invalid),
        Task::Do(_) if !is_aligned(request, session) => Err(Error::Invalid),
        Task::Do(Action::Read | Action::Write) if bytes > PAYLOAD_MAX => Err(Error::Overflow),
        Task::Status { .. } if !session.allocation || bytes == 0 => Err(Error::Invalid),
        _ => Ok(task),
    }
}
