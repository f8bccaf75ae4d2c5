//! TLS: who must use it gets nothing before, who uses it is served as anybody else, and what is not TLS harms nobody.

mod support;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use fairlift_server::client::{Client, ask, go_data, greet};
use fairlift_server::config::Config;
use fairlift_server::front::nbd::wire::{command, option, reply};
use fairlift_server::net::{Address, Stream};
use fairlift_server::server::Server;
use fairlift_server::tls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::{Host, Random};

/// An authority, and what it signed for a server on this machine, in the folder `dir`.
fn certificates(dir: &Path) -> CertifiedIssuer<'static, KeyPair> {
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("signed");
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let server = server.signed_by(&key, &authority).expect("signed");
    std::fs::write(dir.join("ca.pem"), authority.pem()).expect("a file");
    std::fs::write(dir.join("server.pem"), server.pem()).expect("a file");
    std::fs::write(dir.join("key.pem"), key.serialize_pem()).expect("a file");
    authority
}

/// What the authority in `dir` signed for a client, by the names that GnuTLS's users expect, in a folder of its own.
fn client_folder(dir: &Path, authority: &CertifiedIssuer<'_, KeyPair>) -> PathBuf {
    let folder = dir.join("client");
    std::fs::create_dir_all(&folder).expect("a folder");
    let key = KeyPair::generate().expect("a key");
    let client = CertificateParams::new(vec!["client".to_owned()]).expect("a name");
    let client = client.signed_by(&key, authority).expect("signed");
    std::fs::write(folder.join("ca-cert.pem"), authority.pem()).expect("a file");
    std::fs::write(folder.join("client-cert.pem"), client.pem()).expect("a file");
    std::fs::write(folder.join("client-key.pem"), key.serialize_pem()).expect("a file");
    folder
}

/// Does it end well? `None` if it is not installed.
fn run(program: &str, words: &[&str]) -> Option<bool> {
    match Command::new(program).args(words).output() {
        Ok(output) => {
            eprintln!("{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(output.status.success())
        }
        Err(_) => {
            eprintln!("not tested: {program} is not installed");
            None
        }
    }
}

/// nbdinfo, nbdcopy and qemu-img with GnuTLS, where they are installed: both sides show certificates.
#[test]
fn clients_of_others_come_in_with_their_certificate_only() {
    let dir = support::folder();
    let authority = certificates(&dir);
    let folder = client_folder(&dir, &authority).display().to_string();
    let tls =
        "[tls]\ncertificate='DIR/server.pem'\nkey='DIR/key.pem'\nclients='DIR/ca.pem'\nrequired='always'\n";
    let export = "[[device]]\nname='m'\nram='8M'\n[[export]]\nname='it'\ndevice='m'\n";
    let host = Host::start_in(dir.clone(), &(tls.to_owned() + export));
    let (data, back) = (dir.join("data").display().to_string(), dir.join("back").display().to_string());
    std::fs::write(&data, (0..8 << 20).map(|at: u32| (at >> 9) as u8).collect::<Vec<u8>>()).expect("a file");
    let uri = |folder: &str| {
        format!(
            "nbds+unix:///it?socket={}&tls-certificates={folder}&tls-hostname=localhost",
            dir.join("nbd").display()
        )
    };
    let known = uri(&folder);
    if run("nbdinfo", &[&known]) == Some(false) {
        panic!("nbdinfo does not come in");
    }
    if let Some(well) = run("nbdcopy", &[&data, &known]) {
        assert!(well && run("nbdcopy", &[&known, &back]) == Some(true), "nbdcopy");
        assert!(
            std::fs::read(&data).expect("a file") == std::fs::read(&back).expect("a file"),
            "the copy differs"
        );
    }
    let object = format!("tls-creds-x509,id=tls,dir={folder},endpoint=client");
    let options = format!(
        "driver=nbd,path={},export=it,tls-creds=tls,tls-hostname=localhost",
        dir.join("nbd").display()
    );
    if let Some(well) = run("qemu-img", &["info", "--object", &object, "--image-opts", &options]) {
        assert!(well, "qemu-img");
    }
    // Without one of its own, and without TLS.
    let stranger = dir.join("stranger");
    std::fs::create_dir_all(&stranger)
        .and_then(|()| std::fs::copy(dir.join("ca.pem"), stranger.join("ca-cert.pem")))
        .expect("a file");
    assert_ne!(
        run("nbdinfo", &[&uri(&stranger.display().to_string())]),
        Some(true),
        "nobody knows the client"
    );
    let plain = format!("nbd+unix:///it?socket={}", dir.join("nbd").display());
    assert_ne!(run("nbdinfo", &[&plain]), Some(true), "TLS is required");
    host.assert_idle();
}

/// A server with certificates.
fn serve(required: &str) -> (Host, PathBuf) {
    let dir = support::folder();
    certificates(&dir);
    let authority = dir.join("ca.pem");
    let tls = format!("[tls]\ncertificate='DIR/server.pem'\nkey='DIR/key.pem'\nrequired='{required}'\n");
    let export = "[[device]]\nname='m'\nram='64M'\n[[export]]\nname='it'\ndevice='m'\n";
    (Host::start_in(dir, &(tls + export)), authority)
}

/// A stream that is encrypted, before the options are agreed on.
fn begin(host: &Host, authority: &Path) -> Stream {
    let mut stream = host.address().connect().expect("it listens");
    greet(&mut stream).expect("a greeting");
    let answers = ask(&mut stream, option::STARTTLS, &[]).expect("an answer");
    assert_eq!(answers, [(reply::ACK, Vec::new())]);
    tls::connect(stream, "localhost", authority).expect("the server is who it should be")
}

#[test]
fn what_is_written_through_tls_is_read_through_tls() {
    let (host, authority) = serve("always");
    let mut client = Client::greeted(begin(&host, &authority), "it", true).expect("the server lets us in");
    let mut random = Random(3);
    // Longer than any buffer on the way, and shorter.
    for (at, bytes) in [(0, 20 << 20), (20 << 20, 1), (21 << 20, 70_000), (22 << 20, 16_384)] {
        let data: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
        assert_eq!(client.write(0, at, &data).expect("a reply").error, 0);
        assert!(client.read(at, bytes).expect("a reply").data == data, "{bytes} bytes at {at}");
    }
    host.assert_idle();
}

#[test]
fn deep_queues_of_replies_come_whole() {
    let (host, authority) = serve("always");
    let mut client = Client::greeted(begin(&host, &authority), "it", false).expect("the server lets us in");
    // Nothing is read before 32 MiB wait to be sent: the server has to hold back what the socket does not take.
    let requests: Vec<_> = (0..128).map(|at| client.request(command::READ, 0, at << 18, 256 << 10)).collect();
    for request in &requests {
        client.send(request, &[]).expect("sent");
    }
    for _ in &requests {
        let reply = client.receive(|_| 256 << 10).expect("a reply");
        assert_eq!((reply.error, reply.data.len()), (0, 256 << 10));
    }
    host.assert_idle();
}

#[test]
fn who_must_use_tls_gets_nothing_before() {
    let (host, authority) = serve("always");
    let mut stream = host.address().connect().expect("it listens");
    greet(&mut stream).expect("a greeting");
    for option in [option::LIST, option::STRUCTURED_REPLY, option::GO, option::INFO, 99] {
        let data = if option == option::GO { go_data("it") } else { Vec::new() };
        assert_eq!(ask(&mut stream, option, &data).expect("an answer")[0].0, reply::ERR_TLS_REQD, "{option}");
    }
    assert_eq!(ask(&mut stream, option::STARTTLS, &[1]).expect("an answer")[0].0, reply::ERR_INVALID);
    // The option that knows no errors ends the connection.
    stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\x02it").expect("sent");
    assert_eq!(stream.read(&mut [0; 10]).expect("the end"), 0);
    // And nobody is told twice.
    let mut stream = begin(&host, &authority);
    assert_eq!(ask(&mut stream, option::STARTTLS, &[]).expect("an answer")[0].0, reply::ERR_INVALID);
}

#[test]
fn what_was_agreed_on_before_tls_is_forgotten() {
    let (host, authority) = serve("never");
    let mut stream = host.address().connect().expect("it listens");
    greet(&mut stream).expect("a greeting");
    assert_eq!(ask(&mut stream, option::STRUCTURED_REPLY, &[]).expect("an answer")[0].0, reply::ACK);
    ask(&mut stream, option::STARTTLS, &[]).expect("an answer");
    let stream = tls::connect(stream, "localhost", &authority).expect("the server is who it should be");
    let mut client = Client::greeted(stream, "it", false).expect("the server lets us in");
    assert_eq!(client.read(0, 512).expect("a simple reply").data, [0; 512]);
    // Who does not ask for it is served without.
    assert_eq!(host.client("it", true).read(0, 512).expect("a reply").error, 0);
}

#[test]
fn what_is_no_tls_ends_that_connection_only() {
    let (host, authority) = serve("always");
    let mut random = Random(5);
    for bytes in [1, 5, 100, 5000] {
        let mut stream = host.address().connect().expect("it listens");
        greet(&mut stream).expect("a greeting");
        ask(&mut stream, option::STARTTLS, &[]).expect("an answer");
        let garbage: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
        // The server may hang up meanwhile.
        let _ = stream.write_all(&garbage);
    }
    let mut client = Client::greeted(begin(&host, &authority), "it", true).expect("the server lets us in");
    assert_eq!(client.read(0, 512).expect("a reply").error, 0);
    assert!(
        begin_with_another_authority(&host).contains("TLS"),
        "another authority's certificate is refused"
    );
}

fn begin_with_another_authority(host: &Host) -> String {
    let dir = support::folder();
    certificates(&dir);
    let other = dir.join("ca.pem");
    let mut stream = host.address().connect().expect("it listens");
    greet(&mut stream).expect("a greeting");
    ask(&mut stream, option::STARTTLS, &[]).expect("an answer");
    let error = tls::connect(stream, "localhost", &other).expect_err("it is not that authority's");
    let _ = std::fs::remove_dir_all(dir);
    error
}

#[test]
fn only_tcp_must_use_tls_by_default() {
    let dir = support::folder();
    certificates(&dir);
    let text = format!(
        "listen=['tcp:127.0.0.1:0','unix:DIR/nbd']\n[tls]\ncertificate='DIR/server.pem'\nkey='DIR/key.pem'\n{}",
        "[[device]]\nname='m'\nram='1M'\n[[export]]\nname='it'\ndevice='m'\n"
    );
    let config = Config::parse(&text.replace("DIR", &dir.display().to_string()), "test.toml").expect("right");
    let server = Server::new(&config).expect("it can be served");
    let (runs, stop) = (server.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let watched = stop.clone();
    let thread = std::thread::spawn(move || runs.run(&watched));
    for address in server.addresses() {
        let answer = Client::connect(&Address::parse(&address).expect("one"), "it", true);
        assert_eq!(answer.is_ok(), address.starts_with("unix:"), "{address}");
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    thread.join().expect("it ends");
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn wrong_certificates_are_named() {
    let dir = support::folder();
    certificates(&dir);
    let certificate = |certificate: &str, key: &str, more: &str| {
        let text = format!(
            "listen=['unix:DIR/x']\n[tls]\ncertificate='DIR/{certificate}'\nkey='DIR/{key}'\n{more}\n[[device]]\nname='m'\nram='1M'\n[[export]]\nname='it'\ndevice='m'\n"
        );
        let config = Config::parse(&text.replace("DIR", &dir.display().to_string()), "test.toml");
        config.and_then(|config| Server::new(&config).map(drop)).expect_err("it is wrong").to_string()
    };
    for (found, part) in [
        (certificate("nowhere.pem", "key.pem", ""), "cannot read the certificates in"),
        (certificate("key.pem", "key.pem", ""), "there is no certificate in"),
        (certificate("server.pem", "server.pem", ""), "cannot read the private key in"),
        (certificate("ca.pem", "key.pem", ""), "ca.pem' and '"),
        (certificate("server.pem", "key.pem", "clients='DIR/key.pem'"), "there is no certificate in"),
        (certificate("server.pem", "key.pem", "required='sometimes'"), "none of never, tcp, always"),
        (certificate("server.pem", "key.pem", "client='DIR/ca.pem'"), "did you mean 'clients'?"),
    ] {
        assert!(found.contains(part) && found.starts_with("test.toml:"), "{found}");
    }
    let _ = std::fs::remove_dir_all(dir);
}
