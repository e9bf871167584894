//! Numbers in as few bytes as they need: seven bits a byte, lowest first, the high
//! bit set on all but the last. Signed ones are folded first: 0, −1, 1, −2, …

/// Appends `number`.
pub fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the front of `bytes`; `None` if none stands there whole.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7F);
        if low << shift >> shift != low {
            return None;
        }
        number |= low << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends a signed number.
pub fn put_signed(number: i64, out: &mut Vec<u8>) {
    put((number << 1 ^ number >> 63).cast_unsigned(), out);
}

/// Takes a signed number off the front of `bytes`.
pub fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let folded = take(bytes)?;
    Some((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
}

/// Appends bytes with their length before them; none at all is told from no bytes.
pub fn put_bytes(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    put(bytes.map_or(0, |bytes| bytes.len() as u64 + 1), out);
    out.extend_from_slice(bytes.unwrap_or_default());
}

/// Takes bytes with their length before them.
pub fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let Some(length) = take(bytes)?.checked_sub(1) else { return Some(None) };
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(Some(taken))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn numbers_and_bytes_come_back(
            number in any::<u64>(), signed in any::<i64>(),
            bytes in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
        ) {
            let mut out = Vec::new();
            put(number, &mut out);
            put_signed(signed, &mut out);
            put_bytes(bytes.as_deref(), &mut out);
            let mut rest = &out[..];
            prop_assert_eq!(take(&mut rest), Some(number));
            prop_assert_eq!(take_signed(&mut rest), Some(signed));
            prop_assert_eq!(take_bytes(&mut rest), Some(bytes.as_deref()));
            prop_assert_eq!(rest, &[] as &[u8]);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let mut rest = &bytes[..];
            while take_bytes(&mut rest).is_some() {}
        }
    }

    #[test]
    fn a_number_too_long_for_64_bits_is_none() {
        assert_eq!(take(&mut &[0xFF; 11][..]), None);
        assert_eq!(take(&mut &[0x80][..]), None);
    }
}
