//! A file that appears whole or not at all.
use crate::failure::{Failure, Outcome};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A file under a temporary name beside its place; dropped, it is gone.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    file: NamedTempFile,
}

impl Draft {
    /// Begins a file, so that a place that cannot be written is found before the work is done.
    pub fn begin(path: &Path) -> Outcome<Self> {
        if path.exists() && !path.is_file() {
            return Err(Failure::input(format!("{} is not a regular file; name another output", path.display())));
        }
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => return Err(Failure::input(format!("{} is not a file name; name another output", path.display()))),
        };
        if !folder.exists() {
            let (path, folder) = (path.display(), folder.display());
            return Err(Failure::input(format!("{path}: there is no folder {folder}; make it or name another output")));
        }
        let mut builder = Builder::new();
        builder.prefix(".adaln-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the umask, as usual
        let file = builder.tempfile_in(folder).map_err(|error| Failure::file(path, "write it", plain(&error)))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the contents and gives the file its name.
    pub fn finish(mut self, contents: &[u8]) -> Outcome {
        let path = self.path;
        let written = self.file.write_all(contents).and_then(|()| self.file.as_file().sync_all());
        written.map_err(|error| Failure::file(&path, "write it", error))?;
        // A file that its owner may not write is not replaced either, though renaming could.
        if fs::metadata(&path).is_ok_and(|about| about.permissions().readonly()) {
            return Err(Failure::input(format!("{} is read-only; name another output", path.display())));
        }
        self.file.persist(&path).map_err(|error| Failure::file(&path, "write it", error.error))?;
        Ok(())
    }
}

/// The system's own words, without the temporary name that tempfile adds.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" at path ").next().unwrap_or(&text).to_owned()
}
