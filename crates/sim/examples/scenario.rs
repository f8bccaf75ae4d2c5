//! Run a scenario file and print a line per job and the figures and output of each program: `cargo run --release -p fairlift-sim --example scenario -- FILE`.

use fairlift_sim::scenario::{load, run_all};

fn main() {
    let path = std::env::args().nth(1).expect("a scenario file");
    let scenario = load(path.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let started = std::time::Instant::now();
    let rows = run_all(&scenario, 1, &()).unwrap_or_else(|e| panic!("{e}"));
    let elapsed = started.elapsed().as_secs_f64();
    let mut requests = 0;
    for (case, row) in scenario.cases.iter().zip(&rows) {
        for run in row {
            requests += run.block.requests.iter().sum::<u64>();
            println!(
                "case {:4} {:10} busy {:.3} merged {} {:?} after {} s",
                case.name,
                run.scheduler,
                run.busy(),
                run.block.merged,
                run.outcome,
                run.duration_ns as f64 / 1e9
            );
            for job in run.jobs() {
                let clat = job.clat();
                println!(
                    "    {:12} x{:2} {:9.0} KiB/s {:8.1} IOPS mean {:8.3} ms max {:8.1} ms share {:.3}",
                    job.name,
                    job.processes,
                    job.bandwidth() / 1024.0,
                    job.iops(),
                    clat.mean_ns() / 1e6,
                    clat.max_ns() as f64 / 1e6,
                    run.device_share(&job)
                );
            }
            for program in &run.programs {
                println!("    {}: {}", program.name, program.command);
                for figure in &program.figures {
                    let (name, value, unit) = (figure.metric.name, figure.value, figure.metric.unit);
                    println!("        {name} {value:.4} {unit}");
                }
                program.text.lines().for_each(|line| println!("        | {line}"));
            }
        }
    }
    println!("{requests} requests in {elapsed:.2} s: {:.0} per second", requests as f64 / elapsed);
}
