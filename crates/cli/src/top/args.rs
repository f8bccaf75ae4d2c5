//! The command line of `fairlift top`.

use clap::Args;

/// `fairlift top`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift top unix:/run/fairlift/ctl                 the exports of a running server
  fairlift top --kernel                               the cgroups of the kernel module
  fairlift top unix:/run/fairlift/ctl --once          one table as text, for a file or a pipe

Keys: q ends it, p pauses, arrows choose the order.")]
pub struct TopArguments {
    /// The server's control address: unix:PATH or tcp:HOST:PORT
    #[arg(value_name = "ADDRESS", required_unless_present = "kernel")]
    pub address: Option<String>,

    /// Show the kernel module's groups instead (io.fairlift.stat)
    #[arg(long, conflicts_with = "address")]
    pub kernel: bool,

    /// Where cgroups are
    #[arg(long, value_name = "FOLDER", requires = "kernel", default_value = "/sys/fs/cgroup")]
    pub cgroups: std::path::PathBuf,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub interval: f64,

    /// Print one table as text after one interval, and end
    #[arg(long)]
    pub once: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.1..=3600.0).contains(value));
    value.ok_or_else(|| "allowed: 0.1 to 3600".to_owned())
}
