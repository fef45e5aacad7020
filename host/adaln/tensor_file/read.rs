//! Reading: the header first, then only the tensors that are asked for.
//!
//! Nothing in the file is believed before it was checked against the file's size, so a hostile header allocates nothing
//! large: the header is at most the rest of the file and [`LONGEST_HEADER`], and every tensor lies inside the file.
use super::known;
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::DType;
use adaptive_layernorm_producers::named::{Data, Tensor};
use safetensors::tensor::{Metadata, TensorInfo};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of the longest header that is read: the limit of the format's own library.
const LONGEST_HEADER: u64 = 100_000_000;
/// Bytes of the header's length.
const PREFIX: u64 = 8;

/// An open file whose header fits it.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    file: File,
    header: Metadata,
    /// Where the tensors' bytes begin.
    data: u64,
}

impl TensorFile {
    /// Opens a file and checks its header.
    pub fn open(path: &Path) -> Outcome<Self> {
        let unreadable = |error| Failure::file(path, "read it", error);
        let mut file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        if !about.is_file() {
            return Err(Failure::input(format!("{} is not a regular file; name a safetensors file", path.display())));
        }
        let mut prefix = [0; 8];
        if about.len() < PREFIX {
            return Err(broken(path, &format!("it has {} bytes, expected at least {PREFIX}", about.len())));
        }
        file.read_exact(&mut prefix).map_err(unreadable)?;
        let length = u64::from_le_bytes(prefix);
        let most = LONGEST_HEADER.min(about.len() - PREFIX);
        if length > most {
            return Err(broken(path, &format!("its header claims {length} bytes, expected at most {most}")));
        }
        // At most LONGEST_HEADER.
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(unreadable)?;
        let header: Metadata =
            serde_json::from_slice(&header).map_err(|error| broken(path, &format!("its header: {error}")))?;
        let (expected, got) = (header.data_len() as u64, about.len() - PREFIX - length);
        if expected != got {
            return Err(broken(path, &format!("its header describes {expected} bytes of data, it has {got}")));
        }
        Ok(Self { path: path.to_owned(), file, header, data: PREFIX + length })
    }

    /// The names of the tensors, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.header.offset_keys();
        names.sort_unstable();
        names
    }

    /// Whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.header.info(name).is_some()
    }

    /// The element type of a tensor: the library's, or the name of one that it does not have.
    pub fn dtype(&self, name: &str) -> Outcome<Result<DType, String>> {
        let dtype = self.info(name)?.dtype;
        Ok(known(dtype).ok_or_else(|| format!("{dtype:?}").to_lowercase()))
    }

    /// Reads a tensor.
    pub fn read(&mut self, name: &str) -> Outcome<Tensor> {
        let info = self.info(name)?;
        let dtype = known(info.dtype).ok_or_else(|| {
            let expected = "BF16, F32, F8_E4M3 or U8";
            Failure::input(format!(
                "{}: tensor {name} is {:?}, expected {expected}; convert it",
                self.path.display(),
                info.dtype
            ))
        })?;
        let (begin, end) = info.data_offsets;
        let shape = info.shape.clone();
        // The header was checked: begin <= end <= the bytes there are.
        let mut bytes = vec![0; end - begin];
        let read = self.file.seek(SeekFrom::Start(self.data + begin as u64));
        read.and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| Failure::file(&self.path, &format!("read tensor {name}"), error))?;
        Ok(Tensor { shape, data: Data::from_le_bytes(dtype, &bytes) })
    }

    fn info(&self, name: &str) -> Outcome<&TensorInfo> {
        self.header.info(name).ok_or_else(|| {
            let there = self.names().join(", ");
            Failure::input(format!("{} has no tensor {name}, only: {there}", self.path.display()))
        })
    }
}

fn broken(path: &Path, what: &str) -> Failure {
    Failure::input(format!("{} is no complete safetensors file: {what}; write it again", path.display()))
}
