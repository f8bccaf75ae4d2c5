//! `fairlift`: compare block I/O schedulers on the jobs and disks you have.
//!
//! The command is this library; [`api`] hands over what it would print:
//!
//! ```
//! let words = "compare --device nvme --scheduler none,bfq -- --name=db --rw=randread --size=1m".split(' ');
//! let words: Vec<String> = words.map(str::to_owned).collect();
//! let compared = fairlift_cli::api::Compared::of(&words).map_err(|failure| failure.plain())?;
//! assert!(compared.table.contains("bfq") && compared.csv.lines().count() == 3);
//! # Ok::<(), String>(())
//! ```

mod answer;
pub mod api;
mod args;
mod calibrate;
mod catalog;
mod cleanup;
mod csv;
mod doctor;
mod error;
mod explain;
mod fio_json;
mod grid;
mod group_table;
mod host;
mod import;
mod input;
mod json;
mod number;
mod output;
mod plan;
mod program_table;
mod programs;
mod progress;
mod report;
mod reproduce;
mod serve;
mod settings;
mod shell;
mod style;
mod sweep;
mod table;
mod top;
mod trace;
mod validate;
mod view;
mod which;

use std::path::Path;
use std::process::ExitCode;

use answer::goal::Goal;
use args::{Arguments, Command, CompareArguments, DevicesAction, Format, RunArguments};
use error::Failure;
use fairlift_report::spread;
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{Scenario, run_all_recorded};
use input::Columns;
use output::Output;
use plan::{Compared, Plan};
use progress::Bar;
use style::Style;
use view::View;

/// Exit code of a fault of ours (`EX_SOFTWARE`).
const INTERNAL_ERROR: u8 = 70;

/// What the command does.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|fault| {
        eprintln!(
            "fairlift: internal error: {fault}\nThis is a fault in fairlift; please report it with the command line."
        );
    }));
    match std::panic::catch_unwind(|| run(args::parse())) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            failure.print();
            ExitCode::from(failure.code)
        }
        Err(_) => ExitCode::from(INTERNAL_ERROR),
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let Some(command) = arguments.command else {
        output::print(shell::DOORS)?;
        return Ok(ExitCode::SUCCESS);
    };
    match command {
        Command::Compare(arguments) => compare(&arguments)?,
        Command::Run(arguments) => run_one(&arguments)?,
        Command::Devices(arguments) => match arguments.action {
            Some(DevicesAction::Import(arguments)) => import::import(&arguments)?,
            None => output::print(&catalog::devices(arguments.name.as_deref())?)?,
        },
        Command::Validate(arguments) => validate::validate(&arguments)?,
        Command::Serve(arguments) => return serve::serve(&arguments),
        Command::Ctl(arguments) => serve::ctl(&arguments)?,
        Command::Top(arguments) => top::top(&arguments)?,
        Command::Calibrate(arguments) => calibrate::calibrate(&arguments)?,
        Command::Schedulers(arguments) => output::print(&catalog::schedulers(arguments.name.as_deref())?)?,
        Command::Kernels(arguments) => output::print(&catalog::kernels(arguments.name.as_deref())?)?,
        Command::Which(arguments) => which::which(&arguments)?,
        Command::Host(arguments) => host::host(&arguments)?,
        Command::Sweep(arguments) => sweep::sweep(&arguments)?,
        Command::Reproduce(arguments) => return reproduce::reproduce(&arguments),
        Command::Replay(arguments) => trace::replay::replay(&arguments)?,
        Command::Inspect(arguments) => trace::inspect::inspect(&arguments)?,
        Command::Diff(arguments) => return trace::diff::diff(&arguments),
        Command::Convert(arguments) => trace::convert::convert(&arguments)?,
        Command::Capture(arguments) => return trace::capture::capture(&arguments),
        Command::Doctor => output::print(&doctor::findings(Style::of(&std::io::stdout())))?,
        Command::Completions { shell } => shell::completions(shell)?,
        Command::Man { folder } => shell::manual(&folder)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(arguments: &CompareArguments) -> Result<(), Failure> {
    let output = Output::open(arguments.results.output.as_deref())?;
    let view = View::open(&arguments.results.view)?;
    let mut scenario = input::scenario(&arguments.work, &arguments.scheduler, Columns::All)?;
    let goal = Goal::parse(&arguments.goal, &scenario)?;
    view.prepare(&mut scenario);
    if arguments.seeds > 1 && arguments.work.trace.is_some() {
        return Err(Failure::new("--trace writes down one seed's runs, not those of several")
            .at("--seeds")
            .help("leave one of the two away"));
    }
    let plan = Plan::new(scenario, &input::devices_of(&arguments.work)?, arguments.seeds);
    let runs = simulate(&plan.run, arguments.work.threads, arguments.work.trace.as_deref())?;
    let mut compared = plan.sort(runs);
    let scenario = &plan.shown;
    let answers = answer::answers(scenario, &compared, &goal);
    view.write(scenario, &mut compared, Some((&goal, &answers)), arguments.work.explain)?;
    let text = match arguments.results.output_format {
        Format::Table => {
            let style = output.style();
            let table = table::table(scenario, &compared.by_case(), style);
            style.visible(&(table + &answer::text(scenario, &answers, &goal, style)))
        }
        Format::Json => json::comparison(scenario, &compared.all(), &goal, &answers),
        Format::Csv => csv::csv(scenario, &compared.all()),
    };
    output.write(&text)
}

fn run_one(arguments: &RunArguments) -> Result<(), Failure> {
    let output = Output::open(arguments.results.output.as_deref())?;
    if arguments.scheduler.as_ref().is_some_and(|text| text.contains(',')) {
        return Err(Failure::new("'run' takes one scheduler")
            .at("--scheduler")
            .help("'fairlift compare' puts several side by side"));
    }
    if arguments.work.device.len() > 1 {
        return Err(Failure::new("'run' takes one device")
            .at("--device")
            .help("'fairlift compare' takes several"));
    }
    let asked = arguments.scheduler.as_slice();
    let mut scenario = input::scenario(&arguments.work, asked, Columns::One)?;
    if arguments.results.output_format == Format::Json && scenario.cases.len() > 1 {
        let remedy = "fairlift compare --output-format json lists every case";
        return Err(Failure::new("a scenario of several cases does not fit into one fio report").help(remedy));
    }
    let view = View::open(&arguments.results.view)?;
    view.prepare(&mut scenario);
    let runs = simulate(&scenario, arguments.work.threads, arguments.work.trace.as_deref())?;
    let mut compared = Compared::of_one_seed(runs);
    view.write(&scenario, &mut compared, None, arguments.work.explain)?;
    let runs = compared.first;
    let text = match arguments.results.output_format {
        Format::Table => output.style().visible(&report::report(&scenario, &runs, output.style())),
        Format::Json => json::fio(&scenario.cases[0], &runs[0][0]),
        Format::Csv => csv::csv(&scenario, &plan::flat(&runs)),
    };
    output.write(&text)
}

/// All runs of the scenario, by case and scheduler, with a progress bar.
fn simulate(
    scenario: &Scenario,
    threads: Option<usize>,
    trace: Option<&Path>,
) -> Result<Vec<Vec<RunResult>>, Failure> {
    let recorders = trace::record::Traces::new(scenario, trace)?;
    let bar = Bar::new(scenario, "");
    let threads = progress::threads(threads);
    let runs = run_all_recorded(scenario, threads, &bar, &recorders).map_err(|e| Failure::of_run(&e));
    bar.finish();
    let runs = runs?;
    recorders.finish()?;
    for run in runs.iter().flatten() {
        if run.outcome == fairlift_sim::engine::Outcome::TimeLimit {
            error::warn(&format!("{}: ended after a simulated day, before the jobs did", run.scheduler));
        }
    }
    Ok(runs)
}
