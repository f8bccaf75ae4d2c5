//! The handshake: what client and server agree on before the first request.

use std::io::{Read, Write};
use std::sync::Arc;

use super::PAYLOAD_MAX;
use super::wire::{self, can, info, option, reply, u16_at, u32_at};
use crate::exports::{Export, Exports};

/// Longest data of an option that is looked at, bytes: a name has at most 4,096.
const DATA_MAX: u32 = 64 << 10;
/// Longest data of an option that is skipped; who sends more is no client.
const SKIP_MAX: u32 = 1 << 20;
/// Most options of a handshake.
const OPTIONS_MAX: usize = 1000;
/// Longest name, bytes.
const NAME_MAX: u32 = 4096;
/// The one metadata context, and its number.
const ALLOCATION: &[u8] = b"base:allocation";
/// See [`ALLOCATION`].
pub(super) const ALLOCATION_ID: u32 = 1;
/// What clients should align to, bytes.
const PREFERRED: u32 = 4096;

/// What was agreed on.
#[derive(Clone, Debug)]
pub struct Session {
    /// What the client uses.
    pub export: Arc<Export>,
    /// Are replies structured?
    pub structured: bool,
    /// May it ask for the status of blocks?
    pub allocation: bool,
}

/// What was agreed on so far.
struct Agreed {
    no_zeroes: bool,
    security: Security,
    structured: bool,
    /// For which name the context was chosen.
    allocation: Option<Vec<u8>>,
}

/// What follows an option.
enum Next {
    Option,
    Tls,
    Transmission(Arc<Export>),
    End,
}

/// How a connection stands to TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Security {
    /// There is none.
    None,
    /// The client may begin it.
    Offered,
    /// The client must begin it before all else.
    Required,
    /// It is there.
    Begun,
}

/// How a handshake ended.
#[derive(Debug)]
pub enum Outcome {
    /// The client left.
    Left,
    /// TLS begins now; then [`negotiate`] goes on with what that carries.
    Tls(Greeted),
    /// The client has what it uses.
    Agreed(Session),
}

/// What outlives the begin of TLS: all else is to be agreed on again.
#[derive(Clone, Copy, Debug)]
pub struct Greeted {
    no_zeroes: bool,
}

/// Greet a client; `None`: it left.
///
/// # Errors
/// Why the connection cannot go on: a sentence.
pub fn greet(stream: &mut (impl Read + Write)) -> Result<Option<Greeted>, String> {
    let mut hello = wire::INIT.to_be_bytes().to_vec();
    hello.extend(wire::HAVE_OPTION.to_be_bytes());
    hello.extend((wire::FIXED_NEWSTYLE | wire::NO_ZEROES).to_be_bytes());
    send(stream, &hello)?;
    let mut flags = [0; 4];
    if stream.read_exact(&mut flags).is_err() {
        return Ok(None); // somebody who only looked
    }
    let flags = u32_at(&flags, 0);
    if flags & !u32::from(wire::FIXED_NEWSTYLE | wire::NO_ZEROES) != 0 {
        return Err(format!("the client wants what there is not (flags {flags:#x})"));
    }
    Ok(Some(Greeted { no_zeroes: flags & u32::from(wire::NO_ZEROES) != 0 }))
}

/// Take options until the client is content.
///
/// # Errors
/// Why the connection cannot go on: a sentence.
pub fn negotiate(
    stream: &mut (impl Read + Write),
    exports: &Exports,
    greeted: Greeted,
    security: Security,
) -> Result<Outcome, String> {
    let mut agreed = Agreed { no_zeroes: greeted.no_zeroes, security, structured: false, allocation: None };
    for _ in 0..OPTIONS_MAX {
        match one_option(stream, exports, &mut agreed)? {
            Next::Option => {}
            Next::Tls => return Ok(Outcome::Tls(greeted)),
            Next::End => return Ok(Outcome::Left),
            Next::Transmission(export) => {
                let name = agreed.allocation.as_deref();
                let same = |name| {
                    exports.find(&String::from_utf8_lossy(name)).is_some_and(|e| Arc::ptr_eq(&e, &export))
                };
                let allocation = name.is_some_and(same);
                return Ok(Outcome::Agreed(Session { export, structured: agreed.structured, allocation }));
            }
        }
    }
    Err(format!("more than {OPTIONS_MAX} options"))
}

fn send(stream: &mut impl Write, bytes: &[u8]) -> Result<(), String> {
    stream.write_all(bytes).map_err(|error| format!("handshake: {error}"))
}

fn answer(stream: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> Result<(), String> {
    let mut out = wire::OPTION_REPLY.to_be_bytes().to_vec();
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(data);
    send(stream, &out)
}

fn one_option(
    stream: &mut (impl Read + Write),
    exports: &Exports,
    agreed: &mut Agreed,
) -> Result<Next, String> {
    let mut header = [0; 16];
    if stream.read_exact(&mut header).is_err() {
        return Ok(Next::End);
    }
    if wire::u64_at(&header, 0) != wire::HAVE_OPTION {
        return Err("the client sends something that is no option".to_owned());
    }
    let (option, len) = (u32_at(&header, 8), u32_at(&header, 12));
    if len > SKIP_MAX || (len > DATA_MAX && option == option::EXPORT_NAME) {
        return Err(format!("option {option} has {len} bytes"));
    }
    let mut data = vec![0; len as usize];
    stream.read_exact(&mut data).map_err(|error| format!("option {option}: {error}"))?;
    if len > DATA_MAX {
        answer(stream, option, reply::ERR_TOO_BIG, b"too long")?;
        return Ok(Next::Option);
    }
    if agreed.security == Security::Required && !matches!(option, option::ABORT | option::STARTTLS) {
        if option == option::EXPORT_NAME {
            return Err("the client does not begin TLS".to_owned());
        }
        return answer(stream, option, reply::ERR_TLS_REQD, b"first STARTTLS").map(|()| Next::Option);
    }
    match option {
        option::STARTTLS if agreed.security != Security::None => start_tls(stream, agreed, &data),
        option::EXPORT_NAME => export_name(stream, exports, agreed, &data),
        option::ABORT => {
            // Who is gone already does not wait for it.
            let _ = answer(stream, option, reply::ACK, &[]);
            Ok(Next::End)
        }
        option::INFO | option::GO => go(stream, exports, agreed, option, &data),
        option::LIST if data.is_empty() => list(stream, exports),
        option::STRUCTURED_REPLY if data.is_empty() => {
            agreed.structured = true;
            answer(stream, option, reply::ACK, &[]).map(|()| Next::Option)
        }
        option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
            meta_context(stream, exports, agreed, option, &data)
        }
        option::LIST | option::STRUCTURED_REPLY => {
            answer(stream, option, reply::ERR_INVALID, b"this option has no data").map(|()| Next::Option)
        }
        _ => answer(stream, option, reply::ERR_UNSUP, b"not there").map(|()| Next::Option),
    }
}

fn start_tls(stream: &mut impl Write, agreed: &Agreed, data: &[u8]) -> Result<Next, String> {
    let wrong = match (agreed.security, data) {
        (Security::Begun, _) => "TLS has begun already",
        (_, []) => return answer(stream, option::STARTTLS, reply::ACK, &[]).map(|()| Next::Tls),
        _ => "this option has no data",
    };
    answer(stream, option::STARTTLS, reply::ERR_INVALID, wrong.as_bytes()).map(|()| Next::Option)
}

/// The old way to choose an export; it knows no errors.
fn export_name(
    stream: &mut impl Write,
    exports: &Exports,
    agreed: &Agreed,
    name: &[u8],
) -> Result<Next, String> {
    let name = String::from_utf8_lossy(name);
    let export = exports.find(&name).ok_or_else(|| format!("there is no export '{name}'"))?;
    let mut out = export.bytes().to_be_bytes().to_vec();
    out.extend(abilities(&export, agreed.structured).to_be_bytes());
    if !agreed.no_zeroes {
        out.extend([0; 124]);
    }
    send(stream, &out)?;
    Ok(Next::Transmission(export))
}

/// What `export` can do, as the protocol's flags.
fn abilities(export: &Export, structured: bool) -> u16 {
    let mut flags = can::HAS_FLAGS | can::FLUSH | can::FUA | can::MULTI_CONN;
    flags |=
        if export.is_read_only() { can::READ_ONLY } else { can::TRIM | can::WRITE_ZEROES | can::FAST_ZERO };
    if export.device.limits().rotational {
        flags |= can::ROTATIONAL;
    }
    if structured {
        flags |= can::DF;
    }
    flags
}

/// Takes parts of an option's data; `None`: it is shorter than it says.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(part)
    }

    fn number(&mut self) -> Option<u32> {
        self.bytes(4).map(|bytes| u32_at(bytes, 0))
    }

    /// A text behind its length.
    fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.number().filter(|len| *len <= NAME_MAX)?;
        self.bytes(len as usize)
    }
}

/// Name and wanted information of INFO and GO.
fn wanted(data: &[u8]) -> Option<(String, Vec<u16>)> {
    let mut parts = Parts(data);
    let name = String::from_utf8(parts.text()?.to_vec()).ok()?;
    let count = u16_at(parts.bytes(2)?, 0);
    let infos = parts.bytes(usize::from(count) * 2)?.chunks_exact(2).map(|pair| u16_at(pair, 0)).collect();
    parts.0.is_empty().then_some((name, infos))
}

fn go(
    stream: &mut (impl Read + Write),
    exports: &Exports,
    agreed: &Agreed,
    option: u32,
    data: &[u8],
) -> Result<Next, String> {
    let Some((name, infos)) = wanted(data) else {
        return answer(stream, option, reply::ERR_INVALID, b"malformed").map(|()| Next::Option);
    };
    let Some(export) = exports.find(&name) else {
        let text = format!("there is no export '{name}'");
        return answer(stream, option, reply::ERR_UNKNOWN, text.as_bytes()).map(|()| Next::Option);
    };
    let mut tell = |kind: u16, data: &[u8]| {
        let bytes: Vec<u8> = kind.to_be_bytes().iter().chain(data).copied().collect();
        answer(stream, option, reply::INFO, &bytes)
    };
    let size =
        export.bytes().to_be_bytes().into_iter().chain(abilities(&export, agreed.structured).to_be_bytes());
    tell(info::EXPORT, &size.collect::<Vec<u8>>())?;
    let least = export.device.back().block_bytes();
    let sizes: Vec<u8> =
        [least, PREFERRED.max(least), PAYLOAD_MAX].into_iter().flat_map(u32::to_be_bytes).collect();
    tell(info::BLOCK_SIZE, &sizes)?;
    if infos.contains(&info::NAME) {
        tell(info::NAME, export.options.name.as_bytes())?;
    }
    if infos.contains(&info::DESCRIPTION) && !export.options.description.is_empty() {
        tell(info::DESCRIPTION, export.options.description.as_bytes())?;
    }
    answer(stream, option, reply::ACK, &[])?;
    Ok(if option == option::GO { Next::Transmission(export) } else { Next::Option })
}

fn list(stream: &mut impl Write, exports: &Exports) -> Result<Next, String> {
    for export in exports.all() {
        let (name, description) = (&export.options.name, &export.options.description);
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name.bytes().chain(description.bytes()));
        answer(stream, option::LIST, reply::SERVER, &data)?;
    }
    answer(stream, option::LIST, reply::ACK, &[]).map(|()| Next::Option)
}

/// Export and queries of the options for metadata contexts.
fn queries(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut parts = Parts(data);
    let name = parts.text()?;
    let count = parts.number()?;
    let mut queries = Vec::new();
    for _ in 0..count {
        queries.push(parts.text()?);
    }
    parts.0.is_empty().then_some((name, queries))
}

fn meta_context(
    stream: &mut impl Write,
    exports: &Exports,
    agreed: &mut Agreed,
    option: u32,
    data: &[u8],
) -> Result<Next, String> {
    let set = option == option::SET_META_CONTEXT;
    if set {
        agreed.allocation = None;
    }
    let Some((name, queries)) = queries(data).filter(|_| agreed.structured) else {
        let text = b"malformed, or replies are not structured";
        return answer(stream, option, reply::ERR_INVALID, text).map(|()| Next::Option);
    };
    if exports.find(&String::from_utf8_lossy(name)).is_none() {
        return answer(stream, option, reply::ERR_UNKNOWN, b"no such export").map(|()| Next::Option);
    }
    let asked = |query: &&[u8]| *query == ALLOCATION || (!set && *query == b"base:");
    if queries.iter().any(asked) || (!set && queries.is_empty()) {
        let data: Vec<u8> = ALLOCATION_ID.to_be_bytes().iter().chain(ALLOCATION).copied().collect();
        answer(stream, option, reply::META_CONTEXT, &data)?;
        if set {
            agreed.allocation = Some(name.to_vec());
        }
    }
    answer(stream, option, reply::ACK, &[]).map(|()| Next::Option)
}
