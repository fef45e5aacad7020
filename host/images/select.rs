//! Which image a device gets.

use super::{IMAGES, Image, ImageError, ImageKind};
use std::cmp::Reverse;

/// Compute capabilities of Jetson boards: NVIDIA promises no binary compatibility to or from them.
const JETSON: [(u32, u32); 3] = [(7, 2), (8, 7), (11, 0)];

/// The best of the shipped images for a device.
///
/// `capability` is the device's compute capability and `driver` the CUDA version of the driver, both as (major, minor).
///
/// # Errors
/// [`ImageError::UnsupportedDevice`] if no image is for this GPU or an older one; [`ImageError::DriverTooOld`] if there is one that
/// this driver cannot load.
pub fn select(capability: (u32, u32), driver: (u32, u32)) -> Result<&'static Image, ImageError> {
    select_from(IMAGES, capability, driver)
}

/// Every shipped image that runs on a device, best first, for a loader whose driver refuses the best.
pub fn candidates(capability: (u32, u32), driver: (u32, u32)) -> Vec<&'static Image> {
    candidates_from(IMAGES, capability, driver)
}

fn select_from(images: &[Image], capability: (u32, u32), driver: (u32, u32)) -> Result<&Image, ImageError> {
    if let Some(best) = candidates_from(images, capability, driver).first() {
        return Ok(best);
    }
    let shipped = images.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if images.iter().any(|image| runs_on(image, capability)) {
        Err(ImageError::DriverTooOld { capability, driver, shipped })
    } else {
        Err(ImageError::UnsupportedDevice { capability, shipped })
    }
}

fn candidates_from(images: &[Image], capability: (u32, u32), driver: (u32, u32)) -> Vec<&Image> {
    let mut all: Vec<&Image> =
        images.iter().filter(|image| runs_on(image, capability) && loads_with(image, driver)).collect();
    all.sort_by_key(|image| (image.kind == ImageKind::Ptx, Reverse(image.capability())));
    all
}

/// Whether the device can execute it.
fn runs_on(image: &Image, device: (u32, u32)) -> bool {
    let built_for = image.capability();
    if built_for == device {
        return true;
    }
    if image.is_architecture_specific() || built_for > device {
        return false;
    }
    match image.kind {
        ImageKind::Ptx => true,
        ImageKind::Cubin => built_for.0 == device.0 && !JETSON.contains(&built_for) && !JETSON.contains(&device),
    }
}

/// Whether the driver can load it.
fn loads_with(image: &Image, driver: (u32, u32)) -> bool {
    match image.kind {
        ImageKind::Ptx => image.ptx_version <= ptx_isa(driver),
        ImageKind::Cubin => image.toolkit.0 <= driver.0,
    }
}

/// The newest PTX ISA that a driver knows, from the release history in NVIDIA's PTX ISA documentation.
///
/// From CUDA 11 on the two version numbers differ by 4 in the major, and fell behind by one minor with 12.6, which added none.
fn ptx_isa(driver: (u32, u32)) -> (u32, u32) {
    match driver {
        (0..=10, _) => (0, 0),
        (12, minor @ 6..) => (8, minor - 1),
        (major, minor) => (major - 4, minor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with only what selection reads.
    const fn image(target: &'static str, kind: ImageKind, ptx_version: (u32, u32)) -> Image {
        Image { target, kind, ptx_version, toolkit: (13, 5), bytes: 0, sha256: "", packed: &[], entries: &[] }
    }

    /// The target list as it ships, so that the table below can be checked by hand.
    const SHIPPED: [Image; 7] = [
        image("sm_80", ImageKind::Ptx, (7, 0)),
        image("sm_89", ImageKind::Ptx, (8, 1)),
        image("sm_87", ImageKind::Cubin, (7, 4)),
        image("sm_90", ImageKind::Cubin, (8, 0)),
        image("sm_100a", ImageKind::Cubin, (8, 6)),
        image("sm_110a", ImageKind::Cubin, (9, 0)),
        image("sm_120a", ImageKind::Cubin, (8, 7)),
    ];

    fn chosen(capability: (u32, u32), driver: (u32, u32)) -> Option<(&'static str, ImageKind)> {
        select_from(&SHIPPED, capability, driver).ok().map(|image| (image.target, image.kind))
    }

    #[test]
    fn every_gpu_generation_under_a_current_driver() {
        use ImageKind::{Cubin, Ptx};
        let table = [
            ((7, 5), None),
            ((8, 0), Some(("sm_80", Ptx))),
            ((8, 6), Some(("sm_80", Ptx))), // sm_87 is above it
            ((8, 7), Some(("sm_87", Cubin))),
            ((8, 8), Some(("sm_80", Ptx))), // a Jetson's cubin is for that Jetson only
            ((8, 9), Some(("sm_89", Ptx))),
            ((9, 0), Some(("sm_90", Cubin))),
            ((10, 0), Some(("sm_100a", Cubin))),
            ((10, 1), Some(("sm_89", Ptx))), // Thor's number before CUDA 13
            ((10, 3), Some(("sm_89", Ptx))), // `a` code runs on its own architecture only
            ((11, 0), Some(("sm_110a", Cubin))),
            ((12, 0), Some(("sm_120a", Cubin))),
            ((12, 1), Some(("sm_89", Ptx))),
            ((13, 0), Some(("sm_89", Ptx))), // a GPU of the future
        ];
        for (capability, expected) in table {
            assert_eq!(chosen(capability, (13, 0)), expected, "{capability:?}");
        }
    }

    #[test]
    fn an_older_driver_gets_ptx_that_it_knows() {
        use ImageKind::Ptx;
        assert_eq!(chosen((9, 0), (12, 9)), Some(("sm_89", Ptx)));
        assert_eq!(chosen((8, 7), (12, 6)), Some(("sm_80", Ptx)));
        assert_eq!(chosen((9, 0), (12, 1)), Some(("sm_89", Ptx)));
        assert_eq!(chosen((9, 0), (12, 0)), Some(("sm_80", Ptx)));
        assert_eq!(chosen((8, 9), (11, 8)), Some(("sm_80", Ptx)));
        assert_eq!(chosen((8, 0), (11, 0)), Some(("sm_80", Ptx)));
    }

    #[test]
    fn a_newer_driver_gets_what_a_current_one_gets() {
        assert_eq!(chosen((9, 0), (13, 9)), Some(("sm_90", ImageKind::Cubin)));
        assert_eq!(chosen((9, 0), (14, 0)), Some(("sm_90", ImageKind::Cubin)));
    }

    #[test]
    fn a_cubin_runs_on_later_minors_of_its_major_only() {
        let one = [image("sm_100", ImageKind::Cubin, (8, 6))];
        let runs = |capability| select_from(&one, capability, (13, 0)).is_ok();
        assert!(runs((10, 0)) && runs((10, 3)));
        assert!(!runs((9, 0)) && !runs((11, 0)) && !runs((12, 0)));
    }

    #[test]
    fn errors_say_what_was_found_and_what_is_shipped() {
        let old_gpu = select_from(&SHIPPED, (7, 5), (13, 0)).expect_err("older than Ampere").to_string();
        assert!(old_gpu.contains("compute capability 7.5") && old_gpu.contains("PTX 7.0 for sm_80"), "{old_gpu}");
        assert!(old_gpu.contains("a cubin for sm_120a"), "{old_gpu}");
        let old_driver = select_from(&SHIPPED, (8, 0), (10, 2)).expect_err("CUDA before Ampere").to_string();
        assert!(
            old_driver.contains("CUDA 10.2 is too old") && old_driver.contains("compute capability 8.0"),
            "{old_driver}"
        );
    }

    #[test]
    fn candidates_end_with_the_most_portable() {
        let names: Vec<&str> = candidates_from(&SHIPPED, (9, 0), (13, 0)).iter().map(|image| image.target).collect();
        assert_eq!(names, ["sm_90", "sm_89", "sm_80"]);
    }

    #[test]
    fn ptx_isa_of_known_drivers() {
        let known = [((11, 0), (7, 0)), ((11, 8), (7, 8)), ((12, 0), (8, 0)), ((12, 5), (8, 5)), ((12, 6), (8, 5))];
        let later = [((12, 8), (8, 7)), ((12, 9), (8, 8)), ((13, 0), (9, 0)), ((13, 2), (9, 2))];
        for (driver, isa) in known.into_iter().chain(later) {
            assert_eq!(ptx_isa(driver), isa, "{driver:?}");
        }
        assert_eq!(ptx_isa((10, 2)), (0, 0));
    }
}
