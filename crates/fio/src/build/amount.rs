//! How much, where, and in which files.

use crate::job::{Extent, FileService, Files};
use crate::settings::Reader;
use crate::values::{self, Amount, Wrong};

/// Files of one process.
const FILES_MAX: u32 = 65_536;

pub(super) fn extent(r: &mut Reader<'_>) -> Extent {
    Extent {
        size: percent_checked(r, "size"),
        io_size: percent_checked(r, "io_size"),
        offset: percent_checked(r, "offset").unwrap_or(Amount::Bytes(0)),
        offset_increment: percent_checked(r, "offset_increment").unwrap_or(Amount::Bytes(0)),
        offset_align_bytes: r.number("offset_align", 0, 0..=u64::MAX),
        number_ios: r.number("number_ios", 0, 0..=u64::MAX),
        loops: r.number("loops", 1, 0..=u64::from(u32::MAX)).max(1),
        fills_device: r.flag("fill_device", false) && !r.is_set("size") && !r.is_set("filesize"),
    }
}

fn percent_checked(r: &mut Reader<'_>, name: &str) -> Option<Amount> {
    let amount = r.amount(name);
    let wrong = match amount {
        Some(Amount::Percent(percent)) if percent > 100 => {
            Wrong::new(format!("{percent} % of the file"), "0…100 %")
        }
        Some(Amount::Bytes(bytes)) if bytes > i64::MAX as u64 => {
            Wrong::new(format!("{bytes} bytes"), "below 8 EiB")
        }
        Some(Amount::Bytes(0) | Amount::Percent(0)) if name.ends_with("size") => {
            Wrong::new("nothing to do with 0 bytes", "a size above 0")
        }
        _ => return amount,
    };
    r.complain(name, wrong);
    None
}

pub(super) fn files(r: &mut Reader<'_>) -> Files {
    let names = r.text("filename").map(names).unwrap_or_default();
    let services = [
        ("roundrobin", FileService::RoundRobin),
        ("sequential", FileService::Sequential),
        ("random", FileService::Random),
    ];
    let service_ios;
    let service;
    match r.settings.get("file_service_type").and_then(|setting| setting.value.as_deref()) {
        Some(text) if ["zipf", "pareto", "normal", "gauss"].iter().any(|word| text.starts_with(word)) => {
            r.warn(
                "file_service_type",
                "'file_service_type' by a distribution is not simulated: files are served in turn",
            );
            (service, service_ios) = (FileService::RoundRobin, 1);
        }
        _ => {
            let (word, postfix) = r.choice("file_service_type", FileService::RoundRobin, &services);
            service = word;
            service_ios = postfix.and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(1).max(1);
        }
    }
    // fio counts the names and forgets nrfiles once there is a filename.
    let count = match names.len() as u32 {
        0 => r.number32("nrfiles", 1, 1..=FILES_MAX),
        count => count,
    };
    Files {
        names,
        directories: r.text("directory").map(self::names).unwrap_or_default(),
        format: r.text("filename_format").unwrap_or_default().to_owned(),
        count,
        service,
        service_ios,
        file_bytes: file_bytes(r),
    }
}

fn file_bytes(r: &mut Reader<'_>) -> u64 {
    let Some(text) = r.text("filesize") else { return 0 };
    let mut ends = text.splitn(2, ['-', ',', ':']).map(|end| values::bytes(end, r.kb_base));
    match (ends.next(), ends.next()) {
        (Some(Ok(low)), None) if low > 0 => low,
        (Some(Ok(low)), Some(Ok(high))) if low > 0 => {
            if low != high {
                r.warn("filesize", "'filesize' as a range is not simulated: every file has the smaller size");
            }
            low.min(high)
        }
        (Some(Err(wrong)), _) | (_, Some(Err(wrong))) => {
            r.complain("filesize", wrong);
            0
        }
        _ => {
            r.complain("filesize", Wrong::new("files of 0 bytes", "a size above 0"));
            0
        }
    }
}

/// Splits at `:`; `\:` is a colon in a name.
fn names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut letters = text.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(':')) => names.last_mut().unwrap_or(&mut String::new()).extend(letters.next()),
            (':', _) => names.push(String::new()),
            _ => names.last_mut().unwrap_or(&mut String::new()).push(letter),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}
