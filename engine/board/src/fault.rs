//! Fault codes, event codes, and the points at which faults are injected.
//!
//! Owns the numbers and names of every fault that the engine counts, and the seeded draws by which
//! a profile injects them. Roles count by code; cold code renders. Bounds: [`FaultCode::ALL`].
//! Never formats, never allocates.

mod event;

pub use event::EventCode;

use crate::profile::Faults;
use pinwheel_edge::slot::word::ErrorCode;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::net::Ipv4Addr;

/// Kind of a fault. The first numbers are those of the error words; the other faults answer no
/// shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultCode {
    /// A shot was answered with this error word. Detail: slot.
    Answered(ErrorCode),
    /// A completion came for a shot that was answered already. Detail: worker.
    LateCompletion,
    /// A worker was put into quarantine. Detail: worker.
    WorkerQuarantined,
    /// Every worker is quarantined. Detail: launches so far.
    DeviceLost,
    /// The device came back after a loss. Detail: launches so far.
    DeviceRecovered,
    /// A role panicked and is never called again. Detail: thread number.
    RoleDied,
    /// The input stream could not be read further. Detail: shots read.
    InputBroken,
    /// An answer for a sequence number that was answered before. Detail: sequence number.
    Duplicate,
    /// A thread could not be pinned. Detail: core.
    PinFailed,
    /// A hot thread called the allocator in Live. Detail: thread number.
    HotAllocation,
    /// A hot thread ran a frame on a core that it is not pinned to. Detail: that core.
    AffinityLost,
    /// UTC was set, or took a leap second in. Detail: by how much, ns.
    UtcStepped,
    /// The counter jumped against monotonic time. Detail: by how much, ns.
    CounterStepped,
    /// Requests of a CUDA-Q client are missing. Detail: its IPv4 address, then 16 bits of its port.
    RequestsMissing,
}

impl FaultCode {
    /// The codes that answer no shot, in the order of their numbers.
    const UNANSWERED: [FaultCode; 13] = [
        FaultCode::LateCompletion,
        FaultCode::WorkerQuarantined,
        FaultCode::DeviceLost,
        FaultCode::DeviceRecovered,
        FaultCode::RoleDied,
        FaultCode::InputBroken,
        FaultCode::Duplicate,
        FaultCode::PinFailed,
        FaultCode::HotAllocation,
        FaultCode::AffinityLost,
        FaultCode::UtcStepped,
        FaultCode::CounterStepped,
        FaultCode::RequestsMissing,
    ];

    /// All codes.
    pub const ALL: [FaultCode; ErrorCode::ALL.len() + FaultCode::UNANSWERED.len()] = {
        let (errors, others) = (ErrorCode::ALL, FaultCode::UNANSWERED);
        let mut all = [FaultCode::RequestsMissing; ErrorCode::ALL.len() + FaultCode::UNANSWERED.len()];
        let mut row = 0;
        while row < all.len() {
            let at = row.saturating_sub(errors.len());
            all[row] = if row < errors.len() { FaultCode::Answered(errors[row]) } else { others[at] };
            row += 1;
        }
        all
    };

    /// Number, as logs and JSON carry it.
    #[inline]
    pub const fn number(self) -> u16 {
        match self {
            FaultCode::Answered(code) => code as u16,
            FaultCode::LateCompletion => 32,
            FaultCode::WorkerQuarantined => 33,
            FaultCode::DeviceLost => 34,
            FaultCode::DeviceRecovered => 35,
            FaultCode::RoleDied => 36,
            FaultCode::InputBroken => 37,
            FaultCode::Duplicate => 38,
            FaultCode::PinFailed => 39,
            FaultCode::HotAllocation => 40,
            FaultCode::AffinityLost => 41,
            FaultCode::UtcStepped => 42,
            FaultCode::CounterStepped => 43,
            FaultCode::RequestsMissing => 44,
        }
    }

    /// Row of this code in tables of [`FaultCode::ALL`].
    #[inline]
    pub fn row(self) -> usize {
        match self {
            FaultCode::Answered(code) => code as usize - 1,
            other => ErrorCode::ALL.len() + usize::from(other.number() - 32),
        }
    }

    /// Name as text; with the address, where the detail number is one.
    pub fn describe(self, detail: u64) -> String {
        if self == FaultCode::RequestsMissing {
            let ip = Ipv4Addr::from_bits((detail >> 16) as u32);
            return format!("requests of CUDA-Q client {ip}:{} missing", detail as u16);
        }
        self.name().to_owned()
    }

    /// Name as text, with the meaning of the detail number.
    pub const fn name(self) -> &'static str {
        match self {
            FaultCode::Answered(ErrorCode::LaunchFailed) => "launch failed, slot",
            FaultCode::Answered(ErrorCode::LaunchUnknown) => "launch with unknown result, slot",
            FaultCode::Answered(ErrorCode::BadAddress) => "payload address outside payload memory, slot",
            FaultCode::Answered(ErrorCode::UnknownStream) => "stream unknown to this silo, slot",
            FaultCode::Answered(ErrorCode::LaunchDeadline) => "device missed the launch deadline, slot",
            FaultCode::Answered(ErrorCode::ShotDeadline) => "shot missed its total deadline, slot",
            FaultCode::Answered(ErrorCode::DeviceLost) => "shot lost with the device, slot",
            FaultCode::Answered(ErrorCode::DecoderPanic) => "decoder panicked, slot",
            FaultCode::Answered(ErrorCode::Drained) => "unanswered when the engine stopped, slot",
            FaultCode::Answered(ErrorCode::Unmatchable) => "syndrome without a matching, slot",
            FaultCode::Answered(ErrorCode::WindowFull) => "no room in the graph's window, slot",
            FaultCode::Answered(ErrorCode::PageAway) => "stream's state away at the shot's deadline, slot",
            FaultCode::Answered(ErrorCode::RoundsMissing) => "source gave up on a shot's rounds, slot",
            FaultCode::Answered(ErrorCode::OverflowDeadline) => "shot waited too long for a slot, slot",
            FaultCode::Answered(ErrorCode::DroppedOldest) => "oldest shot dropped for want of a slot, slot",
            FaultCode::Answered(ErrorCode::DroppedNew) => "newest shot dropped for want of a slot, slot",
            FaultCode::Answered(ErrorCode::SiloDied) => "unanswered when its silo died, slot",
            FaultCode::Answered(ErrorCode::PluginFailed) => "plugin reported an error, slot",
            FaultCode::Answered(ErrorCode::PluginArgument) => "plugin refused a shot as an invalid argument, slot",
            FaultCode::Answered(ErrorCode::PluginPanicked) => "plugin panicked, slot",
            FaultCode::Answered(ErrorCode::PluginPoisoned) => "plugin had panicked before, slot",
            FaultCode::Answered(ErrorCode::PluginNoRoom) => {
                "plugin asked for room for more mechanisms than there are, slot"
            }
            FaultCode::Answered(ErrorCode::PluginPastRoom) => "plugin wrote past the room for its answer, slot",
            FaultCode::Answered(ErrorCode::PluginNoMechanism) => "plugin named a mechanism that does not exist, slot",
            FaultCode::Answered(ErrorCode::PluginUnexplained) => {
                "plugin's mechanisms do not explain the syndrome, slot"
            }
            FaultCode::Answered(ErrorCode::PluginLate) => "plugin missed its time limit, slot",
            FaultCode::Answered(ErrorCode::PluginGone) => "plugin's process ended, slot",
            FaultCode::Answered(ErrorCode::DeadlineTooNear) => "deadline too near for any decoder, slot",
            FaultCode::LateCompletion => "completion after the answer, worker",
            FaultCode::WorkerQuarantined => "worker quarantined, worker",
            FaultCode::DeviceLost => "device lost, launches",
            FaultCode::DeviceRecovered => "device recovered, launches",
            FaultCode::RoleDied => "role died, thread",
            FaultCode::InputBroken => "input broke off, shots read",
            FaultCode::Duplicate => "sequence answered twice, sequence",
            FaultCode::PinFailed => "thread could not be pinned, core",
            FaultCode::HotAllocation => "hot thread called the allocator, thread",
            FaultCode::AffinityLost => "hot thread ran on another core, core",
            FaultCode::UtcStepped => "UTC was set, by ns",
            FaultCode::CounterStepped => "counter jumped against monotonic time, by ns",
            FaultCode::RequestsMissing => "requests of a CUDA-Q client missing, address and port",
        }
    }
}

/// Outcome of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFate {
    /// Nothing is injected.
    Sound,
    /// Fails without running.
    NotStarted,
    /// Reports an error; runs if `runs`.
    Unknown {
        /// Whether the graph runs.
        runs: bool,
    },
    /// Never completes.
    NeverReady,
    /// Completes late.
    LateReady,
    /// Completes inside the launch.
    InsideLaunch,
    /// Loses the whole device.
    LosesDevice,
}

/// Seeded draws at the injection points of one role.
#[derive(Clone, Debug)]
pub struct Injector {
    faults: Faults,
    random: Xoshiro256PlusPlus,
    launches: u64,
}

impl Injector {
    /// Draws determined by the seed of `faults` and by `role`, so that two roles do not draw alike.
    pub fn new(faults: &Faults, role: u64) -> Injector {
        let random = Xoshiro256PlusPlus::seed_from_u64(faults.seed ^ role.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Injector { faults: faults.clone(), random, launches: 0 }
    }

    /// A uniform number in 0..1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws the fate of the next launch.
    pub fn launch(&mut self) -> LaunchFate {
        self.launches += 1;
        if self.faults.lose_device_every.is_some_and(|every| self.launches.is_multiple_of(every)) {
            return LaunchFate::LosesDevice;
        }
        let mut draw = self.uniform();
        let odds = &self.faults;
        let fates = [
            (odds.not_started, LaunchFate::NotStarted),
            (odds.unknown / 2.0, LaunchFate::Unknown { runs: true }),
            (odds.unknown / 2.0, LaunchFate::Unknown { runs: false }),
            (odds.never_ready, LaunchFate::NeverReady),
            (odds.late_ready, LaunchFate::LateReady),
            (odds.inside_launch, LaunchFate::InsideLaunch),
        ];
        for (probability, fate) in fates {
            if draw < probability {
                return fate;
            }
            draw -= probability;
        }
        LaunchFate::Sound
    }

    /// Whether the next decode panics.
    #[inline]
    pub fn decode_panics(&mut self) -> bool {
        self.faults.decoder_panic > 0.0 && self.uniform() < self.faults.decoder_panic
    }

    /// Whether the next shot gets a bad address.
    #[inline]
    pub fn address_is_bad(&mut self) -> bool {
        self.faults.bad_address > 0.0 && self.uniform() < self.faults.bad_address
    }
}

#[cfg(test)]
mod tests {
    use super::{FaultCode, Injector, LaunchFate};
    use crate::profile::Faults;

    #[test]
    fn rows_are_the_places_in_the_list() {
        for (row, code) in FaultCode::ALL.into_iter().enumerate() {
            assert_eq!(code.row(), row);
        }
    }

    #[test]
    fn equal_seeds_draw_equal_fates_and_every_fate_occurs() {
        let odds = Faults {
            not_started: 0.1,
            unknown: 0.1,
            never_ready: 0.1,
            late_ready: 0.1,
            inside_launch: 0.1,
            lose_device_every: Some(100),
            ..Faults::default()
        };
        let fates = |seed| {
            let mut injector = Injector::new(&Faults { seed, ..odds.clone() }, 1);
            (0..1_000).map(|_| injector.launch()).collect::<Vec<_>>()
        };
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
        for fate in [
            LaunchFate::Sound,
            LaunchFate::NotStarted,
            LaunchFate::Unknown { runs: true },
            LaunchFate::Unknown { runs: false },
            LaunchFate::NeverReady,
            LaunchFate::LateReady,
            LaunchFate::InsideLaunch,
            LaunchFate::LosesDevice,
        ] {
            assert!(fates(7).contains(&fate), "{fate:?}");
        }
    }
}
