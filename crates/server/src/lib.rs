//! The third host of the fairlift core: a block device in user space that shares by weight.
//!
//! ```text
//! front ends (NBD) ── bios ──> a device: the core's queue under one combiner ── jobs ──> back ends (file, memory, model)
//! ```
//!
//! A front end turns its protocol into bios and submits them through a [`device::Port`]; the device's queue alone decides what
//! goes next; a back end serves it. Several threads submit, whichever finds the queue free works for all ([`device`]).
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicBool, Ordering};
//!
//! use fairlift_server::{client::Client, config::Config, net::Address, server::Server};
//!
//! let socket = std::env::temp_dir().join(format!("fairlift-example-{}", std::process::id()));
//! let text = format!("listen = ['unix:{}']\n[[device]]\nname = 'disk'\nram = '1M'\n[[export]]\nname = 'db'\ndevice = 'disk'\n", socket.display());
//! let server = Server::new(&Config::parse(&text, "example.toml")?)?;
//! let stop = Arc::new(AtomicBool::new(false));
//! let (runs, watched) = (server.clone(), stop.clone());
//! let thread = std::thread::spawn(move || runs.run(&watched));
//!
//! let mut client = Client::connect(&Address::Unix(socket.clone()), "db", true)?;
//! assert_eq!(client.write(0, 4096, &[7; 512])?.error, 0);
//! assert_eq!(client.read(4096, 512)?.data, [7; 512]);
//!
//! drop(client);
//! stop.store(true, Ordering::Relaxed);
//! thread.join().expect("the server ends");
//! # let _ = std::fs::remove_file(socket);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod back;
pub mod client;
pub mod clock;
pub mod config;
pub mod control;
pub mod device;
pub mod exports;
pub mod front;
pub mod histogram;
pub mod io;
pub mod log;
pub mod metrics;
pub mod net;
pub mod seccomp;
pub mod server;
pub mod tls;
mod uring;
