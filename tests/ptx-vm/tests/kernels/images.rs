//! The PTX behind every shipped image: `host/images/{target}.ptx.zst`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ptx_vm::Module;

/// Every target of the project.
pub const TARGETS: [&str; 7] = ["sm_80", "sm_87", "sm_89", "sm_90", "sm_100a", "sm_110a", "sm_120a"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/images")
}

/// The targets whose PTX lies in the folder.
pub fn targets_in_folder() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("host/images");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_suffix(".ptx.zst").map(str::to_owned)).collect()
}

/// The PTX of a target.
pub fn text(target: &str) -> String {
    let packed =
        std::fs::read(folder().join(format!("{target}.ptx.zst"))).unwrap_or_else(|error| panic!("{target}: {error}"));
    let mut text = String::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed.as_slice()).expect("zstd");
    decoder.read_to_string(&mut text).expect("zstd of text");
    text
}

/// The parsed PTX of a target, once a process.
pub fn module(target: &str) -> Arc<Module> {
    static MODULES: Mutex<BTreeMap<String, Arc<Module>>> = Mutex::new(BTreeMap::new());
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let parse = || Arc::new(Module::parse(&text(target)).unwrap_or_else(|error| panic!("{target}: {error}")));
    Arc::clone(modules.entry(target.to_owned()).or_insert_with(parse))
}

/// One entry's text, with what stands before the first entry.
pub fn entry_text(text: &str, name: &str) -> String {
    const ENTRY: &str = ".visible .entry ";
    let header = &text[..text.find(ENTRY).expect("an entry")];
    let start = text.find(&format!("{ENTRY}{name}(")).unwrap_or_else(|| panic!("no entry {name}"));
    let rest = &text[start + ENTRY.len()..];
    let end = rest.find(ENTRY).map_or(text.len(), |next| start + ENTRY.len() + next);
    format!("{header}{}", &text[start..end])
}
