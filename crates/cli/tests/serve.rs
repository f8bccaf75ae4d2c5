//! `fairlift serve` and `fairlift ctl` as processes: wrong input, signals, and the system calls they give up.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::Folder;
use common::served::{FAIRLIFT, Served, client, path};
use fairlift_server::front::nbd::wire::flag;

fn run(words: &[&str]) -> Output {
    Command::new(FAIRLIFT).args(words).output().expect("it runs")
}

#[test]
fn wrong_input_ends_with_2_and_says_what_is_right() {
    let folder = Folder::new();
    let config = path(&folder, "a.toml");
    std::fs::write(&config, "listen = ['unix:/tmp/x']\n[[device]]\nname = 'd'\nrom = '1G'\n")
        .expect("a file");
    let place = format!("{config}:4");
    for (words, part) in [
        (vec!["serve", &config], place.as_str()),
        (vec!["serve", &config], "did you mean 'ram'?"),
        (vec!["serve", "/nowhere.toml"], "there is no such file"),
        (vec!["serve"], "--socket PATH, --tcp HOST:PORT or --systemd"),
        (vec!["serve", "--socket", "/tmp/x"], "--file, --ram, --model, --null"),
        (vec!["serve", "--socket", "/tmp/x", "--ram", "1Q"], "'1Q' is no size"),
        (vec!["serve", "--socket", "/tmp/x", "--ram", "1G", "--size", "2G"], "--model only"),
        (vec!["serve", "--socket", "/tmp/x", "--ram", "1G", "--elevator", "cfq"], "did you mean 'fl-cfq'?"),
        (vec!["serve", "--socket", "/tmp/x", "--model", "sata7200-209"], "sata7200-2009"),
        (vec!["serve", "--socket", "/tmp/x", "--file", "/nowhere"], "cannot open '/nowhere'"),
        (vec!["serve", "--socket", "/nowhere/x", "--ram", "1G"], "cannot listen"),
        (vec!["serve", "--ram", "1G", "--vhost-user", "/nowhere/x"], "cannot listen"),
        (vec!["serve", "--socket", "/tmp/x", "--ram", "1G", "--queues", "2"], "--vhost-user"),
        (vec!["serve", "--ram", "1G", "--vhost-user", "/tmp/x", "--guest-memory", "all"], "sealed, any"),
        (vec!["top", "unix:/nowhere"], "cannot look"),
        (vec!["top", "nowhere"], "unix:PATH, tcp:HOST:PORT"),
        (vec!["top", "--kernel", "--cgroups", "/nowhere"], "cannot look"),
        (vec!["top", "unix:/nowhere", "--interval", "0"], "0.1 to 3600"),
        (vec!["ctl", "unix:/nowhere", "show"], "cannot ask the server"),
        (vec!["ctl", "nowhere", "show"], "unix:PATH, tcp:HOST:PORT"),
    ] {
        let output = run(&words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(text.contains(part), "{words:?}: {text}");
    }
}

#[test]
fn sigterm_and_drain_end_it_in_order() {
    let folder = Folder::new();
    let (socket, control) = (path(&folder, "s"), format!("unix:{}", path(&folder, "c")));
    for by in ["signal", "ctl"] {
        let mut server = Served::start(&["--ram", "1M", "--socket", &socket, "--control", &control]);
        assert_eq!(client(&socket).write(0, 0, &[1; 512]).expect("a reply").error, 0);
        let shown = run(&["ctl", &control, "show"]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains("\"name\": \"disk\""), "{shown:?}");
        let top = run(&["top", &control, "--once", "--interval", "0.1"]);
        let text = String::from_utf8_lossy(&top.stdout).into_owned();
        let row = text.lines().last().expect("a row");
        let columns: Vec<&str> = row.split_whitespace().collect();
        assert_eq!((&columns[..3], top.status.code()), (&["disk", "disk", "100"][..], Some(0)), "{text}");
        match by {
            "signal" => server.signal("-TERM"),
            _ => assert_eq!(run(&["ctl", &control, "drain"]).status.code(), Some(0)),
        }
        assert_eq!(server.child.wait().expect("it ends").code(), Some(0), "{by}");
        assert!(!Path::new(&socket).exists(), "{by}: its socket is gone");
    }
}

#[test]
fn each_thread_gives_up_system_calls_unless_told_otherwise() {
    let folder = Folder::new();
    let socket = path(&folder, "s");
    for (more, mode) in [(vec![], "2"), (vec!["--no-seccomp"], "0")] {
        let mut words = vec!["--ram", "1M", "--socket", &socket];
        words.extend(more);
        let mut server = Served::start(&words);
        let mut client = client(&socket);
        assert_eq!(client.write(0, 0, &[1; 512]).expect("a reply").error, 0);
        for thread in std::fs::read_dir(format!("/proc/{}/task", server.child.id())).expect("threads") {
            let status = thread.expect("a thread").path().join("status");
            let text = std::fs::read_to_string(status).expect("a thread");
            assert!(text.contains(&format!("\nSeccomp:\t{mode}\n")), "{words:?}: {text}");
        }
        server.signal("-TERM");
        assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    }
}

/// All back ends and engines behind one confined process: each serves, is traced, and ends in order.
#[test]
fn every_back_end_serves_without_the_calls_that_were_given_up() {
    let folder = Folder::new();
    let (socket, control, file) =
        (path(&folder, "s"), format!("unix:{}", path(&folder, "c")), path(&folder, "disk.img"));
    std::fs::File::create(&file).and_then(|file| file.set_len(1 << 20)).expect("a file");
    for back in [
        vec!["--ram", "1M"],
        vec!["--null", "1M"],
        vec!["--model", "flash-kd", "--size", "1M"],
        vec!["--file", &file, "--engine", "threads"],
        vec!["--file", &file, "--engine", "auto", "--direct"],
    ] {
        let mut words = vec!["--socket", &socket, "--control", &control];
        words.extend(&back);
        let mut server = Served::start(&words);
        let trace = path(&folder, "t.blktrace.0");
        assert_eq!(run(&["ctl", &control, "trace", "disk", &trace]).status.code(), Some(0), "{back:?}");
        let mut client = client(&socket);
        assert_eq!(client.write(flag::FUA, 4096, &[1; 4096]).expect("a reply").error, 0, "{back:?}");
        assert_eq!(client.write(0, 8192, &[2; 4096]).expect("a reply").error, 0, "{back:?}");
        assert_eq!(client.flush().expect("a reply").error, 0, "{back:?}");
        assert_eq!(client.read(4096, 4096).expect("a reply").data.len(), 4096, "{back:?}");
        assert_eq!(run(&["top", &control, "--once", "--interval", "0.1"]).status.code(), Some(0), "{back:?}");
        assert_eq!(run(&["ctl", &control, "drain"]).status.code(), Some(0), "{back:?}");
        assert_eq!(server.child.wait().expect("it ends").code(), Some(0), "{back:?}");
        assert!(std::fs::metadata(&trace).expect("a trace").len() > 0, "{back:?}");
        assert!(!Path::new(&socket).exists(), "{back:?}: its socket is gone");
    }
}
