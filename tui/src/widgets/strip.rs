//! Strips and maps: sparklines, heat, gauges, braille cells.
//!
//! Pure functions from numbers to glyphs; the scale of each is in its doc comment.

use crate::theme::Tone;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A linear bar from 0 to `max`; absent is a blank, zero is the lowest bar.
pub fn bar(value: Option<f64>, max: f64) -> char {
    match value {
        None => ' ',
        Some(value) if max > 0.0 => BARS[((value / max * 7.0).round().clamp(0.0, 7.0)) as usize],
        Some(_) => BARS[0],
    }
}

/// Row `y` from the top of a bar of `height` rows, from 0 to `max`; absent is a blank, zero is the lowest bar.
pub fn column(value: Option<f64>, max: f64, height: u16, y: u16) -> char {
    let Some(value) = value else { return ' ' };
    let share = if max > 0.0 { (value / max).clamp(0.0, 1.0) } else { 0.0 };
    let eighths = ((share * f64::from(height) * 8.0).round() as usize).max(1);
    let below = usize::from(height - 1 - y) * 8;
    match eighths.saturating_sub(below) {
        0 => ' ',
        here => BARS[here.min(8) - 1],
    }
}

/// A bar on a logarithmic scale: full from `limit` on, lowest at a ten-thousandth of it.
pub fn bar_log(value: u64, limit: u64) -> (char, Tone) {
    let ratio = ratio(value, limit);
    let level = ((ratio.log10() + 4.0) / 4.0 * 7.0).clamp(0.0, 7.0) as usize;
    (BARS[level], heat_tone(ratio))
}

/// Heat on a logarithmic scale of age ÷ limit: below 1 %, 10 %, 32 %, 100 %, above.
pub fn heat(age: u64, limit: u64) -> (char, Tone) {
    let ratio = ratio(age, limit);
    let glyph = match ratio {
        r if r > 1.0 => '█',
        r if r > 0.316 => '▓',
        r if r > 0.1 => '▒',
        r if r > 0.01 => '░',
        _ => '·',
    };
    (glyph, heat_tone(ratio))
}

fn heat_tone(ratio: f64) -> Tone {
    match ratio {
        r if r > 1.0 => Tone::Bad,
        r if r > 0.316 => Tone::Warn,
        _ => Tone::Good,
    }
}

fn ratio(value: u64, limit: u64) -> f64 {
    value as f64 / limit.max(1) as f64
}

pub fn gauge(depth: u64, capacity: u64, cells: usize) -> String {
    let share = depth as f64 / capacity.max(1) as f64;
    let full = if depth == 0 { 0 } else { ((share * cells as f64).round() as usize).clamp(1, cells) };
    (0..cells).map(|cell| if cell < full { '▮' } else { '▯' }).collect()
}

/// Tone of a queue's fill level: good, warning, or in error.
pub fn depth_tone(depth: u64, capacity: u64) -> Tone {
    match ratio(depth, capacity) {
        r if r >= 0.8 => Tone::Bad,
        r if r >= 0.5 => Tone::Warn,
        _ => Tone::Good,
    }
}

/// The braille glyph of eight dots: bits go down the left column, then down the right.
pub fn braille(dots: u8) -> char {
    /// Bit of each dot in Unicode's braille block, in the order of `dots`.
    const BITS: [u32; 8] = [0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80];
    let bits = (0..8).filter(|dot| dots >> dot & 1 == 1).fold(0, |bits, dot| bits | BITS[dot]);
    char::from_u32(0x2800 + bits).unwrap_or('⠀')
}

#[cfg(test)]
mod tests {
    use super::{bar, bar_log, braille, column, gauge, heat};
    use crate::theme::Tone;

    #[test]
    fn absent_is_blank_and_zero_is_not() {
        assert_eq!(bar(None, 10.0), ' ');
        assert_eq!(bar(Some(0.0), 10.0), '▁');
        assert_eq!(bar(Some(10.0), 10.0), '█');
        assert_eq!(bar(Some(1.0), 0.0), '▁');
    }

    #[test]
    fn a_column_fills_from_below() {
        let drawn = |value| (0..3).map(|y| column(value, 24.0, 3, y)).collect::<String>();
        assert_eq!(drawn(None), "   ");
        assert_eq!(drawn(Some(0.0)), "  ▁");
        assert_eq!(drawn(Some(8.0)), "  █");
        assert_eq!(drawn(Some(9.0)), " ▁█");
        assert_eq!(drawn(Some(24.0)), "███");
        assert_eq!(column(Some(1.0), 0.0, 1, 0), '▁');
    }

    #[test]
    fn only_what_is_above_its_limit_is_bad() {
        assert_eq!(heat(100, 100).1, Tone::Warn);
        assert_eq!(heat(101, 100), ('█', Tone::Bad));
        assert_eq!(heat(0, 0), ('·', Tone::Good));
        assert_eq!(bar_log(0, 100), ('▁', Tone::Good));
        assert_eq!(bar_log(u64::MAX, 1).0, '█');
    }

    #[test]
    fn a_gauge_differs_between_zero_and_one_entry() {
        assert_eq!(gauge(0, 1024, 4), "▯▯▯▯");
        assert_eq!(gauge(1, 1024, 4), "▮▯▯▯");
        assert_eq!(gauge(1024, 1024, 4), "▮▮▮▮");
    }

    #[test]
    fn braille_fills_its_left_column_first() {
        assert_eq!(braille(0), '⠀');
        assert_eq!(braille(0b1111), '⡇');
        assert_eq!(braille(0xff), '⣿');
    }
}
