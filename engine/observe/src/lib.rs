//! What reads the board beside the console: the watchdog, which says why a thread stalled, and the recorder of runs.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_board::{board, clock, fault, files, profile, units};
use pinwheel_code::code;
use pinwheel_host::host;

pub mod stall;
pub mod record;
