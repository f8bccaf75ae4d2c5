//! A `fairlift serve` as a process of its own.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairlift_server::client::Client;
use fairlift_server::net::Address;

use super::Folder;

pub const FAIRLIFT: &str = env!("CARGO_BIN_EXE_fairlift");

/// A running server, killed when it is dropped.
pub struct Served {
    pub child: Child,
    /// Who it is, if that is another user.
    pub user: Option<u32>,
    log: Arc<Mutex<Vec<String>>>,
}

/// A path in a folder, as a word of a command line.
pub fn path(folder: &Folder, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Wait until `what` holds; a minute is more than a crowded machine needs.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A client of the export "disk" at `socket`.
pub fn client(socket: &str) -> Client {
    client_of(socket, "disk")
}

/// A client of an export at `socket`.
pub fn client_of(socket: &str, export: &str) -> Client {
    let address = Address::Unix(Path::new(socket).to_owned());
    Client::connect(&address, export, true).expect("the server lets us in")
}

impl Served {
    /// `fairlift serve` with these words; it listens.
    pub fn start(words: &[&str]) -> Served {
        let mut command = Command::new(FAIRLIFT);
        command.arg("serve").args(words);
        Served::of(command)
    }

    /// Another way to start it.
    pub fn of(mut command: Command) -> Served {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it runs");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut first = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            let listens = line.contains("event=listening for=clients");
            first.push(line);
            if listens {
                break;
            }
        }
        if !first.last().is_some_and(|line| line.contains("event=listening for=clients")) {
            let how = child.wait();
            panic!("it ended before it listened: {how:?}, {first:?}");
        }
        let log = Arc::new(Mutex::new(first));
        let later = log.clone();
        // A server whose log nobody reads must not stop.
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| later.lock().expect("no panic").push(line));
        });
        Served { child, user: None, log }
    }

    /// Send it a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// SIGTERM; how it ended.
    pub fn end(mut self) -> ExitStatus {
        self.signal("-TERM");
        self.child.wait().expect("it ends")
    }

    /// Has it said this?
    pub fn has_logged(&self, text: &str) -> bool {
        self.log.lock().expect("no panic").iter().any(|line| line.contains(text))
    }

    /// Change a limit of its (prlimit(1) of util-linux).
    pub fn limit(&self, what: &str) {
        let mut command = Command::new("prlimit");
        command.args(["--pid", &self.child.id().to_string(), what]);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        assert!(command.status().expect("prlimit runs").success(), "{what}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended already needs none of this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
