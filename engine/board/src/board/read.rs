//! From the board's words to a [`Snapshot`].
//!
//! Derives values from several blocks: a slot's state, depths, lists. Views of single blocks are
//! read by generated code and by the methods in this folder. Runs on the reader's thread with
//! Relaxed loads throughout, because every word is meaningful on its own. Bounds: the shape, also
//! for counts read from the board.

pub(super) mod arbiter;
mod decoders;
mod graph;
pub(super) mod moves;
mod placement;
mod shadow;
mod sources;
mod threads;

use super::alarms::{AlarmRecord, AlarmState, Site};
use super::histogram::HistogramBlock;
use super::layout::{ANSWER_READERS_MAX, ERRORS_MAX, Stage};
use super::reading::{Now, flag, fraction, number, one_less, sum};
use super::snapshot::{
    AlarmView, ArbiterView, ClockView, Consequence, ControlView, Counters, DeviceState, DriftView, EngineView,
    ErrorCount, FaultView, GpuView, GraphView, IncidentRoot, IncidentView, LifecycleView, LogView, MovesView,
    OverflowView, PairView, PlacementView, RecorderView, RingView, SiloDepthView, SiloView, SlotState, SlotTimes,
    SlotView, Snapshot, SourceStream, SourceView, StageView, StepView, StreamView, ThreadView, WorkerView,
};
use super::{Board, ClockBlock, SlotStamps, StreamFeedBlock, WHOLE_SHOT, get};
use crate::clock::Clock;
use crate::fault::FaultCode;
use crate::streams::SourceKind;
use crate::units::Ticks;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers;
use std::sync::atomic::AtomicU64;

impl Board {
    /// The alarms alone, by `clock`, which must be the engine's.
    pub fn alarm_views(&self, clock: &Clock) -> Vec<AlarmView> {
        Reader { board: self, now: &Now::by(clock) }.alarms().0
    }

    /// The engine as it is now, by `clock`, which must be the engine's.
    pub fn snapshot(&self, clock: &Clock) -> Snapshot {
        let now = &Now::by(clock);
        let reader = Reader { board: self, now };
        let silos = self.shape().silos as usize;
        let board_path = self.path().map(|path| path.display().to_string());
        let (alarms, incidents) = reader.alarms();
        let dropped = sum(self.threads().iter().map(|thread| get(&thread.events_dropped)));
        let depths = (0..).zip(0..silos).map(|(id, silo)| SiloDepthView::read(self.silo_depth(silo), now, id));
        Snapshot {
            at_ns: now.ns(),
            engine: EngineView::read(self.header(), now, board_path),
            threads: self.threads().iter().map(|thread| ThreadView::read(thread, now)).collect(),
            silos: (0..silos).map(|silo| reader.silo(silo)).collect(),
            streams: (0..self.shape().streams).map(|stream| reader.stream(stream)).collect(),
            faults: reader.faults(),
            clock: ClockView::read(self.clock(), now),
            log: LogView::read(self.log(), now, dropped),
            alarms,
            incidents,
            recorder: RecorderView::read(self.recorder(), now),
            sources: reader.sources(),
            control: ControlView::read(self.control(), now),
            placement: flag(&self.placement().is_on)
                .then(|| PlacementView::read(self.placement(), now, depths.collect())),
            shadow: reader.shadow(),
        }
    }
}

struct Reader<'a> {
    board: &'a Board,
    now: &'a Now<'a>,
}

impl Reader<'_> {
    fn silo(&self, silo: usize) -> SiloView {
        let (board, now) = (self.board, self.now);
        let poll = board.poll(silo);
        let latency = board.latency(silo);
        let gpu = board.device(silo);
        let arbiter = board.arbiter(silo);
        let mut slots: Vec<SlotView> = board.slots(silo).iter().map(|stamps| self.slot(stamps)).collect();
        self.note_decoding(silo, &mut slots);
        let time =
            |(stage, histogram): (Stage, &HistogramBlock)| StageView { name: stage.name(), time: histogram.snapshot() };
        SiloView {
            id: silo as u32,
            device: match get(&board.dispatch(silo).device_state) {
                0 => DeviceState::Online,
                1 => DeviceState::Lost,
                _ if get(&gpu.needs_restart_code) != 0 => DeviceState::Lost,
                _ => DeviceState::Recovering,
            },
            counters: self.counters(silo),
            errors: self.errors(silo),
            rings: self.rings(silo, &slots),
            idle_mask: get(&poll.idle_mask),
            workers: (0..board.shape().workers as usize).map(|w| self.worker(silo, w)).collect(),
            slots,
            stages: Stage::ALL.into_iter().zip(&latency.stages).map(time).collect(),
            latency: latency.total.snapshot(),
            latency_from_submit: latency.from_submit.snapshot(),
            timer_lateness: poll.timer_lateness.snapshot(),
            graph: GraphView::read(board.graph(silo), now, board.decoders(silo)),
            arbiter: flag(&arbiter.pages).then(|| ArbiterView::read(arbiter, now)),
            moves: (board.shape().silos > 1).then(|| MovesView::read(board.moves(silo), now)),
            gpu: flag(&gpu.is_gpu).then(|| GpuView::read(gpu, now)),
            overflow: OverflowView::read(board.feed(silo), now),
            lifecycle: LifecycleView::read(board.lifecycle(silo), now),
        }
    }

    fn counters(&self, silo: usize) -> Counters {
        let board = self.board;
        let dispatch_ns = self.now.span_ns(get(&board.dispatch(silo).busy_ticks));
        let mut counters = Counters { dispatch_ns, ..Counters::default() };
        board.feed(silo).count(&mut counters);
        board.dispatch(silo).count(&mut counters);
        board.device(silo).count(&mut counters);
        board.poll(silo).count(&mut counters);
        board.decoders(silo).iter().for_each(|decoder| decoder.count(&mut counters));
        board.graph(silo).count(&mut counters);
        board.harvest(silo).count(&mut counters);
        counters
    }

    fn errors(&self, silo: usize) -> Vec<ErrorCount> {
        let counts = &self.board.harvest(silo).errors;
        ErrorCode::ALL
            .into_iter()
            .filter(|code| (*code as usize) < ERRORS_MAX)
            .map(|code| ErrorCount {
                code: code as u16,
                name: code.name().to_string(),
                count: get(&counts[code as usize]),
            })
            .filter(|error| error.count > 0)
            .collect()
    }

    fn rings(&self, silo: usize, slots: &[SlotView]) -> Vec<RingView> {
        let (feed, dispatch) = (self.board.feed(silo), self.board.dispatch(silo));
        let (poll, harvest) = (self.board.poll(silo), self.board.harvest(silo));
        let capacity = u64::from(self.board.shape().slots);
        // Consumer's cursor first: the depth is then never negative, at worst a little too large.
        let (taken, written) = (get(&dispatch.position), get(&feed.position));
        let ring = |name: &str, capacity, depth: u64, pushed, refusals| RingView {
            name: name.to_string(),
            capacity,
            depth: depth.min(capacity),
            pushed,
            refusals,
            lags: Vec::new(),
        };
        let completed = slots.iter().filter(|slot| slot.state == SlotState::Completed).count() as u64;
        let (graph, decoders) = (self.board.graph(silo), self.board.decoders(silo));
        let lanes: Vec<u64> = decoders.iter().map(|decoder| get(&decoder.in_lane)).collect();
        let decoded = sum(decoders.iter().map(|decoder| get(&decoder.decoded)));
        let lane_shots = get(&graph.lane_shots);
        let passed_on = get(&dispatch.ready_pushed).saturating_add(get(&poll.ready_pushed));
        let mut rings = vec![
            ring("rx", capacity, written.saturating_sub(taken), written, get(&feed.slot_waits)),
            ring("ready", get(&poll.ready_capacity), get(&poll.ready_depth), passed_on, 0),
            ring(
                "lanes",
                lane_shots.saturating_mul(lanes.len() as u64),
                sum(lanes.iter().copied()),
                decoded,
                get(&graph.lane_waits),
            ),
            ring("tx", capacity, completed, get(&harvest.position).saturating_add(completed), 0),
        ];
        if get(&harvest.sink_capacity) > 0 {
            let readers = (get(&harvest.sink_readers) as usize).min(ANSWER_READERS_MAX);
            let lag = |word: &AtomicU64| Some(get(word)).filter(|lag| *lag != u64::MAX);
            let lags: Vec<Option<u64>> = harvest.sink_lags[..readers].iter().map(lag).collect();
            // Its slowest reader determines how full the ring is.
            let depth = lags.iter().flatten().copied().max().unwrap_or(0);
            let (capacity, refusals) = (get(&harvest.sink_capacity), get(&harvest.sink_waits));
            rings.push(RingView { lags, ..ring("answers", capacity, depth, get(&harvest.position), refusals) });
        }
        rings
    }

    fn worker(&self, silo: usize, w: usize) -> WorkerView {
        let poll = self.board.poll(silo);
        let (generation, state) = workers::unpack(get(&poll.worker_words[w]));
        WorkerView {
            state,
            generation,
            since_ns: self.now.age_ns(&poll.worker_since[w]),
            slot: number(&poll.worker_slots[w]),
            launches: generation,
        }
    }

    /// Adds when the decode of a whole shot began that a worker runs: its slot's stamp comes with the
    /// answer.
    fn note_decoding(&self, silo: usize, slots: &mut [SlotView]) {
        for decoder in self.board.decoders(silo) {
            let (what, slot, since) = (get(&decoder.task_what), get(&decoder.task), get(&decoder.task_since));
            let is_whole = what & u64::from(u32::MAX) == WHOLE_SHOT;
            let slot = slot.checked_sub(1).filter(|_| is_whole).and_then(|slot| slots.get_mut(slot as usize));
            if let Some(slot) = slot.filter(|slot| slot.state == SlotState::InFlight) {
                slot.times.decoding_ns = self.now.at_ns(since);
            }
        }
    }

    fn slot(&self, stamps: &SlotStamps) -> SlotView {
        // The last step first: if the feed rewrites the slot while we read, the later steps look older than the
        // submission and are dropped below.
        let harvested = get(&stamps.harvested);
        let (answered, decoding) = (get(&stamps.answered), get(&stamps.decoding));
        let (completed, dispatched) = (get(&stamps.completed), get(&stamps.dispatched));
        let submitted = get(&stamps.submitted);
        let of_this_shot = |ticks: u64| if ticks >= submitted { ticks } else { 0 };
        let (state, since) = if submitted == 0 {
            (SlotState::Idle, get(&self.board.header().start_ticks))
        } else if of_this_shot(harvested) != 0 {
            (SlotState::Idle, harvested)
        } else if of_this_shot(answered) != 0 {
            (SlotState::Completed, answered)
        } else if of_this_shot(dispatched) != 0 {
            (SlotState::InFlight, dispatched)
        } else {
            (SlotState::Written, submitted)
        };
        SlotView {
            state,
            since_ns: self.now.since_ns(since),
            stream: number(&stamps.stream),
            sequence: get(&stamps.sequence),
            worker: if of_this_shot(dispatched) == 0 {
                None
            } else {
                get(&stamps.worker).checked_sub(1).map(|worker| worker as u8)
            },
            times: SlotTimes {
                scheduled_ns: self.now.at_ns(get(&stamps.scheduled)),
                submitted_ns: self.now.at_ns(submitted),
                dispatched_ns: self.now.at_ns(of_this_shot(dispatched)),
                completed_ns: self.now.at_ns(of_this_shot(completed)),
                decoding_ns: self.now.at_ns(of_this_shot(decoding)),
                answered_ns: self.now.at_ns(of_this_shot(answered)),
                harvested_ns: self.now.at_ns(of_this_shot(harvested)),
            },
        }
    }

    fn stream(&self, id: u32) -> StreamView {
        let (feed, harvest) = (self.board.stream_feed(id as usize), self.board.stream_harvest(id as usize));
        StreamView::read(harvest, self.now, id, feed)
    }

    fn sources(&self) -> Vec<SourceView> {
        let block = self.board.source();
        let Some(kind) = SourceKind::from_code(get(&block.kind)) else { return Vec::new() };
        let stream = |id: u32| {
            let block = self.board.stream_source(id as usize);
            // The answers first: the lag is then never negative.
            let answered = get(&block.answered);
            SourceStream::read(block, self.now, id, get(&block.accepted), answered)
        };
        vec![SourceView::read(block, self.now, kind, (0..self.board.shape().streams).map(stream).collect())]
    }

    /// The alarms, and the incidents that they are parts of.
    fn alarms(&self) -> (Vec<AlarmView>, Vec<IncidentView>) {
        let records: Vec<AlarmRecord> = self.board.alarms().iter().filter_map(super::AlarmRow::read).collect();
        let roots = records.iter().filter(|record| record.incident == record.number);
        let mut incidents: Vec<IncidentView> = roots.map(|record| self.incident(record)).collect();
        let mut alarms: Vec<AlarmView> = records.into_iter().map(|record| self.alarm(record)).collect();
        alarms.sort_by_key(AlarmView::rank);
        incidents.sort_by_key(IncidentView::rank);
        (alarms, incidents)
    }

    fn incident(&self, root: &AlarmRecord) -> IncidentView {
        let at = |ticks: Ticks| Some(self.now.at_ns(ticks.0)).filter(|ns| *ns != 0);
        let (onset_ns, ended_ns) = (at(root.incident_onset).unwrap_or(0), at(root.incident_ended));
        IncidentView {
            number: root.number,
            root: IncidentRoot {
                rule: root.rule.name(),
                cause: root.cause.clone(),
                sentence: root.sentence.clone(),
                who: root.who.clone(),
            },
            consequences: Consequence::read(&root.consequences),
            severity: root.incident_severity,
            state: if ended_ns.is_some() { AlarmState::Ended } else { AlarmState::Active },
            onset_ns,
            ended_ns,
            duration_ns: ended_ns.unwrap_or_else(|| self.now.ns()).saturating_sub(onset_ns),
            shots_hit: root.shots_hit,
            count: root.count,
        }
    }

    fn alarm(&self, record: AlarmRecord) -> AlarmView {
        let at = |ticks: Ticks| Some(self.now.at_ns(ticks.0)).filter(|ns| *ns != 0);
        let end = at(record.ended).unwrap_or_else(|| self.now.ns());
        let thread = match record.site {
            Site::Thread(thread) if (thread as usize) < self.board.shape().threads as usize => {
                Some(self.board.thread(thread as usize).name.read())
            }
            _ => None,
        };
        let onset_ns = at(record.onset).unwrap_or(0);
        AlarmView {
            number: record.number,
            rule: record.rule.name(),
            site: record.site,
            thread,
            severity: record.severity,
            state: record.state,
            first_ns: at(record.first).unwrap_or(0),
            onset_ns,
            last_ns: at(record.last).unwrap_or(0),
            ended_ns: at(record.ended),
            duration_ns: end.saturating_sub(onset_ns),
            judged_after_ns: at(record.judged).map(|judged| judged.saturating_sub(onset_ns)),
            count: record.count,
            acknowledged_ns: at(record.acknowledged),
            snoozed_until_ns: at(record.snoozed_until),
            confidence: record.confidence,
            incident: record.incident,
            cause: record.cause,
            who: record.who,
            sentence: record.sentence,
            evidence: record.evidence.lines().map(str::to_owned).collect(),
            stack: record.stack.lines().map(str::to_owned).collect(),
            culprit: Some(record.culprit).filter(|culprit| !culprit.is_empty()),
            runbook: record.runbook,
        }
    }

    fn faults(&self) -> Vec<FaultView> {
        let mut faults = Vec::new();
        for silo in 0..self.board.shape().silos {
            let rows = self.board.faults(silo as usize).iter().zip(FaultCode::ALL);
            let counted = rows.filter(|(row, _)| get(&row.count) > 0);
            faults.extend(counted.map(|(row, kind)| FaultView::read(row, self.now, silo, kind)));
        }
        faults.sort_by_key(|fault| fault.first_ns);
        faults
    }
}

impl ClockBlock {
    pub(in crate::board) fn pair_view(&self, now: &Now<'_>) -> Option<PairView> {
        self.pair().map(|pair| PairView {
            at_ns: now.start_ns(pair.ticks),
            monotonic_ns: pair.monotonic.0,
            utc_ns: pair.utc.0,
            width_ns: now.span_ns(pair.width.0),
        })
    }

    /// The last step of UTC (0) or of the counter (1).
    pub(in crate::board) fn last_step(&self, kind: usize, now: &Now<'_>) -> Option<StepView> {
        let (by_ns, at_ns) = (get(&self.step_ns[kind]).cast_signed(), now.at_ns(get(&self.step_ticks[kind])));
        flag(&self.steps[kind]).then_some(StepView { by_ns, at_ns })
    }
}

impl StreamFeedBlock {
    pub(in crate::board) fn hottest(&self) -> Vec<(u32, f64)> {
        let both = self.hottest.iter().zip(&self.hottest_bits);
        both.filter_map(|(detector, share)| Some((one_less(detector)?, fraction(share)))).collect()
    }

    /// The detectors of the error that drifted, and how often it happens, divided by the model's.
    pub fn drifted(&self) -> Option<(u32, Option<u32>, f64)> {
        let drifted = get(&self.drifted);
        let detector = (drifted as u32).checked_sub(1)?;
        Some((detector, ((drifted >> 32) as u32).checked_sub(1), fraction(&self.drift_ratio_bits)))
    }

    pub(in crate::board) fn drift(&self, now: &Now<'_>) -> Option<DriftView> {
        let (detector, partner, ratio) = self.drifted()?;
        let (since_ns, shots) = (now.at_ns(get(&self.drift_since)), get(&self.drift_shots));
        Some(DriftView { detector, partner, ratio, since_ns, shots })
    }
}
