//! The body of a batch as its records need it: inflated, and checked to be what the
//! header says.

use crate::format::batch::{Codec, Header};
use crate::format::body::{self, BodyError};
use crate::format::codec::inflate;

/// Inflates bodies, one after the other, in the same memory.
#[derive(Debug, Default)]
pub struct Inflater {
    inflated: Vec<u8>,
}

impl Inflater {
    /// The body of a batch whose checksums are right, inflated. What was compressed
    /// stays readable as [`last`](Self::last).
    ///
    /// # Errors
    /// [`BodyError`] if it is not what the header says: no crash leaves it so.
    pub fn open<'a>(
        &'a mut self,
        header: &Header,
        stored: &'a [u8],
    ) -> Result<&'a [u8], BodyError> {
        if header.codec == Codec::None {
            body::check_layout(header, stored)?;
            return Ok(stored);
        }
        inflate(header.codec, stored, header.raw as usize, &mut self.inflated)?;
        body::check_layout(header, &self.inflated)?;
        Ok(&self.inflated)
    }

    /// The body that was inflated last.
    pub fn last(&self) -> &[u8] {
        &self.inflated
    }
}
