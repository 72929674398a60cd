#![allow(clippy::unwrap_used, reason = "harness")]
use super::*;
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
        let m = Model::parse(&std::fs::read(format!("/work/shared/data/{name}.dem")).unwrap()).unwrap();
        let raw = std::fs::read(format!("/work/shared/data/{name}.dets.b8")).unwrap();
        let n = m.detectors as usize;
        let bytes = n.div_ceil(8);
        let perms: Vec<(&str, Box<dyn Fn(usize) -> usize>)> = vec![
            ("good", Box::new(|i| i)),
            ("bitrev", Box::new(|i| i ^ 7)),
            ("allrev", Box::new(move |i| n - 1 - i)),
            ("bytesrev", Box::new(move |i| (bytes - 1 - i / 8) * 8 + i % 8)),
            ("shift", Box::new(move |i| (i + 1) % n)),
            ("shuf", Box::new(move |i| (i * 7 + 3) % n)),
        ];
        for (pn, f) in perms {
            for k in [1000usize, 2000] {
                let mut h = InputHealth::new(&m);
                for s in raw.chunks(bytes).take(k) {
                    let mut shot = vec![0u64; m.detector_words()];
                    for i in 0..n {
                        if s[i / 8] >> (i % 8) & 1 == 1 {
                            let j = f(i);
                            if j < n {
                                super::super::flip(&mut shot, j as u32);
                            }
                        }
                    }
                    h.observe(&shot);
                }
                let e = h.evidence(f64::from(h.now.shots));
                eprintln!(
                    "{name} {pn} {k}: tot {:.2} x{:.3} shape {:.2} dev {:.3} pairs {:.2} x{:.3} worst {:.1} {:?}",
                    e.total_sigmas,
                    e.total_ratio,
                    e.shape_sigmas,
                    e.shape_deviation,
                    e.pairs_sigmas,
                    e.pairs_ratio,
                    e.worst_sigmas,
                    h.assess().verdict
                );
            }
        }
    }
}
