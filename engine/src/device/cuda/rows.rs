//! Driver, device and compiler library as rows of the environment check.
//!
//! Cold. Without a GPU the rows are "not visible" and the check still passes.

use super::{Absent, DriverFacts, compiler_is_present, probe};
use crate::host::check::{Row, Verdict};

/// The three rows, for the current machine.
pub fn rows() -> Vec<Row> {
    judged(probe(), compiler_is_present())
}

fn judged(found: Result<DriverFacts, Absent>, compiler: bool) -> Vec<Row> {
    let (driver, device) = match found {
        Ok(found) => {
            let named = found.devices.iter().map(|device| {
                let (major, minor) = device.capability;
                let memory_gib = device.memory_bytes >> 30;
                format!("{} {} ({major}.{minor}, {memory_gib} GiB, {})", device.index, device.name, device.compute_mode)
            });
            let devices = named.collect::<Vec<_>>().join("; ");
            ((Verdict::Pass, format!("CUDA {}", found.driver)), (Verdict::Pass, devices))
        }
        Err(Absent::Library) => ((Verdict::NotVisible, "no driver library".to_owned()), unseen()),
        Err(absent @ Absent::NoDevice) => ((Verdict::Pass, "a driver".to_owned()), (Verdict::Warn, absent.to_string())),
        Err(absent) => ((Verdict::Warn, absent.to_string()), unseen()),
    };
    let library = if compiler { (Verdict::Pass, "libnvrtc") } else { (Verdict::NotVisible, "no libnvrtc") };
    vec![
        row(
            "cuda_driver",
            driver,
            "CUDA 13.0 or later",
            "--device cuda needs it",
            "install NVIDIA driver 580 or later",
        ),
        row(
            "cuda_device",
            device,
            "a GPU of compute capability 7.5 or later",
            "--device cuda runs on it",
            "see nvidia-smi",
        ),
        row(
            "cuda_compiler",
            (library.0, library.1.to_owned()),
            "nothing: the kernels are compiled",
            "listed for completeness",
            "",
        ),
    ]
}

fn unseen() -> (Verdict, String) {
    (Verdict::NotVisible, "not visible without a driver".to_owned())
}

fn row(id: &str, (verdict, found): (Verdict, String), expected: &str, why: &str, fix: &str) -> Row {
    let fix = if verdict == Verdict::Warn { fix } else { "" };
    Row { id: id.to_owned(), found, expected: expected.to_owned(), verdict, why: why.to_owned(), fix: fix.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::judged;
    use crate::device::cuda::Absent;
    use crate::host::check::Verdict;

    #[test]
    fn a_machine_without_a_driver_fails_nothing_and_an_old_one_warns() {
        let verdicts = |absent| judged(Err(absent), false).iter().map(|row| row.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(Absent::Library), [Verdict::NotVisible; 3]);
        assert_eq!(verdicts(Absent::TooOld { found: 12_040 })[0], Verdict::Warn);
        assert_eq!(verdicts(Absent::NoDevice)[..2], [Verdict::Pass, Verdict::Warn]);
        let rows = judged(Err(Absent::TooOld { found: 12_040 }), true);
        assert!(rows[0].found.contains("12.4") && rows[0].fix.contains("580"));
    }
}
