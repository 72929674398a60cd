//! The chart: its cursor, its zoom within the run, and the moment that it shows.

use super::Bench;
use crate::effect::Effect;
use crate::keymap::key::Key;
use crate::model::chart::{cursor, moment, request};
use crate::model::lookups::LookupRequest;
use crate::msg::Msg;
use crate::tests::synthetic::{SyntheticFaults, looked_up};

const MS: u64 = 1_000_000;

#[test]
fn the_cursor_zooms_within_the_run_and_shows_its_moment() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('w'), Key::Left, Key::Enter]);
    assert_eq!(cursor(&bench.model), None, "nothing is read yet");
    assert_eq!(request(&bench.model), LookupRequest::Chart { from_ns: 0, to_ns: u64::MAX, bins: 68 });
    for brought in looked_up(SyntheticFaults::None) {
        bench.take(Msg::LookedUp(brought));
    }
    assert_eq!(cursor(&bench.model), Some(59), "the last point");
    bench.keys(&[Key::Left, Key::PageUp]);
    assert_eq!((cursor(&bench.model), moment(&bench.model)), (Some(48), Some(4_850 * MS)));
    bench.keys(&[Key::Home, Key::Right]);
    assert_eq!(cursor(&bench.model), Some(1));
    assert_eq!(bench.take(Msg::Key(Key::Enter))[..1], [Effect::LookAt(150 * MS)]);
    bench.keys(&[Key::Char('f')]);
    // Half of six seconds around the cursor begins with the run.
    bench.keys(&[Key::Char('+')]);
    assert_eq!(bench.model.chart.span_ns, Some((0, 3_000 * MS)));
    assert_eq!(request(&bench.model), LookupRequest::Chart { from_ns: 0, to_ns: 3_000 * MS, bins: 30 });
    bench.keys(&[Key::End, Key::Char('+'), Key::Char('+')]);
    assert_eq!(bench.model.chart.span_ns, Some((4_000 * MS, 6_000 * MS)), "the shortest span, up to the run's end");
    bench.keys(&[Key::Char('-')]);
    assert_eq!(bench.model.chart.span_ns, Some((2_000 * MS, 6_000 * MS)));
    bench.keys(&[Key::Char('-')]);
    assert_eq!(bench.model.chart.span_ns, None, "twice the span is the whole run");
}
