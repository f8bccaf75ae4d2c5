//! The page about scenario files shows one that is read, and leaves out no key.

use fairlift_sim::scenario::parse_among;

const PAGE: &str = include_str!("../../../docs/scenario.md");
const READER: &str = include_str!("../src/scenario/parse.rs");

fn example() -> &'static str {
    let (_, rest) = PAGE.split_once("```toml\n").expect("an example");
    rest.split_once("```\n").expect("its end").0
}

#[test]
fn the_example_is_a_scenario() {
    let scenario = parse_among(example(), "page.toml", &|_| None).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((scenario.cases.len(), scenario.schedulers.len(), scenario.published.len()), (1, 3, 1));
    assert_eq!((scenario.cases[0].programs.len(), scenario.cases[0].groups.iter().len()), (2, 2));
}

#[test]
fn every_key_is_on_the_page() {
    let keys_of = |name: &str| -> Vec<&str> {
        let (_, from) = READER.split_once(&format!("struct {name} {{\n")).expect("the struct");
        let fields = from.split_once("\n}").expect("its end").0;
        fields
            .lines()
            .filter(|l| !l.trim_start().starts_with('#'))
            .filter_map(|l| l.split_once(':'))
            .map(|(k, _)| k.trim())
            .collect()
    };
    for name in ["File", "FileProgram", "FileCase", "FilePublished"] {
        let keys = keys_of(name);
        assert!(keys.len() > 1, "{name}: {keys:?}");
        for key in keys {
            let shown = [
                format!("\n{key} = "),
                format!("\n# {key} = "),
                format!("[[{key}]]"),
                format!("\n[{key}] "),
                format!("or {key} = "),
            ];
            assert!(
                shown.iter().any(|text| PAGE.contains(text.as_str())),
                "{name} has '{key}', the page has not"
            );
        }
    }
}
