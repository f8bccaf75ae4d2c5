//! Which format a trace has, from its content.

use std::sync::Arc;

use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use crate::read::{Shared, csv, iolog, record, vscsi};

/// How much of a trace is looked at.
pub(crate) const SAMPLE_BYTES: usize = 64 << 10;
/// How many events of each candidate.
const EVENTS_MAX: u32 = 200;

/// The format of a trace that begins with `sample`. Text formats are tried out on its lines; one must fit.
pub(crate) fn detect(file: &Arc<str>, sample: &[u8]) -> Result<Format, TraceError> {
    let fault = |kind, message: String| Err(TraceError::new(kind, Place::file(file), message));
    if sample.iter().all(u8::is_ascii_whitespace) {
        return fault(ErrorKind::Empty, "the file is empty".into());
    }
    if sample.len() >= 4 && record::identify(sample[..4].try_into().expect("four bytes")).is_some() {
        return Ok(Format::Blktrace);
    }
    if sample.contains(&0) {
        if vscsi::version_of(sample).is_some() {
            return Ok(Format::Vscsi);
        }
        // A blktrace file with a damaged beginning still has its magic number somewhere.
        let magic = |word: &[u8]| record::identify(word.try_into().expect("four bytes")).is_some();
        if sample.windows(4).any(magic) {
            return Ok(Format::Blktrace);
        }
        let message = "binary data that is neither blktrace (magic 0x65617407) nor vscsi";
        return fault(ErrorKind::UnknownFormat, message.into());
    }
    let first =
        sample.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty() && line[0] != b'#');
    if let Some(first) = first {
        if iolog::header_version(first).is_some() {
            return Ok(Format::Iolog);
        }
        if vscsi::is_cloud_physics(first) {
            return Ok(Format::CloudPhysics);
        }
        if csv::is_header(first) {
            return Ok(Format::Csv);
        }
    }
    let candidates: Vec<Format> = Format::all().filter(|&format| fits(format, sample)).collect();
    let names =
        |formats: &[Format]| formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    match candidates.as_slice() {
        [format] => Ok(*format),
        [] => {
            let all: Vec<Format> = Format::all().collect();
            let message = format!("the text fits no known format; --format takes one of {}", names(&all));
            fault(ErrorKind::UnknownFormat, message)
        }
        several => {
            let message =
                format!("the text fits several formats: {}; choose one with --format", names(several));
            fault(ErrorKind::UnknownFormat, message)
        }
    }
}

/// Whether most lines of the sample are events of the format.
fn fits(format: Format, sample: &[u8]) -> bool {
    if matches!(format, Format::Iolog | Format::CloudPhysics | Format::Csv) {
        return false; // They have a header, looked for above.
    }
    let Some(mut parser) = format.line_parser(None) else { return false };
    let (mut shared, mut events, mut faults) = (Shared::default(), 0, 0);
    // The last line of a full sample is cut.
    let end = if sample.len() < SAMPLE_BYTES {
        sample.len()
    } else {
        sample.iter().rposition(|&byte| byte == b'\n').unwrap_or(0)
    };
    for line in sample[..end].split(|&byte| byte == b'\n') {
        shared.payload.clear();
        match parser.parse(line.strip_suffix(b"\r").unwrap_or(line), &mut shared) {
            Ok(None) => {}
            Ok(Some(_)) => events += 1,
            Err(_) => faults += 1,
        }
        if events + faults >= EVENTS_MAX || parser.is_done() {
            break;
        }
    }
    events > faults
}
