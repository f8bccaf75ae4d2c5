//! The answers, for people.

use std::fmt::Write as _;

use fairlift_sim::scenario::Scenario;

use super::goal::Goal;
use super::{Answer, Lines, listed};
use crate::grid::{WIDTH, wrapped};
use crate::style::Style;

/// All answers, to stand below the table; empty where there is none.
pub fn text(scenario: &Scenario, answers: &[Answer], goal: &Goal, style: Style) -> String {
    if answers.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    let head = format!("Answer, goal {}: {}.", goal.name(), goal.meaning());
    wrapped(&head, WIDTH).iter().for_each(|line| out.push_str(&(style.bold(line) + "\n")));
    for answer in answers {
        let name = if answer.case.is_empty() { String::new() } else { format!("{}: ", answer.case) };
        for line in wrapped(&format!("{name}{}", answer.sentences.join(" ")), WIDTH) {
            let _ = writeln!(out, "{line}");
        }
    }
    for line in in_common(scenario, answers).iter().flat_map(|text| wrapped(text, WIDTH)) {
        let _ = writeln!(out, "{line}");
    }
    paste(&mut out, scenario, answers);
    out
}

/// What several devices' answers have in common.
fn in_common(scenario: &Scenario, answers: &[Answer]) -> Option<String> {
    let mut devices: Vec<&str> = answers.iter().map(|answer| answer.device.as_str()).collect();
    devices.dedup();
    if devices.len() < 2 {
        return None;
    }
    let name = |at: usize| scenario.schedulers[at].to_string();
    let everywhere =
        (0..scenario.schedulers.len()).filter(|at| answers.iter().all(|a| a.as_good.contains(at)));
    let everywhere: Vec<String> = everywhere.map(name).collect();
    let mattering = answers.iter().filter(|answer| answer.matters).count();
    Some(match (&everywhere[..], mattering) {
        (_, 0) => "In common: on none of these devices does the choice make a difference.".to_owned(),
        ([], _) => {
            let mut chosen: Vec<usize> = answers.iter().map(|answer| answer.chosen).collect();
            chosen.sort_unstable();
            chosen.dedup();
            let on =
                |at: usize| answers.iter().filter(move |a| a.chosen == at).map(|a| short_name(a).to_owned());
            let part = |at: &usize| format!("{} on {}", name(*at), listed(on(*at)));
            let parts: Vec<String> = chosen.iter().map(part).collect();
            format!("In common: nothing. {}.", parts.join("; "))
        }
        (all, _) => {
            format!("In common: {} is as good as the best on each of them.", listed(all.iter().cloned()))
        }
    })
}

/// What to call an answer among others: its case, which names the device.
fn short_name(answer: &Answer) -> &str {
    if answer.case.is_empty() { &answer.device } else { &answer.case }
}

/// The lines to paste, once for all answers that have the same.
fn paste(out: &mut String, scenario: &Scenario, answers: &[Answer]) {
    let mut told: Vec<&Lines> = Vec::new();
    for answer in answers {
        if told.contains(&&answer.lines) {
            continue;
        }
        told.push(&answer.lines);
        let same = answers.iter().filter(|other| other.lines == answer.lines);
        let whose = match answers {
            [_] => String::new(),
            _ => format!(" ({})", listed(same.map(|answer| short_name(answer).to_owned()))),
        };
        lines(out, &answer.lines, &scenario.schedulers[answer.chosen].to_string(), &whose);
    }
}

/// The lines to paste for an answer; empty: there are none.
pub fn set(scenario: &Scenario, answer: &Answer) -> String {
    let mut out = String::new();
    lines(&mut out, &answer.lines, &scenario.schedulers[answer.chosen].to_string(), "");
    out.trim().to_owned()
}

fn lines(out: &mut String, lines: &Lines, scheduler: &str, whose: &str) {
    let mut block = |head: &str, lines: &[String]| {
        if !lines.is_empty() {
            let _ = writeln!(out, "{head}");
            lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
    };
    block(&format!("\n{scheduler} for now{whose}, as root, with your disk's name:"), &lines.sysfs);
    if let Some((file, rule)) = &lines.udev {
        block(&format!("and from the next boot on, in {file}:"), rule);
    }
    block("cgroups:", &lines.cgroup);
    for note in &lines.notes {
        wrapped(&format!("Note: {note}."), WIDTH).iter().for_each(|line| out.push_str(&format!("{line}\n")));
    }
}
