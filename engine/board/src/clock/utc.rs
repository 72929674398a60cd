//! Times as people read them: RFC 3339.
//!
//! Cold; a handful of divisions.

const DAY_S: u64 = 86_400;
/// Where four digits of a year end.
const YEAR_10000_S: i64 = 253_402_300_800;

/// `2026-01-31T23:59:59Z` of seconds since 1970; `None` before that, and after the year 9999.
pub fn utc_text(seconds: i64) -> Option<String> {
    (0..YEAR_10000_S).contains(&seconds).then(|| format!("{}Z", date_and_time(seconds.unsigned_abs())))
}

/// `2026-01-31T23:59:59.500000000Z` of nanoseconds since 1970.
pub fn utc_text_ns(ns: u64) -> String {
    format!("{}.{:09}Z", date_and_time(ns / 1_000_000_000), ns % 1_000_000_000)
}

fn date_and_time(seconds: u64) -> String {
    let (year, month, day) = date(seconds / DAY_S);
    let second = seconds % DAY_S;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
///
/// Years begin on 1 March here, so that a leap day is a year's last one; 400 of them have 146,097 days.
fn date(days: u64) -> (u64, u64, u64) {
    let since_year_0 = days + 719_468;
    let (era, day_of_era) = (since_year_0 / 146_097, since_year_0 % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::{utc_text, utc_text_ns};

    #[test]
    fn dates_around_leap_days_and_at_both_ends_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc_text(seconds).as_deref(), Some(text));
        }
        assert_eq!(utc_text_ns(1_700_000_000_500_000_000), "2023-11-14T22:13:20.500000000Z");
        assert_eq!(utc_text_ns(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!((utc_text(-1), utc_text(253_402_300_800)), (None, None));
    }
}
