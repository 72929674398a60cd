//! Messages to the watchdog from other threads.

use crate::profile::{AlarmRule, OnAlarm};
use crate::stall::AlarmRequest;

pub(in crate::engine) enum WatchdogMessage {
    /// The operator acknowledges or snoozes an alarm.
    Request(AlarmRequest),
    /// Alarm rules and alarm program of the profile now in force.
    Rules(Vec<AlarmRule>, OnAlarm),
}
