//! The protocol as its document has it: the handshake, every command, every error.

mod support;

use std::io::{Read, Write};

use fairlift_server::client::{Client, ask, go_data, greet};
use fairlift_server::front::nbd::wire::{can, command, flag, info, option, reply, u16_at, u32_at, u64_at};
use support::{Host, Random};

const TWO: &str = r#"
[[device]]
name = "memory"
ram = "8M"
[[export]]
name = "whole"
device = "memory"
description = "all of it"
[[export]]
name = "part"
device = "memory"
offset = "1M"
size = "1000k"
read_only = true
"#;

const ERR_INVALID: u32 = reply::ERR_INVALID;

#[test]
fn exports_are_listed_with_their_descriptions() {
    let host = Host::start(TWO);
    let mut stream = host.address().connect().expect("connect");
    greet(&mut stream).expect("hello");
    let answers = ask(&mut stream, option::LIST, &[]).expect("list");
    let texts: Vec<String> = answers
        .iter()
        .map(|(_, data)| String::from_utf8_lossy(data.get(4..).unwrap_or(&[])).into_owned())
        .collect();
    assert_eq!(texts, ["part", "wholeall of it", ""]);
    assert_eq!(answers[2].0, reply::ACK);
    assert_eq!(ask(&mut stream, option::LIST, b"x").expect("list")[0].0, ERR_INVALID);
}

#[test]
fn options_are_refused_by_the_document_and_the_handshake_goes_on() {
    let host = Host::start(TWO);
    let mut stream = host.address().connect().expect("connect");
    greet(&mut stream).expect("hello");
    let mut kind = |option, data: &[u8]| ask(&mut stream, option, data).expect("an answer")[0].0;
    assert_eq!(kind(option::STARTTLS, &[]), reply::ERR_UNSUP);
    assert_eq!(kind(77, b"what"), reply::ERR_UNSUP);
    assert_eq!(kind(option::GO, &go_data("nobody")), reply::ERR_UNKNOWN);
    assert_eq!(kind(option::GO, &[0, 0]), ERR_INVALID);
    assert_eq!(kind(option::GO, &vec![0; 70_000]), reply::ERR_TOO_BIG);
    assert_eq!(kind(option::INFO, &[&go_data("whole")[..], b"more"].concat()), ERR_INVALID);
    let meta = [&5u32.to_be_bytes()[..], b"whole", &0u32.to_be_bytes()].concat();
    assert_eq!(kind(option::LIST_META_CONTEXT, &meta), ERR_INVALID, "replies are not structured yet");
    assert_eq!(kind(option::STRUCTURED_REPLY, b"x"), ERR_INVALID);
    assert_eq!(kind(option::STRUCTURED_REPLY, &[]), reply::ACK);
    assert_eq!(kind(option::LIST_META_CONTEXT, &meta), reply::META_CONTEXT);
    assert_eq!(kind(option::SET_META_CONTEXT, &meta), reply::ACK, "nothing was asked for");
    let answers = ask(&mut stream, option::INFO, &go_data("part")).expect("info");
    let of = |kind: u16| {
        answers.iter().find(|(_, data)| data.len() > 2 && u16_at(data, 0) == kind).map(|(_, data)| data)
    };
    let export = of(info::EXPORT).expect("its size");
    assert_eq!(u64_at(export, 2), 1000 << 10);
    let flags = u16_at(export, 10);
    assert!(flags & can::READ_ONLY != 0 && flags & (can::TRIM | can::WRITE_ZEROES) == 0, "{flags:#x}");
    let sizes = of(info::BLOCK_SIZE).expect("its block sizes");
    assert_eq!([2, 6, 10].map(|at| u32_at(sizes, at)), [1, 4096, 32 << 20]);
    assert_eq!(ask(&mut stream, option::ABORT, &[]).expect("abort")[0].0, reply::ACK);
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn the_old_way_to_choose_an_export_works() {
    let host = Host::start(TWO);
    for (flags, len) in [(1u32, 134), (3, 10)] {
        let mut stream = host.address().connect().expect("connect");
        stream.read_exact(&mut [0; 18]).expect("hello");
        stream.write_all(&flags.to_be_bytes()).expect("flags");
        let mut question = b"IHAVEOPT".to_vec();
        question.extend([0, 0, 0, 1, 0, 0, 0, 5]);
        question.extend(b"whole");
        stream.write_all(&question).expect("name");
        let mut answer = vec![9; len];
        stream.read_exact(&mut answer).expect("size and flags");
        assert_eq!(u64_at(&answer, 0), 8 << 20);
        assert!(answer[10..].iter().all(|byte| *byte == 0));
    }
}

/// Number of the error that a request gets, and the connection lives on.
fn error(client: &mut Client, command: u16, flags: u16, offset: u64, bytes: u32) -> u32 {
    let payload = if command == command::WRITE { vec![1; bytes as usize] } else { Vec::new() };
    let reply = client.call(command, flags, offset, bytes, &payload).expect("a reply");
    assert!(reply.error != 0 || client.flush().expect("a reply").error == 0);
    reply.error
}

#[test]
fn every_error_is_the_documents() {
    let host = Host::start(TWO);
    let size = 8u64 << 20;
    for structured in [false, true] {
        let client = &mut host.client("whole", structured);
        for (what, command, flags, offset, bytes, number) in [
            ("a read over the end", command::READ, 0, size - 4096, 8192, 22),
            ("a read whose end has no number", command::READ, 0, u64::MAX - 1, 4096, 22),
            ("a write over the end", command::WRITE, 0, size - 1, 2, 28),
            ("zeroes over the end", command::WRITE_ZEROES, 0, size, 1, 28),
            ("a trim over the end", command::TRIM, 0, size, 4096, 22),
            ("a flag there is not", command::READ, 1 << 9, 0, 512, 22),
            ("a flag of another command", command::WRITE, flag::NO_HOLE, 0, 512, 22),
            ("a flush of a range", command::FLUSH, 0, 512, 512, 22),
            ("a command there is not", 99, 0, 0, 0, 22),
            ("a resize", 8, 0, 0, 0, 22),
            (
                "more than the payload may be",
                command::READ,
                0,
                0,
                (32 << 20) + 1,
                if size > 32 << 20 { 75 } else { 22 },
            ),
        ] {
            assert_eq!(
                error(client, command, flags, offset, bytes),
                number,
                "{what}, structured: {structured}"
            );
        }
        let one_chunk = error(client, command::READ, flag::DF, 0, 512);
        assert_eq!(one_chunk, if structured { 0 } else { 22 }, "DF goes with structured replies");
        let status = error(client, command::BLOCK_STATUS, 0, 0, 512);
        assert_eq!(status, if structured { 0 } else { 22 }, "block status was not agreed on");
        let client = &mut host.client("part", structured);
        for command in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
            assert_eq!(error(client, command, 0, 0, 512), 1, "read-only, command {command}");
        }
        assert_eq!(error(client, command::READ, 0, (1000 << 10) - 512, 1024), 22, "the end of the part");
    }
    host.assert_idle();
}

#[test]
fn a_write_that_is_too_large_is_skipped_and_refused() {
    let host = Host::start("[[device]]\nname='m'\nram='1G'\n[[export]]\nname='m'\ndevice='m'\n");
    let mut client = host.client("m", true);
    assert_eq!(error(&mut client, command::WRITE, 0, 0, (32 << 20) + 512), 75);
    assert_eq!(error(&mut client, command::WRITE, 0, 0, 32 << 20), 0);
    assert_eq!(client.read((32 << 20) - 512, 1024).expect("a reply").data, [[1; 512], [0; 512]].concat());
}

#[test]
fn requests_of_no_bytes_are_answered() {
    let host = Host::start(TWO);
    for structured in [false, true] {
        let client = &mut host.client("whole", structured);
        for command in [command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES] {
            assert_eq!(error(client, command, 0, 0, 0), 0, "command {command}");
        }
    }
}

#[test]
fn the_status_of_blocks_follows_writes_and_trims() {
    let host = Host::start(TWO);
    let mut client = host.client("whole", true);
    client.write(0, 64 << 10, &[5; 1000]).expect("a reply");
    let mut status = |flags, bytes| {
        let data = client.call(command::BLOCK_STATUS, flags, 0, bytes, &[]).expect("a reply").data;
        data[4..].chunks(8).map(|pair| (u32_at(pair, 0), u32_at(pair, 4))).collect::<Vec<_>>()
    };
    assert_eq!(status(0, 256 << 10), [(64 << 10, 3), (64 << 10, 0), (128 << 10, 3)]);
    assert_eq!(status(flag::REQ_ONE, 256 << 10), [(64 << 10, 3)]);
    assert_eq!(status(0, 1000), [(1000, 3)]);
    client.call(command::TRIM, 0, 0, 8 << 20, &[]).expect("a reply");
    let data = client.call(command::BLOCK_STATUS, 0, 0, 8 << 20, &[]).expect("a reply").data;
    assert_eq!((u32_at(&data, 4), u32_at(&data, 8)), (8 << 20, 3));
}

#[test]
fn several_connections_see_each_others_writes() {
    let host = Host::start(TWO);
    let (mut one, mut two) = (host.client("whole", true), host.client("whole", false));
    assert!(one.flags & can::MULTI_CONN != 0);
    one.write(0, (1 << 20) + 100, b"hello").expect("a reply");
    assert_eq!(two.read((1 << 20) + 99, 7).expect("a reply").data, b"\0hello\0");
    let nameless = Client::connect(&host.address(), "", true).expect_err("there are two").to_string();
    assert!(nameless.contains("no export ''"), "{nameless}");
    let mut part = host.client("part", false);
    assert_eq!(part.read(100, 5).expect("a reply").data, b"hello");
}

/// Random requests of any place and length against a plain array.
fn against_an_array(setup: &str, structured: bool, seed: u64) {
    against_an_array_in(support::folder(), setup, structured, seed);
}

fn against_an_array_in(dir: std::path::PathBuf, setup: &str, structured: bool, seed: u64) {
    let host = Host::start_in(dir, setup);
    let mut client = host.client("it", structured);
    let mut array = vec![0u8; client.bytes as usize];
    let mut random = Random(seed);
    for step in 0..400u32 {
        let most = if step % 20 == 0 { 3 << 20 } else { 20_000 };
        let bytes = random.below(most) as usize + 1;
        let offset = random.below((array.len() - bytes) as u64) as usize;
        // Half of them whole sectors, which may be merged.
        let (offset, bytes) =
            if step % 2 == 0 { (offset, bytes) } else { (offset & !511, (bytes & !511).max(512)) };
        let place = offset..offset + bytes;
        let reply = match random.below(5) {
            0 | 1 => {
                let reply = client.read(offset as u64, bytes as u32).expect("a reply");
                assert!(reply.data == array[place], "step {step}: {offset}+{bytes}");
                reply
            }
            2 | 3 => {
                let data: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
                array[place].copy_from_slice(&data);
                let flags = if step % 7 == 0 { flag::FUA } else { 0 };
                client.write(flags, offset as u64, &data).expect("a reply")
            }
            _ => {
                array[place].fill(0);
                let flags = if step % 3 == 0 { flag::NO_HOLE } else { 0 };
                client.call(command::WRITE_ZEROES, flags, offset as u64, bytes as u32, &[]).expect("a reply")
            }
        };
        assert_eq!(reply.error, 0, "step {step}");
        if step % 50 == 0 {
            assert_eq!(client.flush().expect("a reply").error, 0);
        }
    }
    host.assert_idle();
}

#[test]
fn memory_is_an_array() {
    let setup = "[[device]]\nname='m'\nram='16M'\n[[export]]\nname='it'\ndevice='m'\n";
    against_an_array(setup, true, 1);
    against_an_array(setup, false, 2);
}

#[test]
fn a_part_of_memory_is_an_array() {
    let setup =
        "[[device]]\nname='m'\nram='32M'\n[[export]]\nname='it'\ndevice='m'\noffset='3M'\nsize='10M'\n";
    against_an_array(setup, true, 3);
}

#[test]
fn a_file_is_an_array_and_holds_it() {
    let dir = support::folder();
    std::fs::File::create(dir.join("disk.img"))
        .and_then(|file| file.set_len((16 << 20) + 100))
        .expect("a file");
    let setup = "[[device]]\nname='f'\nfile='DIR/disk.img'\ndepth=4\n[[export]]\nname='it'\ndevice='f'\n";
    let mut host = Host::start_in(dir, setup);
    let mut client = host.client("it", true);
    assert_eq!(client.bytes, (16 << 20) + 100);
    assert_eq!(client.write(flag::FUA, (16 << 20) - 3, &[7; 103]).expect("a reply").error, 0);
    assert_eq!(client.read((16 << 20) + 99, 1).expect("a reply").data, [7]);
    drop(client);
    host.end();
    let bytes = std::fs::read(host.dir.join("disk.img")).expect("the file");
    assert!(bytes[(16 << 20) - 3..].iter().all(|byte| *byte == 7) && bytes.len() == (16 << 20) + 100);
    let dir = support::folder();
    std::fs::File::create(dir.join("disk.img")).and_then(|file| file.set_len(16 << 20)).expect("a file");
    against_an_array_in(dir, setup, true, 4);
}

/// Many requests at a time, under each elevator: each is answered once with its own data.
#[test]
fn deep_queues_are_answered_once_each_under_every_elevator() {
    for elevator in
        ["none", "mq-deadline", "kyber", "bfq", "fl-noop", "fl-deadline", "fl-as", "fl-cfq", "fair"]
    {
        let host = Host::start(&format!(
            "[[device]]\nname='m'\nram='16M'\nelevator='{elevator}'\n[[export]]\nname='a'\ndevice='m'\n[[export]]\nname='b'\ndevice='m'\nper_connection=true\n"
        ));
        std::thread::scope(|scope| {
            for (number, name) in ["a", "b", "b"].into_iter().enumerate() {
                let host = &host;
                scope.spawn(move || {
                    let mut client = host.client(name, number == 1);
                    let base = (number as u64) << 22;
                    for round in 0..20u8 {
                        let mut waiting = std::collections::HashMap::new();
                        for at in 0..64u64 {
                            let data = vec![round ^ at as u8; 4096];
                            let request = client.request(command::WRITE, 0, base + at * 4096, 4096);
                            client.send(&request, &data).expect("sent");
                            waiting.insert(request.cookie, at);
                        }
                        while !waiting.is_empty() {
                            let reply = client.receive(|_| 0).expect("a reply");
                            assert_eq!(reply.error, 0);
                            waiting.remove(&reply.cookie).expect("each once");
                        }
                        for at in 0..64u64 {
                            let request = client.request(command::READ, 0, base + at * 4096, 4096);
                            client.send(&request, &[]).expect("sent");
                            waiting.insert(request.cookie, at);
                        }
                        while !waiting.is_empty() {
                            let reply = client.receive(|_| 4096).expect("a reply");
                            let at = waiting.remove(&reply.cookie).expect("each once");
                            assert!(reply.data.iter().all(|byte| *byte == round ^ at as u8), "{elevator}");
                        }
                    }
                });
            }
        });
        host.assert_idle();
    }
}
