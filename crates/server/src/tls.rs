//! TLS over a stream, by rustls: what NBD's STARTTLS makes of a connection.

use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion, version,
};

use crate::net::Stream;

const VERSIONS: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];

/// Which clients must use TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Required {
    /// No client must; one that asks for it gets it.
    Never,
    /// Those that come over TCP.
    #[default]
    Tcp,
    /// All.
    Always,
}

impl Required {
    /// Read `never`, `tcp` or `always`.
    ///
    /// # Errors
    /// A sentence with what is allowed.
    pub fn parse(text: &str) -> Result<Required, String> {
        match text {
            "never" => Ok(Required::Never),
            "tcp" => Ok(Required::Tcp),
            "always" => Ok(Required::Always),
            _ => Err(format!("'{text}' is none of never, tcp, always")),
        }
    }
}

/// Certificates, all in PEM.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The server's, and those between it and the root.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities whose certificates clients must show; `None`: clients need none.
    pub clients: Option<PathBuf>,
    /// Who must use TLS.
    pub required: Required,
}

/// What the server needs to offer TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    required: Required,
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error| format!("cannot read the certificates in '{}': {error}", path.display());
    let all =
        CertificateDer::pem_file_iter(path).map_err(wrong)?.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if all.is_empty() { Err(format!("there is no certificate in '{}'", path.display())) } else { Ok(all) }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let wrong = |error| format!("cannot read the private key in '{}': {error}", path.display());
    PrivateKeyDer::from_pem_file(path).map_err(wrong)
}

fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = store.add(certificate);
        added.map_err(|error| format!("a certificate in '{}' is no authority's: {error}", path.display()))?;
    }
    Ok(store)
}

impl Tls {
    /// Read the certificates.
    ///
    /// # Errors
    /// A sentence with the file.
    pub fn new(options: &TlsOptions) -> Result<Tls, String> {
        let wrong = |error: rustls::Error| {
            format!("'{}' and '{}': {error}", options.certificate.display(), options.key.display())
        };
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(VERSIONS).map_err(wrong)?;
        let builder = match &options.clients {
            Some(path) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(authorities(path)?.into(), provider);
                let verifier = verifier.build().map_err(|error| format!("'{}': {error}", path.display()))?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(certificates(&options.certificate)?, key(&options.key)?);
        Ok(Tls { config: Arc::new(config.map_err(wrong)?), required: options.required })
    }

    /// Must who comes over `stream` use TLS?
    pub fn is_required(&self, stream: &Stream) -> bool {
        match self.required {
            Required::Never => false,
            Required::Tcp => matches!(stream, Stream::Tcp(_)),
            Required::Always => true,
        }
    }

    /// Shake hands over `stream`, whose client begins now. It must be one that waits.
    ///
    /// # Errors
    /// A sentence.
    pub fn accept(&self, stream: Stream) -> Result<Stream, String> {
        let connection =
            ServerConnection::new(self.config.clone()).map_err(|error| format!("TLS: {error}"))?;
        TlsStream::shake_hands(connection.into(), stream).map_err(|error| format!("TLS: {error}"))
    }
}

/// Begin TLS as the client of the server called `name`, whose certificate one in `authorities_file` signed.
///
/// # Errors
/// A sentence.
pub fn connect(stream: Stream, name: &str, authorities_file: &Path) -> Result<Stream, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("TLS: {error}");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(VERSIONS).map_err(|error| wrong(&error))?;
    let config = builder.with_root_certificates(authorities(authorities_file)?).with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).map_err(|error| wrong(&error))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|error| wrong(&error))?;
    TlsStream::shake_hands(connection.into(), stream).map_err(|error| wrong(&error))
}

/// A stream that is encrypted on its way. Like the one below it, it waits or not.
#[derive(Debug)]
pub struct TlsStream {
    connection: Connection,
    below: Stream,
}

impl TlsStream {
    fn shake_hands(mut connection: Connection, mut below: Stream) -> io::Result<Stream> {
        while connection.is_handshaking() {
            connection.complete_io(&mut below)?;
        }
        let mut stream = TlsStream { connection, below };
        stream.send_pending()?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// What carries it.
    pub fn below(&self) -> &Stream {
        &self.below
    }

    /// Is something encrypted that is not sent?
    pub fn is_pending(&self) -> bool {
        self.connection.wants_write()
    }

    /// Send what is encrypted.
    fn send_pending(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            if self.connection.write_tls(&mut self.below)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// The same as far as the socket takes it now.
    fn send_some(&mut self) -> io::Result<()> {
        match self.send_pending() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            answer => answer,
        }
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Gone without saying so: NBD says good-bye itself.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                answer => return answer,
            }
            if self.connection.read_tls(&mut self.below)? == 0 {
                return Ok(0);
            }
            let answer = self.connection.process_new_packets();
            // An alert, or a new key.
            self.send_some()?;
            answer.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(data)])
    }

    /// Encrypts only what follows once everything before is sent: so little waits here. [`TlsStream::is_pending`] says what still does.
    fn write_vectored(&mut self, data: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_pending()?;
        let bytes = self.connection.writer().write_vectored(data)?;
        self.send_some()?;
        Ok(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_pending()
    }
}
