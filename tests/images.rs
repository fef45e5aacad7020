//! The shipped kernel images: whole, current, complete and clean.
//!
//! Paths are relative to the repository's root, where cargo runs tests.

#[path = "../host/images/digest.rs"]
mod digest;

use adaptive_layernorm_producers::contract::CONTRACT_VERSION;
use adaptive_layernorm_producers::images::{IMAGES, Image, ImageError, ImageKind, candidates, select};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use toml::{Table, Value};

const FOLDER: &str = "host/images";

fn table(path: &str) -> Table {
    fs::read_to_string(path).expect("a file of the repository").parse().expect("valid TOML")
}

fn manifest() -> Table {
    table("host/images/MANIFEST.toml")
}

fn list<'a>(table: &'a Table, name: &str) -> &'a [Value] {
    table[name].as_array().expect("a list")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().expect("a string")
}

fn files(manifest: &Table) -> Vec<&Value> {
    list(manifest, "image").iter().flat_map(|image| image["files"].as_array().expect("a list")).collect()
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed).expect("a zstd frame");
    std::io::Read::read_to_end(&mut decoder, &mut bytes).expect("a whole zstd frame");
    bytes
}

#[test]
fn images_were_built_from_the_sources_beside_them() {
    let now = digest::source_digest(Path::new(".")).expect("readable sources");
    assert_eq!(manifest()["source_digest"].as_str(), Some(&*now), "the kernel images are stale; run `cargo kernels`");
}

#[test]
fn images_keep_the_contract_of_the_library() {
    assert_eq!(manifest()["contract_version"].as_integer(), Some(CONTRACT_VERSION.into()));
}

#[test]
fn every_file_has_its_size_and_digest_packed_and_unpacked() {
    for file in files(&manifest()) {
        let packed = fs::read(Path::new(FOLDER).join(text(file, "file"))).expect("a checked-in image");
        for (bytes, size, sha256) in
            [(&packed, "packed_bytes", "packed_sha256"), (&unpacked(&packed), "bytes", "sha256")]
        {
            assert_eq!(file[size].as_integer(), i64::try_from(bytes.len()).ok(), "{}", text(file, "file"));
            assert_eq!(text(file, sha256), digest::sha256_hex(bytes), "{}", text(file, "file"));
        }
    }
}

#[test]
fn no_image_is_missing_from_the_manifest() {
    let manifest = manifest();
    let known: BTreeSet<String> = files(&manifest).iter().map(|file| text(file, "file").to_owned()).collect();
    let names = fs::read_dir(FOLDER).expect("the folder").map(|entry| entry.expect("an entry").file_name());
    let there = names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".zst"));
    assert_eq!(there.collect::<BTreeSet<_>>(), known);
}

#[test]
fn every_target_of_the_list_is_embedded_in_its_order() {
    let targets = table("kernels-gpu/targets.toml");
    let wanted = list(&targets, "target").iter().map(|target| (text(target, "name"), text(target, "kind")));
    let kind = |image: &Image| if image.kind == ImageKind::Cubin { "cubin" } else { "ptx" };
    let embedded: Vec<_> = IMAGES.iter().map(|image| (image.target, kind(image))).collect();
    assert_eq!(embedded, wanted.collect::<Vec<_>>());
}

#[test]
fn embedded_images_unpack_to_what_they_say() {
    for image in IMAGES {
        let bytes = image.unpack().expect("whole");
        assert_eq!(bytes.len(), image.bytes);
        match image.kind {
            ImageKind::Cubin => assert!(bytes.starts_with(b"\x7fELF"), "{}", image.target),
            ImageKind::Ptx => {
                let ptx = String::from_utf8(bytes).expect("PTX is text");
                let head =
                    format!(".version {}.{}\n.target {}\n", image.ptx_version.0, image.ptx_version.1, image.target);
                assert!(ptx.starts_with(&head), "{}", image.target);
            }
        }
    }
}

#[test]
fn a_damaged_image_is_refused() {
    let image = IMAGES[0];
    let wrong_digest = Image { sha256: "00", ..image };
    let truncated = Image { packed: &image.packed[..image.packed.len() / 2], ..image };
    let not_zstd = Image { packed: b"not zstd", ..image };
    for (damaged, what) in [(wrong_digest, "SHA-256"), (truncated, ""), (not_zstd, "")] {
        let error = damaged.unpack().expect_err("refused");
        assert!(matches!(error, ImageError::Damaged { target: "sm_80", .. }), "{error:?}");
        let error = error.to_string();
        assert!(error.contains("sm_80 is damaged") && error.contains(what), "{error}");
    }
}

/// What a loader tries in turn, should the driver refuse the best.
#[test]
fn an_h200_may_fall_back_to_ptx() {
    let names = |driver| candidates((9, 0), driver).into_iter().map(|image| image.target).collect::<Vec<_>>();
    assert_eq!(names((13, 0)), ["sm_90", "sm_89", "sm_80"]);
    assert_eq!(names((12, 4)), ["sm_89", "sm_80"]);
    assert_eq!(names((10, 0)), [""; 0]);
}

#[test]
fn gpus_and_drivers_that_are_too_old_are_told_apart() {
    let old_gpu = select((7, 5), (13, 0)).expect_err("Turing");
    assert!(matches!(old_gpu, ImageError::UnsupportedDevice { capability: (7, 5), .. }), "{old_gpu:?}");
    let old_driver = select((8, 0), (10, 2)).expect_err("CUDA 10 is older than Ampere");
    let too_old = matches!(old_driver, ImageError::DriverTooOld { capability: (8, 0), driver: (10, 2), .. });
    assert!(too_old, "{old_driver:?}");
}

#[test]
fn every_target_has_the_same_entries_without_local_memory_or_spills() {
    let names = |image: &Image| image.entries.iter().map(|entry| entry.name).collect::<Vec<_>>();
    for image in IMAGES {
        assert_eq!(names(image), names(&IMAGES[0]), "{}", image.target);
        for entry in image.entries {
            assert_eq!((entry.local, entry.spills), (0, 0), "{} {}", image.target, entry.name);
            assert!(entry.registers > 0, "{} {}", image.target, entry.name);
            assert_eq!(image.entry(entry.name), Some(entry));
        }
    }
    assert_eq!(IMAGES[0].entry("no such kernel"), None);
}

#[test]
fn the_gpus_the_project_names_get_their_images() {
    let expected = [
        ((8, 0), "sm_80"),
        ((8, 7), "sm_87"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90"),
        ((10, 0), "sm_100a"),
        ((11, 0), "sm_110a"),
        ((12, 0), "sm_120a"),
    ];
    for (capability, target) in expected {
        assert_eq!(select(capability, (13, 0)).map(|image| image.target), Ok(target));
    }
}
