//! Images in a folder of their own, until all of them are good: a failed build leaves host/images as it was.

use crate::error::{CudaBuilderError, Result};
use crate::manifest::{Image, Manifest};
use std::fs;
use std::path::Path;

/// The manifest's file name.
pub(crate) const MANIFEST: &str = "MANIFEST.toml";

/// Built images, not yet where they belong.
#[derive(Debug)]
pub(crate) struct Staged {
    /// Where the files are.
    pub folder: tempfile::TempDir,
    /// Their records.
    pub images: Vec<Image>,
}

impl Staged {
    /// Copies the files to a folder, with a manifest that describes them, and removes images that it does not describe.
    pub fn publish(&self, folder: &Path, manifest: &Manifest) -> Result<()> {
        fs::create_dir_all(folder).map_err(|e| CudaBuilderError::file(folder, e))?;
        for file in self.images.iter().flat_map(|image| &image.files) {
            let to = folder.join(&file.file);
            fs::copy(self.folder.path().join(&file.file), &to).map_err(|e| CudaBuilderError::file(&to, e))?;
        }
        for leftover in images_in(folder)?.iter().filter(|name| !manifest.describes(name)) {
            let path = folder.join(leftover);
            fs::remove_file(&path).map_err(|e| CudaBuilderError::file(&path, e))?;
        }
        let path = folder.join(MANIFEST);
        fs::write(&path, manifest.render()).map_err(|e| CudaBuilderError::file(&path, e))
    }

    /// Names of the files that another folder lacks, has otherwise, or has too many.
    pub fn differences(&self, folder: &Path, manifest: &Manifest) -> Result<Vec<String>> {
        let mut names = [images_in(self.folder.path())?, images_in(folder)?].concat();
        names.sort();
        names.dedup();
        let content = |folder: &Path, name: &str| fs::read(folder.join(name)).ok();
        names.retain(|name| content(self.folder.path(), name) != content(folder, name));
        if content(folder, MANIFEST) != Some(manifest.render().into_bytes()) {
            names.push(MANIFEST.to_owned());
        }
        Ok(names)
    }
}

fn images_in(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(|e| CudaBuilderError::file(folder, e))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.ends_with(".zst")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{File, Tools};
    use crate::targets::Kind;

    fn staged(names: &[&str]) -> (Staged, Manifest) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &&str| {
            fs::write(folder.path().join(name), "new").expect("written");
            let [sha256, packed_sha256] = ["aa", "bb"].map(str::to_owned);
            File { file: (*name).to_owned(), kind: Kind::Ptx, bytes: 3, sha256, packed_bytes: 3, packed_sha256 }
        };
        let files = names.iter().map(file).collect();
        let [target, ptx_version] = ["sm_80", "7.0"].map(str::to_owned);
        let images = vec![Image { target, kind: Kind::Ptx, ptx_version, files, entries: vec![] }];
        let [rustc, llvm, ptxas] = ["rustc", "22", "13.5"].map(str::to_owned);
        let tools = Tools { rustc, llvm, ptxas };
        (Staged { folder, images: images.clone() }, Manifest::new("cc".to_owned(), tools, images))
    }

    #[test]
    fn what_is_published_does_not_differ_and_leftovers_go() {
        let (staged, manifest) = staged(&["a.zst", "b.zst"]);
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("old.zst"), "old").expect("written");
        fs::write(folder.path().join("digest.rs"), "not an image").expect("written");
        staged.publish(folder.path(), &manifest).expect("published");
        assert_eq!(staged.differences(folder.path(), &manifest).expect("readable"), Vec::<String>::new());
        assert!(!folder.path().join("old.zst").exists() && folder.path().join("digest.rs").exists());
    }

    #[test]
    fn a_changed_a_missing_and_a_leftover_image_are_differences() {
        let (staged, manifest) = staged(&["changed.zst", "missing.zst", "same.zst"]);
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("changed.zst", "old"), ("leftover.zst", "old"), ("same.zst", "new"), (MANIFEST, "old")] {
            fs::write(folder.path().join(name), text).expect("written");
        }
        let different = staged.differences(folder.path(), &manifest).expect("readable");
        assert_eq!(different, ["changed.zst", "leftover.zst", "missing.zst", MANIFEST]);
    }
}
