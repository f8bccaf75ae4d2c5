//! What a thread of the server may not do any more. That it may do all it needs, every other test here shows: their servers are
//! confined, too (support).

use std::io::ErrorKind::PermissionDenied;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use fairlift_server::seccomp::confine_thread;
use rustix::fs::{Access, Mode, access, chmod, mkdir};
use rustix::io::Errno;

#[test]
fn programs_networks_and_whatever_serving_needs_not_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let address = listener.local_addr().expect("an address");
    let confined = std::thread::spawn(move || {
        confine_thread().expect("a filter");
        let refused = [
            ("a program", Command::new("true").status().map(drop)),
            ("a server of its own", TcpListener::bind("127.0.0.1:0").map(drop)),
            ("a connection to a network", TcpStream::connect(address).map(drop)),
            ("a datagram to a network", UdpSocket::bind("127.0.0.1:0").map(drop)),
            ("a hard link", std::fs::hard_link("/proc/self/exe", "/tmp/fairlift-link")),
            ("another name", std::fs::rename("/nowhere", "/nowhere-else")),
        ];
        for (what, answer) in refused {
            assert_eq!(answer.map_err(|error| error.kind()), Err(PermissionDenied), "{what}");
        }
        let mode = Mode::from_raw_mode(0o700);
        assert_eq!(mkdir(Path::new("/tmp"), mode), Err(Errno::PERM), "a folder");
        assert_eq!(chmod("/tmp", mode), Err(Errno::PERM), "another mode");
        assert_eq!(access("/tmp", Access::EXISTS), Err(Errno::PERM), "a look");
        // What it needs goes on.
        assert!(std::fs::File::open("/proc/self/exe").is_ok(), "a file");
        assert!(UnixDatagram::unbound().is_ok(), "a word to systemd");
        assert!(std::thread::spawn(|| TcpListener::bind("127.0.0.1:0").is_err()).join().expect("a thread"));
    });
    confined.join().expect("it survives what it is refused");
    // Others are not confined.
    assert!(TcpStream::connect(address).is_ok());
}
