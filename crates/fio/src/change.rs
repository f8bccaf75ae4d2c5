//! Options changed from outside: `job.NAME.OPTION=VALUE` on a command line, or a setting of a sweep.

use crate::diagnostic::{Diagnostic, Place};
use crate::sections::{OptionLine, Section};

/// An option that a job gets as if its section ended with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The job's name, `*` for every job.
    pub job: String,
    /// fio's name of the option.
    pub option: String,
    /// Its value, as a job file writes it.
    pub value: String,
}

impl Change {
    fn is_of(&self, section: &Section) -> bool {
        !section.is_global() && (self.job == "*" || self.job == section.name)
    }

    fn line(&self) -> OptionLine {
        let place = Place::line(&format!("job.{}.{}={}", self.job, self.option, self.value), 0);
        OptionLine {
            name: self.option.clone(),
            value: Some(self.value.clone()),
            name_place: place.clone(),
            value_place: place,
        }
    }
}

/// Puts each change behind the lines of the sections it is of.
pub(crate) fn apply(changes: &[Change], sections: &mut [Section], found: &mut Vec<Diagnostic>) {
    for change in changes {
        let mut of_none = true;
        for section in sections.iter_mut().filter(|section| change.is_of(section)) {
            section.lines.push(change.line());
            of_none = false;
        }
        if of_none {
            let names = || sections.iter().filter(|s| !s.is_global()).map(|s| s.name.as_str());
            let remark =
                Diagnostic::error(change.line().name_place, format!("no job is named '{}'", change.job));
            let allowed = format!("{}, or * for every job", names().collect::<Vec<_>>().join(", "));
            found.push(remark.with_word(&change.job).with_nearest(names()).with_allowed(allowed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ParseOptions, Source, parse};

    const JOBS: &str = "[global]\nsize=1m\n[a]\nrw=read\nbs=4k\n[b]\nrw=read\n";

    fn depths(job: &str, option: &str, value: &str) -> Result<Vec<u32>, Vec<Diagnostic>> {
        let changes = [Change { job: job.into(), option: option.into(), value: value.into() }];
        let options = ParseOptions { changes: &changes, ..ParseOptions::default() };
        let parsed = parse(&[Source::new("a.fio", JOBS)], &options)?;
        Ok(parsed.jobs.iter().map(|job| job.numjobs).collect())
    }

    #[test]
    fn a_change_is_of_one_job_or_of_all() {
        assert_eq!(depths("b", "numjobs", "3"), Ok(vec![1, 3]));
        assert_eq!(depths("*", "numjobs", "3"), Ok(vec![3, 3]));
    }

    #[test]
    fn a_change_of_no_job_or_to_no_option_is_an_error_that_names_it() {
        let remark = depths("bb", "numjobs", "3").expect_err("there is no bb").remove(0);
        assert_eq!(remark.place.to_string(), "job.bb.numjobs=3");
        assert_eq!(remark.nearest.as_deref(), Some("b"));
        let remark = depths("b", "numjob", "3").expect_err("there is no numjob").remove(0);
        assert_eq!(remark.nearest.as_deref(), Some("numjobs"));
    }
}
