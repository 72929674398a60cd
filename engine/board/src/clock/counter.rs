//! The processor's tick counter, and whether it is reliable.
//!
//! Owns the reading of the counter and the check of two sources: the processor, which reports
//! whether the counter runs at one rate in all its states, and the kernel, whose clocksource shows
//! whether the counter also agrees between cores. Reading is for any thread; the check is cold, at
//! start, bounded by one small file.
//!
//! # Why
//!
//! *An invisible clocksource is no reason to refuse.* Sandboxes hide the kernel's tree; then the
//! processor's report alone decides. Another visible clocksource means that the kernel found the
//! counter unstable.

use std::path::Path;

/// Where the kernel names its clocksource, below the root of the file system.
const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Clocksources based on the counter, directly or scaled for a guest.
const COUNTERS: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// Why the counter is not the clock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CounterError {
    #[error(
        "found no invariant tick counter, expected one (on x86-64: CPUID 8000_0007h, EDX bit 8); use a processor or a \
         virtual machine that shows it, or do without strict"
    )]
    NotInvariant,
    #[error(
        "found clocksource {clocksource:?}, expected the counter's ({}): the kernel considers the counter unstable; see \
         its log for the cause, or do without strict",
        COUNTERS.join(", ")
    )]
    Distrusted { clocksource: String },
    #[error("found a counter of {hz} Hz, expected 1 MHz to 20 GHz; repeat the start, or do without strict")]
    Implausible { hz: u64 },
}

/// Checks the processor and the kernel, whose tree is below `root`.
pub(super) fn verify(root: &Path) -> Result<(), CounterError> {
    let clocksource = std::fs::read_to_string(root.join(CLOCKSOURCE)).ok();
    judge(is_invariant(), clocksource.as_deref().map(str::trim))
}

fn judge(is_invariant: bool, clocksource: Option<&str>) -> Result<(), CounterError> {
    if !is_invariant {
        return Err(CounterError::NotInvariant);
    }
    match clocksource {
        Some(found) if !COUNTERS.contains(&found) => Err(CounterError::Distrusted { clocksource: found.to_string() }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

/// Reads the counter.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn read() -> u64 {
    // SAFETY: `rdtsc` reads a counter and touches no memory; user access was granted or the process would have died
    // in calibration, before any thread runs.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn is_invariant() -> bool {
    true // the architecture's generic timer runs at a fixed rate
}

/// Reads the counter.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(super) fn read() -> u64 {
    let ticks: u64;
    // SAFETY: reads the virtual count register, which user space may read on Linux; no memory is touched.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn is_invariant() -> bool {
    false
}

/// Never called: such a processor is never found invariant.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn read() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::{CounterError, judge};

    #[test]
    fn the_counter_needs_both_witnesses() {
        for trusted in ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"] {
            assert_eq!(judge(true, Some(trusted)), Ok(()));
            assert_eq!(judge(false, Some(trusted)), Err(CounterError::NotInvariant));
        }
        for other in ["hpet", "acpi_pm", "jiffies", "xen", "hyperv_clocksource_msr", ""] {
            assert_eq!(judge(true, Some(other)), Err(CounterError::Distrusted { clocksource: other.to_string() }));
        }
        assert_eq!(judge(true, None), Ok(()), "not visible");
    }

    #[test]
    fn a_distrusted_counter_names_what_was_found_and_what_was_expected() {
        let text = CounterError::Distrusted { clocksource: "hpet".to_string() }.to_string();
        assert!(text.contains("\"hpet\"") && text.contains("tsc, kvm-clock"), "{text}");
    }
}
