//! Damaged and random input for every reader: no panic, no endless loop, no fault without a place. Seeds are fixed.

mod common;

use std::io::Cursor;

use common::{text_of, xz};
use fairlift_trace::write::{
    BlkparseWriter, ChromeWriter, CsvWriter, EventWriter, IologVersion, IologWriter,
};
use fairlift_trace::{Action, BlkparseFormat, Format, Options, Summary, TraceReader};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// A valid piece of each format.
fn seed(format: Format) -> Vec<u8> {
    let text = match format {
        Format::Blktrace => return xz("tail.blktrace.1.xz")[..6000].to_vec(),
        Format::Blkparse => return xz("tail.blkparse.xz")[..4000].to_vec(),
        Format::Vscsi => {
            let record =
                |n: u8| [0x2a, 0, 1, 2, n, 0, 0, 0, 0, 16, 0, 0, 1, 0, 0, 0].into_iter().chain([n; 24]);
            return (0..20).flat_map(record).collect();
        }
        Format::DiskSim => return text_of("disksim.trace").into_bytes(),
        Format::DiskSimValidation => return text_of("atlas10k.trace").into_bytes(),
        Format::Blkreplay => return text_of("mysql-first-rows.load").into_bytes(),
        Format::BlkparseFormat => {
            "    1.000000500 8,0 77 D WS 2048 8 fio\n    1.000000900 8,0 0 C R 2048 8 0\n"
        }
        Format::Ftrace => {
            " fio-1234 [001] d..1. 123.456789: block_rq_issue: 8,0 RS 4096 () 2048 + 8 be,0,4 [fio]\n fio-1234 [001] .... 123.5: block_bio_remap: 8,0 R 4096 + 8 <- (8,1) 2048\n fio-9 [000] .... 124.5: block_unplug: [fio] 3\n <idle>-0 [000] 125.0: block_rq_complete: 8,0 RS () 2048 + 8 be,0,4 [0]\n"
        }
        Format::Iolog => {
            "fio version 3 iolog\n0 f add\n5 f open\n12 f read 4096 8192\n15 f sync 0 0\n30 f close\n"
        }
        Format::MqSim => "100 0 2048 8 1\n200 1 4096 16 0\n",
        Format::Msr => {
            "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,13,81,1\n"
        }
        Format::Systor => {
            "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,8990,131072\n"
        }
        Format::Alibaba => "0,R,126703644672,4096,1577808000000626\n419,W,8192,16384,1577808000000700\n",
        Format::Tencent => "1538323200,12910952,128,0,1063\n1538323200,6265984,8,1,1071\n",
        Format::K5 => "ID,Timestamp,Type,Offset,Length\n7,1484438400.000123,W,513,4096\n",
        Format::Spc => "0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041\n",
        Format::Fiu => "89966000 4892 syslogd 904265560 8 W 6 0 531e779839ff5e3cb0a3cf3ea6b4cba0\n",
        Format::VscsiCsv => "#remark\n2147483692,4096,1,write,24048792,2756778716647\n",
        Format::CloudPhysics => "version,time,op,size,lbn\n2,5633898,42,512,42932745\n",
        Format::Csv => {
            "time_ns,action,device,sector,bytes,op,flags,comm,detail,payload\n5,unplug,8:0,1,512,read,sync+meta,\"a,b\",3,x\\x00\n6,remap,n,1,2,write,,,8:0/5/8:1,\n"
        }
    };
    text.repeat(5).into_bytes()
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        let end = (at + 1 + random.below(16)).min(bytes.len());
        match random.below(8) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            4 => bytes[at..end].fill([0, 0xff, b'9', b'-', b'\n', b' ', b'['][random.below(7)]),
            5 => bytes.truncate(at),
            6 => {
                let digits = [
                    &b"18446744073709551615"[..],
                    b"4294967296",
                    b"-1",
                    b"1e9",
                    b"0.",
                    b"99999999999999999999",
                ];
                bytes.splice(at..end, digits[random.below(digits.len())].iter().copied());
            }
            _ => {
                let word = [&b","[..], b"\n", b"\"", b"\\x", b" + ", b" <- (", b"]", b"(", b"\0"];
                bytes.splice(at..at, word[random.below(word.len())].iter().copied());
            }
        }
    }
}

/// Reads all there is, through statistics and every writer.
fn read(bytes: &[u8], options: &Options) {
    let most = bytes.len() + 2;
    let Ok(mut reader) = TraceReader::from_read("fuzz", Cursor::new(bytes.to_vec()), options) else { return };
    let mut summary = Summary::new();
    let mut writers: [Box<dyn EventWriter>; 4] = [
        Box::new(BlkparseWriter::new(std::io::sink())),
        Box::new(CsvWriter::new(std::io::sink())),
        Box::new(IologWriter::new(std::io::sink(), IologVersion::V2, Action::Queue)),
        Box::new(ChromeWriter::new(std::io::sink())),
    ];
    let mut binary =
        fairlift_trace::write::BlktraceWriter::single(std::io::sink(), fairlift_trace::write::Version::V7);
    let (mut count, mut last_ns) = (0, 0);
    while let Some(event) = reader.next() {
        count += 1;
        assert!(count <= most, "more events than bytes");
        let Ok(event) = event else { continue };
        assert!(event.time_ns >= last_ns, "time runs backwards");
        last_ns = event.time_ns;
        summary.add(&event);
        for writer in &mut writers {
            writer.write(&event, reader.texts()).expect("a sink");
        }
        binary.write(&event, reader.texts()).expect("a sink");
    }
    let skipped = reader.skipped();
    assert!(options.keep_going || skipped.faults == 0);
    assert!(skipped.faults <= most as u64, "more faults than bytes");
    summary.length_ns();
    summary.outstanding.mean();
    writers.iter_mut().for_each(|writer| drop(writer.finish().expect("a sink")));
}

fn options(format: Option<Format>, random: &mut Random) -> Options {
    let by_string = format == Some(Format::BlkparseFormat);
    Options {
        format,
        blkparse_format: by_string.then(|| BlkparseFormat::parse("%T.%t %D %p %a %d %S %n %C").unwrap()),
        keep_going: random.below(4) > 0,
        sort_window: Some(if random.below(4) == 0 { 16 } else { 0 }),
        rebase: random.below(2) == 0,
    }
}

/// Rounds for each format; `FUZZ_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var("FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

#[test]
fn seeds_are_good() {
    for format in Format::all().filter(|format| *format != Format::BlkparseFormat) {
        let options = Options { format: Some(format), sort_window: Some(0), ..Options::default() };
        let mut reader = TraceReader::from_read("seed", Cursor::new(seed(format)), &options).expect("opens");
        reader
            .next()
            .unwrap_or_else(|| panic!("{format}: nothing"))
            .unwrap_or_else(|error| panic!("{format}: {error}"));
    }
}

#[test]
fn damaged_traces() {
    for (index, format) in Format::all().enumerate() {
        let good = seed(format);
        for round in 0..rounds() {
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (index as u64) << 32 ^ round as u64);
            let mut bytes = good.clone();
            damage(&mut bytes, &mut random);
            let forced = options(Some(format), &mut random);
            read(&bytes, &forced);
            read(&bytes, &Options { format: None, blkparse_format: None, ..forced });
        }
    }
}

#[test]
fn garbage() {
    let mut random = Random(42);
    let letters = b"0123456789 .,;:+-RWDQCm[]()<>/\"\\\n\n\n\tabcF\0";
    for round in 0..rounds() {
        let length = random.below(600);
        let bytes: Vec<u8> = (0..length)
            .map(|_| if round % 3 == 0 { random.next() as u8 } else { letters[random.below(letters.len())] })
            .collect();
        for format in Format::all() {
            let options = options(Some(format), &mut random);
            read(&bytes, &options);
        }
        read(&bytes, &options(None, &mut random));
        // Random bytes behind each compression's magic.
        for magic in [&b"\x1f\x8b\x08\0"[..], b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"BZh9"] {
            read(&[magic, &bytes].concat(), &Options::default());
        }
    }
}

#[test]
fn long_lines_and_many_blanks() {
    let options = Options { format: Some(Format::DiskSim), keep_going: true, ..Options::default() };
    let text = format!("1.0 0 1 8 1\n{}\n2.0 0 9 8 1\n", "9".repeat(300_000));
    let mut reader = TraceReader::from_read("long", Cursor::new(text), &options).expect("opens");
    assert_eq!(reader.by_ref().filter(|event| event.is_ok()).count(), 2);
    assert_eq!(reader.skipped().faults, 1);
}
