//! Every line of docs/cgroups.md for the module goes through the module's own parsers: they are cut out of `kernel/src`, and built
//! for user space around a few lines that stand for the kernel's.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the parsers need of the kernel.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef uint32_t u32;
typedef uint64_t u64;
struct fl_entitlement { u32 weight, leaf_weight, class; };
enum { FL_RBPS, FL_WBPS, FL_RIOPS, FL_WIOPS, FL_LIMITS };
enum { IOPRIO_CLASS_RT = 1, IOPRIO_CLASS_BE, IOPRIO_CLASS_IDLE };
enum { FL_WEIGHT_MIN = 1, FL_WEIGHT_MAX = 10000 };
#define pr_warn_ratelimited(...) ((void)0)
#define fl_shown(text) 0
static u64 fairlift_rate_max(void) { return (u64)1 << 48; }
static int kstrtou64(const char *text, int base, u64 *value)
{
	char *end;
	errno = 0;
	*value = strtoull(text, &end, base);
	return errno || end == text || *end || *text == '-' ? -EINVAL : 0;
}
static int kstrtouint(const char *text, int base, u32 *value)
{
	u64 wide;
	int error = kstrtou64(text, base, &wide);
	*value = (u32)wide;
	return error ? error : wide > UINT32_MAX ? -ERANGE : 0;
}
static int match_string(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] && !strcmp(list[i], text))
			return (int)i;
	return -EINVAL;
}
"#;

/// `program FILE [on-disk] TEXT`: 0 if the parser takes it.
const MAIN: &str = r#"
int main(int argc, char **argv)
{
	u64 limits[FL_LIMITS] = { 0 };
	u32 value;
	char *text = argv[2];
	if (argc != 4)
		return 2;
	if (!strcmp(argv[1], "max"))
		return fl_parse_limits(text, limits) ? 1 : 0;
	return fl_parse(text, strcmp(argv[1], "weight") ? FL_CLASS : FL_WEIGHT, *argv[3] == '1', &value) ? 1 : 0;
}
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of `file` from the line that contains `first` up to the one that is `last`, the next after it.
fn cut(file: &str, first: &str, end_of: &str) -> String {
    let text = std::fs::read_to_string(root().join("kernel/src").join(file)).unwrap();
    let start = text.find(first).unwrap_or_else(|| panic!("{file} has no '{first}'"));
    let body = text[start..].find(end_of).unwrap_or_else(|| panic!("{file} has no '{end_of}'"));
    let end = text[start + body..].find("\n}\n").expect("a function ends");
    text[start..start + body + end + 3].to_owned()
}

fn build() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fairlift-cgroups-page-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let limits = cut("limits.c", "static const char * const fl_limit_names", "static int fl_parse_limits");
    let weights = cut("groups.c", "enum fl_file {", "static int fl_parse(");
    let source = folder.join("parsers.c");
    std::fs::write(&source, [SHIM, &limits, &weights, MAIN].concat()).unwrap();
    let program = folder.join("parsers");
    let status = Command::new("cc")
        .arg("-w")
        .arg("-o")
        .args([&program, &source])
        .status()
        .expect("cc, as for linking");
    assert!(status.success(), "the parsers need more of the kernel than stands here");
    program
}

/// File and text of the module's cells.
fn lines() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("docs/cgroups.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.contains("| for the module |"));
    let cells = rows.map(|row| row.split(" | ").nth(2).expect("three cells").trim_end_matches(" |").trim());
    let lines = cells.filter(|cell| *cell != "-").map(|cell| {
        let (file, text) =
            cell.trim_matches('`').split_once(": ").unwrap_or_else(|| panic!("FILE: TEXT: {cell}"));
        (file.strip_prefix("io.fairlift.").unwrap_or_else(|| panic!("{file}")).to_owned(), text.to_owned())
    });
    lines.collect()
}

/// The parser's answer. The kernel's own code takes the disk's numbers off before it; `default VALUE` is for all disks.
fn takes(program: &Path, file: &str, text: &str) -> bool {
    let on_disk = text.split_once(' ').filter(|(first, _)| first.contains(':'));
    let value = on_disk.map_or(text, |(_, value)| value);
    let value = value.strip_prefix("default ").filter(|_| on_disk.is_none()).unwrap_or(value);
    assert!(file != "max" || on_disk.is_some(), "limits are of a disk: {text}");
    let falls_back = if on_disk.is_some() { "1" } else { "0" };
    let status = Command::new(program).args([file, value, falls_back]).status().unwrap();
    status.code() == Some(0)
}

#[test]
fn every_line_for_the_module_is_one_it_takes() {
    let program = build();
    let lines = lines();
    assert!(lines.len() > 25, "{lines:?}");
    for (file, text) in lines {
        assert!(["max", "weight", "ioprio_class"].contains(&file.as_str()), "{file}");
        assert!(takes(&program, &file, &text), "io.fairlift.{file}: {text}");
    }
    for (file, text) in
        [("max", "8:16 rbp=1"), ("max", "8:16 rbps=0"), ("weight", "10001"), ("ioprio_class", "ideal")]
    {
        assert!(!takes(&program, file, text), "io.fairlift.{file}: {text}");
    }
    let _ = std::fs::remove_dir_all(program.parent().expect("a folder of its own"));
}
