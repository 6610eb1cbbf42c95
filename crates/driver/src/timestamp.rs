//! Epoch milliseconds as dates, in UTC.

/// Year, month, day, hour, minute, second, millisecond.
fn civil(epoch_ms: i64) -> (i64, u32, u32, i64, i64, i64, i64) {
    let days = epoch_ms.div_euclid(86_400_000);
    let in_day = epoch_ms.rem_euclid(86_400_000);
    // Counting years from March puts the leap day last, which makes every month's start a linear formula.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (
        year,
        month,
        day,
        in_day / 3_600_000,
        in_day / 60_000 % 60,
        in_day / 1_000 % 60,
        in_day % 1_000,
    )
}

/// `yyyy-MM-dd-HH-mm-ss-SSS+0000`, fit for a file name.
pub(crate) fn for_file_name(epoch_ms: i64) -> String {
    let (year, month, day, hour, minute, second, millisecond) = civil(epoch_ms);
    format!("{year:04}-{month:02}-{day:02}-{hour:02}-{minute:02}-{second:02}-{millisecond:03}+0000")
}

/// `yyyy-MM-dd HH:mm:ss.SSS+0000`
pub(crate) fn for_people(epoch_ms: i64) -> String {
    let (year, month, day, hour, minute, second, millisecond) = civil(epoch_ms);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millisecond:03}+0000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        assert_eq!(for_people(0), "1970-01-01 00:00:00.000+0000");
        assert_eq!(for_people(951_782_400_000 - 1), "2000-02-28 23:59:59.999+0000");
        assert_eq!(for_people(951_782_400_000), "2000-02-29 00:00:00.000+0000");
        assert_eq!(for_file_name(1_700_000_000_123), "2023-11-14-22-13-20-123+0000");
    }
}
