//! Cost of a shadow to the path: the same run with one shot in a hundred given to a second decoder, and
//! without.
//!
//! The engine runs at the lab's sizes and 20,000 shots a second on the whole machine, in alternation with
//! and without. The latencies of all shots between two readings are compared. On two cores the
//! shadow's thread shares a core with a hot thread, as all cold threads do.

use super::measure::{Placement, Suite};
use super::overhead::{live, unrecorded};
use super::telemetry::{PARTS, RATE_HZ, SETTLES, TURN_MS, ended, latencies};
use pinwheel_engine::code::bundled_named;
use pinwheel_engine::engine::Input;
use pinwheel_engine::profile::{Decoder, Profile, Rate, SHADOW_ONE_IN_DEFAULT, Shadow};
use std::sync::Arc;
use std::time::Duration;

const TURNS: usize = 9;

pub fn register(suite: &mut Suite) {
    let span = Duration::from_millis(suite.effort.scale(TURN_MS));
    let own = (Placement::Own, TURNS);
    let shadow = Shadow { decoder: Decoder::UnionFind, one_in: SHADOW_ONE_IN_DEFAULT, model: None };
    let ours = suite.case("run with a shadow, 1 in 100", &PARTS, own, move || run(Some(shadow.clone()), span));
    let bare = suite.case("run without", &PARTS, own, move || run(None, span));
    for (part, tail) in ["p50", "p99", "p999", "max"].iter().enumerate() {
        suite.figure(format!("shadow/{tail}"), "ns", ours.part(part), Some(("without", bare.part(part))));
    }
}

fn run(shadow: Option<Shadow>, span: Duration) -> Vec<f64> {
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    (profile.input.rate, profile.shadow) = (Rate::Hz(RATE_HZ), shadow);
    let has_shadow = profile.shadow.is_some();
    let model = bundled_named("surface_d5").unwrap();
    let input = Input::Sampler { model: Arc::new(model), name: "surface_d5".to_string(), seed: 1 };
    let engine = live(unrecorded(profile, input), SETTLES);
    let found = latencies(&engine, span, || ());
    let compared = ended(engine).snapshot.shadow.map_or(0, |shadow| shadow.compared);
    assert_eq!(compared > 0, has_shadow, "{compared} shots compared");
    found
}
