//! What a format can hold survives its writer and reader.

use std::io::Cursor;

use fairlift_trace::write::{
    BlkparseWriter, BlktraceWriter, CsvWriter, EventWriter, IologVersion, IologWriter, Losses, Version,
};
use fairlift_trace::{
    Action, Device, DeviceNumber, Event, Flags, Format, Names, Op, Options, Texts, TraceReader,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// An event with its texts spelled out, so that tables need not agree.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    event: Event,
    comm: Option<String>,
    device: Option<String>,
    payload: Vec<u8>,
}

impl Told {
    fn of(event: Event, texts: Texts<'_>) -> Self {
        let name = |text| texts.names.get(text).to_owned();
        let comm = event.comm.map(name);
        let (device, kept) = match event.device {
            Device::Name(text) => (Some(name(text)), Device::None),
            other => (None, other),
        };
        Self {
            event: Event { comm: None, device: kept, ..event },
            comm,
            device,
            payload: texts.payload.to_vec(),
        }
    }
}

fn read(bytes: Vec<u8>, format: Format) -> Vec<Told> {
    // Detection has to find it, too.
    let mut reader =
        TraceReader::from_read("written", Cursor::new(bytes), &Options::default()).expect("readable");
    assert_eq!(reader.format(), format);
    let mut told = Vec::new();
    while let Some(event) = reader.next() {
        told.push(Told::of(event.expect("a good record"), reader.texts()));
    }
    told
}

fn write(writer: &mut dyn EventWriter, events: &[Told]) -> Losses {
    let mut names = Names::default();
    for told in events {
        let mut event = told.event;
        event.comm = told.comm.as_deref().map(|comm| names.intern(comm));
        if let Some(device) = &told.device {
            event.device = Device::Name(names.intern(device));
        }
        writer.write(&event, Texts { names: &names, payload: &told.payload }).expect("memory");
    }
    writer.finish().expect("memory")
}

fn number() -> impl Strategy<Value = DeviceNumber> {
    (0u32..4096, 0u32..1 << 20).prop_map(|(major, minor)| DeviceNumber::new(major, minor).expect("in range"))
}

fn sync_flags() -> impl Strategy<Value = Flags> {
    (0u16..32).prop_map(Flags)
}

const STAGES: [Action; 10] = [
    Action::Queue,
    Action::BackMerge,
    Action::FrontMerge,
    Action::GetRequest,
    Action::SleepRequest,
    Action::Issue,
    Action::Insert,
    Action::Bounce,
    Action::Requeue,
    Action::Complete,
];

fn blktrace_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => select(&STAGES[..]),
        1 => Just(Action::Plug),
        1 => (any::<u64>(), any::<bool>()).prop_map(|(count, by_timer)| Action::Unplug { count, by_timer }),
        1 => any::<u64>().prop_map(|to| Action::Split { to }),
        1 => (number(), any::<u64>(), number()).prop_map(|(from, sector, to)| Action::Remap { from, sector, to }),
        1 => select(vec![Action::Abort, Action::DriverData, Action::Message, Action::ZonePlug, Action::ZoneUnplug]),
        1 => (any::<u32>(), 0u32..1_000_000_000)
            .prop_map(|(seconds, nanoseconds)| Action::Timestamp { seconds, nanoseconds }),
    ]
}

/// Puts times in order.
fn in_order(mut events: Vec<Told>) -> Vec<Told> {
    let mut times: Vec<u64> = events.iter().map(|told| told.event.time_ns).collect();
    times.sort_unstable();
    events.iter_mut().zip(times).for_each(|(told, time_ns)| told.event.time_ns = time_ns);
    events
}

fn binary_event(wide: bool) -> impl Strategy<Value = Told> {
    let mut ops = vec![Op::None, Op::Read, Op::Write, Op::Discard, Op::Flush];
    if wide {
        ops.extend([Op::ZoneAppend, Op::ZoneReset, Op::ZoneResetAll, Op::ZoneFinish, Op::WriteZeroes]);
    }
    let extent = (any::<u64>(), 1u32.., select(ops), (0u16..128).prop_map(Flags));
    let who = (any::<u32>(), option::of("[a-z/:0-9]{1,15}"), 0u32..4, option::of(any::<u64>()));
    let rest = (blktrace_action(), number(), any::<i16>(), vec(any::<u8>(), 0..40), 0u64..1 << 62, 1u32..);
    (extent, who, rest).prop_map(|((sector, bytes, op, flags), (pid, comm, cpu, cgroup), rest)| {
        let (action, device, error, payload, time_ns, sequence) = rest;
        let note = action.is_note();
        // A flush and a record without operation have no bytes: that is how the format tells them from a read.
        let no_bytes = note || matches!(op, Op::None | Op::Flush);
        let keeps_payload = match action {
            Action::Plug | Action::Unplug { .. } | Action::Split { .. } | Action::Remap { .. } => false,
            _ => !matches!(action, Action::Timestamp { .. }),
        };
        let event = Event {
            time_ns,
            sector,
            bytes: if no_bytes { 0 } else { u64::from(bytes) },
            cgroup,
            action,
            device: Device::Number(device),
            pid: Some(pid),
            cpu: Some(cpu),
            sequence,
            error: i32::from(error),
            op: if note { Op::None } else { op },
            flags: match op {
                _ if note => Flags::NONE,
                Op::None | Op::Flush => flags.without(Flags::PREFLUSH),
                _ => flags,
            },
            ..Event::default()
        };
        // Names are told once a process and stay.
        let comm = comm.filter(|_| pid % 2 == 0).map(|_| format!("p{pid}"));
        Told { event, comm, device: None, payload: if keeps_payload { payload } else { Vec::new() } }
    })
}

/// Without the notes the writer adds for names.
fn without_processes(told: Vec<Told>) -> Vec<Told> {
    told.into_iter().filter(|told| told.event.action != Action::Process).collect()
}

fn text_event() -> impl Strategy<Value = Told> {
    let extent = (any::<u64>(), 1u64..1 << 40, select(vec![Op::Read, Op::Write, Op::Discard]), sync_flags());
    let who = (any::<u32>(), option::of("[a-z/:0-9()-]{1,15}"), 0u32..100, "[ -~]{0,60}");
    let rest = (blktrace_action(), number(), -4096i32..=0, 0u64..1 << 62, any::<u32>());
    (extent, who, rest).prop_filter_map("blkparse prints it", |(extent, who, rest)| {
        let ((sector, sectors, op, flags), (pid, comm, cpu, text)) = (extent, who);
        let (action, device, error, time_ns, sequence) = rest;
        let action = match action {
            Action::Remap { from, sector, .. } => Action::Remap { from, sector, to: device },
            Action::Abort
            | Action::DriverData
            | Action::ZonePlug
            | Action::ZoneUnplug
            | Action::Timestamp { .. } => return None,
            other => other,
        };
        let has_error = matches!(action, Action::Complete | Action::Requeue);
        let plain = matches!(action, Action::Plug | Action::Unplug { .. } | Action::Message);
        let event = Event {
            time_ns,
            action,
            device: Device::Number(device),
            sector: if plain { 0 } else { sector },
            bytes: if plain || matches!(action, Action::Split { .. }) { 0 } else { sectors * 512 },
            op: if plain { Op::None } else { op },
            flags: if plain { Flags::NONE } else { flags },
            pid: Some(pid),
            cpu: Some(cpu),
            sequence,
            error: if has_error { error } else { 0 },
            ..Event::default()
        };
        let nameless = has_error || matches!(action, Action::Message | Action::Remap { .. });
        let comm = if nameless { None } else { comm };
        let payload = if action == Action::Message { text.into_bytes() } else { Vec::new() };
        Some(Told { event, comm, device: None, payload })
    })
}

fn any_event() -> impl Strategy<Value = Told> {
    let extent = (any::<u64>(), any::<u64>(), 0..Op::NAMES.len(), 0u16..1024, 0u16..512);
    let who = (
        option::of(any::<u32>()),
        option::of("\\PC{1,15}"),
        option::of(any::<u32>()),
        option::of(any::<u64>()),
    );
    let device = prop_oneof![
        Just((Device::None, None)),
        number().prop_map(|number| (Device::Number(number), None)),
        "\\PC{1,20}".prop_map(|name| (Device::None, Some(name))),
        Just((Device::None, Some("8:0".to_owned()))),
    ];
    let more = select(vec![
        Action::RequestMerge,
        Action::BioComplete,
        Action::Error,
        Action::IoStart,
        Action::IoDone,
        Action::FileAdd,
        Action::FileOpen,
        Action::FileClose,
        Action::Process,
    ]);
    let action = prop_oneof![2 => blktrace_action(), 1 => more];
    let rest = (any::<i32>(), option::of(any::<u16>()), option::of(any::<u64>()), any::<u64>(), any::<u32>());
    let payload = vec(any::<u8>(), 0..40);
    (extent, who, device, action, rest, payload).prop_map(
        |(extent, who, (device, name), action, rest, payload)| {
            let ((sector, bytes, op, flags, skew_bytes), (pid, comm, cpu, cgroup)) = (extent, who);
            let (error, ioprio, response_ns, time_ns, sequence) = rest;
            let event = Event {
                time_ns,
                sector,
                bytes,
                response_ns,
                cgroup,
                action,
                device,
                pid,
                comm: None,
                cpu,
                sequence,
                error,
                skew_bytes,
                ioprio,
                op: Op::NAMES[op].1,
                flags: Flags(flags),
            };
            Told { event, comm, device: name, payload }
        },
    )
}

fn iolog_event() -> impl Strategy<Value = Told> {
    let op = select(vec![Op::Read, Op::Write, Op::Discard, Op::Sync, Op::DataSync]);
    let device = prop_oneof![
        number().prop_map(|number| (Device::Number(number), None)),
        "/[a-z]{1,9}/[!-~]{1,9}".prop_map(|name| (Device::None, Some(name))),
    ];
    (0u64..1 << 53, any::<u64>(), any::<u64>(), op, device).prop_map(
        |(us, offset, bytes, op, (device, name))| {
            let mut event =
                Event { time_ns: us * 1000, bytes, op, device, action: Action::Queue, ..Event::default() };
            event.set_offset_bytes(offset);
            Told { event, comm: None, device: name, payload: Vec::new() }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blktrace_7(events in vec(binary_event(false), 1..40).prop_map(in_order)) {
        let events: Vec<Told> = events
            .into_iter()
            .filter(|told| !matches!(told.event.action, Action::ZonePlug | Action::ZoneUnplug))
            .collect();
        prop_assume!(!events.is_empty());
        let mut bytes = Vec::new();
        prop_assert!(write(&mut BlktraceWriter::single(&mut bytes, Version::V7), &events).is_empty());
        prop_assert_eq!(named(without_processes(read(bytes, Format::Blktrace))), named(events));
    }

    #[test]
    fn blktrace_8(events in vec(binary_event(true), 1..40).prop_map(in_order)) {
        let mut bytes = Vec::new();
        prop_assert!(write(&mut BlktraceWriter::single(&mut bytes, Version::V8), &events).is_empty());
        prop_assert_eq!(named(without_processes(read(bytes, Format::Blktrace))), named(events));
    }

    #[test]
    fn blkparse(events in vec(text_event(), 1..40).prop_map(in_order)) {
        let mut bytes = Vec::new();
        let losses = write(&mut BlkparseWriter::new(&mut bytes), &events);
        prop_assert!(losses.is_empty(), "{}", losses);
        prop_assert_eq!(read(bytes, Format::Blkparse), events);
    }

    #[test]
    fn csv(events in vec(any_event(), 1..40).prop_map(in_order)) {
        let mut bytes = Vec::new();
        prop_assert!(write(&mut CsvWriter::new(&mut bytes), &events).is_empty());
        prop_assert_eq!(read(bytes, Format::Csv), events);
    }

    #[test]
    fn iolog_3(events in vec(iolog_event(), 1..40).prop_map(in_order)) {
        let mut bytes = Vec::new();
        prop_assert!(write(&mut IologWriter::new(&mut bytes, IologVersion::V3, Action::Queue), &events).is_empty());
        prop_assert_eq!(only_queue(read(bytes, Format::Iolog)), events);
    }

    #[test]
    fn iolog_2(mut events in vec(iolog_event(), 1..40)) {
        // Version 2 has no times, only waits of 100 us and more.
        for (index, told) in events.iter_mut().enumerate() {
            told.event.time_ns = (index as u64).div_ceil(2) * 250_000;
        }
        let mut bytes = Vec::new();
        prop_assert!(write(&mut IologWriter::new(&mut bytes, IologVersion::V2, Action::Queue), &events).is_empty());
        prop_assert_eq!(only_queue(read(bytes, Format::Iolog)), events);
    }
}

/// Without the lines that open and close files.
fn only_queue(told: Vec<Told>) -> Vec<Told> {
    told.into_iter().filter(|told| told.event.action == Action::Queue).collect()
}

/// A name told once holds for all later events of that process, so let every event have it that can.
fn named(mut told: Vec<Told>) -> Vec<Told> {
    let mut known = std::collections::HashSet::new();
    for told in &mut told {
        let pid = told.event.pid.expect("binary records have one");
        if told.comm.is_some() {
            known.insert(pid);
        }
        told.comm = known.contains(&pid).then(|| format!("p{pid}"));
    }
    told
}
