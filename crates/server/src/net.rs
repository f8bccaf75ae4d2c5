//! Addresses and streams: unix sockets and TCP alike.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use listenfd::ListenFd;

use crate::tls::TlsStream;

/// Where to listen or connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket's path.
    Unix(PathBuf),
    /// HOST:PORT.
    Tcp(String),
    /// The sockets that systemd, or another parent process, has opened for it (`LISTEN_FDS`).
    Systemd,
}

impl Address {
    /// Read `unix:PATH`, `tcp:HOST:PORT`, `systemd`, a path with a slash, or HOST:PORT.
    ///
    /// # Errors
    /// A sentence with what is allowed.
    pub fn parse(text: &str) -> Result<Address, String> {
        let wrong = || format!("'{text}' is no address (allowed: unix:PATH, tcp:HOST:PORT)");
        if text == "systemd" {
            return Ok(Address::Systemd);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Address::Unix(path.into())) };
        }
        let host = text.strip_prefix("tcp:");
        if host.is_none() && text.contains('/') {
            return Ok(Address::Unix(text.into()));
        }
        let host = host.unwrap_or(text);
        let port =
            host.rsplit_once(':').filter(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok());
        port.map(|_| Address::Tcp(host.to_owned())).ok_or_else(wrong)
    }

    /// Connect to it.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(&self) -> io::Result<Stream> {
        match self {
            Address::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
            Address::Tcp(host) => {
                let stream = TcpStream::connect(host)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Address::Systemd => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(host) => write!(f, "tcp:{host}"),
            Address::Systemd => f.write_str("systemd"),
        }
    }
}

/// A place where clients connect. A unix socket's file goes when it is dropped.
#[derive(Debug)]
pub enum Listener {
    /// With its path, if the file is ours.
    Unix(UnixListener, Option<PathBuf>),
    /// TCP.
    Tcp(TcpListener),
}

impl Listener {
    /// Listen: at one socket, or all that were passed. The file of a unix socket that no process listens to any more is replaced.
    ///
    /// # Errors
    /// The system's; `NotFound` if no sockets were passed.
    pub fn bind(address: &Address) -> io::Result<Vec<Listener>> {
        let listeners = match address {
            Address::Unix(path) => {
                remove_stale(path)?;
                vec![Listener::Unix(UnixListener::bind(path)?, Some(path.clone()))]
            }
            Address::Tcp(host) => {
                let address = host.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
                vec![Listener::Tcp(TcpListener::bind(address)?)]
            }
            Address::Systemd => passed()?,
        };
        for listener in &listeners {
            match listener {
                Listener::Unix(socket, _) => socket.set_nonblocking(true)?,
                Listener::Tcp(socket) => socket.set_nonblocking(true)?,
            }
        }
        Ok(listeners)
    }

    /// Where it listens, with the port that the system chose for port 0.
    pub fn address(&self) -> String {
        match self {
            Listener::Unix(_, Some(path)) => format!("unix:{}", path.display()),
            Listener::Unix(socket, None) => {
                let address = socket.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                path.map_or_else(|| "unix".to_owned(), |path| format!("unix:{}", path.display()))
            }
            Listener::Tcp(socket) => {
                socket.local_addr().map_or_else(|_| "tcp".to_owned(), |address| format!("tcp:{address}"))
            }
        }
    }

    /// Another handle of a unix socket.
    ///
    /// # Errors
    /// The system's, or that it is none.
    pub fn try_clone_unix(&self) -> io::Result<UnixListener> {
        match self {
            Listener::Unix(socket, _) => socket.try_clone(),
            Listener::Tcp(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The next client, if one waits.
    ///
    /// # Errors
    /// The system's.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        let stream = match self {
            Listener::Unix(socket, _) => socket.accept().map(|(stream, _)| Stream::Unix(stream)),
            Listener::Tcp(socket) => socket.accept().map(|(stream, _)| Stream::Tcp(stream)),
        };
        match stream {
            Ok(stream) => {
                stream.set_nonblocking(false)?;
                if let Stream::Tcp(tcp) = &stream {
                    tcp.set_nodelay(true)?;
                }
                Ok(Some(stream))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(socket, _) => socket.as_fd(),
            Listener::Tcp(socket) => socket.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, Some(path)) = self {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The sockets that this process was started with. They are taken once.
fn passed() -> io::Result<Vec<Listener>> {
    let mut fds = ListenFd::from_env();
    let mut listeners = Vec::new();
    for at in 0..fds.len() {
        let listener = match fds.take_unix_listener(at) {
            Ok(socket) => socket.map(|socket| Listener::Unix(socket, None)),
            Err(_) => fds.take_tcp_listener(at)?.map(Listener::Tcp),
        };
        listeners.extend(listener);
    }
    if listeners.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no sockets were passed (LISTEN_FDS)"));
    }
    Ok(listeners)
}

/// Tell systemd, or another parent process that asks for it (`NOTIFY_SOCKET`), how far it is: `READY=1`, `STOPPING=1`.
///
/// # Errors
/// The system's. Where no process asks there is none.
pub fn notify(state: &str) -> io::Result<()> {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = match place.as_encoded_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(&place)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    let refused = |e: io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).err().is_some_and(refused) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Over a unix socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
    /// Encrypted, over one of those.
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Does it hold back something that was written? Then it is to be flushed when there is room.
    pub fn is_pending(&self) -> bool {
        matches!(self, Stream::Tls(stream) if stream.is_pending())
    }

    /// Should calls come back instead of waiting?
    ///
    /// # Errors
    /// The system's.
    pub fn set_nonblocking(&self, yes: bool) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(yes),
            Stream::Tcp(stream) => stream.set_nonblocking(yes),
            Stream::Tls(stream) => stream.below().set_nonblocking(yes),
        }
    }

    /// How long a call may wait; `None`: for ever.
    ///
    /// # Errors
    /// The system's.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(s) => s.set_read_timeout(timeout).and_then(|()| s.set_write_timeout(timeout)),
            Stream::Tcp(s) => s.set_read_timeout(timeout).and_then(|()| s.set_write_timeout(timeout)),
            Stream::Tls(stream) => stream.below().set_timeout(timeout),
        }
    }

    /// Another handle of it.
    ///
    /// # Errors
    /// The system's. An encrypted one has one handle.
    pub fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Unix(stream) => stream.try_clone().map(Stream::Unix),
            Stream::Tcp(stream) => stream.try_clone().map(Stream::Tcp),
            Stream::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(data),
            Stream::Tcp(stream) => stream.write(data),
            Stream::Tls(stream) => stream.write(data),
        }
    }

    fn write_vectored(&mut self, data: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write_vectored(data),
            Stream::Tcp(stream) => stream.write_vectored(data),
            Stream::Tls(stream) => stream.write_vectored(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(_) | Stream::Tcp(_) => Ok(()),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.below().as_fd(),
        }
    }
}
