//! Lanes: how whole shots reach a decode worker, and how results come back to the graph role.
//!
//! Owns two line rings for each decode worker, one each way. The graph role has [`DecodeLanes`],
//! each decode role its [`WorkerLane`]. Bounds: [`LANE_DEPTH_MAX`] shots on their way to a worker,
//! [`RESULTS_MAX`] results on their way back. Never waits: a full lane keeps the shot with the
//! graph role, and a worker without room for a result takes no work. Edges: the ring's, L1 and L2.
//!
//! # Why lanes beside the task graph
//! Decodes of whole shots do not depend on each other, and the graph role commits them in stream
//! order. A task graph would add a record, a page word and an exchange for each shot, and order
//! nothing. It runs what depends on something: windows of a shot and joint readouts.
//!
//! # Why a line carries up to three words of the shot
//! A worker on another core then reads one line for each shot and writes one line back. A wider
//! shot stays in its job buffer.
//!
//! # Why every bit pattern of a line is a value
//! If a field has unused patterns, as a `bool` has, `Option` of a line takes one of them for `None`.
//! The compiler then copies a popped line in pieces that overlap, and the load of each piece waits
//! until the stores of those before it are done.

use super::AnsweredBy;
use crate::profile::ShotOrder;
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::ring::line::{Consumer, Producer, channel};
use pinwheel_edge::slot::table::Geometry;
use pinwheel_edge::slot::word::ErrorCode;

/// Most words of a shot, or of its observables, that travel in a line.
pub const LINE_WORDS: usize = 3;
/// Most shots on their way to one worker.
pub const LANE_DEPTH_MAX: u64 = 64;
/// Least shots on their way to one worker: one that it decodes, and the next.
const LANE_DEPTH_MIN: u64 = 2;
/// With several workers, or with deadlines: time of decoding that waits at each, so that a shot waits
/// behind at most one long decode while other workers are free or its deadline is nearer.
const LANE_TIME: Nanos = Nanos(2_000);
/// Most results on their way back from one worker, of shots and of windows.
const RESULTS_MAX: usize = 128;
/// The longest time to a deadline in a line, ticks: about a second, and no decode takes that long.
pub const LEFT_MAX: u32 = u32::MAX - 1;
/// In place of a time to a deadline: the shot has none.
pub const NO_DEADLINE: u32 = u32::MAX;

/// A whole shot on its way to a decode worker.
#[derive(Clone, Copy, Debug)]
pub struct ShotLine {
    /// Number of its job buffer.
    pub job: u32,
    /// Its stream.
    pub stream: u32,
    /// Generation of its ticket.
    pub generation: u64,
    /// Its slot.
    pub slot: u16,
    /// 1: the words are the raw syndrome, and the decoder predecodes first. Otherwise 0.
    pub raw: u16,
    /// Ticks from `assigned` until its decode has to end for its deadline, at most [`LEFT_MAX`]; [`NO_DEADLINE`]: it has
    /// none.
    pub left: u32,
    /// The graph role's time when it assigned the shot.
    pub assigned: Ticks,
    /// Its detector words and then the observable words already flipped, if they fit
    /// ([`fits_line`]).
    pub words: [u64; LINE_WORDS],
}

/// The result of a decode on its way back to the graph role.
#[derive(Clone, Copy, Debug)]
pub struct ResultLine {
    /// Number of its job buffer.
    pub job: u32,
    /// What decoded it.
    by: AnsweredBy,
    /// The number of the error, if decoding failed; otherwise 0.
    error: u16,
    /// When the decode began.
    pub began: Ticks,
    /// When it ended.
    pub ended: Ticks,
    /// The observables, if they fit; wider ones are in the job buffer.
    pub observables: [u64; LINE_WORDS],
}

// `Option` needs a tag of its own.
const _: () = assert!(size_of::<Option<ShotLine>>() > size_of::<ShotLine>());
const _: () = assert!(size_of::<Option<ResultLine>>() > size_of::<ResultLine>());

impl ResultLine {
    /// The result of `job`'s decode, which took from `began` to `ended`.
    #[inline]
    pub fn new(
        job: u32,
        result: Result<AnsweredBy, ErrorCode>,
        (began, ended): (Ticks, Ticks),
        observables: [u64; LINE_WORDS],
    ) -> ResultLine {
        let (by, error) = match result {
            Ok(by) => (by, 0),
            Err(code) => (AnsweredBy::default(), code as u16),
        };
        ResultLine { job, by, error, began, ended, observables }
    }

    /// What decoded it, or the error, if decoding failed.
    #[inline]
    pub fn result(&self) -> Result<AnsweredBy, ErrorCode> {
        match self.error {
            0 => Ok(self.by),
            number => Err(ErrorCode::from_number(number).unwrap_or(ErrorCode::DecoderPanic)),
        }
    }
}

impl ShotLine {
    /// Whether the words are the raw syndrome.
    #[inline]
    pub fn is_raw(&self) -> bool {
        self.raw != 0
    }

    /// Ticks from `now` until its decode has to end; 0 after that. `None`: it has no deadline.
    #[inline]
    pub fn left_at(&self, now: Ticks) -> Option<u64> {
        (self.left != NO_DEADLINE).then(|| u64::from(self.left).saturating_sub(now.since(self.assigned).0))
    }
}

/// Whether a shot's detectors and observables travel in the line.
pub fn fits_line(geometry: Geometry) -> bool {
    (geometry.detector_words + geometry.observable_words) as usize <= LINE_WORDS
}

/// A decode worker's ends.
pub struct WorkerLane {
    /// Shots for this worker, oldest first.
    pub shots: Consumer<ShotLine>,
    /// Its results.
    pub results: Producer<ResultLine>,
}

/// One worker as the graph role sees it.
struct Lane {
    shots: Producer<ShotLine>,
    results: Consumer<ResultLine>,
    in_flight: u64,
    /// Mean time of a decode, in ticks: each result changes it by an eighth of the difference.
    mean: u64,
    /// Its worker has died and gets no shots.
    is_closed: bool,
}

/// The graph role's ends of all lanes.
pub struct DecodeLanes {
    lanes: Box<[Lane]>,
    /// [`LANE_TIME`] in ticks.
    lane_time: u64,
    /// Whether few shots wait in a lane although there is only one.
    is_short: bool,
    in_flight: u64,
}

impl DecodeLanes {
    /// Lanes for `workers` decode workers, and each worker's ends.
    pub fn new(workers: u32, order: ShotOrder, rate: TickRate) -> (DecodeLanes, Vec<WorkerLane>) {
        let mut ends = Vec::with_capacity(workers as usize);
        let lane = |_| {
            let ((shots, takes), (results, returns)) = (channel(LANE_DEPTH_MAX as usize), channel(RESULTS_MAX));
            ends.push(WorkerLane { shots: takes, results });
            Lane { shots, results: returns, in_flight: 0, mean: 0, is_closed: false }
        };
        let lanes = (0..workers).map(lane).collect();
        // A shot in a lane is no longer overtaken by one whose deadline is nearer.
        let is_short = workers > 1 || order == ShotOrder::Deadline;
        (DecodeLanes { lanes, lane_time: rate.ticks(LANE_TIME).0, is_short, in_flight: 0 }, ends)
    }

    /// The worker that gets the next shot: the one with the fewest in flight, if its lane has room.
    #[inline]
    pub fn free(&mut self) -> Option<usize> {
        let open = self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_closed);
        let (at, lane) = open.min_by_key(|(_, lane)| lane.in_flight)?;
        let (in_flight, mean) = (lane.in_flight, lane.mean);
        let has_room = lane.shots.room() > 0;
        let depth = match self.is_short {
            false => LANE_DEPTH_MAX,
            true => (self.lane_time / mean.max(1)).clamp(LANE_DEPTH_MIN, LANE_DEPTH_MAX),
        };
        (in_flight < depth && has_room).then_some(at)
    }

    /// Sends a shot to worker `at`, which [`DecodeLanes::free`] returned.
    ///
    /// # Panics
    /// If its lane is full.
    #[inline]
    pub fn assign(&mut self, at: usize, shot: ShotLine) {
        assert!(self.lanes[at].shots.push(shot).is_ok(), "the lane's room was checked");
        self.lanes[at].in_flight += 1;
        self.in_flight += 1;
    }

    /// Fetches the lines of the next results of worker `at`, at most `limit`, all at once.
    #[inline]
    pub fn fetch(&self, at: usize, limit: usize) {
        self.lanes[at].results.fetch(limit);
    }

    /// The next result of worker `at`, of a whole shot if `is_whole` says so of its job.
    #[inline]
    pub fn result(&mut self, at: usize, is_whole: impl FnOnce(u32) -> bool) -> Option<ResultLine> {
        let lane = &mut self.lanes[at];
        let result = lane.results.pop()?;
        if is_whole(result.job) {
            lane.in_flight -= 1;
            self.in_flight -= 1;
            let spent = result.ended.since(result.began).0;
            lane.mean = lane.mean - lane.mean / 8 + spent / 8;
        }
        Some(result)
    }

    /// Closes the lane of worker `at`, which has died: it gets no more shots, and those whose results
    /// are not back are no longer in flight. Returns whether the lane was open.
    pub fn close(&mut self, at: usize) -> bool {
        let lane = &mut self.lanes[at];
        self.in_flight -= std::mem::take(&mut lane.in_flight);
        !std::mem::replace(&mut lane.is_closed, true)
    }

    /// Whether the lane of worker `at` is closed.
    pub fn is_closed(&self, at: usize) -> bool {
        self.lanes[at].is_closed
    }

    /// Whether all lanes are closed: no worker is left.
    pub fn are_closed(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_closed)
    }

    /// Shots assigned to worker `at` whose results are not back.
    pub fn in_flight_of(&self, at: usize) -> u64 {
        self.lanes[at].in_flight
    }

    /// Shots assigned to any worker whose results are not back.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Most shots on their way to one worker.
    pub fn depth_max(&self) -> u64 {
        LANE_DEPTH_MAX
    }

    /// Number of workers.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Never: a silo has at least one decode worker.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        AnsweredBy, DecodeLanes, ErrorCode, LANE_DEPTH_MAX, LANE_DEPTH_MIN, LINE_WORDS, NO_DEADLINE, ResultLine,
        ShotLine, ShotOrder,
    };
    use crate::units::{TickRate, Ticks};

    fn shot(job: u32) -> ShotLine {
        let words = [0; LINE_WORDS];
        ShotLine { job, stream: 0, generation: 1, slot: 0, raw: 0, left: NO_DEADLINE, assigned: Ticks(0), words }
    }

    fn result(job: u32, ticks: u64) -> ResultLine {
        ResultLine::new(job, Ok(AnsweredBy::default()), (Ticks(0), Ticks(ticks)), [0; LINE_WORDS])
    }

    #[test]
    fn one_worker_gets_shots_until_its_lane_is_full() {
        let (mut lanes, mut ends) = DecodeLanes::new(1, ShotOrder::Fifo, TickRate::NANOS);
        for job in 0..LANE_DEPTH_MAX as u32 {
            assert_eq!(lanes.free(), Some(0));
            lanes.assign(0, shot(job));
        }
        assert_eq!(lanes.free(), None);
        for job in 0..LANE_DEPTH_MAX as u32 {
            assert_eq!(ends[0].shots.pop().map(|shot| shot.job), Some(job));
            assert!(ends[0].results.push(result(job, 10)).is_ok());
        }
        assert_eq!(lanes.in_flight(), LANE_DEPTH_MAX);
        while lanes.result(0, |_| true).is_some() {}
        assert_eq!((lanes.in_flight(), lanes.in_flight_of(0), lanes.free()), (0, 0, Some(0)));
    }

    #[test]
    fn the_worker_with_the_fewest_shots_gets_the_next_one() {
        let (mut lanes, mut ends) = DecodeLanes::new(2, ShotOrder::Fifo, TickRate::NANOS);
        for job in 0..4 {
            let at = lanes.free().unwrap_or(usize::MAX);
            assert_eq!(at, job as usize % 2);
            lanes.assign(at, shot(job));
        }
        let ended = ends[1].shots.pop().map_or(u32::MAX, |shot| shot.job);
        assert!(ends[1].results.push(result(ended, 100)).is_ok());
        assert!(lanes.result(1, |_| true).is_some());
        assert_eq!(lanes.free(), Some(1));
    }

    #[test]
    fn with_several_workers_few_long_decodes_wait_at_each() {
        let (mut lanes, mut ends) = DecodeLanes::new(2, ShotOrder::Fifo, TickRate::NANOS);
        // Results of 10 µs each: the mean exceeds the lane's time.
        for job in 0..64 {
            let at = lanes.free().unwrap_or(usize::MAX);
            lanes.assign(at, shot(job));
            let taken = ends[at].shots.pop().map_or(u32::MAX, |shot| shot.job);
            assert!(ends[at].results.push(result(taken, 10_000)).is_ok());
            assert!(lanes.result(at, |_| true).is_some());
        }
        let mut assigned = 0;
        while let Some(at) = lanes.free() {
            lanes.assign(at, shot(assigned));
            assigned += 1;
        }
        assert_eq!(u64::from(assigned), 2 * LANE_DEPTH_MIN);
    }

    #[test]
    fn a_closed_lane_gets_no_shots_and_has_none_in_flight() {
        let (mut lanes, _ends) = DecodeLanes::new(2, ShotOrder::Fifo, TickRate::NANOS);
        lanes.assign(0, shot(1));
        assert!(lanes.close(0) && !lanes.close(0));
        assert_eq!((lanes.in_flight(), lanes.free()), (0, Some(1)));
        lanes.assign(1, shot(1));
        assert_eq!(lanes.free(), Some(1));
        assert!(!lanes.are_closed() && lanes.close(1) && lanes.are_closed());
        assert_eq!(lanes.free(), None);
    }

    #[test]
    fn a_result_line_says_what_the_decode_came_to() {
        for result in ErrorCode::ALL.map(Err).into_iter().chain([Ok(AnsweredBy(0)), Ok(AnsweredBy(7))]) {
            let line = ResultLine::new(3, result, (Ticks(1), Ticks(2)), [4, 5, 6]);
            assert_eq!((line.job, line.result(), line.began, line.ended), (3, result, Ticks(1), Ticks(2)));
        }
    }

    #[test]
    fn results_of_windows_leave_the_count_of_whole_shots_alone() {
        let (mut lanes, mut ends) = DecodeLanes::new(1, ShotOrder::Fifo, TickRate::NANOS);
        lanes.assign(0, shot(1));
        assert!(ends[0].results.push(result(7, 10)).is_ok());
        assert!(lanes.result(0, |job| job == 1).is_some());
        assert_eq!(lanes.in_flight(), 1);
    }
}
