//! Whole numbers as text: how many, and how far.

/// Reads how many.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits).ok_or_else(|| refusal(text))
}

/// Reads how far, forward or back.
pub fn parse_shift(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| refusal(text))
}

/// How many there are of something, in words: `1 record`, `2 records`.
pub fn counted(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

fn refusal(text: &str) -> String {
    format!("{text:?} is no count of records: give a whole number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let said = [0, 1, 2].map(|number| counted(number, "day", "days"));
        assert_eq!(said, ["0 days", "1 day", "2 days"]);
    }

    #[test]
    fn whole_numbers_only() {
        assert_eq!(parse_count("1000"), Ok(1000));
        assert_eq!((parse_shift("-3"), parse_shift("+3")), (Ok(-3), Ok(3)));
        for text in ["", "1k", "1.5", "+1", "-1", "99999999999999999999"] {
            assert!(parse_count(text).unwrap_err().ends_with("give a whole number"), "{text}");
        }
        for text in ["", "1k", "--1", "99999999999999999999"] {
            assert!(parse_shift(text).unwrap_err().ends_with("give a whole number"), "{text}");
        }
    }
}
