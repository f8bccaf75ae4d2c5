//! From DiskSim's blocks to a device file of the `drive` model.

use std::fmt::Write as _;
use std::path::Path;

use super::super::spec::{SpecError, did_you_mean, shown};
use super::syntax::{Block, Item, Node, Tree, Value, number};
use super::{Imported, seek};

/// Longest time believed, ms.
const MS_MAX: f64 = 10_000.0;
/// Most sectors or cylinders.
const COUNT_MAX: u64 = 1 << 40;
/// The sparing schemes by DiskSim's numbers.
const SPARING: [&str; 11] = [
    "none",
    "tracks",
    "sectors-per-cylinder",
    "sectors-per-track",
    "sectors-per-cylinder-slip-to-end",
    "sectors-per-cylinder-front",
    "sectors-per-cylinder-front-slip-to-end",
    "sectors-per-zone-slip-to-end", // 7: at the end of the disk, only its slips are lost
    "sectors-per-range",
    "sectors-per-zone",
    "sectors-per-zone-slip-to-end",
];
const SURFACES: [&str; 3] = ["first", "turning", "turning-overall"];
const READ_AHEAD: [&str; 5] = ["none", "track", "cylinder", "segment", "next-track"];
/// Levels 1 and 2 differ in which of several waiting writes is next: with one command at a time they are the same.
const WRITE_CACHE: [&str; 3] = ["off", "on", "on"];

/// The drive `disk` of the tree, or its only one.
pub(super) fn import(tree: &Tree, path: &Path, disk: Option<&str>) -> Result<Imported, SpecError> {
    let block = choose(tree, path, disk)?;
    let mut notes = Vec::new();
    let model = block.block("Model")?;
    let mut body = String::new();
    mechanics(&mut body, model)?;
    geometry(&mut body, model, &mut notes)?;
    let folder = Path::new(&*model.place.file).parent().unwrap_or(Path::new(""));
    let cylinders = model.whole("Number of cylinders", 1, COUNT_MAX)?;
    let _ = writeln!(body, "\n[seek]\n{}", seek::lines(model.block("Mechanical Model")?, cylinders, folder)?);
    buffer(&mut body, block, &mut notes)?;
    overheads(&mut body, block)?;
    bus(&mut body, block, tree, &mut notes)?;
    not_taken_over(block, &mut notes)?;
    let depth = block.whole("Max queue length", 0, 65_536)?.max(1);
    let _ = write!(
        body,
        "\n[limits]\nqueue_depth = {depth}\nfua = false\nmax_kib = 512                      # Linux's default of the time\nmax_segments = 128                 # likewise\n"
    );
    let mut text =
        format!("# {}: made by fairlift devices import from DiskSim's {}.\n", block.name, file_name(path));
    text.push_str(
        "# Measured parameters; DiskSim 4.0, Carnegie Mellon University and University of Michigan.\n",
    );
    for note in &notes {
        let _ = writeln!(text, "# Note: {note}");
    }
    let _ = write!(
        text,
        "\nmodel = \"drive\"\ndescription = \"{}, measured (DiskSim)\"\n{body}",
        plain(&block.name)
    );
    Ok(Imported { name: block.name.clone(), text, notes })
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| plain(&name.to_string_lossy()))
}

/// Fit for a comment or a quoted string.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() && c != '"' && c != '\\' { c } else { '_' }).collect()
}

fn choose<'a>(tree: &'a Tree, path: &Path, disk: Option<&str>) -> Result<&'a Block, SpecError> {
    let whole =
        |message: String| SpecError { origin: path.to_string_lossy().into_owned(), line: None, message };
    let disks: Vec<&Block> = tree.blocks.iter().filter(|block| block.kind == "disksim_disk").collect();
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    match (disk, disks.as_slice()) {
        (Some(name), _) => disks.iter().copied().find(|disk| disk.name == name).ok_or_else(|| {
            let near = did_you_mean(name, names.iter().copied());
            whole(format!("no disk \"{}\"{near} (disks here: {})", shown(name), names.join(", ")))
        }),
        (None, [only]) => Ok(only),
        (None, []) if tree.blocks.iter().any(|block| block.kind == "dm_disk") => Err(whole(
            "only a layout (dm_disk): buffer and overheads stand in the .diskspecs or .parv file that sources it".into(),
        )),
        (None, []) => Err(whole("no disk in it: a block disksim_disk NAME { … } is needed".into())),
        (None, _) => Err(whole(format!("several disks; choose one with --disk: {}", names.join(", ")))),
    }
}

fn mechanics(out: &mut String, model: &Block) -> Result<(), SpecError> {
    let mechanics = model.block("Mechanical Model")?;
    if mechanics.kind != "dm_mech_g1" {
        let message =
            format!("mechanical model \"{}\"; only dm_mech_g1 can be imported", shown(&mechanics.kind));
        return Err(mechanics.place.error(message));
    }
    let access = mechanics.word("Access time type")?;
    if access != "trackSwitchPlusRotation" {
        let item = mechanics.get("Access time type")?;
        let message =
            format!("\"Access time type\" is \"{}\", but must be trackSwitchPlusRotation", shown(access));
        return Err(item.place.error(message));
    }
    let _ = writeln!(out, "rpm = {}", mechanics.number("Rotation speed (in rpms)", 60.0, 1e6)?);
    let settle = mechanics.number("Add. write settling delay", -MS_MAX, MS_MAX)?;
    let _ = writeln!(out, "write_settle_ms = {settle}");
    let _ = writeln!(out, "head_switch_ms = {}", mechanics.number("Head switch time", 0.0, MS_MAX)?);
    Ok(())
}

fn geometry(out: &mut String, model: &Block, notes: &mut Vec<String>) -> Result<(), SpecError> {
    let layout = model.block("Layout Model")?;
    if layout.kind != "dm_layout_g1" {
        let message = format!("layout \"{}\"; only dm_layout_g1 can be imported", shown(&layout.kind));
        return Err(layout.place.error(message));
    }
    let mapping = layout.whole("LBN-to-PBN mapping scheme", 0, 2)? as usize;
    let scheme = layout.whole("Sparing scheme used", 0, 10)? as usize;
    let _ = writeln!(out, "\n[geometry]");
    let _ = writeln!(out, "heads = {}", model.whole("Number of data surfaces", 1, 256)?);
    let _ = writeln!(out, "surfaces = \"{}\"", SURFACES[mapping]);
    let _ = writeln!(out, "sparing = \"{}\"", SPARING[scheme]);
    if SPARING[scheme] == "sectors-per-range" {
        let _ = writeln!(out, "range_cylinders = {}", layout.whole("Rangesize for sparing", 1, COUNT_MAX)?);
    }
    let _ = writeln!(
        out,
        "# [first cylinder, last, sectors per track, first sector at, track skew, cylinder skew (sectors), reserved, spares]"
    );
    out.push_str("zones = [\n");
    let (mut slips, mut remaps) = (String::new(), String::new());
    let zones = layout.list("Zones")?;
    for (index, item) in zones.iter().enumerate() {
        let Value::Block(zone) = &item.value else {
            return Err(item.place.error("\"Zones\" must be a list of dm_layout_g1_zone blocks"));
        };
        self::zone(out, zone, layout, scheme == 7)?;
        defects(&mut slips, &mut remaps, zone, index + 1)?;
    }
    out.push_str("]\n");
    for (name, rows) in [("slips", &slips), ("remaps", &remaps)] {
        if !rows.is_empty() {
            let _ = writeln!(out, "{name} = [{rows}\n]");
        }
    }
    if zones.is_empty() {
        notes.push("no zones".into());
    }
    Ok(())
}

/// A zone's row.
fn zone(out: &mut String, zone: &Block, layout: &Block, spares_elsewhere: bool) -> Result<(), SpecError> {
    let first = zone.whole("First cylinder number", 0, COUNT_MAX)?;
    let last = zone.whole("Last cylinder number", 0, COUNT_MAX)?;
    let per_track = zone.whole("Blocks per track", 1, 1_000_000)?;
    let turns = match zone.find("Skew units").or_else(|| layout.find("Skew units")) {
        None => false,
        Some(Item { value: Value::Word(word), .. }) if word == "sectors" => false,
        Some(Item { value: Value::Word(word), .. }) if word == "revolutions" => true,
        Some(item) => return Err(item.place.error("\"Skew units\" must be sectors or revolutions")),
    };
    let skew = |name: &str| -> Result<f64, SpecError> {
        let value = zone.number_or(name, 0.0, 0.0, 1e6)?;
        Ok(if turns { value * per_track as f64 } else { value.trunc() })
    };
    let spares = if spares_elsewhere { 0 } else { zone.whole("Number of spares", 0, COUNT_MAX)? };
    let _ = writeln!(
        out,
        "    [{first}, {last}, {per_track}, {}, {}, {}, {}, {spares}],",
        skew("Offset of first block")?,
        skew("Skew for track switch")?,
        skew("Skew for cylinder switch")?,
        zone.whole("Empty space at zone front", 0, COUNT_MAX)?
    );
    Ok(())
}

fn defects(
    slips: &mut String,
    remaps: &mut String,
    zone: &Block,
    number_of_zone: usize,
) -> Result<(), SpecError> {
    let place = |item: &Item, name: &str| number(item, name, 0.0, COUNT_MAX as f64);
    for (index, item) in zone.list("slips")?.iter().enumerate() {
        slips.push_str(if index % 8 == 0 { "\n    " } else { " " });
        let _ = write!(slips, "[{number_of_zone}, {}],", place(item, "slips")?);
    }
    let list = zone.list("defects")?;
    if list.len() % 2 != 0 {
        let message =
            format!("\"defects\" has {} numbers, but must have pairs: bad place, replacement", list.len());
        return Err(zone.get("defects")?.place.error(message));
    }
    for (index, pair) in list.chunks(2).enumerate() {
        remaps.push_str(if index % 6 == 0 { "\n    " } else { " " });
        let (bad, good) = (place(&pair[0], "defects")?, place(&pair[1], "defects")?);
        let _ = write!(remaps, "[{number_of_zone}, {bad}, {good}],");
    }
    Ok(())
}

fn buffer(out: &mut String, disk: &Block, notes: &mut Vec<String>) -> Result<(), SpecError> {
    let until = disk.whole("Buffer continuous read", 0, 4)? as usize;
    // "Regardless of all other prefetch parameters", says the manual.
    let most = disk.whole("Maximum read-ahead (blks)", 0, COUNT_MAX)?;
    let over = disk.number("Read-ahead over requested", -1.0, 1.0)?;
    let _ = writeln!(out, "[read_ahead]\nuntil = \"{}\"\nsectors_max = {most}", READ_AHEAD[until]);
    let _ = writeln!(out, "over_request = {}", over != 0.0);
    let _ = writeln!(out, "after_hit = {}", disk.switch("Read-ahead on idle hit")?);
    let _ = writeln!(out, "stop_in_sector = {}", disk.switch("Stop prefetch in sector")?);
    let segments = disk.whole("Number of buffer segments", 0, 4096)?;
    let own = disk.switch("Use separate write segment")?;
    let _ = writeln!(out, "\n[buffer]\nsegments = {}", segments.max(1));
    let _ = writeln!(out, "segment_sectors = {}", disk.whole("Segment size (in blks)", 1, 1 << 21)?);
    let _ = writeln!(out, "own_write_segment = {own}");
    let cache = disk.whole("Fast write level", 0, 2)? as usize;
    let _ = writeln!(out, "write_cache = \"{}\"", WRITE_CACHE[cache]);
    for (key, name) in [
        ("combine_writes", "Combine seq writes"),
        ("reads_written_data", "Allow read hits on write data"),
        ("almost_hits", "Allow almost read hits"),
        ("free_reads", "Read any free blocks"),
    ] {
        let _ = writeln!(out, "{key} = {}", disk.switch(name)?);
    }
    let _ = writeln!(out, "drop_requested = {}", over < 0.0);
    let caching = disk.whole("Enable caching in buffer", 0, 2)? != 0 && segments > 0;
    let _ = writeln!(out, "caching = {caching}");
    for (key, name) in
        [("read_on_arrival", "Immediate buffer read"), ("write_on_arrival", "Immediate buffer write")]
    {
        let level = disk.whole(name, 0, 2)?;
        if level == 2 {
            notes.push(format!("\"{name}\" 2 is taken as 1"));
        }
        let _ = writeln!(out, "{key} = {}", level > 0);
    }
    Ok(())
}

fn overheads(out: &mut String, disk: &Block) -> Result<(), SpecError> {
    let scale = disk.number("Time scale for overheads", 0.0, 1e3)?;
    let each = disk.number("Per-request overhead time", 0.0, MS_MAX)?;
    let ms = |name: &str| disk.number(name, 0.0, MS_MAX).map(|ms| rounded(ms * scale));
    let command = |name: &str| disk.number(name, 0.0, MS_MAX).map(|ms| rounded((ms + each) * scale));
    out.push_str("\n[overhead]\n");
    for (key, name) in [
        ("read_hit_after_read_ms", "Read hit over. after read"),
        ("read_hit_after_write_ms", "Read hit over. after write"),
        ("read_miss_after_read_ms", "Read miss over. after read"),
        ("read_miss_after_write_ms", "Read miss over. after write"),
        ("write_hit_after_read_ms", "Write hit over. after read"),
        ("write_hit_after_write_ms", "Write hit over. after write"),
        ("write_miss_after_read_ms", "Write miss over. after read"),
        ("write_miss_after_write_ms", "Write miss over. after write"),
    ] {
        let _ = writeln!(out, "{key} = {}", command(name)?);
    }
    for (key, name) in [
        ("read_complete_ms", "Read completion overhead"),
        ("write_complete_ms", "Write completion overhead"),
        ("prepare_ms", "Data preparation overhead"),
    ] {
        let _ = writeln!(out, "{key} = {}", ms(name)?);
    }
    // A drive that keeps the bus never takes it up again.
    let keeps = disk.switch("Never disconnect")?;
    for (key, name) in [
        ("reselect_ms", "First reselect overhead"),
        ("reselect_again_ms", "Other reselect overhead"),
        ("write_disconnect_ms", "Write disconnect overhead"),
    ] {
        let _ = writeln!(out, "{key} = {}", if keeps { 0.0 } else { ms(name)? });
    }
    let _ = writeln!(out, "write_seek_min_ms = {}", disk.number("Minimum seek delay", 0.0, MS_MAX)?);
    if disk.switch("Extra write disconnect")? && !keeps {
        out.push_str("\n[extra_disconnect]\n");
        for (key, name) in [
            ("command_ms", "Extradisc command overhead"),
            ("disconnect_ms", "Extradisc disconnect overhead"),
            ("pause_ms", "Extradisc inter-disconnect delay"),
            ("seek_delay_ms", "Extradisc seek delta"),
        ] {
            let _ = writeln!(out, "{key} = {}", ms(name)?);
        }
    }
    Ok(())
}

/// To a nanosecond, so that sums of decimal fractions print as such.
fn rounded(ms: f64) -> f64 {
    (ms * 1e6).round() / 1e6
}

fn bus(out: &mut String, disk: &Block, tree: &Tree, notes: &mut Vec<String>) -> Result<(), SpecError> {
    // The slowest on the way sets the pace, in each direction.
    let own_ms = disk.number("Bulk sector transfer time", 0.0, MS_MAX)?;
    let (mut read_ms, mut write_ms) = (own_ms, own_ms);
    let buses: Vec<&Block> = on_the_way(tree, disk);
    for component in &buses {
        if component.kind == "disksim_bus" {
            read_ms = read_ms.max(component.number("Read block transfer time", 0.0, MS_MAX)?);
            write_ms = write_ms.max(component.number("Write block transfer time", 0.0, MS_MAX)?);
        } else if let Some(item) = component.find("Bulk sector transfer time") {
            let both_ms = number(item, "Bulk sector transfer time", 0.0, MS_MAX)?;
            (read_ms, write_ms) = (read_ms.max(both_ms), write_ms.max(both_ms));
        }
    }
    if read_ms == 0.0 && write_ms == 0.0 {
        notes.push("no transfer time over the bus here; the .parv file of the system may have it".into());
    }
    let high_water = disk.number("High (read) water mark", 0.0, 1.0)?;
    let _ = writeln!(
        out,
        "\n[bus]\nread_block_ms = {read_ms}\nwrite_block_ms = {write_ms}\nhigh_water = {high_water}"
    );
    let _ = writeln!(out, "high_water_of_request = {}", disk.switch("Set watermark by reqsize")?);
    let _ = writeln!(out, "partial_at_once = {}", disk.switch("Immed transfer partial hit")?);
    Ok(())
}

/// Buses and controllers between the host and the disk; all of them when the topology does not say.
fn on_the_way<'a>(tree: &'a Tree, disk: &Block) -> Vec<&'a Block> {
    let instance_of =
        |name: &str| tree.instances.iter().find(|(instance, _)| instance == name).map(|(_, of)| of.as_str());
    let mut path = Vec::new();
    let found = tree
        .topology
        .iter()
        .any(|node| descend(node, &|name| instance_of(name) == Some(&disk.name), &mut path));
    let carries = |block: &&Block| block.kind == "disksim_bus" || block.kind == "disksim_ctlr";
    let blocks = tree.blocks.iter().filter(carries);
    if !found {
        return blocks.collect();
    }
    let names: Vec<&str> = path.iter().filter_map(|name| instance_of(name)).collect();
    blocks.filter(|block| names.contains(&block.name.as_str())).collect()
}

/// Whether a node the test accepts lies below `node`; the names on the way are left in `path`.
fn descend<'a>(node: &'a Node, wanted: &dyn Fn(&str) -> bool, path: &mut Vec<&'a str>) -> bool {
    path.push(&node.name);
    if wanted(&node.name) || node.children.iter().any(|child| descend(child, wanted, path)) {
        return true;
    }
    path.pop();
    false
}

/// Settings the model does not have, when they are on.
fn not_taken_over(disk: &Block, notes: &mut Vec<String>) -> Result<(), SpecError> {
    let mut note = |on: bool, text: &str| {
        if on {
            notes.push(text.to_string());
        }
    };
    note(disk.whole("Minimum read-ahead (blks)", 0, COUNT_MAX)? > 0, "a minimum read-ahead is not modelled");
    note(disk.switch("Allow write prebuffering")?, "prebuffered writes are not modelled");
    let sneaky = ["full", "partial", "intermediate"];
    for kind in sneaky {
        let on = disk.switch(&format!("Allow sneaky {kind} read hits"))?;
        note(on, &format!("sneaky {kind} read hits are not modelled"));
    }
    if disk.whole("Max queue length", 0, 65_536)? > 1 {
        let policy = disk.block("Scheduler")?.whole("Scheduling policy", 0, 1000)?;
        note(policy != 1, "its own queue is taken as first come, first served");
        note(disk.whole("Preseeking level", 0, 2)? > 0, "seeks before the last completion are not modelled");
    }
    Ok(())
}
