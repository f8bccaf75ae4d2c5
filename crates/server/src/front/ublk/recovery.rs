//! A disk that outlives its server (`UBLK_F_USER_RECOVERY`): when the server is killed, the kernel keeps the disk and its requests, also
//! those that the server had taken, until another server takes the disk over.
//!
//! What a dead server had taken is asked for once more (`UBLK_F_USER_RECOVERY_REISSUE`). A write may so be done twice, with the
//! same data; only a client with two writes of one place in flight can see that, and those have no order anyway.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Instant;

use super::{APPEARS, LOOK, flag};
use crate::log::{Level, log};
use crate::uring::ublk::{Command, Control};

/// `UBLK_S_DEV_DEAD`: it was added and not started, or stopped.
const DEAD: u16 = 0;

/// A `u16` of the kernel's structure.
fn word(info: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([info[at], info[at + 1]])
}

/// Take over the disk of that number, for which `asked` would be added with `parameters`; `false`: there is none to take over.
///
/// # Errors
/// A sentence: it is another disk, or another process serves it.
pub(super) fn take_over(
    control: &mut Control,
    number: u32,
    asked: &[u8; 64],
    parameters: &[u8; 60],
) -> Result<bool, String> {
    let mut info = [0; 64];
    match control.command(Command::GetInfo, number, 0, &mut info) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(false),
        answer => answer.map_err(|error| format!("cannot ask for /dev/ublkb{number}: {error}"))?,
    }
    let (_, flags) = super::granted(&info);
    if flags & flag::RECOVERY != flag::RECOVERY || word(&info, 4) == DEAD {
        return Ok(false);
    }
    let mut has = *parameters;
    has[8..].fill(0);
    control
        .command(Command::GetParameters, number, 0, &mut has)
        .map_err(|error| format!("cannot ask for the size of /dev/ublkb{number}: {error}"))?;
    // Queues and their depth; all but the length and the kinds of parameters.
    if info[..4] != asked[..4] || has[8..] != parameters[8..] {
        return Err(format!(
            "the /dev/ublkb{number} that waits for a server has another size, block size, cache, or other queues: serve it as \
             before, or remove it (a start without ublk_recovery does)"
        ));
    }
    // The kernel notices a moment after its death that the old server is gone.
    let until = Instant::now() + APPEARS;
    loop {
        match control.command(Command::StartRecovery, number, 0, &mut []) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < until => {
                thread::sleep(LOOK);
            }
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                return Err(format!("another process serves /dev/ublkb{number}"));
            }
            Err(error) => return Err(format!("the kernel does not hand over /dev/ublkb{number}: {error}")),
            Ok(()) => break,
        }
    }
    log(Level::Info, "took-over-disk", &[("address", &format!("/dev/ublkb{number}"))]);
    Ok(true)
}

/// All queues are served: the kernel asks for what has waited.
pub(super) fn go_on(control: &mut Control, number: u32) -> io::Result<()> {
    control.command(Command::EndRecovery, number, std::process::id().into(), &mut [])
}
