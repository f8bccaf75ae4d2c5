//! The command line of `fairlift serve` and `fairlift ctl`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fairlift_server::front::vhost::Trust;

/// `fairlift serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift serve tenants.toml                                           devices and exports as the file says
  fairlift serve --file disk.img --socket /tmp/disk.sock                one file
  fairlift serve --model sata7200-2009 --size 20G --socket /tmp/d.sock  memory as slow as that disk
  fairlift serve --ram 4G --tcp 127.0.0.1:10809 --elevator fl-cfq --per-connection
  fairlift serve --file vm.img --vhost-user /tmp/vm.sock --queues 4    a virtual machine's disk
  fairlift serve --model sata7200-2009 --size 20G --ublk               a disk of this machine, where the kernel has ublk
  nbdinfo 'nbd+unix:///disk?socket=/tmp/disk.sock'
  qemu-system-x86_64 -drive file='nbd+unix:///disk?socket=/tmp/disk.sock',format=raw

SIGTERM and SIGINT end it in order: what was sent is answered, what was written is put on stable storage.
docs/serve.md has the file's keys.")]
#[command(group = clap::ArgGroup::new("disk").args(["vhost_user", "ublk"]).multiple(true))]
pub struct ServeArguments {
    /// What to serve: a configuration file
    #[arg(value_name = "CONFIG.toml", conflicts_with_all = ["file", "ram", "null", "model", "socket", "tcp", "systemd", "vhost_user", "ublk", "elevator", "control", "metrics"])]
    pub config: Option<String>,

    /// Serve this file or block device
    #[arg(long, value_name = "FILE|DISK", conflicts_with_all = ["ram", "null", "model"])]
    pub file: Option<PathBuf>,

    /// Serve so much memory: 500M, 20G; it takes what was written
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["null", "model"])]
    pub ram: Option<String>,

    /// Serve so much of nothing: zeroes to read, writes are forgotten
    #[arg(long, value_name = "SIZE", conflicts_with = "model")]
    pub null: Option<String>,

    /// Serve memory with the timing of this device: a preset (see 'fairlift devices') or a device file
    #[arg(long, value_name = "NAME|FILE")]
    pub model: Option<String>,

    /// Only the first so much of the modelled device
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,

    /// Seed of the model's random service times
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Listen at this unix socket; may be repeated
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,

    /// Listen at this address; may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    pub tcp: Vec<String>,

    /// A virtual machine may connect here (vhost-user-blk)
    #[arg(long, value_name = "PATH")]
    pub vhost_user: Option<PathBuf>,

    /// A disk of this machine's kernel, /dev/ublkbN: a number, or any that is free (needs root and a build with --features ublk)
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "any")]
    pub ublk: Option<String>,

    /// That disk outlives a server that is killed: its I/O waits until the next server of the same number takes it over
    #[arg(long, requires = "ublk")]
    pub ublk_recovery: bool,

    /// Queues of the virtual machine's or the kernel's disk
    #[arg(long, value_name = "N", default_value_t = 1, requires = "disk", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub queues: u16,

    /// Which memory the virtual machine may bring: sealed, or any, with which it may kill the server
    #[arg(long, value_name = "MEMORY", default_value = "sealed", requires = "vhost_user", value_parser = Trust::parse)]
    pub guest_memory: Trust,

    /// Listen at the sockets that systemd passes (LISTEN_FDS)
    #[arg(long)]
    pub systemd: bool,

    /// The export's name; clients that name none get it, too
    #[arg(long, value_name = "NAME", default_value = "disk")]
    pub name: String,

    /// The elevator, NAME[:TUNABLE=VALUE]... [default: fl-deadline]
    #[arg(long, value_name = "ELEVATOR")]
    pub elevator: Option<String>,

    /// Each connection is a tenant by itself
    #[arg(long)]
    pub per_connection: bool,

    /// Refuse writes
    #[arg(long)]
    pub read_only: bool,

    /// Requests that a file gets at a time [default: 32]
    #[arg(long, value_name = "N", requires = "file", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub depth: Option<u32>,

    /// Seeks cost the file time: it is on a disk
    #[arg(long, requires = "file")]
    pub rotational: bool,

    /// Serve the file past the page cache (O_DIRECT)
    #[arg(long, requires = "file")]
    pub direct: bool,

    /// Who does what may block: auto, io_uring or threads [default: auto, io_uring for --direct]
    #[arg(long, value_name = "ENGINE", requires = "file")]
    pub engine: Option<String>,

    /// Do not give up the system calls that serving does not need (seccomp)
    #[arg(long)]
    pub no_seccomp: bool,

    /// Listen here for 'fairlift ctl': unix:PATH or tcp:HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub control: Option<String>,

    /// Listen here for Prometheus: unix:PATH or tcp:HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,
}

/// `fairlift ctl`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift ctl unix:/run/fairlift.ctl show
  fairlift ctl unix:/run/fairlift.ctl set vm1 --weight 300 --max 'rbps=50M wiops=500' --goal 10ms
  fairlift ctl unix:/run/fairlift.ctl elevator disk fl-cfq:slice_idle=0
  fairlift ctl unix:/run/fairlift.ctl add disk vm3 --offset 20G --size 10G --weight 200
  fairlift ctl unix:/run/fairlift.ctl resize vm3 15G
  fairlift ctl unix:/run/fairlift.ctl remove vm3
  fairlift ctl unix:/run/fairlift.ctl trace disk /tmp/disk.blktrace.0    then: fairlift inspect /tmp/disk.blktrace.0")]
pub struct CtlArguments {
    /// The server's control address: unix:PATH or tcp:HOST:PORT
    #[arg(value_name = "ADDRESS")]
    pub address: String,

    /// What to do.
    #[command(subcommand)]
    pub action: CtlAction,
}

/// What may be asked of a server.
#[derive(Debug, Subcommand)]
pub enum CtlAction {
    /// Show devices and exports, as JSON
    Show,
    /// Change a tenant's share and limits
    Set {
        /// The export
        export: String,
        #[command(flatten)]
        share: ShareArguments,
    },
    /// Change a device's elevator, or its settings
    Elevator {
        /// The device
        device: String,
        /// NAME[:TUNABLE=VALUE]...
        elevator: String,
    },
    /// Offer another part of a device
    Add {
        /// The device
        device: String,
        /// The export's name
        name: String,
        /// For people
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
        /// Where it begins [default: 0]
        #[arg(long, value_name = "SIZE")]
        offset: Option<String>,
        /// Its size [default: what is left of the device]
        #[arg(long, value_name = "SIZE")]
        size: Option<String>,
        /// Refuse writes
        #[arg(long)]
        read_only: bool,
        /// Each connection is a tenant by itself
        #[arg(long)]
        per_connection: bool,
        #[command(flatten)]
        share: ShareArguments,
    },
    /// Take an export away; its connections end when they have their answers
    Remove {
        /// The export
        export: String,
    },
    /// Make an export end elsewhere on its device
    Resize {
        /// The export
        export: String,
        /// Its new size
        #[arg(value_name = "SIZE")]
        size: String,
    },
    /// Write what a device is asked for and does to a file, in blktrace's format
    Trace {
        /// The device
        device: String,
        /// The file, on the server; a trace that is there is replaced
        #[arg(value_name = "FILE", required_unless_present = "off", conflicts_with = "off")]
        file: Option<PathBuf>,
        /// End the trace
        #[arg(long)]
        off: bool,
    },
    /// End the server in order
    Drain,
}

/// What a tenant is entitled to.
#[derive(Args, Debug)]
pub struct ShareArguments {
    /// Weight, 1 to 10000
    #[arg(long, value_name = "N")]
    pub weight: Option<u32>,
    /// Class: rt, be or idle
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Limits: 'rbps=1M wbps=1M riops=100 wiops=100'; one that is not named is lifted
    #[arg(long, value_name = "LIMITS")]
    pub max: Option<String>,
    /// Unused time of the limits that is kept: 20ms (default) to 3600s
    #[arg(long, value_name = "TIME")]
    pub burst: Option<String>,
    /// Per cent of the device that it gets before weights divide the rest, 0 to 95; refused when not all can be kept
    #[arg(long, value_name = "PERCENT")]
    pub reserve: Option<u32>,
    /// A read or write that a client waits for should take no longer: 500us, 10ms, 0 for none; its turns come earlier for that, within its due
    #[arg(long, value_name = "TIME")]
    pub goal: Option<String>,
}
