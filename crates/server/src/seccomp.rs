//! What the server may still ask the kernel for once it serves (seccomp(2)).
//!
//! A client that found an error in the server's code could do no more than the server may. So, before it takes its first client,
//! the server gives up every system call that it does not need: all others fail with EPERM. It can then start no program, make no
//! memory executable, connect to no network and open no device of its own; it can still open and remove files (traces, its
//! sockets). What an io_uring does, the filter does not see.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Calls that are allowed whatever their arguments are.
const ALLOWED: &[libc::c_long] = &[
    // Threads and memory.
    libc::SYS_brk,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_prctl,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    // Time and randomness.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    // Clients.
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_ppoll,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    // Files.
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fallocate,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_io_uring_enter,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_statx,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Older calls, which some C libraries use for the same.
#[cfg(target_arch = "x86_64")]
const OLDER: &[libc::c_long] = &[
    libc::SYS_epoll_wait,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_stat,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

/// Calls that are allowed with such an argument: its number, and how it must compare.
fn limited() -> [(libc::c_long, u8, SeccompCmpOp, u64); 5] {
    let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
    [
        (libc::SYS_mmap, 2, executable.clone(), 0),
        (libc::SYS_mprotect, 2, executable, 0),
        // To tell systemd of the end.
        (libc::SYS_socket, 0, SeccompCmpOp::Eq, libc::AF_UNIX as u64),
        (libc::SYS_ioctl, 1, SeccompCmpOp::Eq, libc::FIONBIO),
        (libc::SYS_ioctl, 1, SeccompCmpOp::Eq, libc::FIOCLEX),
    ]
}

fn program() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> =
        ALLOWED.iter().chain(OLDER).map(|call| (*call, Vec::new())).collect();
    for (call, argument, how, value) in limited() {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)?;
        rules.entry(call).or_default().push(SeccompRule::new(vec![condition])?);
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
    Ok(filter.try_into()?)
}

/// For all threads of the process and those that they start. There is no way back.
///
/// # Errors
/// When the kernel or the machine has no such filters.
pub fn confine_process() -> Result<(), String> {
    let made = program().and_then(|program| seccompiler::apply_filter_all_threads(&program));
    made.map_err(|error| error.to_string())
}

/// For this thread and those that it starts.
///
/// # Errors
/// When the kernel or the machine has no such filters.
pub fn confine_thread() -> Result<(), String> {
    let made = program().and_then(|program| seccompiler::apply_filter(&program));
    made.map_err(|error| error.to_string())
}
