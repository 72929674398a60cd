//! Draws plots as SVG elements of the page: axes, bars, lines and marks.
//!
//! Pure. Bounded by its caller's points. Colours come from the page's style sheet by class.
//!
//! # Why places are percentages
//! A plot is as wide as the reader's screen. Places from left to right are shares of that width, and
//! heights are pixels, so that texts keep their size on a phone. Curves are drawn in an inner image
//! that is stretched; its lines keep their width.

use super::markup::escaped;
use std::fmt::Write;

/// Height of the part below a plot that names the places of its axis, pixels.
const AXIS_PX: f64 = 22.0;
/// Width of the image that curves are drawn in, in units of its own.
const CURVE_WIDTH: f64 = 1_000.0;
/// Share of the width from which on a label stands on the left of its place.
const LABEL_TURNS: f64 = 0.72;

/// A plot: a rectangle of the page's width, and an axis below it.
#[derive(Debug)]
pub struct Plot {
    height_px: f64,
    label: String,
    body: String,
    /// Texts, drawn above everything else.
    names: String,
}

impl Plot {
    /// An empty plot. `label` says to who cannot see it what it shows.
    pub fn new(height_px: f64, label: &str) -> Plot {
        Plot { height_px, label: escaped(label), body: String::new(), names: String::new() }
    }

    /// The element.
    pub fn into_markup(self) -> String {
        let height = self.height_px + AXIS_PX;
        format!(
            "<svg class=\"plot\" width=\"100%\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\">\n{}{}\
             <line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"{:.1}\" y2=\"{:.1}\"/></svg>\n",
            self.label, self.body, self.names, self.height_px, self.height_px
        )
    }

    /// Vertical lines at places of the axis below, with their names.
    pub fn ticks(&mut self, ticks: &[(f64, String)]) {
        for (x, name) in ticks {
            self.vertical("grid", *x, 0.0);
            let anchor = match *x {
                // Names at the ends stay within the page.
                x if x < 0.02 => "start",
                x if x > 0.98 => "end",
                _ => "middle",
            };
            self.name("", (*x, 0), self.height_px + 16.0, anchor, name);
        }
    }

    /// A horizontal line at a height (0: bottom, 1: top) with its name on the left.
    pub fn level(&mut self, height: f64, name: &str) {
        let y = self.y(height);
        self.horizontal("grid", y);
        // The name of the top stands below its line, within the plot.
        self.name("", (0.0, 0), if y < 14.0 { y + 14.0 } else { y - 4.0 }, "start", name);
    }

    /// A dashed line at a height, with its name on the right of those of the levels.
    pub fn floor(&mut self, height: f64, name: &str) {
        let y = self.y(height);
        self.horizontal("mark", y);
        self.name("marked", (0.0, 60), y - 5.0, "start", name);
    }

    fn horizontal(&mut self, class: &'static str, y: f64) {
        let _ = writeln!(self.body, "<line class=\"{class}\" x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
    }

    /// A line from the bottom to `top_px` below the top.
    fn vertical(&mut self, class: &'static str, x: f64, top_px: f64) {
        let (x, bottom_px) = (x * 100.0, self.height_px);
        let ends = format!("x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{top_px:.1}\" y2=\"{bottom_px:.1}\"");
        let _ = writeln!(self.body, "<line class=\"{class}\" {ends}/>");
    }

    /// A text at a place, shifted by some pixels.
    fn name(&mut self, class: &'static str, (x, shift): (f64, i32), y: f64, anchor: &'static str, text: &str) {
        let (x, text) = (x * 100.0, escaped(text));
        let place = format!("x=\"{x:.2}%\" dx=\"{shift}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"");
        let _ = writeln!(self.names, "<text class=\"{class}\" {place}>{text}</text>");
    }

    /// A bar from the bottom to a height.
    pub fn bar(&mut self, from: f64, to: f64, height: f64) {
        let y = self.y(height);
        let _ = writeln!(
            self.body,
            "<rect class=\"bar\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"{y:.1}\" height=\"{:.1}\"/>",
            from * 100.0,
            (to - from).max(0.0) * 100.0,
            (self.height_px - y).max(0.6)
        );
    }

    /// A vertical line through the plot, named in the given row from the top.
    pub fn mark(&mut self, x: f64, row: u32, name: &str) {
        let (anchor, shift) = if x > LABEL_TURNS { ("end", -5) } else { ("start", 5) };
        let y = f64::from(12 + 15 * row);
        self.vertical("mark", x, y - 10.0);
        self.name("marked", (x, shift), y, anchor, name);
    }

    /// A band over the whole height.
    pub fn band(&mut self, from: f64, to: f64, class: &'static str) {
        let _ = writeln!(
            self.body,
            "<rect class=\"band {class}\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"0\" height=\"{:.1}\"/>",
            from * 100.0,
            (to - from).max(0.001) * 100.0,
            self.height_px
        );
    }

    /// A curve through points of place and height. A point without a height interrupts it.
    pub fn curve(&mut self, points: &[(f64, Option<f64>)], class: &'static str) {
        let (mut path, mut pen) = (String::new(), 'M');
        for (x, height) in points {
            let Some(height) = height else {
                pen = 'M';
                continue;
            };
            let _ = write!(path, "{pen}{:.1} {:.1}", x * CURVE_WIDTH, self.y(*height));
            pen = 'L';
        }
        let _ = writeln!(
            self.body,
            "<svg width=\"100%\" height=\"{0:.0}\" viewBox=\"0 0 {CURVE_WIDTH} {0:.0}\" preserveAspectRatio=\"none\">\
             <path class=\"curve {class}\" d=\"{path}\"/></svg>",
            self.height_px
        );
    }

    pub fn point(&mut self, x: f64, height: f64, interval: [f64; 2]) {
        let [low, high] = interval.map(|height| self.y(height));
        let (x, y) = (x * 100.0, self.y(height));
        let _ = writeln!(
            self.body,
            "<line class=\"interval\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>\
             <circle class=\"point\" cx=\"{x:.2}%\" cy=\"{y:.1}\" r=\"3.5\"/>"
        );
    }

    /// Bars in a row from the top, and a numbered disc at the first.
    pub fn lane(&mut self, row: usize, number: usize, bars: &[(f64, f64)], class: &'static str) {
        let y = 12.0 + LANE_PX * row as f64;
        for (from, to) in bars {
            let place = format!("x=\"{:.2}%\" width=\"{:.2}%\"", from * 100.0, (to - from).max(0.001) * 100.0);
            let _ = writeln!(self.body, "<rect class=\"span {class}\" {place} y=\"{:.1}\" height=\"6\"/>", y - 3.0);
        }
        let Some((first, _)) = bars.first() else { return };
        let x = first * 100.0;
        let _ = writeln!(
            self.body,
            "<circle class=\"disc {class}\" cx=\"{x:.2}%\" cy=\"{y:.1}\" r=\"8.5\"/>\
             <text class=\"in-disc\" x=\"{x:.2}%\" y=\"{:.1}\" text-anchor=\"middle\">{number}</text>",
            y + 3.5
        );
    }

    fn y(&self, height: f64) -> f64 {
        (1.0 - height.clamp(0.0, 1.0)) * self.height_px
    }
}

/// Height of a row of [`Plot::lane`], pixels.
pub const LANE_PX: f64 = 22.0;

/// A logarithmic axis between two powers of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogAxis {
    from: i32,
    to: i32,
}

impl LogAxis {
    /// The axis that has all the values above 0; `None` without one.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<LogAxis> {
        let logs = values.into_iter().filter(|value| *value > 0.0).map(f64::log10);
        let (low, high) =
            logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
        let (from, to) = (low.floor() as i32, high.ceil() as i32);
        (low <= high).then(|| LogAxis { from, to: to.max(from + 1) })
    }

    /// Where a value lies, 0..=1. Values outside lie at the ends.
    pub fn place(self, value: f64) -> f64 {
        let span = f64::from(self.to - self.from);
        ((value.max(f64::MIN_POSITIVE).log10() - f64::from(self.from)) / span).clamp(0.0, 1.0)
    }

    /// Its powers of ten; every second one, if there are many.
    pub fn powers(self) -> Vec<(f64, f64)> {
        let step = if self.to - self.from > 7 { 2 } else { 1 };
        let powers = (self.from..=self.to).step_by(step);
        powers.map(|power| 10f64.powi(power)).map(|value| (self.place(value), value)).collect()
    }

    /// Number of powers of ten from its start to its end.
    pub fn decades(self) -> f64 {
        f64::from(self.to - self.from)
    }
}

/// The names of a time axis from 0 to `to_ns`: at most seven, at round times.
pub fn time_ticks(to_ns: u64) -> Vec<(f64, String)> {
    const STEPS_S: [f64; 17] =
        [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0, 7_200.0];
    let to_s = to_ns as f64 / 1e9;
    let longest = (to_s / 5.0 / 3_600.0).ceil() * 3_600.0;
    let step = STEPS_S.into_iter().find(|step| to_s / step <= 5.5).unwrap_or(longest);
    let name = |s: f64| match step {
        _ if s == 0.0 => "0".to_owned(),
        step if step < 1.0 => format!("{s:.1} s"),
        step if step < 60.0 => format!("{s:.0} s"),
        step if step < 3_600.0 => format!("{:.0} min", s / 60.0),
        _ => format!("{:.0} h", s / 3_600.0),
    };
    let count = if to_s > 0.0 { (to_s / step).floor() as u32 } else { 0 };
    (0..=count).map(|n| f64::from(n) * step).map(|s| (s / to_s.max(step), name(s))).collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `value`.
pub fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|round| *round >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{LogAxis, Plot, round_up, time_ticks};

    #[test]
    fn a_logarithmic_axis_has_its_values_between_powers_of_ten() {
        let axis = LogAxis::of([0.0, 250.0, 40_000.0]).unwrap();
        assert_eq!(axis, LogAxis { from: 2, to: 5 });
        assert_eq!((axis.place(100.0), axis.place(1e5), axis.place(1e9), axis.place(0.0)), (0.0, 1.0, 1.0, 0.0));
        assert_eq!(axis.powers().len(), 4);
        assert_eq!(LogAxis::of([0.0]), None);
        assert_eq!(LogAxis::of([1_000.0]), Some(LogAxis { from: 3, to: 4 }));
    }

    #[test]
    fn a_time_axis_has_few_round_names() {
        for (s, last) in [(2.0, "2.0 s"), (12.4, "10 s"), (75.0, "60 s"), (3_600.0, "60 min"), (90_000.0, "25 h")] {
            let ticks = time_ticks((s * 1e9) as u64);
            assert!((2..=7).contains(&ticks.len()), "{s}: {ticks:?}");
            assert_eq!(ticks.last().unwrap().1, last, "{ticks:?}");
            assert!(ticks.iter().all(|(place, _)| (0.0..=1.0).contains(place)), "{ticks:?}");
        }
        assert_eq!(time_ticks(0).len(), 1);
    }

    #[test]
    fn heights_end_at_a_round_number() {
        assert_eq!([0.0, 1.0, 1.2, 6_214.0, 51_000.0].map(round_up), [1.0, 1.0, 2.0, 10_000.0, 100_000.0]);
    }

    #[test]
    fn a_curve_is_interrupted_where_nothing_is_known() {
        let mut plot = Plot::new(100.0, "a <plot>");
        plot.curve(&[(0.0, Some(0.0)), (0.5, None), (1.0, Some(1.0))], "a");
        let text = plot.into_markup();
        assert!(text.contains("d=\"M0.0 100.0M1000.0 0.0\"") && text.contains("a &lt;plot&gt;"), "{text}");
    }
}
