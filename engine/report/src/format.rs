//! Numbers formatted for people: at most five characters and a unit; and which characters of a text
//! are harmless.
//!
//! Pure. A number that has a unit is always shown with it.

pub use pinwheel_engine::clock::utc_text_ns as utc;

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal would execute `found` instead of showing it: control characters except line
/// ends and tabs, and characters that change the text direction.
pub fn is_control(found: char) -> bool {
    let turns = matches!(found,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || found.is_control() && !matches!(found, '\n' | '\t')
}

/// How a control character is escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// As in Rust: `\u{1b}`.
    Plain,
    /// As in a JSON string, whose value stays the same: `\u001b`.
    Json,
}

/// `text` with an escape for each character that a terminal would execute instead of showing:
/// control characters except line ends (LF, and CR before it) and tabs, and characters that change
/// the text direction.
pub fn visible(text: &str, syntax: Syntax) -> Cow<'_, str> {
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars();
    while let Some(found) = rest.next() {
        let ends_line = found == '\r' && rest.as_str().starts_with('\n');
        // Writing to a String cannot fail.
        let _ = match syntax {
            _ if !is_control(found) || ends_line => shown.write_char(found),
            Syntax::Plain => write!(shown, "\\u{{{:x}}}", u32::from(found)),
            Syntax::Json => write!(shown, "\\u{:04x}", u32::from(found)),
        };
    }
    Cow::Owned(shown)
}

/// A time: `112ns`, `9.4µs`, `24µs`, `1.2ms`, `3.0s`, `12m`, `5h`.
pub fn time(ns: u64) -> String {
    let ns_f = ns as f64;
    match ns {
        0..1_000 => format!("{ns}ns"),
        1_000..999_500 => scaled(ns_f / 1e3, "µs"),
        999_500..999_500_000 => scaled(ns_f / 1e6, "ms"),
        999_500_000..120_000_000_000 => scaled(ns_f / 1e9, "s"),
        120_000_000_000..7_200_000_000_000 => format!("{}m", ns / 60_000_000_000),
        _ => format!("{}h", ns / 3_600_000_000_000),
    }
}

fn scaled(value: f64, unit: &str) -> String {
    if value < 9.95 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

/// A count: `417`, `9,998`, `19.9k`, `1.2M`.
pub fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..10_000 => format!("{},{:03}", n / 1_000, n % 1_000),
        _ => number(n as f64),
    }
}

/// A number: `41`, `2.5k`, `19.9k`, `120k`, `1.2M`, `3.4G`.
pub fn number(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v < 999.5 => return format!("{v:.0}"),
        v if v < 999_500.0 => (v / 1e3, "k"),
        v if v < 999_500_000.0 => (v / 1e6, "M"),
        v => (v / 1e9, "G"),
    };
    if scaled < 99.95 { format!("{scaled:.1}{unit}") } else { format!("{scaled:.0}{unit}") }
}

/// A rate: `19.9k/s`; absent: `–`.
pub fn rate(per_s: Option<f64>) -> String {
    per_s.map_or_else(|| "–".to_owned(), |per_s| format!("{}/s", number(per_s)))
}

/// A share of 1: `0.4%`, `41%`; at most four characters.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

/// Bytes a second: `417B/s`, `2.3kB/s`, `15kB/s`, `1.2MB/s`; seven characters.
pub fn bytes_per_s(bytes: f64) -> String {
    let (scaled, unit) = match bytes {
        b if b < 999.5 => return format!("{b:.0}B/s"),
        b if b < 999_500.0 => (b / 1e3, "kB/s"),
        b => (b / 1e6, "MB/s"),
    };
    self::scaled(scaled, unit)
}

/// A time that may be absent.
pub fn time_or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".to_owned(), time)
}

/// A duration on a clock face: `00:12:41`.
pub fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// The time of day in UTC of a moment: `14:03:22Z`.
pub fn time_of_day(utc_s: u64) -> String {
    format!("{}Z", clock(utc_s % 86_400))
}

/// A small probability: `2.1e-4`; `0` for zero.
pub fn probability(p: f64) -> String {
    if p == 0.0 { "0".to_owned() } else { format!("{p:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::{bytes_per_s, count, number, percent, time, time_of_day};

    #[test]
    fn times_keep_two_figures_and_their_unit() {
        let cases = [
            (0, "0ns"),
            (999, "999ns"),
            (9_400, "9.4µs"),
            (24_000, "24µs"),
            (999_499, "999µs"),
            (999_500, "1.0ms"),
            (14_200_000, "14ms"),
            (3_000_000_000, "3.0s"),
            (180_000_000_000, "3m"),
            (u64::MAX, "5124095h"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn shares_and_rates_of_bytes_stay_short() {
        let shares = [0.0, 0.004, 0.0994, 0.0996, 0.41, 1.0].map(percent);
        assert_eq!(shares, ["0.0%", "0.4%", "9.9%", "10%", "41%", "100%"]);
        let rates = [0.0, 999.0, 999.6, 9_940.0, 15_000.0, 999_499.0, 1_200_000.0].map(bytes_per_s);
        assert_eq!(rates, ["0B/s", "999B/s", "1.0kB/s", "9.9kB/s", "15kB/s", "999kB/s", "1.2MB/s"]);
    }

    #[test]
    fn counts_and_numbers_stay_short() {
        assert_eq!(count(999), "999");
        assert_eq!(count(9_998), "9,998");
        assert_eq!(count(19_900), "19.9k");
        assert_eq!(number(999.6), "1.0k");
        assert_eq!(number(1_250_000.0), "1.2M");
        assert_eq!(time_of_day(86_400 + 3_661), "01:01:01Z");
    }
}
