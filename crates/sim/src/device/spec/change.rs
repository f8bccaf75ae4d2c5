//! A device with some of its parameters changed, as `--set device.SECTION.KEY=VALUE` does.

use super::{DeviceSpec, Fields, Parts, SpecError};

impl DeviceSpec {
    /// The device with these fields changed, each `SECTION.KEY` and a value as a device file writes it; a bare word stands for a
    /// string. Its name says what was changed.
    ///
    /// ```
    /// use fairlift_sim::device::DeviceSpec;
    /// let disk = DeviceSpec::load("sata7200-2009").unwrap();
    /// let shallow = disk.changed(&[("limits.queue_depth", "4"), ("firmware.order", "fifo")]).unwrap();
    /// assert_eq!(shallow.limits().queue_depth, 4);
    /// assert_eq!(shallow.name(), "sata7200-2009:limits.queue_depth=4:firmware.order=fifo");
    /// ```
    ///
    /// # Errors
    /// When the model has no such field or does not take the value.
    pub fn changed(&self, changes: &[(&str, &str)]) -> Result<DeviceSpec, SpecError> {
        let mut fields = self.fields.clone().unasked();
        let mut name = self.plain_name();
        for (path, value) in changes {
            fields = read(path, value)?.over(fields);
            name.push_str(&format!(":{path}={value}"));
        }
        let changed = Self::from_fields(fields, &name)?;
        let fail = |message| SpecError { origin: name.clone(), line: None, message };
        changed.under(self.volume).map_err(fail)
    }

    /// Its name without the state of its cells.
    fn plain_name(&self) -> String {
        match &self.parts {
            Parts::Flash(flash) => {
                let state = format!(" ({})", flash.state());
                self.name.strip_suffix(&state).unwrap_or(&self.name).to_owned()
            }
            _ => self.name.clone(),
        }
    }
}

/// One field. A value that is not TOML is a word.
fn read(path: &str, value: &str) -> Result<Fields, SpecError> {
    let origin = format!("device.{path}={value}");
    let mut quoted = String::from("\"");
    value.chars().filter(|c| !c.is_control()).for_each(|c| match c {
        '"' | '\\' => quoted.extend(['\\', c]),
        _ => quoted.push(c),
    });
    quoted.push('"');
    let one_line = !value.contains(['\n', '\r', '#']);
    let fields =
        if one_line { Fields::parse(&format!("{path} = {value}\n"), &origin) } else { Err(unread(&origin)) };
    let fields = fields.or_else(|_| Fields::parse(&format!("{path} = {quoted}\n"), &origin));
    fields.map_err(|_| unread(&origin))
}

fn unread(origin: &str) -> SpecError {
    SpecError {
        origin: origin.to_owned(),
        line: None,
        message: "not a field of a device (allowed: device.SECTION.KEY=VALUE, such as device.limits.queue_depth=32)"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(path: &str, value: &str) -> String {
        let disk = DeviceSpec::load("sata7200-2009").expect("a preset");
        disk.changed(&[(path, value)]).expect_err("a wrong change").to_string()
    }

    #[test]
    fn a_field_there_is_not_is_an_error_with_the_nearest() {
        let text = complaint("limits.queue_dept", "4");
        assert!(text.starts_with("device.limits.queue_dept=4:1: unknown key"), "{text}");
        assert!(text.contains("did you mean \"limits.queue_depth\"?"), "{text}");
    }

    #[test]
    fn a_value_out_of_range_is_an_error_with_the_range() {
        assert!(complaint("limits.queue_depth", "0").contains("an integer from 1 to 65536"));
        assert!(complaint("limits queue", "0").contains("not a field of a device"));
        assert!(
            complaint("firmware.order", "\"a\\\"").contains("allowed: "),
            "what ends no string is a word"
        );
    }

    #[test]
    fn the_cells_state_stays_behind_the_changes() {
        let flash = DeviceSpec::load("nvme").expect("a word");
        let state = flash.name().trim_start_matches("nvme-970evo").to_owned();
        let changed = flash.changed(&[("limits.queue_depth", "7")]).expect("a right change");
        assert_eq!(changed.name(), format!("nvme-970evo:limits.queue_depth=7{state}"));
        assert_eq!(flash.changed(&[]).expect("no change").describe(), flash.describe());
    }
}
