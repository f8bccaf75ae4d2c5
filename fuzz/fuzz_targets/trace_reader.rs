//! Every reader of traces, told its format by the first byte or left to find it: events in order, faults with their place.
#![no_main]

use std::io::Cursor;

use fairlift_trace::write::{BlktraceWriter, BlkparseWriter, ChromeWriter, CsvWriter, EventWriter, Version};
use fairlift_trace::{BlkparseFormat, Format, Options, Summary, TraceReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, trace)) = data.split_first() else { return };
    let formats: Vec<Format> = Format::all().collect();
    // Past the last one: it is found out. scripts/fuzz knows these numbers.
    let format = formats.get(usize::from(choice & 0x1f)).copied();
    let options = Options {
        format,
        blkparse_format: (format == Some(Format::BlkparseFormat))
            .then(|| BlkparseFormat::parse("%T.%t %D %p %a %d %S %n %C").expect("a format string")),
        keep_going: choice & 0x80 != 0,
        sort_window: Some(if choice & 0x40 != 0 { 16 } else { 0 }),
        rebase: false,
    };
    let Ok(mut reader) = TraceReader::from_read("fuzz", Cursor::new(trace.to_vec()), &options) else { return };
    let mut summary = Summary::of(reader.facts());
    let mut writers: [Box<dyn EventWriter>; 4] = [
        Box::new(BlktraceWriter::single(std::io::sink(), Version::V8)),
        Box::new(BlkparseWriter::new(std::io::sink())),
        Box::new(CsvWriter::new(std::io::sink())),
        Box::new(ChromeWriter::new(std::io::sink())),
    ];
    let mut last_ns = 0;
    while let Some(event) = reader.next() {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                assert!(error.to_string().starts_with("fuzz"), "{error}");
                continue;
            }
        };
        assert!(event.time_ns >= last_ns, "time runs backwards");
        last_ns = event.time_ns;
        summary.add(&event);
        for writer in &mut writers {
            writer.write(&event, reader.texts()).expect("a sink");
        }
    }
    assert!(options.keep_going || reader.skipped().faults == 0);
    writers.iter_mut().for_each(|writer| drop(writer.finish().expect("a sink")));
});
