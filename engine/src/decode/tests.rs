#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
use std::path::PathBuf;

use super::*;
use crate::code::{Format, Layout, ShotSet};
use crate::predecode::{Local, Predecoder};
#[test]
fn explore() {
    for name in [
        "surf_z_d3_r3_p0.001",
        "surf_z_d3_r3_p0.005",
        "surf_z_d5_r5_p0.001",
        "surf_z_d5_r5_p0.005",
        "surf_z_d7_r7_p0.001",
        "surf_z_d7_r7_p0.005",
        "surf_z_d9_r9_p0.001",
        "surf_z_d9_r9_p0.005",
    ] {
        let f = |x: &str| std::fs::read(PathBuf::from(format!("/work/shared/data/{name}.{x}"))).unwrap();
        let m = Model::parse(&f("dem")).unwrap();
        let dets = ShotSet::read(&f("dets.b8")[..], Format::B8, Layout::detectors(m.detectors)).unwrap();
        let obs = ShotSet::read(&f("obs.b8")[..], Format::B8, Layout::observables(m.observables)).unwrap();
        let pm = ShotSet::read(&f("pm.b8")[..], Format::B8, Layout::observables(m.observables)).unwrap();
        let w: Vec<f32> = f("pm_weight.f32le").chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect();
        let mm = MatcherModel::new(&m).unwrap();
        let mut d = mm.matcher();
        let mut local = Local::new(&m).unwrap();
        let (mut diff, mut wdiff, mut le, mut ple) = (0, 0.0f64, 0, 0);
        let (mut lle, mut ldiff, mut res, mut fired, mut heavier) = (0, 0, 0, 0, 0);
        let mut o = vec![0; m.observable_words()];
        let mut o2 = o.clone();
        let mut r = vec![0; m.detector_words()];
        for i in 0..dets.len() {
            let x = d.decode(dets.shot(i), &mut o).unwrap();
            diff += u32::from(o != pm.shot(i));
            wdiff = wdiff.max((x.weight - f64::from(w[i])).abs() / f64::from(w[i]).max(1.0));
            le += u32::from(o != obs.shot(i));
            ple += u32::from(pm.shot(i) != obs.shot(i));
            let mut o3 = o.clone();
            res += local.predecode(dets.shot(i), &mut r, &mut o2).resolved;
            fired += dets.shot(i).iter().map(|w| w.count_ones()).sum::<u32>();
            let y = d.decode(&r, &mut o3).unwrap();
            for (a, b) in o3.iter_mut().zip(&o2) {
                *a ^= b;
            }
            ldiff += u32::from(o != o3);
            lle += u32::from(o3 != obs.shot(i));
            heavier += u32::from(y.weight + 0.0 < 0.0);
        }
        eprintln!(
            "{name}: diff {diff} wdiff {wdiff:.2e} le {le} pm {ple} | local le {lle} diff {ldiff} resolved {res}/{fired} = {:.3} {heavier}",
            f64::from(res) / f64::from(fired)
        );
    }
}
