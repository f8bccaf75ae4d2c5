//! Lines of the kernel's `block:*` tracepoints, as ftrace, trace-cmd report and perf script print them.

use super::Shared;
use super::blkparse::extent;
use super::fields::{self, bracketed, device, digits, int, next_word, time, uint, uint32};
use super::lines::LineParser;
use crate::error::Problem;
use crate::event::{Action, Device, Event};
use crate::gap;
use crate::rwbs;

/// `TASK-PID [CPU] FLAGS SECONDS: EVENT: payload`; perf writes `TASK PID` and `block:EVENT`.
#[derive(Default)]
pub(crate) struct Ftrace {
    /// Time of the line before, ns: a line that says that events were lost has none of its own.
    last_ns: u64,
}

/// What a tracepoint's payload holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `dev RWBS BYTES (CMD) S + n …`
    Request,
    /// `dev RWBS (CMD) S + n … [error]`
    Done,
    /// `dev RWBS S + n [comm]`
    Bio,
    /// `dev RWBS S + n [error]`
    BioDone,
    /// `[comm]` or `[comm] n`
    Plug,
}

fn tracepoint(name: &[u8]) -> Option<(Action, Shape)> {
    let none = crate::event::DeviceNumber(0);
    Some(match name {
        b"block_bio_queue" => (Action::Queue, Shape::Bio),
        b"block_bio_backmerge" => (Action::BackMerge, Shape::Bio),
        b"block_bio_frontmerge" => (Action::FrontMerge, Shape::Bio),
        b"block_bio_bounce" => (Action::Bounce, Shape::Bio),
        b"block_bio_complete" => (Action::BioComplete, Shape::BioDone),
        b"block_getrq" => (Action::GetRequest, Shape::Bio),
        b"block_sleeprq" => (Action::SleepRequest, Shape::Bio),
        b"block_split" | b"block_bio_split" => (Action::Split { to: 0 }, Shape::Bio),
        b"block_bio_remap" | b"block_remap" | b"block_rq_remap" => {
            (Action::Remap { from: none, sector: 0, to: none }, Shape::Bio)
        }
        b"block_rq_insert" => (Action::Insert, Shape::Request),
        b"block_rq_issue" => (Action::Issue, Shape::Request),
        b"block_rq_merge" => (Action::RequestMerge, Shape::Request),
        b"block_io_start" => (Action::IoStart, Shape::Request),
        b"block_io_done" => (Action::IoDone, Shape::Request),
        b"block_rq_requeue" => (Action::Requeue, Shape::Done),
        b"block_rq_complete" => (Action::Complete, Shape::Done),
        b"block_rq_error" => (Action::Error, Shape::Done),
        b"block_rq_abort" => (Action::Abort, Shape::Done),
        b"block_plug" => (Action::Plug, Shape::Plug),
        b"block_unplug" | b"block_unplug_io" => (Action::Unplug { count: 0, by_timer: false }, Shape::Plug),
        b"block_unplug_timer" => (Action::Unplug { count: 0, by_timer: true }, Shape::Plug),
        _ => return None,
    })
}

/// The line's head: task, process, CPU, time, event name without `block:`, payload.
struct Head<'a> {
    comm: &'a [u8],
    pid: u32,
    cpu: u32,
    time_ns: u64,
    name: &'a [u8],
    payload: &'a [u8],
}

/// Splits a line. `None`: it has no `[CPU]`, so it is no event.
fn head(line: &[u8]) -> Result<Option<Head<'_>>, Problem> {
    // Task names may hold brackets: the CPU is the first bracket with digits only, behind the task's number.
    let mut from = 0;
    let (open, close) = loop {
        let Some(open) = line[from..].iter().position(|&byte| byte == b'[').map(|at| at + from) else {
            return Ok(None);
        };
        let Some(close) = line[open..].iter().position(|&byte| byte == b']').map(|at| at + open) else {
            return Ok(None);
        };
        if digits(&line[open + 1..close]).is_some() && line[..open].ends_with(b" ") {
            break (open, close);
        }
        from = open + 1;
    };
    let mut task = line[..open].trim_ascii();
    if task.last() == Some(&b')') {
        // ftrace's record-tgid option: `comm-pid  ( tgid)`.
        let paren = task.iter().rposition(|&byte| byte == b'(').unwrap_or(0);
        task = task[..paren].trim_ascii_end();
    }
    let split = task.iter().rposition(|&byte| byte == b'-' || byte.is_ascii_whitespace());
    let Some(split) = split else { return Err(Problem::word("TASK-PID or TASK PID before the CPU", task)) };
    let pid_text = &task[split + 1..];
    let pid_text = pid_text.split(|&byte| byte == b'/').next_back().unwrap_or(pid_text);
    let pid = uint32(pid_text, "a process number")?;
    let cpu = uint32(&line[open + 1..close], "a CPU")?;
    let mut rest = &line[close + 1..];
    let mut word = next_word(&mut rest);
    let stamp = loop {
        if word.is_empty() {
            return Err(Problem::word("a time in seconds with a colon behind it", &line[close + 1..]));
        }
        if let Some(stamp) = word.strip_suffix(b":")
            && stamp.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.' || *byte == b'-')
            && stamp.contains(&b'.')
        {
            break stamp;
        }
        word = next_word(&mut rest);
    };
    let time_ns = time(stamp, 9, "the time in seconds")?;
    let name = next_word(&mut rest);
    let name = name.strip_suffix(b":").unwrap_or(name);
    let name = name.strip_prefix(b"block:").unwrap_or(name);
    Ok(Some(Head { comm: task[..split].trim_ascii(), pid, cpu, time_ns, name, payload: rest }))
}

/// `be,0,4` or perf's `0x2,0,4`, as the kernel's 16 bits.
fn priority(word: &[u8]) -> Option<u16> {
    let mut parts = word.trim_ascii_end().strip_suffix(b",").unwrap_or(word).splitn(3, |&byte| byte == b',');
    let class = match parts.next()? {
        b"none" => 0,
        b"rt" => 1,
        b"be" => 2,
        b"idle" => 3,
        b"invalid" => 7,
        number => fields::hex(number.strip_prefix(b"0x")?)?,
    };
    let hint = digits(parts.next()?)?;
    let level = digits(parts.next()?)?;
    (class < 8 && hint < 1 << 10 && level < 8).then_some((class << 13 | hint << 3 | level) as u16)
}

/// `CPU:1 [LOST 12 EVENTS]`, as trace_pipe and trace-cmd say that a buffer ran over; 0: they do not say by how many.
fn lost(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"CPU:")?;
    gap::parse(&rest[rest.iter().position(|&byte| byte == b'[')?..])
}

impl LineParser for Ftrace {
    fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem> {
        let text = line.trim_ascii_start();
        if let Some(events) = lost(text) {
            shared.payload.extend_from_slice(gap::message(events).as_bytes());
            return Ok(Some(Event { time_ns: self.last_ns, action: Action::Message, ..Event::default() }));
        }
        let other = [&b"#"[..], b"cpus=", b"version = ", b"CPU ", b"CPU:", b"trace-cmd", b"##"];
        if text.is_empty() || other.iter().any(|start| text.starts_with(start)) {
            return Ok(None);
        }
        let Some(head) = head(line)? else {
            return Err(Problem::word("TASK-PID [CPU] TIME: EVENT: …", text));
        };
        self.last_ns = head.time_ns;
        let Some((action, shape)) = tracepoint(head.name) else { return Ok(None) };
        let mut event = Event {
            time_ns: head.time_ns,
            action,
            pid: Some(head.pid),
            cpu: Some(head.cpu),
            ..Event::default()
        };
        let mut comm = head.comm;
        let mut rest = head.payload;
        if shape == Shape::Plug {
            let (inner, behind) =
                bracketed(rest).ok_or_else(|| Problem::word("[process]", rest.trim_ascii()))?;
            if let Action::Unplug { by_timer, .. } = action {
                let count = uint(behind.trim_ascii(), "the number of requests")?;
                event.action = Action::Unplug { count, by_timer };
            }
            event.comm = Some(shared.names.intern_bytes(inner));
            return Ok(Some(event));
        }
        event.device = Device::Number(device(next_word(&mut rest))?);
        let word = next_word(&mut rest);
        (event.op, event.flags) =
            rwbs::parse(word).ok_or_else(|| Problem::word("operation and flags", word))?;
        let bytes =
            if shape == Shape::Request { Some(uint(next_word(&mut rest), "a size in bytes")?) } else { None };
        if matches!(shape, Shape::Request | Shape::Done) {
            rest = command(rest, &mut event, shared)?;
        }
        let mut rest = extent(rest, &mut event, &mut shared.payload)?;
        // Requests of no sectors (passed-through commands) have a size all the same.
        if let Some(bytes) = bytes.filter(|&bytes| bytes > 0) {
            event.bytes = bytes;
        }
        let mut ahead = rest;
        let word = next_word(&mut ahead);
        if word.contains(&b',') && !word.starts_with(b"[") {
            event.ioprio = Some(priority(word).ok_or_else(|| Problem::word("a priority like be,0,4", word))?);
            rest = ahead;
        }
        if let Some((inner, _)) = bracketed(rest) {
            match shape {
                Shape::Done | Shape::BioDone => {
                    let error = int(inner.trim_ascii(), "an error number")?;
                    event.error =
                        i32::try_from(error).map_err(|_| Problem::word("an error number", inner))?;
                }
                _ => comm = inner,
            }
        } else if !rest.trim_ascii().is_empty() {
            return Err(Problem::word("[process] or [error]", rest.trim_ascii()));
        }
        event.comm = Some(shared.names.intern_bytes(comm));
        Ok(Some(event))
    }
}

/// Reads `(CMD)`, bytes in hex or nothing.
fn command<'a>(rest: &'a [u8], event: &mut Event, shared: &mut Shared) -> Result<&'a [u8], Problem> {
    let rest = rest.trim_ascii_start();
    let close = rest.iter().position(|&byte| byte == b')');
    let (Some(b'('), Some(close)) = (rest.first(), close) else {
        return Err(Problem::word("(command)", rest));
    };
    let inner = rest[1..close].trim_ascii();
    if !inner.is_empty() {
        let bytes = inner.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        shared.payload.extend(bytes.filter_map(fields::hex).map(|byte| byte as u8));
        event.flags = event.flags.with(crate::event::Flags::PASSTHROUGH);
    }
    Ok(&rest[close + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{DeviceNumber, Flags, Op};

    fn parse(line: &str) -> Event {
        Ftrace::default().parse(line.as_bytes(), &mut Shared::default()).expect(line).expect(line)
    }

    #[test]
    fn three_printers_one_event() {
        let lines = [
            "             fio-1234    [001] d..1.   123.456789: block_rq_issue: 8,0 RS 4096 () 2048 + 8 be,0,4 [fio]",
            "fio-1234  [001]   123.456789: block_rq_issue:       8,0 RS 4096 () 2048 + 8 be,0,4 [fio]",
            "fio  1234 [001]   123.456789: block:block_rq_issue: 8,0 RS 4096 () 2048 + 8 0x2,0,4 [fio]",
            "             fio-1234    ( 1234) [001] d..1   123.456789: block_rq_issue: 8,0 RS 4096 () 2048 + 8 be,0,4 [fio]",
        ];
        for line in lines {
            let event = parse(line);
            assert_eq!(event.time_ns, 123_456_789_000, "{line}");
            assert_eq!((event.action, event.op, event.flags), (Action::Issue, Op::Read, Flags::SYNC));
            assert_eq!((event.sector, event.bytes, event.ioprio), (2048, 4096, Some(2 << 13 | 4)));
            assert_eq!((event.pid, event.cpu), (Some(1234), Some(1)));
        }
        let old = parse("          <idle>-0     [000]  1.000001: block_rq_complete: 8,16 W () 100 + 8 [-5]");
        assert_eq!((old.action, old.error, old.bytes), (Action::Complete, -5, 4096));
        let remap = parse("  a [b] c-7 [000] .... 2.5: block_bio_remap: 8,0 R 4096 + 8 <- (8,1) 2048");
        let Action::Remap { from, sector, to } = remap.action else { panic!("{remap:?}") };
        assert_eq!(
            (from, sector, to),
            (DeviceNumber::new(8, 1).unwrap(), 2048, DeviceNumber::new(8, 0).unwrap())
        );
        let unplug = parse("fio-9 [000] .... 2.5: block_unplug: [fio] 3");
        assert_eq!(unplug.action, Action::Unplug { count: 3, by_timer: false });
        assert!(
            Ftrace::default()
                .parse(b"fio-9 [000] .... 2.5: sched_switch: prev_comm=a", &mut Shared::default())
                .unwrap()
                .is_none()
        );
    }
}
