//! Files: each engine, through the page cache and past it, is the same array; direct I/O goes in blocks.

mod support;

use std::collections::HashMap;
use std::path::PathBuf;

use fairlift_server::config::Config;
use fairlift_server::front::nbd::wire::{command, flag, info, option, reply, u16_at, u32_at};
use fairlift_server::server::Server;
use fairlift_server::{client, front::nbd::wire};
use support::{Host, Random};

const BYTES: u64 = 16 << 20;

/// A file in a folder of its own, served so; `None` where this machine cannot, with the reason printed.
fn serve(how: &str) -> Option<Host> {
    let dir = support::folder();
    std::fs::File::create(dir.join("disk.img")).and_then(|file| file.set_len(BYTES)).expect("a file");
    let setup =
        format!("[[device]]\nname='f'\nfile='DIR/disk.img'\n{how}\n[[export]]\nname='it'\ndevice='f'\n");
    let text = format!("listen=['unix:DIR/try']\n{setup}").replace("DIR", &dir.display().to_string());
    let config = Config::parse(&text, "test.toml").expect("the configuration is right");
    match Server::new(&config) {
        Ok(_) => Some(Host::start_in(dir, &setup)),
        Err(error) => {
            let cannot = ["io_uring: ", "O_DIRECT", "through the page cache"];
            assert!(cannot.iter().any(|part| error.message.contains(part)), "{error}");
            eprintln!("not tested: {how}: {error}");
            None
        }
    }
}

/// What the server says it uses.
fn engine(host: &Host) -> &'static str {
    host.server.devices()[0].back().figures().engine.expect("a file has one")
}

/// Rounds of 64 requests at a time; each is answered once, with its own data, and what was flushed is in the file.
fn is_an_array(host: &mut Host, block: u64) {
    let mut client = host.client("it", true);
    let mut array = vec![0u8; BYTES as usize];
    let mut random = Random(block + 7);
    let mut write_round = |client: &mut client::Client, array: &mut [u8], round: u8| {
        let mut waiting = HashMap::new();
        for slot in 0..64u64 {
            // Places that no other of the round touches.
            let bytes = block * (1 + random.below(32));
            let offset = slot * (BYTES / 64) + block * random.below((BYTES / 64 - bytes) / block);
            let data: Vec<u8> = (0..bytes).map(|at| round ^ slot as u8 ^ (at >> 9) as u8).collect();
            array[offset as usize..][..bytes as usize].copy_from_slice(&data);
            let flags = if slot % 16 == 3 { flag::FUA } else { 0 };
            let request = client.request(command::WRITE, flags, offset, bytes as u32);
            client.send(&request, &data).expect("sent");
            waiting.insert(request.cookie, ());
        }
        while !waiting.is_empty() {
            let reply = client.receive(|_| 0).expect("a reply");
            assert_eq!(reply.error, 0);
            waiting.remove(&reply.cookie).expect("each once");
        }
    };
    for round in 0..10 {
        write_round(&mut client, &mut array, round * 23);
        let mut waiting = HashMap::new();
        for at in 0..64u64 {
            let (offset, bytes) = (at * (BYTES / 64), (BYTES / 64) as u32);
            let request = client.request(command::READ, 0, offset, bytes);
            client.send(&request, &[]).expect("sent");
            waiting.insert(request.cookie, offset as usize);
        }
        while !waiting.is_empty() {
            let reply = client.receive(|_| (BYTES / 64) as u32).expect("a reply");
            let offset = waiting.remove(&reply.cookie).expect("each once");
            assert!(reply.data == array[offset..][..(BYTES / 64) as usize], "round {round} at {offset}");
        }
    }
    let zeroes = client.call(command::WRITE_ZEROES, 0, 4096, 1 << 20, &[]).expect("a reply");
    array[4096..4096 + (1 << 20)].fill(0);
    assert_eq!(zeroes.error, 0);
    assert_eq!(client.flush().expect("a reply").error, 0);
    let file: PathBuf = host.dir.join("disk.img");
    assert!(std::fs::read(file).expect("the file") == array);
    host.assert_idle();
}

#[test]
fn through_the_page_cache_by_threads() {
    let mut host = serve("engine='threads'").expect("threads there always are");
    assert_eq!(engine(&host), "threads");
    is_an_array(&mut host, 512);
}

#[test]
fn through_the_page_cache_by_io_uring() {
    let Some(mut host) = serve("engine='io_uring'\ndepth=64") else { return };
    assert_eq!(engine(&host), "io_uring");
    is_an_array(&mut host, 512);
}

#[test]
fn past_the_page_cache_by_io_uring() {
    let Some(mut host) = serve("engine='io_uring'\ndirect=true") else { return };
    is_an_array(&mut host, 4096);
}

#[test]
fn past_the_page_cache_by_threads() {
    let Some(mut host) = serve("engine='threads'\ndirect=true") else { return };
    is_an_array(&mut host, 4096);
}

#[test]
fn direct_io_goes_in_blocks_and_clients_are_told() {
    let Some(host) = serve("direct=true") else { return };
    let block = host.server.devices()[0].back().block_bytes();
    assert!(block >= 512 && block.is_power_of_two(), "{block}");
    let mut stream = host.address().connect().expect("connect");
    client::greet(&mut stream).expect("greeted");
    let answers = client::ask(&mut stream, option::INFO, &client::go_data("it")).expect("answers");
    let is_sizes =
        |(kind, data): &&(u32, Vec<u8>)| *kind == reply::INFO && u16_at(data, 0) == info::BLOCK_SIZE;
    let (_, sizes) = answers.iter().find(is_sizes).expect("block sizes");
    assert_eq!((u32_at(sizes, 2), u32_at(sizes, 6)), (block, block.max(4096)));
    let mut client = host.client("it", true);
    for (offset, bytes) in [(1, 4096), (0, 100), (u64::from(block) / 2, block)] {
        assert_eq!(client.read(offset, bytes).expect("a reply").error, wire::Error::Invalid as u32);
        let data = vec![1; bytes as usize];
        assert_eq!(client.write(0, offset, &data).expect("a reply").error, wire::Error::Invalid as u32);
    }
    assert_eq!(client.read(0, block).expect("a reply").error, 0);
}

#[test]
fn a_file_of_no_whole_blocks_is_not_served_directly() {
    let dir = support::folder();
    std::fs::File::create(dir.join("odd.img"))
        .and_then(|file| file.set_len((1 << 20) + 100))
        .expect("a file");
    let text = "listen=['unix:DIR/s']\n[[device]]\nname='f'\nfile='DIR/odd.img'\ndirect=true\n[[export]]\nname='it'\ndevice='f'\n";
    let config = Config::parse(&text.replace("DIR", &dir.display().to_string()), "a.toml").expect("read");
    let error = Server::new(&config).map(|_| ()).expect_err("it has half a block").to_string();
    assert!(
        error.starts_with("a.toml:2: device 'f': ") && error.contains("O_DIRECT")
            || error.contains("no multiple"),
        "{error}"
    );
    std::fs::remove_dir_all(dir).expect("cleared");
}
