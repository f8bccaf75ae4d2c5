//! Lists the experiments that are compiled into the program.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../experiments");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names: Vec<String> = fs::read_dir(&folder)
        .map(|entries| entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    names.retain(|name| name.ends_with(".toml") || name.ends_with(".fio"));
    names.sort();
    let mut list = String::from("[\n");
    for name in &names {
        let path = folder.join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        let _ = writeln!(list, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    list.push(']');
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("experiments.rs");
    fs::write(out, list).expect("the build folder can be written to");
}
