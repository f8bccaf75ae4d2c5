//! What `--set` changes: fields of the device, options of jobs, and all else.

use fairlift_fio::Change;
use fairlift_sim::device::DeviceSpec;

use crate::error::Failure;
use crate::input::device_place;

/// How settings of the device and of jobs begin.
const DEVICE: &str = "device.";
const JOB: &str = "job.";

/// The settings of a command line, by what they change.
#[derive(Default)]
pub struct Settings<'a> {
    /// Options of jobs.
    pub jobs: Vec<Change>,
    /// Fields of the device.
    device: Vec<(&'a str, &'a str)>,
    /// Tunables and groups, as written.
    pub others: Vec<&'a str>,
}

impl Settings<'_> {
    /// Sort them.
    pub fn of(words: &[String]) -> Result<Settings<'_>, Failure> {
        let mut settings = Settings::default();
        for word in words {
            if let Some(setting) = word.strip_prefix(DEVICE) {
                let (path, value) = setting.split_once('=').ok_or_else(|| {
                    wrong(word, "device.SECTION.KEY=VALUE, such as device.limits.queue_depth=8")
                })?;
                settings.device.push((path.trim(), value.trim()));
            } else if let Some(setting) = word.strip_prefix(JOB) {
                settings.jobs.push(job(setting).ok_or_else(|| {
                    wrong(
                        word,
                        "job.NAME.OPTION=VALUE, such as job.db.iodepth=4, or job.*.bs=8k for every job",
                    )
                })?);
            } else {
                settings.others.push(word);
            }
        }
        Ok(settings)
    }

    /// The device with its fields changed.
    pub fn change(&self, device: &DeviceSpec) -> Result<DeviceSpec, Failure> {
        if self.device.is_empty() {
            return Ok(device.clone());
        }
        device.changed(&self.device).map_err(|e| Failure::new(e.message.clone()).at(device_place(&e)))
    }
}

/// `NAME.OPTION=VALUE`; a name may have points in it.
fn job(setting: &str) -> Option<Change> {
    let (target, value) = setting.split_once('=')?;
    let (job, option) = target.trim().rsplit_once('.')?;
    let words = [job, option, value.trim()].map(str::to_owned);
    let [job, option, value] = words;
    Some(Change { job, option, value })
}

fn wrong(word: &str, allowed: &str) -> Failure {
    Failure::new(format!("'{word}' is not a setting")).at("--set").help(format!("allowed: {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_sorted_by_what_they_change() {
        let words =
            ["device.limits.queue_depth=8", "job.a.b.iodepth = 4", "cfq.quantum=1"].map(str::to_owned);
        let settings = Settings::of(&words).unwrap_or_else(|e| panic!("{}", e.message()));
        assert_eq!(settings.device, [("limits.queue_depth", "8")]);
        let change = Change { job: "a.b".into(), option: "iodepth".into(), value: "4".into() };
        assert_eq!((settings.jobs, settings.others), (vec![change], vec!["cfq.quantum=1"]));
        assert!(Settings::of(&["job.iodepth=4".to_owned()]).is_err());
    }
}
