//! `fairlift serve` where the system has nothing left for it: file descriptors, threads, places for connections, io_uring, space.
//! New clients are refused and told of in the log, those that are there go on, and all is well once there is something again.
//! And where what is behind it is slow or goes away, and a client takes no answers: nobody else is affected.

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::Folder;
use common::served::{FAIRLIFT, Served, client, client_of, eventually, path};
use fairlift_server::client::Client;
use fairlift_server::front::nbd::wire::{command, flag};
use fairlift_server::net::{Address, Stream};
use seccompiler::{SeccompAction, SeccompFilter};

/// A user that has no other processes, where the test may become it.
const NOBODY: u32 = 65534;

/// It is served.
fn works(client: &mut Client, at: u64) {
    assert_eq!(client.write(0, at, &[at as u8; 512]).expect("a reply").error, 0);
    assert_eq!(client.read(at, 512).expect("a reply").data, [at as u8; 512]);
}

/// A client that says nothing; `true`: the server greets it, `false`: it hangs up.
fn is_greeted(stream: &mut UnixStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream.read_exact(&mut [0; 18]).is_ok()
}

#[test]
fn out_of_file_descriptors_new_clients_wait_and_others_go_on() {
    let folder = Folder::new();
    let socket = path(&folder, "s");
    let server = Served::start(&["--ram", "1M", "--socket", &socket]);
    let mut first = client(&socket);
    works(&mut first, 512);
    // No more than it has.
    server.limit("--nofile=3:20000");
    let mut late = UnixStream::connect(&socket).expect("there is room in the line");
    eventually("it says so", || server.has_logged("event=cannot-accept why=\"Too many open files"));
    works(&mut first, 1024);
    server.limit("--nofile=20000:20000");
    assert!(is_greeted(&mut late), "it is next");
    works(&mut client(&socket), 2048);
    drop(late);
    assert_eq!(server.end().code(), Some(0));
}

/// A connection needs a descriptor for its answers besides its own.
#[test]
fn a_client_for_whom_a_file_descriptor_is_missing_is_let_go() {
    let folder = Folder::new();
    let socket = path(&folder, "s");
    let server = Served::start(&["--ram", "1M", "--socket", &socket]);
    let mut first = client(&socket);
    works(&mut first, 512);
    let is_free = |number: &u32| !Path::new(&format!("/proc/{}/fd/{number}", server.child.id())).exists();
    // Its own descriptor is to be the last one.
    let second = (0..).filter(is_free).nth(1).expect("numbers do not end");
    server.limit(&format!("--nofile={second}:20000"));
    let address = Address::Unix(socket.clone().into());
    let refused = Client::connect(&address, "disk", true).and_then(|mut client| client.read(0, 512));
    assert!(refused.is_err(), "it is let go");
    eventually("it says so", || server.has_logged("event=connection-ended why=\"no file descriptor"));
    works(&mut first, 1024);
    server.limit("--nofile=20000:20000");
    works(&mut client(&socket), 2048);
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn out_of_threads_new_clients_are_refused_and_others_go_on() {
    let folder = Folder::new();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).expect("a folder for all");
    let socket = path(&folder, "s");
    let mut command = Command::new(FAIRLIFT);
    command.args(["serve", "--ram", "1M", "--socket", &socket]);
    // The limit does not hold for root.
    let is_root = std::fs::metadata("/proc/self").expect("this process").uid() == 0;
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut server = Served::of(command);
    server.user = is_root.then_some(NOBODY);
    let mut first = client(&socket);
    works(&mut first, 512);
    server.limit("--nproc=1:");
    let mut late = UnixStream::connect(&socket).expect("it listens");
    assert!(!is_greeted(&mut late), "it is refused");
    eventually("it says so", || server.has_logged("event=connection-refused why=\"Resource temporarily"));
    works(&mut first, 1024);
    server.limit("--nproc=10000:");
    works(&mut client(&socket), 2048);
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn more_connections_than_there_are_places_are_refused() {
    let folder = Folder::new();
    let socket = path(&folder, "s");
    let server = Served::start(&["--ram", "1M", "--socket", &socket]);
    server.limit("--nofile=4096:20000");
    let mut first = client(&socket);
    let mut others: Vec<UnixStream> =
        (1..1024).map(|_| UnixStream::connect(&socket).expect("it listens")).collect();
    assert!(others.iter_mut().all(is_greeted), "1,024 have a place");
    let mut late = UnixStream::connect(&socket).expect("it listens");
    assert!(!is_greeted(&mut late), "the next has none");
    eventually("it says so", || server.has_logged("event=connection-refused why=\"too many\" most=1024"));
    works(&mut first, 512);
    others.truncate(1000);
    eventually("a place is free again", || {
        UnixStream::connect(&socket).is_ok_and(|mut next| is_greeted(&mut next))
    });
    drop(others);
    assert_eq!(server.end().code(), Some(0));
}

/// As Docker's default profile does.
fn forbid_io_uring() {
    let rules = [(libc::SYS_io_uring_setup, Vec::new())].into_iter().collect();
    let arch = std::env::consts::ARCH.try_into().expect("an architecture with filters");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(1), arch);
    let program: seccompiler::BpfProgram = filter.and_then(TryInto::try_into).expect("a filter");
    seccompiler::apply_filter(&program).expect("the kernel has filters");
}

#[test]
fn where_io_uring_is_forbidden_threads_serve_and_the_log_says_so() {
    let folder = Folder::new();
    let (socket, file) = (path(&folder, "s"), path(&folder, "disk.img"));
    std::fs::write(&file, vec![0; 1 << 20]).expect("a file");
    let confined = std::thread::spawn(move || {
        // Programs that this thread starts are forbidden it as well.
        forbid_io_uring();
        let server = Served::start(&["--file", &file, "--direct", "--socket", &socket]);
        assert!(server.has_logged("level=warn event=engine"), "a warning");
        assert!(
            server.has_logged("engine=threads why=\"io_uring: Operation not permitted"),
            "and its reason"
        );
        let mut client = client(&socket);
        assert_eq!(client.write(flag::FUA, 4096, &[7; 8192]).expect("a reply").error, 0);
        assert_eq!(client.flush().expect("a reply").error, 0);
        assert_eq!(client.read(4096, 8192).expect("a reply").data, [7; 8192]);
        assert_eq!(server.end().code(), Some(0));
        let words = ["serve", "--file", &file, "--engine", "io_uring", "--socket", &socket];
        let output = Command::new(FAIRLIFT).args(words).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), text.contains("io_uring: Operation not permitted")),
            (Some(2), true),
            "{text}"
        );
    });
    confined.join().expect("it served");
}

#[test]
fn a_full_file_system_is_no_space_for_its_writers_and_readers_go_on() {
    let folder = Folder::new();
    let (socket, disk) = (path(&folder, "s"), path(&folder, ""));
    // A megabyte in a namespace of its own, which needs no privileges.
    let script =
        "mount -t tmpfs -o size=1M none \"$1\" && truncate -s 8M \"$1/disk.img\" && shift && exec \"$@\"";
    for engine in ["threads", "io_uring"] {
        let mut command = Command::new("unshare");
        let mount = format!("{disk}mount-{engine}");
        std::fs::create_dir(&mount).expect("a folder");
        command.args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            &mount,
            FAIRLIFT,
            "serve",
        ]);
        command.args(["--file", &format!("{mount}/disk.img"), "--engine", engine, "--socket", &socket]);
        let server = Served::of(command);
        let (mut one, mut two) = (client(&socket), client(&socket));
        let errors: Vec<u32> = (0..8)
            .map(|at| one.write(0, at << 18, &[at as u8 + 1; 1 << 18]).expect("a reply").error)
            .collect();
        assert_eq!(errors[..3], [0; 3], "{engine}: there is space");
        assert_eq!(errors[4..], [28; 4], "{engine}: ENOSPC");
        assert_eq!(two.read(0, 4096).expect("a reply").data, [1; 4096], "{engine}");
        // What is given back can be written again.
        assert_eq!(one.call(4, 0, 0, 1 << 18, &[]).expect("a reply").error, 0, "{engine}: a trim");
        works(&mut two, 4 << 20);
        assert_eq!(server.end().code(), Some(0));
    }
}

/// The answer of a file that somebody has cut short is an error, not zeroes.
#[test]
fn a_file_that_goes_away_fails_its_reads_and_other_devices_go_on() {
    for (engine, direct) in [("threads", false), ("io_uring", false), ("auto", true)] {
        let folder = Folder::new();
        let (socket, file) = (path(&folder, "s"), path(&folder, "disk.img"));
        std::fs::write(&file, vec![9; 8 << 20]).expect("a file");
        let config = format!(
            "listen = ['unix:{socket}']\n[[device]]\nname = 'f'\nfile = '{file}'\nengine = '{engine}'\ndirect = {direct}\n\
             [[device]]\nname = 'm'\nram = '1M'\n\
             [[export]]\nname = 'disk'\ndevice = 'f'\n[[export]]\nname = 'other'\ndevice = 'm'\n"
        );
        let folder = folder.with("serve.toml", config);
        let server = Served::start(&[&path(&folder, "serve.toml")]);
        let (mut lost, mut other) = (client(&socket), client_of(&socket, "other"));
        assert_eq!(lost.read(4 << 20, 8192).expect("a reply").data, [9; 8192], "{engine}");
        let image = std::fs::File::options().write(true).open(&file).expect("the file");
        image.set_len(1 << 20).expect("it can be cut");
        assert_eq!(lost.read(4 << 20, 8192).expect("a reply").error, 5, "{engine}: all of it is gone");
        assert_eq!(
            lost.read((1 << 20) - 4096, 8192).expect("a reply").error,
            5,
            "{engine}: half of it is gone"
        );
        assert_eq!(lost.read(0, 8192).expect("a reply").data, [9; 8192], "{engine}: this is there");
        works(&mut other, 512);
        image.set_len(8 << 20).expect("it can grow");
        assert_eq!(lost.read(4 << 20, 8192).expect("a reply").data, [0; 8192], "{engine}: it is back");
        assert_eq!(server.end().code(), Some(0), "{engine}");
    }
}

#[test]
fn a_back_end_that_does_not_answer_delays_no_other_device_and_the_end_by_ten_seconds() {
    // A request takes it ten seconds, and it serves one at a time.
    let table = "model = 'timed'\nsectors = 2097152\n[limits]\nqueue_depth = 32\nrotational = false\n\
                 write_cache = false\nfua = false\nmax_kib = 512\nmax_segments = 128\n\
                 [timing]\nchannels = 1\nfixed_us = 10000000\nrate_mb_per_s = 0\nnear_us = 0\nfar_us = 0\nflush_us = 0\n";
    let folder = Folder::new().with("slow.toml", table);
    let (socket, slow) = (path(&folder, "s"), path(&folder, "slow.toml"));
    let config = format!(
        "listen = ['unix:{socket}']\n[[device]]\nname = 'slow'\nmodel = '{slow}'\nsize = '1G'\n\
         [[device]]\nname = 'm'\nram = '1M'\n\
         [[export]]\nname = 'disk'\ndevice = 'slow'\n[[export]]\nname = 'other'\ndevice = 'm'\n"
    );
    let folder = folder.with("serve.toml", config);
    let mut server = Served::start(&[&path(&folder, "serve.toml")]);
    let (mut stuck, mut other) = (client(&socket), client_of(&socket, "other"));
    for at in 0..200 {
        let request = stuck.request(command::READ, 0, at << 16, 4096);
        stuck.send(&request, &[]).expect("sent");
    }
    for _ in 0..200 {
        works(&mut other, 512);
    }
    // Another client of the same device gets in, though not served.
    let another = client(&socket);
    let began = Instant::now();
    server.signal("-TERM");
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    let took = began.elapsed();
    assert!((9..60).contains(&took.as_secs()), "it waits for ten seconds, not {took:?}");
    // One may be done by now.
    eventually("it says so", || server.has_logged("event=ended device=slow unfinished="));
    assert!(!server.has_logged("event=ended device=slow unfinished=0 "), "they are not");
    drop(another);
}

/// Resident memory of the server, MiB.
fn resident_mib(server: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it has memory");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") / 1024
}

#[test]
fn clients_that_never_read_cost_no_more_memory_than_they_may() {
    const DEAF: usize = 16;
    let folder = Folder::new();
    let socket = path(&folder, "s");
    let config = format!(
        "listen = ['unix:{socket}']\n[connection]\nrequests = 64\nbytes = '1M'\n\
         [[device]]\nname = 'm'\nram = '64M'\n[[export]]\nname = 'disk'\ndevice = 'm'\n"
    );
    let folder = folder.with("serve.toml", config);
    let server = Served::start(&[&path(&folder, "serve.toml")]);
    let before = resident_mib(&server);
    let mut clients: Vec<Client> = (0..DEAF).map(|_| client(&socket)).collect();
    for deaf in &mut clients {
        let request = deaf.request(command::READ, 0, 0, 256 << 10).to_bytes();
        let Stream::Unix(stream) = &mut deaf.stream else { unreachable!("it is a socket") };
        stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        // 16 GiB of answers.
        let all = request.repeat(1 << 16);
        assert!(stream.write_all(&all).is_err(), "the server has stopped to read");
    }
    let grown = resident_mib(&server).saturating_sub(before);
    // A connection may have `bytes` and one more request, as payload and on its way.
    assert!(grown < 4 * DEAF as u64, "{grown} MiB for {DEAF} clients of 1.25 MiB each");
    works(&mut client(&socket), 512);
    drop(clients);
    assert_eq!(server.end().code(), Some(0));
}
