//! Small files of /sys, /proc and cgroup, below a root.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most bytes of a file that are read; these files are a page at most.
const BYTES_MAX: u64 = 64 << 10;

/// Where the files are.
#[derive(Debug)]
pub struct Files(PathBuf);

impl Files {
    /// Below this folder.
    pub fn below(root: &Path) -> Files {
        Files(root.to_owned())
    }

    /// A file's text; `None` if it cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let path = self.0.join(path);
        // Not a pipe, which nobody may ever fill.
        let file =
            fs::metadata(&path).ok().filter(fs::Metadata::is_file).and_then(|_| File::open(&path).ok())?;
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file's text without the blanks around it; `None` if there is none.
    pub fn word(&self, path: &str) -> Option<String> {
        self.text(path).map(|text| text.trim().to_owned()).filter(|word| !word.is_empty())
    }

    pub fn number(&self, path: &str) -> Option<u64> {
        self.word(path)?.parse().ok()
    }

    /// Names of the folders in a folder, in order.
    pub fn folders(&self, path: &str) -> Option<Vec<String>> {
        let entries = fs::read_dir(self.0.join(path)).ok()?;
        let is_folder = |entry: &fs::DirEntry| fs::metadata(entry.path()).is_ok_and(|data| data.is_dir());
        let names = entries.filter_map(Result::ok).filter(is_folder);
        let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Some(names)
    }

    /// Names of the files in a folder, in order.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten().filter_map(Result::ok);
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Is this a link, which leads elsewhere?
    pub fn is_link(&self, path: &str) -> bool {
        fs::symlink_metadata(self.0.join(path)).is_ok_and(|data| data.is_symlink())
    }
}
