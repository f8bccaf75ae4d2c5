//! Engine, depth, cache, syncs.

use crate::diagnostic::Diagnostic;
use crate::job::{Access, Durability, Fallocate, OpenSync, Preparation, Submission};
use crate::settings::Reader;
use crate::table::{self, EngineFamily};

/// I/Os in flight per process.
const DEPTH_MAX: u32 = 65_536;

pub(super) fn read(r: &mut Reader<'_>) -> Submission {
    let (engine, family) = engine(r);
    let iodepth = r.number32("iodepth", 1, 1..=DEPTH_MAX);
    let low = r.number32("iodepth_low", 0, 0..=DEPTH_MAX);
    let batch = r.number32("iodepth_batch", 1, 0..=DEPTH_MAX);
    let batch_complete_min = r.number32("iodepth_batch_complete_min", 1, 0..=DEPTH_MAX);
    let batch_complete_max = r.number32("iodepth_batch_complete_max", 0, 0..=DEPTH_MAX);
    let serialize_overlap = r.flag("serialize_overlap", false);
    if family == EngineFamily::Async && iodepth > 1 {
        if batch_complete_max > batch_complete_min {
            let message = "'iodepth_batch_complete_max' is not simulated: a job takes whatever is done";
            r.warn("iodepth_batch_complete_max", message);
        }
        if serialize_overlap {
            let message = "'serialize_overlap' is not simulated: I/Os that overlap are in flight together";
            r.warn("serialize_overlap", message);
        }
    }
    let in_depth = |value: u32| if value == 0 || value > iodepth { iodepth } else { value };
    Submission {
        engine,
        family,
        depth: if family == EngineFamily::Async { iodepth } else { 1 },
        iodepth,
        batch: in_depth(batch),
        batch_complete_min,
        batch_complete_max: batch_complete_max.max(batch_complete_min),
        low: in_depth(low),
        direct: direct(r),
        offload: r.choice("io_submit_mode", false, &[("inline", false), ("offload", true)]).0,
        serialize_overlap,
    }
}

fn engine(r: &mut Reader<'_>) -> (String, EngineFamily) {
    let Some(name) = r.text("ioengine") else { return ("psync".to_owned(), EngineFamily::Sync) };
    // `external:/path` names a library.
    let word = name.split(':').next().unwrap_or(name);
    let family = table::engine(word).map(|info| info.family);
    if family.is_none() {
        let names = || table::engines().iter().map(|info| info.name);
        let usable: Vec<_> = table::engines()
            .iter()
            .filter(|info| info.family != EngineFamily::Unsupported)
            .map(|info| info.name)
            .collect();
        let remark = Diagnostic::error(
            r.place("ioengine"),
            format!("unknown engine '{}'", crate::sections::shorten(word)),
        );
        r.found.push(
            remark
                .with_word(crate::sections::shorten(word))
                .with_allowed(usable.join(", "))
                .with_nearest(names()),
        );
    }
    (word.to_owned(), family.unwrap_or(EngineFamily::Sync))
}

/// `direct` and `buffered` are one switch: the later one wins. `atomic` implies `direct`.
fn direct(r: &mut Reader<'_>) -> bool {
    let direct = r.flag("direct", false);
    let buffered = r.flag("buffered", true);
    let atomic = r.flag("atomic", false);
    atomic || if r.settings.later("buffered", "direct") { !buffered } else { direct }
}

pub(super) fn durability(r: &mut Reader<'_>) -> Durability {
    let syncs = [
        ("0", OpenSync::None),
        ("none", OpenSync::None),
        ("1", OpenSync::Sync),
        ("sync", OpenSync::Sync),
        ("dsync", OpenSync::DataSync),
    ];
    Durability {
        fsync_writes: r.number("fsync", 0, 0..=u64::from(u32::MAX)),
        fdatasync_writes: r.number("fdatasync", 0, 0..=u64::from(u32::MAX)),
        end_fsync: r.flag("end_fsync", false),
        fsync_on_close: r.flag("fsync_on_close", false),
        open_sync: r.choice("sync", OpenSync::None, &syncs).0,
    }
}

pub(super) fn preparation(r: &mut Reader<'_>, access: Access) -> Preparation {
    let fallocates = [
        ("none", Fallocate::None),
        ("0", Fallocate::None),
        ("native", Fallocate::Native),
        ("posix", Fallocate::Posix),
        ("1", Fallocate::Posix),
        ("keep", Fallocate::Keep),
        ("truncate", Fallocate::Truncate),
    ];
    let hints = [("0", false), ("none", false), ("1", true), ("random", true), ("sequential", true)];
    Preparation {
        overwrite: r.flag("overwrite", false) || access.reads,
        fallocate: r.choice("fallocate", Fallocate::Native, &fallocates).0,
        invalidate: r.flag("invalidate", true),
        fadvise: r.choice("fadvise_hint", true, &hints).0,
        create_on_open: r.flag("create_on_open", false),
        create_fsync: r.flag("create_fsync", true),
        create_serialize: r.flag("create_serialize", true),
        create_only: r.flag("create_only", false),
        unlink: r.flag("unlink", false),
    }
}
