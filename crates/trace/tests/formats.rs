//! A few lines of every text format, told by content and read; compression; options.

mod common;

use std::io::{Cursor, Write};

use common::{data, text_of};
use fairlift_trace::{
    Action, BlkparseFormat, Clock, Device, ErrorKind, Event, Flags, Format, Op, Options, TraceReader,
};

fn reader(bytes: impl Into<Vec<u8>>, options: &Options) -> TraceReader {
    TraceReader::from_read("trace", Cursor::new(bytes.into()), options).expect("readable")
}

/// Reads with detection.
fn events(text: &str) -> (Format, Vec<Event>) {
    let reader = reader(text, &Options::default());
    (reader.format(), reader.map(|event| event.expect(text)).collect())
}

#[test]
fn msr_cambridge() {
    let (format, events) = events(
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,1317441536,8192,1963\n",
    );
    assert_eq!((format, format.clock()), (Format::Msr, Clock::Unix));
    // 22 February 2007, 17:00:00.3061629 UTC.
    assert_eq!(events[0].time_ns, 1_172_163_600_306_162_900);
    assert_eq!((events[0].sector, events[0].bytes, events[0].op), (7_014_609_920 / 512, 24_576, Op::Read));
    assert_eq!(events[0].response_ns, Some(4_128_600));
}

#[test]
fn systor_17() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n1456095145.2,,,4,0,512\n";
    let (format, events) = events(text);
    assert_eq!(format, Format::Systor);
    assert_eq!((events[0].time_ns, events[0].response_ns), (1_456_095_145_133_076_000, Some(806_000)));
    assert_eq!((events[1].op, events[1].response_ns), (Op::None, None));
}

#[test]
fn clouds() {
    let (format, events_) =
        events("0,R,126703644672,4096,1577808000000626\n419,W,8192,16384,1577808000000700\n");
    assert_eq!(
        (format, events_[1].time_ns, events_[1].bytes),
        (Format::Alibaba, 1_577_808_000_000_700_000, 16_384)
    );
    let (format, events_) = events("1538323200,12910952,128,0,1063\n1538323200,6265984,8,1,1071\n");
    assert_eq!((format, format.facts().resolution_ns), (Format::Tencent, 1_000_000_000));
    assert_eq!((events_[0].sector, events_[0].bytes, events_[0].op), (12_910_952, 65_536, Op::Read));
    let (format, events_) = events("ID,Timestamp,Type,Offset,Length\n7,1484438400.000123,W,513,4096\n");
    assert_eq!((format, events_[0].sector, events_[0].skew_bytes), (Format::K5, 1, 1));
    assert_eq!(events_[0].offset_bytes(), 513);
}

#[test]
fn universities() {
    let (format, events_) = events("0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041\n");
    assert_eq!((format, events_[1].time_ns, events_[1].op), (Format::Spc, 554_041_000, Op::Read));
    let (format, events_) =
        events("89966000 4892 syslogd 904265560 8 W 6 0 531e779839ff5e3cb0a3cf3ea6b4cba0\n");
    assert_eq!((format, events_[0].pid, events_[0].bytes), (Format::Fiu, Some(4892), 4096));
}

#[test]
fn vscsi() {
    let text = "#Vscsi Cmd Trace. (Trace Format Version 1)\n#Serial Number,IO Data Length,Num SG Entries,Command Type,LBN,Time Stamp (microseconds)\n2147483692,4096,1,write,24048792,2756778716647\n";
    let (format, events_) = events(text);
    assert_eq!(
        (format, events_[0].sector, events_[0].time_ns),
        (Format::VscsiCsv, 24_048_792, 2_756_778_716_647_000)
    );

    // The columns' names keep it apart from K5's five columns.
    let (format, events_) = events(
        "version,time,op,size,lbn\n2,5633898,42,512,42932745\n2,5633898,read,4096,8\n2,5633899,53,0,0\n",
    );
    assert_eq!((format, format.facts().resolution_ns), (Format::CloudPhysics, 1_000_000_000));
    assert_eq!(
        (events_[0].op, events_[0].sector, events_[0].bytes, events_[0].time_ns),
        (Op::Write, 42_932_745, 512, 5_633_898_000_000_000)
    );
    assert_eq!((events_[1].op, events_[2].op), (Op::Read, Op::Flush));

    let mut first = Vec::new();
    let mut second = Vec::new();
    for number in 0..5u32 {
        for (out, version) in [(&mut first, 1u16), (&mut second, 2)] {
            let (length, entries) = (4096u32, 1u32);
            if version == 2 {
                [0x2au16, 0x0201].iter().for_each(|word| out.extend(word.to_le_bytes()));
                [number, length, entries].iter().for_each(|word| out.extend(word.to_le_bytes()));
            } else {
                [number, length, entries].iter().for_each(|word| out.extend(word.to_le_bytes()));
                [0x28u16, 0x0102].iter().for_each(|word| out.extend(word.to_le_bytes()));
            }
            [u64::from(number) * 8, 5_000_000 + u64::from(number)]
                .iter()
                .for_each(|long| out.extend(long.to_le_bytes()));
            if version == 2 {
                out.extend(250u64.to_le_bytes());
            }
        }
    }
    for (bytes, op, response_ns) in [(first, Op::Read, None), (second, Op::Write, Some(250_000))] {
        let reader = reader(bytes, &Options::default());
        assert_eq!(reader.format(), Format::Vscsi);
        let events: Vec<Event> = reader.map(|event| event.expect("a good record")).collect();
        assert_eq!(events.len(), 5);
        assert_eq!((events[4].op, events[4].sector, events[4].time_ns), (op, 32, 5_000_004_000));
        assert_eq!((events[4].bytes, events[4].response_ns), (4096, response_ns));
    }
}

#[test]
fn simulators() {
    let (format, events_) = events(&text_of("disksim.trace"));
    assert_eq!((format, events_.len()), (Format::DiskSim, 100));
    assert_eq!((events_[0].time_ns, events_[0].bytes, events_[0].op), (13_191_135, 2560, Op::Read));
    let error =
        TraceReader::from_read("t", Cursor::new("100 0 2048 8 1\n200 0 4096 8 0\n"), &Options::default());
    let error = error.expect_err("whole numbers fit two formats");
    assert_eq!(error.kind, ErrorKind::UnknownFormat);
    assert!(error.message.contains("disksim, mqsim"), "{error}");
    let options = Options { format: Some(Format::MqSim), ..Options::default() };
    let first = reader("100 0 2048 8 1\n", &options).next().unwrap().unwrap();
    assert_eq!((first.time_ns, first.op), (100, Op::Read));

    for (name, first, op) in
        [("atlas10k.trace", 663_000, Op::Write), ("hp_c3323a.trace", 14_901_000, Op::Read)]
    {
        let reader = TraceReader::open(&data(name), &Options::default()).expect("opens");
        assert_eq!(reader.format(), Format::DiskSimValidation);
        let events: Vec<Event> = reader.map(|event| event.expect("a good line")).collect();
        assert_eq!((events.len(), events[0].op, events[0].flags), (100, op, Flags::CACHE_HIT));
        assert_eq!(events[0].response_ns, Some(first));
        let gap = if op == Op::Write { 45_422_000 } else { 4_757_708 };
        assert_eq!(events[1].time_ns, first + gap, "the next arrives a gap after the completion");
    }
}

#[test]
fn blkreplay_and_its_licence() {
    let (format, events_) = events(&text_of("mysql-first-rows.load"));
    assert_eq!((format, events_.len()), (Format::Blkreplay, 128));
    assert_eq!((events_[1].time_ns, events_[1].sector, events_[1].bytes), (449_518_165, 37_766_917, 7168));
}

#[test]
fn iologs() {
    let text = "fio version 3 iolog\n0 /dev/sda add\n5 /dev/sda open\n12 /dev/sda read 4096 8192\n30 /dev/sda close\n";
    let (format, events_) = events(text);
    assert_eq!((format, events_.len()), (Format::Iolog, 4));
    assert_eq!((events_[2].time_ns, events_[2].sector, events_[2].bytes), (12_000, 8, 8192));
    let (_, events_) =
        events("fio version 2 iolog\nf add\nf open\nf wait 500 0\nf read 0 512\nf wait 250 0\nf sync\n");
    assert_eq!((events_[2].time_ns, events_[3].time_ns, events_[3].op), (500_000, 750_000, Op::Sync));
}

#[test]
fn csv_by_hand() {
    let (format, events_) =
        events("time_s,op,offset_bytes,kib,device,response_ms\n0.5,R,4096,8,db,1.25\n0.75,write,0,4,8:16,\n");
    assert_eq!(format, Format::Csv);
    assert_eq!(
        (events_[0].time_ns, events_[0].bytes, events_[0].response_ns),
        (500_000_000, 8192, Some(1_250_000))
    );
    assert!(matches!(events_[1].device, Device::Number(number) if number.minor() == 16));
    let error = reader("time_s,op,oops\n0,R,1\n", &Options::default()).next().unwrap().unwrap_err();
    assert!(error.to_string().contains("trace:1 (byte 0): expected a column of"), "{error}");
}

#[test]
fn blkparse_with_a_format_string() {
    let format = BlkparseFormat::parse("%5T.%9t, %p, %a, %d, %S+%n\\n").unwrap();
    let options = Options { blkparse_format: Some(format), ..Options::default() };
    let text = "    1.000000500, 77, D, WS, 2048+8\n    1.000000900, 0, C, WS, 2048+8\n";
    let events: Vec<Event> = reader(text, &options).map(|event| event.expect(text)).collect();
    assert_eq!(
        (events[1].action, events[1].time_ns, events[1].bytes),
        (Action::Complete, 1_000_000_900, 4096)
    );
}

#[test]
fn every_compression() {
    let plain = text_of("disksim.trace").into_bytes();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&plain).unwrap();
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(&plain).unwrap();
    let packed = [
        gz.finish().unwrap(),
        xz.finish().unwrap(),
        bz2.finish().unwrap(),
        zstd::stream::encode_all(plain.as_slice(), 1).unwrap(),
    ];
    for bytes in packed {
        assert_eq!(reader(bytes.clone(), &Options::default()).filter(|event| event.is_ok()).count(), 100);
        // Cut short: what came before is there, and the cut is told.
        let cut = bytes[..bytes.len() * 2 / 3].to_vec();
        match TraceReader::from_read("cut", Cursor::new(cut), &Options::default()) {
            Ok(reader) => {
                let last = reader.last().expect("something").expect_err("the cut");
                assert!(matches!(last.kind, ErrorKind::Truncated | ErrorKind::Io), "{last}");
            }
            Err(error) => assert!(matches!(error.kind, ErrorKind::Truncated | ErrorKind::Io), "{error}"),
        }
    }
}

#[test]
fn names_of_formats() {
    for format in Format::all() {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert!("blktarce".parse::<Format>().unwrap_err().contains("blktrace"));
}
