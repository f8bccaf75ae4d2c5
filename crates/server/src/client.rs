//! A small NBD client: what the tests and the load generator (`examples/load.rs`) need, and no more.

use std::io::{self, Read, Write};

use crate::front::nbd::wire::{self, Request, chunk, command, info, option, reply, u16_at, u32_at, u64_at};
use crate::net::{Address, Stream};

/// Longest answer that is taken, bytes.
const ANSWER_MAX: u32 = 65 << 20;

/// A connection behind its handshake.
#[derive(Debug)]
pub struct Client {
    /// The connection.
    pub stream: Stream,
    /// The export's size, bytes.
    pub bytes: u64,
    /// What it can do ([`wire::can`]).
    pub flags: u16,
    structured: bool,
    cookie: u64,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Which one.
    pub cookie: u64,
    /// An error's number; 0: none.
    pub error: u32,
    /// What was read, or the payload of the status of blocks.
    pub data: Vec<u8>,
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Take the greeting and say which style to use.
///
/// # Errors
/// The system's, or an answer that is no NBD.
pub fn greet(stream: &mut Stream) -> io::Result<()> {
    let mut hello = [0; 18];
    stream.read_exact(&mut hello)?;
    if u64_at(&hello, 0) != wire::INIT || u64_at(&hello, 8) != wire::HAVE_OPTION {
        return Err(wrong("no NBD server"));
    }
    stream.write_all(&u32::from(wire::FIXED_NEWSTYLE | wire::NO_ZEROES).to_be_bytes())
}

/// Send an option and take its answers up to the last: kind and data of each.
///
/// # Errors
/// The system's, or an answer that is no NBD.
pub fn ask(stream: &mut Stream, option: u32, data: &[u8]) -> io::Result<Vec<(u32, Vec<u8>)>> {
    let mut question = wire::HAVE_OPTION.to_be_bytes().to_vec();
    question.extend(option.to_be_bytes());
    question.extend((data.len() as u32).to_be_bytes());
    question.extend(data);
    stream.write_all(&question)?;
    let mut answers = Vec::new();
    loop {
        let mut header = [0; 20];
        stream.read_exact(&mut header)?;
        let (kind, len) = (u32_at(&header, 12), u32_at(&header, 16));
        if u64_at(&header, 0) != wire::OPTION_REPLY || u32_at(&header, 8) != option || len > ANSWER_MAX {
            return Err(wrong("no answer to the option"));
        }
        let mut data = vec![0; len as usize];
        stream.read_exact(&mut data)?;
        answers.push((kind, data));
        if kind == reply::ACK || kind & 0x8000_0000 != 0 {
            return Ok(answers);
        }
    }
}

/// The data of INFO and GO for `name`.
pub fn go_data(name: &str) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.bytes());
    data.extend(0u16.to_be_bytes());
    data
}

impl Client {
    /// Connect and choose the export `name`; `structured`: with structured replies and block status.
    ///
    /// # Errors
    /// The system's, or the server's text.
    pub fn connect(address: &Address, name: &str, structured: bool) -> io::Result<Client> {
        Client::over(address.connect()?, name, structured)
    }

    /// The same over a connection that is there.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn over(mut stream: Stream, name: &str, structured: bool) -> io::Result<Client> {
        greet(&mut stream)?;
        Client::greeted(stream, name, structured)
    }

    /// The same behind the greeting ([`greet`]), as after the begin of TLS.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn greeted(mut stream: Stream, name: &str, structured: bool) -> io::Result<Client> {
        if structured {
            ask(&mut stream, option::STRUCTURED_REPLY, &[])?;
            let mut data = (name.len() as u32).to_be_bytes().to_vec();
            data.extend(name.bytes());
            data.extend(1u32.to_be_bytes());
            data.extend(15u32.to_be_bytes());
            data.extend(b"base:allocation");
            ask(&mut stream, option::SET_META_CONTEXT, &data)?;
        }
        let answers = ask(&mut stream, option::GO, &go_data(name))?;
        if let Some((_, text)) = answers.iter().find(|(kind, _)| kind & 0x8000_0000 != 0) {
            return Err(wrong(&String::from_utf8_lossy(text)));
        }
        let is_export =
            |(kind, data): &&(u32, Vec<u8>)| *kind == reply::INFO && u16_at(data, 0) == info::EXPORT;
        let (_, data) = answers.iter().find(is_export).ok_or_else(|| wrong("no size"))?;
        Ok(Client { stream, bytes: u64_at(data, 2), flags: u16_at(data, 10), structured, cookie: 0 })
    }

    /// A request with the next cookie.
    pub fn request(&mut self, command: u16, flags: u16, offset: u64, bytes: u32) -> Request {
        self.cookie += 1;
        Request { flags, command, cookie: self.cookie, offset, bytes }
    }

    /// Send a request with its payload.
    ///
    /// # Errors
    /// The system's.
    pub fn send(&mut self, request: &Request, payload: &[u8]) -> io::Result<()> {
        let mut bytes = request.to_bytes().to_vec();
        bytes.extend(payload);
        self.stream.write_all(&bytes)
    }

    /// Take the next reply; `data` of a simple one is as long as `reads` says for its cookie.
    ///
    /// # Errors
    /// The system's, or a reply that is none.
    pub fn receive(&mut self, reads: impl Fn(u64) -> u32) -> io::Result<Reply> {
        if self.structured { self.receive_chunks() } else { self.receive_simple(reads) }
    }

    fn receive_simple(&mut self, reads: impl Fn(u64) -> u32) -> io::Result<Reply> {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header)?;
        if u32_at(&header, 0) != wire::SIMPLE_REPLY {
            return Err(wrong("no reply"));
        }
        let (error, cookie) = (u32_at(&header, 4), u64_at(&header, 8));
        let mut data = vec![0; if error == 0 { reads(cookie) as usize } else { 0 }];
        self.stream.read_exact(&mut data)?;
        Ok(Reply { cookie, error, data })
    }

    fn receive_chunks(&mut self) -> io::Result<Reply> {
        let mut out = Reply { cookie: 0, error: 0, data: Vec::new() };
        loop {
            let mut header = [0; 20];
            self.stream.read_exact(&mut header)?;
            let (flags, kind, len) = (u16_at(&header, 4), u16_at(&header, 6), u32_at(&header, 16));
            if u32_at(&header, 0) != wire::CHUNK || len > ANSWER_MAX {
                return Err(wrong("no chunk"));
            }
            out.cookie = u64_at(&header, 8);
            let mut data = vec![0; len as usize];
            self.stream.read_exact(&mut data)?;
            match kind {
                chunk::OFFSET_DATA => out.data.extend(data.get(8..).ok_or_else(|| wrong("short chunk"))?),
                chunk::BLOCK_STATUS => out.data = data,
                chunk::ERROR if data.len() >= 6 => out.error = u32_at(&data, 0),
                chunk::NONE => {}
                _ => return Err(wrong("unknown chunk")),
            }
            if flags & chunk::DONE != 0 {
                return Ok(out);
            }
        }
    }

    /// Send a request and wait for its reply.
    ///
    /// # Errors
    /// As [`Client::receive`].
    pub fn call(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        bytes: u32,
        payload: &[u8],
    ) -> io::Result<Reply> {
        let request = self.request(command, flags, offset, bytes);
        self.send(&request, payload)?;
        self.receive(|_| if command == command::READ { bytes } else { 0 })
    }

    /// Read.
    ///
    /// # Errors
    /// As [`Client::receive`]; the server's errors are in the reply.
    pub fn read(&mut self, offset: u64, bytes: u32) -> io::Result<Reply> {
        self.call(command::READ, 0, offset, bytes, &[])
    }

    /// Write; with `flags`.
    ///
    /// # Errors
    /// As [`Client::read`].
    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> io::Result<Reply> {
        self.call(command::WRITE, flags, offset, data.len() as u32, data)
    }

    /// Flush.
    ///
    /// # Errors
    /// As [`Client::read`].
    pub fn flush(&mut self) -> io::Result<Reply> {
        self.call(command::FLUSH, 0, 0, 0, &[])
    }
}
