//! Sizes in bytes as people write them. Every unit counts by 1024, with or
//! without the `i`: `64M`, `64MB` and `64MiB` are one size.

/// The letters, each 1024 times the one before; only tables show the last two.
const LETTERS: [char; 6] = ['K', 'M', 'G', 'T', 'P', 'E'];

/// The letters that are read and written in settings.
const SETTABLE: usize = 4;

/// Reads a size: whole bytes, or whole units up to T.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let refuse = |what| {
        format!(
            "{text:?} is {what}: give whole bytes or a unit of 1024, such as 512, 64K, 64MiB or 1G"
        )
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let Some(factor) = factor(unit).filter(|_| !number.is_empty()) else {
        return Err(refuse("no size"));
    };
    let number: Option<u64> = number.parse().ok();
    number.and_then(|number| number.checked_mul(factor)).ok_or_else(|| refuse("too large a size"))
}

/// How many bytes a unit has: none, `B`, or a letter with nothing, `B` or `iB` after it.
fn factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_uppercase();
    if matches!(unit.as_str(), "" | "B") {
        return Some(1);
    }
    let power = LETTERS.iter().take(SETTABLE).position(|&letter| unit.starts_with(letter))?;
    matches!(unit.get(1..), Some("" | "B" | "IB")).then(|| 1024 << (10 * power))
}

/// Shows a size exactly, in the largest unit that divides it: `64M`, `1000`.
/// [`parse_size`] reads it back.
pub fn show_size(bytes: u64) -> String {
    let (mut number, mut unit) = (bytes, "".to_owned());
    for letter in LETTERS.into_iter().take(SETTABLE) {
        if number == 0 || number % 1024 != 0 {
            break;
        }
        (number, unit) = (number / 1024, letter.to_string());
    }
    format!("{number}{unit}")
}

/// Shows a size for people, to a tenth: `1.5 MiB`, `512 B`.
pub fn human_size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let tenths = |letter: usize| {
        let unit = 1024_u128 << (10 * letter);
        (u128::from(bytes) * 10 + unit / 2) / unit
    };
    let last = LETTERS.len() - 1;
    let letter = (0..last).find(|&letter| tenths(letter) < 10_240).unwrap_or(last);
    let tenths = tenths(letter);
    format!("{}.{} {}iB", tenths / 10, tenths % 10, LETTERS[letter])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn every_way_to_write_a_unit_counts_by_1024() {
        for text in ["65536", "65536B", "64k", "64K", "64kb", "64KB", "64kB", "64KiB", "64kib"] {
            assert_eq!(parse_size(text), Ok(65_536), "{text}");
        }
        for text in ["64M", "64m", "64MB", "64MiB", "65536K", "0064M"] {
            assert_eq!(parse_size(text), Ok(64 << 20), "{text}");
        }
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("3TiB"), Ok(3 << 40));
        assert_eq!(parse_size("0"), Ok(0));
        assert_eq!(parse_size("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn what_is_no_whole_size_is_refused_in_one_line() {
        let bad = [
            "", "-1", "-64M", "+64M", "1.5M", "0.5", "M", "B", "64 M", " 64", "64M ", "64X",
            "64Mi", "64MBB", "64KiBi", "1P", "1E", "1e3", "0x40", "64µ", "٦٤", "K64", "64K\n",
            "1_000",
        ];
        for text in bad {
            let why = parse_size(text).unwrap_err();
            assert!(why.starts_with(&format!("{text:?} is no size: give ")), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn a_size_beyond_64_bits_is_refused() {
        for text in ["18446744073709551616", "16777216T", "99999999999999999999999T"] {
            let why = parse_size(text).unwrap_err();
            assert!(why.starts_with(&format!("{text:?} is too large a size: ")), "{why}");
        }
        assert_eq!(parse_size("16777215T"), Ok(16_777_215 << 40));
    }

    #[test]
    fn shown_exactly_in_the_largest_unit_that_divides_it() {
        let shown = [0, 1000, 1024, 1025, 64 << 20, 1 << 40, 1 << 50].map(show_size);
        assert_eq!(shown, ["0", "1000", "1K", "1025", "64M", "1T", "1024T"]);
    }

    #[test]
    fn shown_to_a_tenth_for_people() {
        let shown = [0, 1023, 1024, 1536, 1_048_524, 1_048_525, 3 << 19, u64::MAX].map(human_size);
        let wanted =
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1023.9 KiB", "1.0 MiB", "1.5 MiB", "16.0 EiB"];
        assert_eq!(shown, wanted);
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bytes: u64, shift in 0..64_u32) {
            for bytes in [bytes, bytes >> shift, bytes << shift] {
                prop_assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), near in "[0-9]{0,22}[kMGTiB.-]{0,3}") {
            for text in [text, near] {
                if let Ok(bytes) = parse_size(&text) {
                    prop_assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
                }
                human_size(parse_size(&text).unwrap_or(0));
            }
        }
    }
}
