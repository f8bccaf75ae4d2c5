//! kill -9 of `fairlift serve`, again and again, in the middle of its clients' writes: what it has acknowledged is in the file.
//!
//! `FAIRLIFT_KILLS` says how often (30 if it says nothing), `FAIRLIFT_SEED` when and what. That data which was flushed survives a power cut
//! as well, `cargo test -p fairlift-server --test power_cut` shows.

mod common;

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use common::Folder;
use common::served::{Served, client, path};
use fairlift_server::client::Client;
use fairlift_server::front::nbd::wire::{command, flag};
use fairlift_server::net::Address;

/// Blocks of a writer; each has its own.
const BLOCKS: usize = 64;
const BLOCK: u64 = 4096;
const WRITERS: usize = 3;
/// Writes in flight of each.
const DEPTH: usize = 4;

/// What a writer knows of a block: the number of the last write that was answered, and of the last that was sent.
#[derive(Clone, Copy, Default)]
struct Known {
    answered: u64,
    sent: u64,
}

/// A small generator of numbers, the same on every machine (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A block that says so all over.
fn content(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK as usize / 8)
}

/// Write until the server is gone; how many writes were acknowledged.
fn write_on(socket: &str, writer: usize, known: &mut [Known], random: &mut Random) -> usize {
    let address = Address::Unix(socket.into());
    let Ok(mut client) = Client::connect(&address, "disk", false) else { return 0 };
    let (mut flying, mut answered) = (VecDeque::new(), 0);
    loop {
        while flying.len() < DEPTH {
            let block = random.below(BLOCKS as u64) as usize;
            // Two writes to a block at a time may be done in any order.
            if flying.iter().any(|(_, other, _)| *other == block) {
                continue;
            }
            let number = known[block].sent + 1;
            let flags = if random.below(4) == 0 { flag::FUA } else { 0 };
            let offset = (writer * BLOCKS + block) as u64 * BLOCK;
            let request = client.request(command::WRITE, flags, offset, BLOCK as u32);
            known[block].sent = number;
            flying.push_back((request.cookie, block, number));
            if client.send(&request, &content(number)).is_err() {
                return answered;
            }
        }
        let Ok(reply) = client.receive(|_| 0) else { return answered };
        let at = flying.iter().position(|(cookie, ..)| *cookie == reply.cookie).expect("it was sent");
        let (_, block, number) = flying.remove(at).expect("it is there");
        assert_eq!(reply.error, 0, "a good answer");
        known[block].answered = number;
        answered += 1;
    }
}

/// Each block holds its last write that was answered, or one that was under way. The next server tells: reading the file beside one that
/// writes past the page cache would fail some of its writes, as the kernel cannot keep both the same.
fn check(socket: &str, known: &mut [Vec<Known>], what: &str) {
    let mut client = client(socket);
    let data = client.read(0, (WRITERS * BLOCKS) as u32 * BLOCK as u32).expect("a reply").data;
    for (at, known) in known.iter_mut().flatten().enumerate() {
        let block = &data[at * BLOCK as usize..][..BLOCK as usize];
        // A write that was cut off may have filled a part of its block: all of it is of one of these.
        let numbers = block.chunks_exact(8).map(|part| u64::from_le_bytes(part.try_into().expect("eight")));
        for number in numbers.clone() {
            assert!(
                (known.answered..=known.sent).contains(&number),
                "{what}: block {at} holds write {number}; {} was answered, {} sent",
                known.answered,
                known.sent
            );
        }
        let least = numbers.min().expect("a block has bytes");
        known.answered = known.answered.max(least);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A file, the server's words for it, and what is known of it.
struct Image {
    words: Vec<String>,
    known: Vec<Vec<Known>>,
}

impl Image {
    fn new(folder: &Folder, name: &str, engine: &[&str]) -> Image {
        let file = path(folder, name);
        let image = std::fs::File::create(&file).expect("a file");
        image.set_len((WRITERS * BLOCKS) as u64 * BLOCK).expect("its size");
        let words = ["--file", &file, "--socket", &path(folder, "s")];
        let words = words.iter().chain(engine).map(|word| (*word).to_owned()).collect();
        Image { words, known: vec![vec![Known::default(); BLOCKS]; WRITERS] }
    }

    fn serve(&self) -> Served {
        Served::start(&self.words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

#[test]
fn kill_9_in_the_middle_of_writes_loses_nothing_that_was_acknowledged() {
    let folder = Folder::new();
    let socket = path(&folder, "s");
    let mut images = [
        Image::new(&folder, "threads.img", &["--engine", "threads"]),
        Image::new(&folder, "io_uring.img", &["--engine", "io_uring"]),
        Image::new(&folder, "direct.img", &["--direct"]),
    ];
    let kills = number("FAIRLIFT_KILLS").unwrap_or(30);
    let mut random = Random(number("FAIRLIFT_SEED").unwrap_or(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut answered = 0;
    for round in 0..kills {
        let image = &mut images[round as usize % 3];
        let mut server = image.serve();
        check(&socket, &mut image.known, &format!("before kill {round}"));
        let writers: Vec<_> = image
            .known
            .iter()
            .cloned()
            .enumerate()
            .map(|(writer, mut known)| {
                let (socket, mut random) = (socket.clone(), Random(random.below(u64::MAX) | 1));
                thread::spawn(move || (write_on(&socket, writer, &mut known, &mut random), known))
            })
            .collect();
        // Some lives end before the first answer, most after hundreds.
        thread::sleep(Duration::from_micros(random.below(30_000)));
        server.child.kill().expect("it is killed");
        server.child.wait().expect("it ends");
        for (writer, thread) in writers.into_iter().enumerate() {
            let (count, known) = thread.join().expect("a writer ends with its server");
            (image.known[writer], answered) = (known, answered + count);
        }
    }
    for image in &mut images {
        let server = image.serve();
        check(&socket, &mut image.known, "at the end");
        assert_eq!(server.end().code(), Some(0));
    }
    assert!(answered as u64 > 10 * kills, "writes were answered before the kills: {answered}");
    println!("{kills} servers killed, {answered} writes acknowledged by them");
}
