//! Parsers of option values that several commands use: durations, rates and decoders.
//!
//! Pure: each parses a word to a value or an error sentence.

use pinwheel_engine::profile::{Decoder, Rate, SHADOW_ONE_IN_DEFAULT, Shadow};
use std::time::Duration;

/// Units of a duration in nanoseconds; a unit that ends in another comes first.
const UNITS_NS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];
/// Longest accepted duration: one year.
const DURATION_NS_MAX: f64 = 366.0 * 86_400e9;

/// `10s`, `500ms`, `20us`, `1m`, `1.5h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let span = time(text)?;
    if span.is_zero() { Err(time_refused("a time that is not above 0")) } else { Ok(span) }
}

fn time_refused(found: &str) -> String {
    format!("found {found}, expected a time above 0 with its unit; write it like 10s, 500ms, 20us or 1m")
}

/// As [`duration`], or 0.
pub fn time(text: &str) -> Result<Duration, String> {
    let refuse = time_refused;
    let split = text.find(|c: char| c.is_alphabetic()).ok_or_else(|| refuse("no unit"))?;
    let (number, unit) = text.split_at(split);
    let Some((_, unit_ns)) = UNITS_NS.into_iter().find(|(name, _)| *name == unit) else {
        return Err(refuse(&format!("unit '{unit}'")));
    };
    let value: f64 = number.parse().map_err(|_| refuse(&format!("number '{number}'")))?;
    let ns = (value * unit_ns).round();
    match ns {
        0.0..=DURATION_NS_MAX => Ok(Duration::from_nanos(ns as u64)),
        _ if ns > DURATION_NS_MAX => Err(refuse("more than a year")),
        _ => Err(refuse("a time that is not above 0")),
    }
}

/// A rate above 0, `max` or `auto`.
pub fn rate(text: &str) -> Result<Rate, String> {
    let refuse =
        || "expected shots per second above 0 and at most 1e9, max, or auto; write it like --rate 50000".to_owned();
    match text {
        "max" => Ok(Rate::Max),
        "auto" => Ok(Rate::Auto),
        number => match number.parse::<f64>() {
            Ok(hz) if hz > 0.0 && hz <= 1e9 => Ok(Rate::Hz(hz)),
            _ => Err(refuse()),
        },
    }
}

/// A rate above 0, or `max` as infinity; `auto` needs a measured capacity, which only a start has.
pub fn rate_or_max(text: &str) -> Result<f64, String> {
    match rate(text) {
        Ok(Rate::Hz(hz)) => Ok(hz),
        Ok(Rate::Max) => Ok(f64::INFINITY),
        Ok(Rate::Auto) | Err(_) => {
            Err("expected shots per second above 0 and at most 1e9, or max; auto is measured at a start only"
                .to_owned())
        }
    }
}

/// Parses `matching`, `correlated`, `union-find`, `lookup`, `plugin:PATH` or `trusted-plugin:PATH`.
pub fn decoder(text: &str) -> Result<Decoder, String> {
    let found = Decoder::from_text(text);
    found.ok_or_else(|| "expected matching, correlated, union-find, lookup or plugin:PATH".to_owned())
}

/// What a shadow is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShadowWanted {
    Off,
    By(Decoder),
}

/// Parses the name of a decoder, or `off`.
pub fn shadow_wanted(text: &str) -> Result<ShadowWanted, String> {
    if text == "off" { Ok(ShadowWanted::Off) } else { decoder(text).map(ShadowWanted::By) }
}

/// Parses `DECODER` or `DECODER,N`: a shadow that gets one shot in `N`.
pub fn shadow(text: &str) -> Result<Shadow, String> {
    let (name, one_in) = match text.split_once(',') {
        None => (text, Ok(SHADOW_ONE_IN_DEFAULT)),
        Some((name, one_in)) => (name, one_in.parse()),
    };
    let one_in = one_in.map_err(|_| "expected a decoder and a number: union-find,100 gives it one shot in 100");
    Ok(Shadow { decoder: decoder(name)?, one_in: one_in?, model: None })
}

#[cfg(test)]
mod tests {
    use super::{Shadow, ShadowWanted, decoder, duration, rate, shadow, shadow_wanted};
    use pinwheel_engine::profile::{Decoder, Rate};
    use std::time::Duration;

    #[test]
    fn durations_carry_their_unit() {
        for (text, ns) in [
            ("10s", 10_000_000_000),
            ("500ms", 500_000_000),
            ("20us", 20_000),
            ("20µs", 20_000),
            ("1m", 60_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("7ns", 7),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in
            ["10", "", "s", "-1s", "0s", "0.1ns", "10 s", "10x", "nans", "infs", "NaNs", "1e99h", "1s1s", "1e3s"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn decoders_are_named() {
        assert_eq!([decoder("matching"), decoder("correlated")], [Ok(Decoder::Matching), Ok(Decoder::Correlated)]);
        assert_eq!([decoder("union-find"), decoder("lookup")], [Ok(Decoder::UnionFind), Ok(Decoder::Lookup)]);
        for text in ["plugin:a/b.so", "trusted-plugin:/opt/b.so"] {
            assert_eq!(decoder(text).map(|found| found.text()), Ok(text.to_owned()));
        }
        for text in ["", "Matching", "union_find", "correlated ", "plugin", "plugin:"] {
            assert!(decoder(text).is_err_and(|said| said.contains("matching, correlated")), "{text}");
        }
    }

    #[test]
    fn a_shadow_is_a_decoder_with_a_share_of_the_shots() {
        let wanted = |decoder, one_in| Ok(Shadow { decoder, one_in, model: None });
        assert_eq!(shadow("lookup"), wanted(Decoder::Lookup, 100));
        assert_eq!(shadow("union-find,7"), wanted(Decoder::UnionFind, 7));
        for text in ["", "off", "lookup,", "lookup,x", "lookup,-1", "lookup,1,2", ",5"] {
            assert!(shadow(text).is_err(), "{text}");
        }
        assert_eq!(shadow_wanted("off"), Ok(ShadowWanted::Off));
        assert_eq!(shadow_wanted("matching"), Ok(ShadowWanted::By(Decoder::Matching)));
        assert!(shadow_wanted("Off").is_err());
    }

    #[test]
    fn rates_are_above_zero_or_named() {
        assert_eq!(rate("max"), Ok(Rate::Max));
        assert_eq!(rate("auto"), Ok(Rate::Auto));
        assert_eq!(rate("5e4"), Ok(Rate::Hz(50_000.0)));
        for text in ["-5", "0", "NaN", "inf", "-inf", "1e10", "fast", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_value_parser_panic(text in "[0-9.eE+-]{0,8}[a-zµ .]{0,4}.{0,4}") {
            if let Ok(found) = duration(&text) {
                proptest::prop_assert!(!found.is_zero());
            }
            if let Ok(Rate::Hz(hz)) = rate(&text) {
                proptest::prop_assert!(hz > 0.0 && hz <= 1e9);
            }
        }
    }
}
