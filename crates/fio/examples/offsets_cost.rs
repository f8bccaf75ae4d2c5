//! Prints the cost of one random 4 KiB offset in a 2 GiB file with a map: `cargo run --release -p fairlift-fio --example offsets_cost`.

use std::time::Instant;

use fairlift_fio::{expand, offsets::Stream, parse_command_line};

fn main() {
    for line in [
        "--rw=randread --size=2g",
        "--rw=read --size=2g",
        "--rw=randrw --size=2g --bssplit=4k/50:16k/50",
        "--rw=randread --size=2g --random_distribution=zipf:1.1",
    ] {
        let jobs =
            parse_command_line(&line.split(' ').collect::<Vec<_>>(), true).expect("a correct line").jobs;
        let begin = Instant::now();
        let mut stream = Stream::new(&jobs[0], &expand(&jobs, 0), 0, &|_| None, 0).expect("a size");
        let prepared = begin.elapsed();
        let begin = Instant::now();
        let mut count = 0u32;
        let mut sum = 0u64;
        while let Some(io) = stream.next() {
            count += 1;
            sum ^= io.offset_bytes;
        }
        let each = begin.elapsed().as_nanos() as f64 / f64::from(count);
        println!("{line}: {each:.1} ns an I/O, {count} I/Os, prepared in {prepared:?} ({sum:x})");
    }
}
