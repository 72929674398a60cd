//! Events: what a hot thread writes into the log when something changes.
//!
//! Owns the numbers and names; `record` renders the texts. Bounds: [`EventCode::ALL`], at most four
//! numbers each. Events are state changes and faults, never single shots, so the log does not grow
//! with the shot rate.

/// Kind of an event, and the meaning of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum EventCode {
    /// A thread entered a phase. Phase code.
    PhaseEntered = 1,
    /// A thread acknowledged a spin policy. Policy and epoch, packed.
    PolicyAcknowledged = 2,
    /// Poll quarantined a worker after a launch of unknown result. Silo, worker, slot, error number.
    WorkerQuarantined = 3,
    /// Poll quarantined a worker at its deadline. Silo, worker, slot, time since its launch in ns.
    LaunchDeadline = 4,
    /// A completion came after the answer. Silo, worker.
    LateCompletion = 5,
    /// Every worker is quarantined. Silo, launches so far.
    DeviceLost = 6,
    /// The device came back. Silo, launches so far.
    DeviceRecovered = 7,
    /// A role panicked. Role code, silo, frame, line.
    RoleDied = 8,
    /// A thread has finished its work in Drain. Frames so far.
    DrainFinished = 9,
    /// UTC was set. By how much in ns; 1 if backwards.
    UtcStepped = 10,
    /// The counter jumped. By how much in ns; 1 if backwards.
    CounterStepped = 11,
    /// The file is full. Its limit in bytes.
    LogFull = 12,
    /// The operator wrote a note. Its text is the note's.
    Note = 13,
    /// The disk refused the recording; it continues in memory.
    RecorderInMemory = 14,
    /// Earlier runs were removed to stay within the profile's limits. How many.
    RunsRemoved = 15,
    /// An action on the engine from outside its threads. User number, process; its text describes
    /// the action.
    Operated = 16,
    /// A stream moved to another silo. Stream, from, to, its pause in ns.
    StreamMoved = 20,
    /// A move was abandoned, and the stream stays. Stream, silo, destination, code of the stage.
    MoveGivenUp = 21,
}

pinwheel_edge::names! { EventCode:
    PhaseEntered "phase_entered",
    PolicyAcknowledged "policy_acknowledged",
    WorkerQuarantined "worker_quarantined",
    LaunchDeadline "launch_deadline",
    LateCompletion "late_completion",
    DeviceLost "device_lost",
    DeviceRecovered "device_recovered",
    RoleDied "role_died",
    DrainFinished "drain_finished",
    UtcStepped "utc_stepped",
    CounterStepped "counter_stepped",
    LogFull "log_full",
    Note "note",
    RecorderInMemory "recorder_in_memory",
    RunsRemoved "runs_removed",
    Operated "operated",
    StreamMoved "stream_moved",
    MoveGivenUp "move_given_up",
}

impl EventCode {
    /// Inverse of the number.
    pub fn from_number(number: u16) -> Option<EventCode> {
        EventCode::ALL.into_iter().find(|code| *code as u16 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::EventCode;

    #[test]
    fn each_number_decodes_to_its_code_and_unknown_numbers_to_none() {
        for code in EventCode::ALL {
            assert_eq!(EventCode::from_number(code as u16), Some(code));
        }
        assert_eq!(EventCode::from_number(0), None);
    }
}
