//! No scenario file makes the reader panic or hang, and every error names the file.

use std::fs;
use std::path::{Path, PathBuf};

use fairlift_sim::device::rng::Rng;
use fairlift_sim::scenario::{ScenarioError, load, parse, parse_among};

fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

fn corpus() -> Vec<String> {
    let mut paths: Vec<_> = fs::read_dir(experiments()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Reads it among the experiments' device files; an error has to say where.
fn swallow(text: &str) -> Option<ScenarioError> {
    let beside = |name: &str| {
        let path = experiments().join(name);
        (name.ends_with(".toml") && path.is_file()).then(|| (name.to_owned(), fs::read_to_string(path)))
    };
    let error = parse_among(text, "x.toml", &beside).err()?;
    assert!(error.place == "x.toml" || error.place.starts_with("x.toml:"), "{error}");
    assert!(!error.message.is_empty() || !error.remarks.is_empty());
    Some(error)
}

#[test]
fn mutated_experiments() {
    let corpus = corpus();
    let mut rng = Rng::new(3);
    let mut wrong = 0;
    for round in 0..3000 {
        let mut bytes = corpus[round % corpus.len()].clone().into_bytes();
        for _ in 0..1 + rng.below(6) {
            if bytes.is_empty() {
                break;
            }
            let at = rng.below(bytes.len() as u64) as usize;
            match rng.below(5) {
                0 => bytes[at] = rng.below(256) as u8,
                1 => bytes[at] = b"=[]{}\"'#,.-0123456789eE\n "[rng.below(25) as usize],
                2 => drop(bytes.remove(at)),
                3 => bytes.truncate(at),
                _ => {
                    let other = corpus[rng.below(corpus.len() as u64) as usize].as_bytes();
                    bytes.splice(at..at, other[..rng.below(200) as usize].iter().copied());
                }
            }
        }
        wrong += usize::from(swallow(&String::from_utf8_lossy(&bytes)).is_some());
    }
    assert!(wrong > 1000, "{wrong}");
}

#[test]
fn garbage() {
    let mut rng = Rng::new(4);
    let mut text = |alphabet: &[u8], length: usize| -> String {
        (0..length).map(|_| char::from(alphabet[rng.below(alphabet.len() as u64) as usize])).collect()
    };
    let printable: Vec<u8> = (b' '..b'~').collect();
    for length in [0, 1, 10, 1000, 1 << 20] {
        assert!(swallow(&text(&printable, length)).is_some());
        assert!(swallow(&text(b"[]{}=\"\n,.a1 ", length)).is_some());
    }
    assert!(swallow(&"[".repeat(1 << 20)).is_some());
    assert!(swallow(&format!("title = {}", "[".repeat(1 << 20))).is_some());
    assert!(swallow(&"a.".repeat(1 << 19)).is_some());
    assert!(swallow(&"[[case]]\n".repeat(200_000)).is_some());
}

#[test]
fn ten_megabytes_are_too_many() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ten-megabytes.toml");
    fs::write(&path, vec![b'#'; 10 << 20]).unwrap();
    let error = load(&path).unwrap_err().to_string();
    fs::remove_file(&path).unwrap();
    assert_eq!(error, format!("{}: too large for a scenario (at most 4194304 bytes)", path.display()));
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for path in ["/nonexistent/x.toml", "/", "/dev/zero"] {
        let error = load(Path::new(path)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{path}: ")), "{error}");
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("binary.toml");
    fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    let error = load(&path).unwrap_err().to_string();
    fs::remove_file(&path).unwrap();
    assert!(error.ends_with("not a text file (not UTF-8)"), "{error}");
}

const HEAD: &str =
    "title = \"t\"\nschedulers = [\"noop\"]\ndevice = \"null\"\njobs = \"[a]\\nrw=read\\nsize=1m\\n\"\n";

#[test]
fn an_error_names_line_word_and_the_nearest_right_one() {
    let says = |text: &str, wanted: &str| {
        let error = parse(text, "x.toml").unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}\n  lacks\n{wanted}");
    };
    says(&HEAD.replace("noop", "nop"), "x.toml:2: unknown scheduler 'nop'; did you mean 'noop'?");
    says(
        &HEAD.replace("\"noop\"", "\"cfq:slice_idel=1\""),
        "x.toml:2: cfq has no tunable 'slice_idel'; did you mean 'slice_idle'?",
    );
    says(&HEAD.replace("\"noop\"", ""), "x.toml: schedulers is empty");
    says(&HEAD.replace("device", "devise"), "x.toml:3: unknown field `devise`");
    says(&format!("{HEAD}kernel = \"2.6.35\"\n"), "x.toml:5: unknown kernel '2.6.35'; did you mean '2.6.3");
    says(&format!("{HEAD}runtime_s = 0.0\n"), "x.toml:5: runtime_s must be above 0");
    says(&format!("{HEAD}runtime_s = nan\n"), "x.toml:5: runtime_s must be above 0");
    says(&format!("{HEAD}cache_mib = 0\n"), "x.toml:5: cache_mib must be 1 to 1048576");
    says(&format!("{HEAD}seed = -1\n"), "x.toml:5: ");
    says(&HEAD.replace("rw=read", "rx=read"), "x.toml (jobs):2");
    says(&HEAD.replace("size=1m", "size=0"), "x.toml (jobs):3");
    says(
        &format!("{HEAD}[[case]]\nname = \"1\"\n[[case]]\nname = \"1\"\n"),
        "x.toml: two cases are called '1'",
    );
    says(&HEAD.replace("jobs = ", "jobs_file = "), "x.toml:4: cannot read jobs_file");
}
