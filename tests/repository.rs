//! What the repository says about itself, kept true: the inventory of unsafe code, and a test for every error.
//!
//! Paths are relative to the repository's root, where cargo runs tests.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Errors that no test can bring about, and why.
const UNTESTED: [(&str, &str); 4] = [
    ("Error::Image", "carries an ImageError, whose variants have tests of their own"),
    ("Error::LayoutTooLarge", "no u32 rows and D give a layout that 64-bit addresses cannot reach"),
    ("Error::Load", "takes a driver that refuses the PTX which every driver since CUDA 11.0 takes"),
    ("Error::NoEntry", "takes images without an entry; geometry and images show that there are none such"),
];

/// The Rust files below a path, with their text.
fn sources(path: &Path, found: &mut BTreeMap<String, String>) {
    if path.ends_with("target") {
        return;
    }
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder of the repository");
        entries.for_each(|entry| sources(&entry.expect("an entry").path(), found));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        let name = path.to_str().expect("an ASCII name").trim_start_matches("./").to_owned();
        found.insert(name, fs::read_to_string(path).expect("a text"));
    }
}

fn all_sources() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for place in ["build.rs", "benches", "examples", "host", "kernels-gpu", "tests"] {
        sources(Path::new(place), &mut found);
    }
    found
}

/// Lines outside comments with an unsafe block, function, implementation, `extern` block or attribute.
fn unsafe_lines(text: &str) -> usize {
    let is_unsafe = |line: &&str| {
        let code = line.split("//").next().unwrap_or_default();
        let after = code.split("unsafe ").skip(1);
        code.contains(concat!("#[", "unsafe"))
            || after.into_iter().any(|rest| UNSAFE_ITEMS.iter().any(|item| rest.starts_with(item)))
    };
    text.lines().filter(is_unsafe).count()
}

const UNSAFE_ITEMS: [&str; 4] = ["{", "fn", "impl", "extern"];

#[test]
fn the_inventory_of_unsafe_code_is_complete() {
    let counts = all_sources().into_iter().map(|(name, text)| (name, unsafe_lines(&text))).filter(|(_, n)| *n > 0);
    let there: BTreeMap<String, usize> = counts.collect();
    let text = fs::read_to_string("CONTRIBUTING.md").expect("the file");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let name = cells.next()?.strip_prefix('`')?.strip_suffix(".rs`")?;
        Some((format!("{name}.rs"), cells.next()?.parse().ok()?))
    });
    let documented: BTreeMap<String, usize> = rows.collect();
    assert_eq!(documented, there, "the table of CONTRIBUTING.md is on the left");
    let all = format!("| all | {} | |", there.values().sum::<usize>());
    assert!(text.contains(&all), "CONTRIBUTING.md should say {all}");
}

/// The variants of an error, as `Error::Variant`.
fn variants(path: &str, name: &str) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a source");
    let body = text.split(&format!("pub enum {name} {{\n")).nth(1).and_then(|rest| rest.split("\n}\n").next());
    let lines = body.expect("the enumeration").lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    names.map(|line| format!("{name}::{}", line.split([' ', '(', ',']).next().unwrap_or_default())).collect()
}

/// What is compiled for tests only.
fn tests_of(name: &str, text: &str) -> String {
    if name.starts_with("tests/") || name.ends_with("/tests.rs") {
        return text.to_owned();
    }
    text.split("#[cfg(test)]\nmod tests {").nth(1).unwrap_or_default().to_owned()
}

#[test]
fn every_error_has_a_test() {
    let mut sources = all_sources();
    sources.remove("tests/repository.rs");
    let tests: String = sources.iter().map(|(name, text)| tests_of(name, text)).collect();
    let names = |variant: &str| {
        tests.match_indices(variant).any(|(at, _)| {
            let before = tests[..at].chars().next_back();
            let after = tests[at + variant.len()..].chars().next();
            let inside = |next: Option<char>| next.is_some_and(char::is_alphanumeric);
            !inside(before) && !inside(after)
        })
    };
    let variants = [variants("host/error.rs", "Error"), variants("host/images.rs", "ImageError")].concat();
    assert!(variants.len() > 30, "{variants:?}");
    for variant in &variants {
        let excused = UNTESTED.iter().any(|(untested, _)| untested == variant);
        assert_ne!(names(variant), excused, "{variant}: a test must name it, or UNTESTED say why none can");
    }
    assert!(UNTESTED.iter().all(|(untested, _)| variants.iter().any(|variant| variant == untested)));
}
