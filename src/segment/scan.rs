//! Looking for headers where it is not known where a batch begins: behind bad bytes.

use std::io;
use std::ops::ControlFlow;

use crate::disk::{DiskFile, read_full};
use crate::format::batch::{HEADER_LEN, MAGIC, Place};

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// Shows `visit` every 64 bytes from `from` on that begin as a header does, with their
/// place, until it breaks. Whether they are one is for `visit` to find out.
///
/// # Errors
/// Those of the disk.
pub fn each_header<T>(
    file: &dyn DiskFile,
    from: Place,
    mut visit: impl FnMut(&Place, &[u8; HEADER_LEN]) -> io::Result<ControlFlow<T>>,
) -> io::Result<Option<T>> {
    let mut buffer = vec![0; CHUNK];
    let mut position = from.position;
    loop {
        let filled = read_full(file, &mut buffer, position.get())?;
        if filled < HEADER_LEN {
            return Ok(None);
        }
        let whole = filled - HEADER_LEN + 1;
        let begins = &buffer[..whole - 1 + MAGIC.len()];
        for found in memchr::memmem::find_iter(begins, &MAGIC) {
            let mut bytes = [0; HEADER_LEN];
            bytes.copy_from_slice(&buffer[found..found + HEADER_LEN]);
            let place = Place { position: position + found as u64, ..from };
            if let ControlFlow::Break(result) = visit(&place, &bytes)? {
                return Ok(Some(result));
            }
        }
        position = position + whole as u64;
    }
}
