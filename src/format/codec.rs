//! Compressing bodies: which codec, how hard, and back again without ever taking
//! more memory than the header allows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::batch::Codec;
use super::body::BodyError;

/// How bodies are to be compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// Quickly.
    Lz4,
    /// Well; the level is zstd's, 1 to 22.
    Zstd(u8),
}

impl Compression {
    /// zstd's level unless another one was asked for.
    pub const DEFAULT_LEVEL: u8 = 3;
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = |text: &str| text.parse().ok().filter(|level| (1..=22).contains(level));
        let found = match text.split_once(':') {
            None => match text {
                "none" => Some(Compression::None),
                "lz4" => Some(Compression::Lz4),
                "zstd" => Some(Compression::Zstd(Compression::DEFAULT_LEVEL)),
                _ => None,
            },
            Some(("zstd", text)) => level(text).map(Compression::Zstd),
            Some(_) => None,
        };
        found.ok_or_else(|| {
            format!("{text:?} is no compression: give none, lz4, zstd or zstd:L, L from 1 to 22")
        })
    }
}

impl TryFrom<String> for Compression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Compression> for String {
    fn from(compression: Compression) -> String {
        compression.to_string()
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Zstd(Self::DEFAULT_LEVEL) => f.write_str("zstd"),
            Compression::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

/// Compresses `raw` into `out`, in place of what that held; says with which codec.
/// What does not get smaller stays as it is: then `out` is empty.
pub fn compress(compression: Compression, raw: &[u8], out: &mut Vec<u8>) -> Codec {
    out.clear();
    let codec = match compression {
        Compression::None => return Codec::None,
        Compression::Lz4 => {
            out.resize(lz4_flex::block::get_maximum_output_size(raw.len()), 0);
            let length = lz4_flex::block::compress_into(raw, out).unwrap_or(usize::MAX);
            out.truncate(length);
            (length < raw.len()).then_some(Codec::Lz4)
        }
        Compression::Zstd(level) => {
            out.reserve(zstd::zstd_safe::compress_bound(raw.len()));
            let length = zstd::bulk::Compressor::new(i32::from(level))
                .and_then(|mut compressor| compressor.compress_to_buffer(raw, out))
                .unwrap_or(usize::MAX);
            (length < raw.len()).then_some(Codec::Zstd)
        }
    };
    if codec.is_none() {
        out.clear();
    }
    codec.unwrap_or(Codec::None)
}

/// Inflates `stored` into `out`, in place of what that held: to exactly `raw` bytes,
/// which the header has bounded.
///
/// # Errors
/// [`BodyError::Inflate`] if it is not that.
pub fn inflate(
    codec: Codec,
    stored: &[u8],
    raw: usize,
    out: &mut Vec<u8>,
) -> Result<(), BodyError> {
    out.clear();
    let length = match codec {
        Codec::None => {
            out.extend_from_slice(stored);
            Some(stored.len())
        }
        Codec::Lz4 => {
            out.resize(raw, 0);
            lz4_flex::block::decompress_into(stored, out).ok()
        }
        Codec::Zstd => {
            out.reserve_exact(raw);
            let decompressor = zstd::bulk::Decompressor::new();
            // The buffer's capacity is the bound: a body that claims less than it holds fails.
            decompressor.and_then(|mut d| d.decompress_to_buffer(stored, out)).ok()
        }
    };
    if length == Some(raw) { Ok(()) } else { Err(BodyError::Inflate) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    const ALL: [Compression; 3] = [Compression::Lz4, Compression::Zstd(3), Compression::Zstd(19)];

    #[test]
    fn what_repeats_gets_smaller_and_comes_back() {
        let raw = b"the same again, ".repeat(1000);
        for compression in ALL {
            let (mut stored, mut back) = (Vec::new(), Vec::new());
            let codec = compress(compression, &raw, &mut stored);
            assert!(codec != Codec::None && stored.len() < raw.len() / 10, "{compression}");
            inflate(codec, &stored, raw.len(), &mut back).unwrap();
            assert_eq!(back, raw);
            for wrong in [raw.len() - 1, raw.len() + 1, 0] {
                assert_eq!(inflate(codec, &stored, wrong, &mut back), Err(BodyError::Inflate));
            }
        }
    }

    #[test]
    fn its_text_comes_back() {
        for compression in ALL.into_iter().chain([Compression::None]) {
            assert_eq!(compression.to_string().parse(), Ok(compression));
        }
        for text in ["", "gzip", "zstd:", "zstd:0", "zstd:23", "lz4:3", "zstd:-1"] {
            assert!(text.parse::<Compression>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_within_the_bound(
            stored in prop::collection::vec(any::<u8>(), 0..200), raw in 0..5000usize
        ) {
            for codec in [Codec::Lz4, Codec::Zstd] {
                let mut out = Vec::new();
                if inflate(codec, &stored, raw, &mut out).is_ok() {
                    prop_assert_eq!(out.len(), raw);
                }
            }
        }
    }
}
