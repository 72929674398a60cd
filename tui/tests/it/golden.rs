//! The golden set through the whole program: predictions, logical errors, and every format.

use crate::world::{World, engine, golden, patient, word};
use std::fs;

const DEM: &str = "surf_z_d3_r3_p0.005.dem";
/// Ties of equal weight may be resolved otherwise: about 1 in 20,000 shots.
const TIES_PER_SHOT: f64 = 1.0 / 5_000.0;

/// Predictions of a format, one byte a shot.
fn predicted(world: &World, shots: &str, format: &str, more: &str) -> (Vec<u8>, serde_json::Value) {
    let out = format!("p.{format}");
    let words = format!(
        "run --json {} --rate max --dem {} --shots {shots} --format {format} --predictions {out} {more}",
        patient(world),
        word(&golden(DEM))
    );
    let report = world.run(&words).exits(0).json();
    let bytes = fs::read(world.path(&out)).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let one_each = match format {
        "b8" => bytes.clone(),
        "01" => text.lines().map(|line| line.parse::<u8>().unwrap()).collect(),
        _ => text.lines().map(|line| u8::from(line.strip_prefix("shot").unwrap().trim() == "L0")).collect(),
    };
    (one_each, report)
}

/// The golden shots as `dets`.
fn as_dets(text01: &str) -> String {
    let line = |shot: &str| {
        let fired = shot.bytes().enumerate().filter(|(_, bit)| *bit == b'1');
        fired.fold("shot".to_owned(), |line, (i, _)| format!("{line} D{i}"))
    };
    text01.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn predictions_are_the_references_in_every_format_and_logical_errors_are_counted() {
    let _one = engine();
    let world = World::new();
    let expected = fs::read(golden("surf_z_d3_r3_p0.005.pm.b8")).unwrap();
    let truth = fs::read(golden("surf_z_d3_r3_p0.005.obs.b8")).unwrap();
    let ties = (expected.len() as f64 * TIES_PER_SHOT).ceil() as usize;
    let text01 = fs::read_to_string(golden("surf_z_d3_r3_p0.005.dets.01")).unwrap();
    let shots01 = word(&golden("surf_z_d3_r3_p0.005.dets.01"));
    let dets = word(&world.put("shots.dets", as_dets(&text01)));
    let b8 = word(&golden("surf_z_d3_r3_p0.005.dets.b8"));
    let observables = format!("--observables {}", word(&golden("surf_z_d3_r3_p0.005.obs.b8")));

    let (from_b8, report) = predicted(&world, &b8, "b8", &observables);
    let differ = from_b8.iter().zip(&expected).filter(|(a, b)| a != b).count();
    assert!(from_b8.len() == expected.len() && differ <= ties, "{differ} of {}", expected.len());
    let wrong = from_b8.iter().zip(&truth).filter(|(a, b)| a != b).count() as u64;
    assert_eq!(report["logical_errors"].as_u64(), Some(wrong));
    assert_eq!(report["shots_with_observables"].as_u64(), Some(truth.len() as u64));
    assert!(wrong > 0 && report["ended_by"] == "input");

    for (format, shots) in [("01", &shots01), ("dets", &dets)] {
        let (same, report) = predicted(&world, shots, format, "");
        let shots = text01.lines().count();
        assert_eq!((same.len(), report["answered"].as_u64()), (shots, Some(shots as u64)), "{format}");
        assert!(same == from_b8[..shots], "{format} predicts otherwise than b8");
    }
}
