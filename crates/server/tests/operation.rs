//! Operation: configurations that are wrong, the control socket, metrics, the end.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use fairlift_server::config::Config;
use fairlift_server::net::Address;
use fairlift_trace::{Action, Op, Options, TraceReader};
use serde_json::Value;
use support::{Host, eventually};

/// The error that a configuration gives.
fn error(text: &str) -> String {
    let text = text.replace("LISTEN", "listen = ['unix:/tmp/x']");
    Config::parse(&text, "a.toml").expect_err("it is wrong").to_string()
}

#[test]
fn a_wrong_configuration_is_told_by_line_and_nearest_word() {
    let device = "LISTEN\n[[device]]\nname='d'\nram='1G'\n";
    let cases = [
        ("LISTEN\nlissten = 3\n".to_owned(), "a.toml:2: ", "did you mean 'listen'?"),
        ("LISTEN\n[[device]]\nname='d'\nrum='1G'\n".to_owned(), "a.toml:4: ", "did you mean 'ram'?"),
        ("LISTEN\n[[device]]\nname='d'\nram='1X'\n".to_owned(), "a.toml:4: ", "'1X' is no size"),
        ("LISTEN\n[[device]]\nname='d'\n".to_owned(), "a.toml:2: ", "one of file, ram, null, model"),
        ("LISTEN\n[[device]]\nname='d'\nmodel='sata7200-2008'\n".to_owned(), "a.toml:4: ", "sata7200-2009"),
        (format!("{device}elevator='fl-dedline'\n"), "a.toml:5: ", "did you mean 'fl-deadline'?"),
        (format!("{device}elevator='fl-cfq:slice_idel=1'\n"), "a.toml:5: ", "did you mean 'slice_idle'?"),
        (format!("{device}size='2G'\n"), "a.toml:2: ", "size goes with model only"),
        (format!("{device}[[export]]\nname='e'\ndevice='dd'\n"), "a.toml:7: ", "did you mean 'd'?"),
        (
            format!("{device}[[export]]\nname='e'\ndevice='d'\nweight=0\n"),
            "a.toml:8: ",
            "not from 1 to 10000",
        ),
        (
            format!("{device}[[export]]\nname='e'\ndevice='d'\nublk='any'\nublk_recovery=true\n"),
            "a.toml:9: ",
            "needs the disk's number",
        ),
        (
            format!("{device}[[export]]\nname='e'\ndevice='d'\nreserve=96\n"),
            "a.toml:8: ",
            "not from 0 to 95 per cent",
        ),
        (
            format!("{device}[[export]]\nname='e'\ndevice='d'\ngoal='soon'\n"),
            "a.toml:8: ",
            "such as 500us, 10ms or 2s",
        ),
        (
            format!("{device}[[export]]\nname='e'\ndevice='d'\nmax='rpbs=1M'\n"),
            "a.toml:8: ",
            "did you mean 'rbps'?",
        ),
        (
            format!("{device}[[export]]\nname='e'\ndevice='d'\nclass='best'\n"),
            "a.toml:8: ",
            "expected one of",
        ),
        (device.to_owned(), "a.toml:1: ", "nothing to serve"),
        ("listen = ['nowhere']\n".to_owned(), "a.toml:1: ", "allowed: unix:PATH, tcp:HOST:PORT"),
        ("listen = [\n".to_owned(), "a.toml:", ""),
    ];
    for (text, place, part) in cases {
        let error = error(&text);
        assert!(error.starts_with(place) && error.contains(part), "{text}\n{error}");
    }
}

#[test]
fn an_export_must_lie_within_its_device() {
    let text = "listen = ['unix:/tmp/fairlift-never']\n[[device]]\nname='d'\nram='1M'\n[[export]]\nname='e'\ndevice='d'\noffset='1k'\nsize='1M'\n";
    let config = Config::parse(text, "a.toml").expect("it can be read");
    let error =
        fairlift_server::server::Server::new(&config).map(|_| ()).expect_err("it does not fit").to_string();
    assert_eq!(error, "a.toml:5: export 'e': it ends 1024 bytes behind the device, which has 1048576 bytes");
}

const TWO: &str = "[[device]]\nname='m'\nram='16M'\n[[export]]\nname='a'\ndevice='m'\nsize='8M'\nweight=300\nmax='riops=1000'\n[[export]]\nname='b'\ndevice='m'\noffset='8M'\n";

#[test]
fn reserves_and_goals_change_live_and_are_refused_together() {
    let host = Host::start(TWO);
    let set = |line: &str| host.ctl(&format!(r#"{{"do":"set",{line}}}"#));
    assert_eq!(set(r#""export":"a","reserve":60,"goal":"10ms""#)["ok"], true);
    let refused = set(r#""export":"b","reserve":50"#);
    let why = refused["error"].as_str().expect("not both can be kept");
    assert!(why.contains("35 % are left"), "{why}");
    assert_eq!(set(r#""export":"b","reserve":35"#)["ok"], true);
    let shown = host.ctl(r#"{"do":"show"}"#);
    let (a, b) = (&shown["exports"][0], &shown["exports"][1]);
    assert_eq!((&a["reserve"], &a["goal_ns"]), (&60.into(), &10_000_000.into()));
    assert_eq!((&b["reserve"], &b["goal_ns"]), (&35.into(), &Value::Null));
    assert_eq!(set(r#""export":"a","goal":"0""#)["ok"], true);
    assert_eq!(host.ctl(r#"{"do":"show"}"#)["exports"][0]["goal_ns"], Value::Null);
    let wrong = set(r#""export":"a","goal":"soon""#);
    assert!(wrong["error"].as_str().is_some_and(|error| error.contains("allowed: 0, up to 3600s")));
}

#[test]
fn shares_and_elevators_change_live() {
    let host = Host::start(TWO);
    let shown = host.ctl(r#"{"do":"show"}"#);
    assert_eq!(
        (&shown["exports"][0]["weight"], &shown["exports"][0]["max"]["riops"]),
        (&300.into(), &1000.into())
    );
    let mut client = host.client("a", true);
    let writes = std::thread::spawn(move || {
        for at in 0..2000u64 {
            assert_eq!(client.write(0, at % 2000 * 4096, &[at as u8; 4096]).expect("a reply").error, 0);
        }
        client
    });
    for elevator in ["fl-cfq", "none", "fair", "fl-noop:group_idle=0", "mq-deadline", "fl-deadline"] {
        let line = format!(r#"{{"do":"elevator","device":"m","elevator":"{elevator}"}}"#);
        assert_eq!(host.ctl(&line)["ok"], true, "{elevator}");
        assert_eq!(host.ctl(r#"{"do":"show"}"#)["devices"][0]["elevator"], elevator);
    }
    let mut client = writes.join().expect("no write fails");
    assert!(client.read(1999 * 4096, 4096).expect("a reply").data.iter().all(|byte| *byte == 1999u64 as u8));
    assert_eq!(
        host.ctl(r#"{"do":"set","export":"a","weight":50,"class":"idle","max":"max"}"#)["error"]
            .as_str()
            .map(|e| e.contains("max has no 'max'")),
        Some(true)
    );
    assert_eq!(
        host.ctl(r#"{"do":"set","export":"a","weight":50,"class":"idle","max":"riops=max"}"#)["ok"],
        true
    );
    let shown = host.ctl(r#"{"do":"show"}"#);
    let export = &shown["exports"][0];
    assert_eq!(
        (&export["weight"], &export["class"], &export["max"]["riops"]),
        (&50.into(), &"idle".into(), &0.into())
    );
    for (line, part) in [
        (r#"{"do":"set","export":"aa","weight":50}"#, "did you mean 'a'?"),
        (r#"{"do":"set","export":"a","weight":0}"#, "from 1 to 10000"),
        (r#"{"do":"elevator","device":"m","elevator":"cfq"}"#, "did you mean 'fl-cfq'?"),
        (r#"{"do":"sett"}"#, "unknown variant"),
        ("nonsense", "expected"),
    ] {
        let answer = host.ctl(line);
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(part)), "{line}: {answer}");
    }
}

#[test]
fn exports_come_and_go() {
    let host = Host::start(TWO);
    let add = r#"{"do":"add","device":"m","name":"c","offset":"4M","size":"1M","weight":7}"#;
    assert_eq!(host.ctl(add)["ok"], true);
    assert!(host.ctl(add)["error"].as_str().is_some_and(|error| error.contains("already")));
    let mut client = host.client("c", true);
    assert_eq!(client.write(0, 0, b"there").expect("a reply").error, 0);
    assert_eq!(host.ctl(r#"{"do":"remove","export":"c"}"#)["ok"], true);
    assert!(client.read(0, 5).is_err(), "its connections end");
    assert_eq!(host.client("a", true).read(4 << 20, 5).expect("a reply").data, b"there");
}

#[test]
fn an_export_is_resized_within_its_device() {
    let host = Host::start(
        "[[device]]\nname='m'\nram='8M'\n[[export]]\nname='it'\ndevice='m'\noffset='1M'\nsize='2M'\n",
    );
    let mut client = host.client("it", true);
    let resize = |size: &str| host.ctl(&format!(r#"{{"do":"resize","export":"it","size":"{size}"}}"#));
    assert_eq!(client.write(0, 3 << 20, &[1; 512]).expect("a reply").error, 28);
    assert_eq!(resize("7M")["ok"], true);
    // A connection that is there may use it; a new one is told.
    assert_eq!(client.write(0, 3 << 20, &[1; 512]).expect("a reply").error, 0);
    assert_eq!(host.client("it", true).bytes, 7 << 20);
    assert_eq!(resize("512k")["ok"], true);
    assert_eq!(client.read(1 << 20, 512).expect("a reply").error, 22);
    assert_eq!(host.client("it", true).bytes, 512 << 10);
    assert!(resize("8M")["error"].as_str().expect("an error").contains("1048576 bytes behind the device"));
    assert!(resize("8Q")["error"].as_str().expect("an error").contains("'8Q' is no size"));
    assert_eq!(host.client("it", true).bytes, 512 << 10, "what is refused changes nothing");
}

#[test]
fn metrics_are_prometheus_text() {
    let host = Host::start(TWO);
    host.client("a", true).write(0, 0, &[1; 4096]).expect("a reply");
    let mut stream = Address::Unix(host.dir.join("metrics")).connect().expect("connect");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answered");
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n"), "{text}");
    for line in [
        "fairlift_requests_total{export=\"a\"} 1\n",
        "fairlift_weight{export=\"a\"} 300\n",
        "# TYPE fairlift_device_requests_total counter\n",
        "fairlift_device_requests_total{device=\"m\"} 1\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_end_answers_what_was_sent_and_lets_nobody_in() {
    let mut host = Host::start(TWO);
    let mut client = host.client("b", true);
    assert_eq!(client.write(0, 0, &[1; 4096]).expect("a reply").error, 0);
    host.server.drain();
    eventually("the connection ends", || host.server.connections() == 0);
    host.end();
    assert!(client.read(0, 512).is_err());
}

#[test]
fn a_socket_that_nobody_listens_to_is_taken_over_and_another_is_not() {
    let dir = support::folder();
    drop(std::os::unix::net::UnixListener::bind(dir.join("nbd")).expect("a socket left behind"));
    let host = Host::start_in(dir, TWO);
    host.client("a", false);
    let text = format!("listen = ['unix:{}/nbd']\n{TWO}", host.dir.display());
    let config = Config::parse(&text, "a.toml").expect("it can be read");
    let error =
        fairlift_server::server::Server::new(&config).map(|_| ()).expect_err("it is taken").to_string();
    assert!(error.contains("cannot listen"), "{error}");
    host.client("a", false);
}

/// Each bio comes, is issued and is done, in that order, and adjacent ones are one request.
#[test]
fn a_trace_has_what_was_served() {
    let host = Host::start(TWO);
    let file = host.dir.join("m.blktrace.0");
    let words = |file: &str| format!("{{\"do\":\"trace\",\"device\":\"m\",\"file\":{file}}}");
    let (mut before, mut later) = (host.client("a", true), host.client("b", true));
    assert_eq!(before.write(0, 0, &[1; 4096]).expect("a reply").error, 0);
    assert_eq!(host.ctl(&words(&format!("{:?}", file.display().to_string())))["ok"], true);
    for at in 0..100u64 {
        assert_eq!(before.write(0, at * 8192, &[1; 4096]).expect("a reply").error, 0);
        assert_eq!(later.read(at * 4096, 4096).expect("a reply").error, 0);
    }
    assert_eq!(host.ctl(&words("null"))["ok"], true);
    assert_eq!(before.read(0, 4096).expect("a reply").error, 0);

    let mut reader = TraceReader::open(&file, &Options::default()).expect("a trace");
    let (mut steps, mut last_ns) = (BTreeMap::<_, Vec<Action>>::new(), 0);
    while let Some(event) = reader.next() {
        let event = event.expect("an event");
        if event.action.is_note() {
            continue;
        }
        assert!(event.time_ns >= last_ns, "in order of time");
        last_ns = event.time_ns;
        assert_eq!(event.bytes, 4096);
        let export = event.comm.map(|name| reader.names().get(name).to_owned());
        if event.action == Action::Queue {
            assert_eq!(export.as_deref(), Some(if event.op == Op::Write { "a" } else { "b" }));
        }
        steps.entry((event.sector, event.op)).or_default().push(event.action);
    }
    // The second export begins at 8 MiB.
    let expected = (0..100).flat_map(|at| [(at * 16, Op::Write), (16384 + at * 8, Op::Read)]);
    assert_eq!(steps.keys().copied().collect::<BTreeSet<_>>(), expected.collect::<BTreeSet<_>>());
    let way = [Action::Queue, Action::GetRequest, Action::Insert, Action::Issue, Action::Complete];
    assert!(steps.values().all(|steps| *steps == way), "{steps:?}");
}
