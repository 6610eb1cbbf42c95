//! Sizes and durations as users write them: `64k`, `1g`, `200ms`.

/// Why a text is not a size or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Does not start with a digit.
    #[error("should be a number, with or without a suffix")]
    NotANumber,
    /// A size with some other suffix.
    #[error("should end with: k, m, or g.")]
    SizeSuffix,
    /// A duration with some other suffix.
    #[error("should end with: s, ms, us, or ns.")]
    DurationSuffix,
    /// A size that does not fit 63 bits.
    #[error("is too large")]
    TooLarge,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MICROSECOND_NS: i64 = 1_000;
const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// The digits' value, if it fits, and what follows the digits.
fn split(text: &str) -> Result<(Option<u64>, &str), UnitError> {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    if end == 0 {
        return Err(UnitError::NotANumber);
    }
    let (digits, suffix) = text.split_at(end);
    Ok((digits.parse().ok(), suffix))
}

/// Bytes: a number with an optional suffix `k`, `m` or `g` in either case, powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, suffix) = split(text)?;
    let unit = match suffix {
        "" => 1,
        "k" | "K" => KIB,
        "m" | "M" => MIB,
        "g" | "G" => GIB,
        _ => return Err(UnitError::SizeSuffix),
    };
    number
        .and_then(|number| number.checked_mul(unit))
        .filter(|&size| i64::try_from(size).is_ok())
        .ok_or(UnitError::TooLarge)
}

/// Nanoseconds: a number with an optional suffix `s`, `ms`, `us` or `ns` in any case; none means nanoseconds.
/// What does not fit becomes the longest duration there is.
pub fn parse_duration_ns(text: &str) -> Result<i64, UnitError> {
    let (number, suffix) = split(text)?;
    let unit = match suffix.to_ascii_lowercase().as_str() {
        "" | "ns" => 1,
        "us" => MICROSECOND_NS,
        "ms" => MILLISECOND_NS,
        "s" => SECOND_NS,
        _ => return Err(UnitError::DurationSuffix),
    };
    let number = number
        .and_then(|number| i64::try_from(number).ok())
        .unwrap_or(i64::MAX);
    Ok(number.saturating_mul(unit))
}

/// The size with the largest suffix that divides it.
pub fn format_size(size: u64) -> String {
    for (unit, suffix) in [(GIB, "g"), (MIB, "m"), (KIB, "k")] {
        if size >= unit && size.is_multiple_of(unit) {
            return format!("{}{suffix}", size / unit);
        }
    }
    size.to_string()
}

/// The duration with the largest suffix that divides it.
pub fn format_duration(duration_ns: i64) -> String {
    for (unit, suffix) in [(SECOND_NS, "s"), (MILLISECOND_NS, "ms"), (MICROSECOND_NS, "us")] {
        if duration_ns >= unit && duration_ns % unit == 0 {
            return format!("{}{suffix}", duration_ns / unit);
        }
    }
    format!("{duration_ns}ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("0"), Ok(0));
        assert_eq!(parse_size("64k"), Ok(65536));
        assert_eq!(parse_size("64K"), Ok(65536));
        assert_eq!(parse_size("3m"), Ok(3 << 20));
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        assert_eq!(parse_size("8589934591g"), Ok(8_589_934_591 << 30));
        assert_eq!(parse_size("8589934592g"), Err(UnitError::TooLarge));
        assert_eq!(parse_size("9223372036854775808"), Err(UnitError::TooLarge));
        assert_eq!(parse_size("99999999999999999999"), Err(UnitError::TooLarge));
        for text in ["1kb", "1 k", "1t", "1.5k", "1é"] {
            assert_eq!(parse_size(text), Err(UnitError::SizeSuffix), "{text}");
        }
        for text in ["", "k", "-1", "+1", " 1"] {
            assert_eq!(parse_size(text), Err(UnitError::NotANumber), "{text}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration_ns("5"), Ok(5));
        assert_eq!(parse_duration_ns("5ns"), Ok(5));
        assert_eq!(parse_duration_ns("5us"), Ok(5_000));
        assert_eq!(parse_duration_ns("5Ms"), Ok(5_000_000));
        assert_eq!(parse_duration_ns("5S"), Ok(5_000_000_000));
        assert_eq!(parse_duration_ns("9223372037s"), Ok(i64::MAX));
        assert_eq!(parse_duration_ns("99999999999999999999s"), Ok(i64::MAX));
        assert_eq!(parse_duration_ns("5m"), Err(UnitError::DurationSuffix));
        assert_eq!(parse_duration_ns("s"), Err(UnitError::NotANumber));
    }

    #[test]
    fn formatted_with_the_largest_suffix_that_divides() {
        assert_eq!(format_size(0), "0");
        assert_eq!(format_size(1408), "1408");
        assert_eq!(format_size(65536), "64k");
        assert_eq!(format_size(3 << 30), "3g");
        assert_eq!(format_duration(0), "0ns");
        assert_eq!(format_duration(1_500), "1500ns");
        assert_eq!(format_duration(10_000_000), "10ms");
        assert_eq!(format_duration(5_000_000_000), "5s");
    }
}
