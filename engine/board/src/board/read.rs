//! From the board's words to a [`Snapshot`].
//!
//! Owns the derivation of states, ages and depths. Runs on the reader's thread; Relaxed loads throughout, because every
//! word is meaningful on its own. Bounds: the shape. Never trusts a count it reads further than the shape allows.
//!
//! Longer than 500 lines, because it has a short function for each part of the snapshot, over one reader's fields.

pub(super) mod arbiter;
mod control;
mod graph;
mod lives;
pub(super) mod moves;
mod placement;
mod sources;

use super::alarms::{AlarmRecord, Site};
use super::histogram::HistogramBlock;
use super::layout::{ANSWER_READERS_MAX, ERRORS_MAX, NOTES_MAX, ROLES_MAX, Stage};
use super::snapshot::{
    AlarmView, ClockView, Counters, DeviceState, EngineView, ErrorCount, FaultView, GpuView, HealthVerdict,
    InputHealthView, LogView, MemoryView, PairView, PriorityView, RecorderState, RecorderView, RingView, RivalView,
    RoleView, SiloView, SlotState, SlotTimes, SlotView, Snapshot, StageView, StepView, StreamView, ThreadState,
    ThreadView, WorkerState, WorkerView,
};
use super::{Board, SlotStamps, get};
use crate::clock::Clock;
use crate::fault::FaultCode;
use crate::profile::{Priority, RoleKind};
use crate::units::Ticks;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::spin::{Phase, SpinOrder};
use std::sync::atomic::AtomicU64;

impl Board {
    /// The alarms alone, by `clock`, which must be the engine's.
    #[must_use]
    pub fn alarm_views(&self, clock: &Clock) -> Vec<AlarmView> {
        Reader { board: self, clock, now: clock.ticks() }.alarms()
    }

    /// The engine as it is now, by `clock`, which must be the engine's.
    #[must_use]
    pub fn snapshot(&self, clock: &Clock) -> Snapshot {
        let reader = Reader { board: self, clock, now: clock.ticks() };
        Snapshot {
            at_ns: clock.since_start(reader.now).0,
            engine: reader.engine(),
            threads: (0..self.shape().threads as usize).map(|index| reader.thread(index)).collect(),
            silos: (0..self.shape().silos as usize).map(|silo| reader.silo(silo)).collect(),
            streams: (0..self.shape().streams as usize).map(|stream| reader.stream(stream)).collect(),
            faults: reader.faults(),
            clock: reader.clock(),
            log: reader.log(),
            alarms: reader.alarms(),
            recorder: reader.recorder(),
            sources: reader.sources(),
            control: reader.control(),
            placement: reader.placement(),
        }
    }
}

struct Reader<'a> {
    board: &'a Board,
    clock: &'a Clock,
    now: Ticks,
}

impl Reader<'_> {
    fn age_ns(&self, since: &AtomicU64) -> u64 {
        self.clock.rate().nanos(self.now.since(Ticks(get(since)))).0
    }

    fn span_ns(&self, ticks: u64) -> u64 {
        self.clock.rate().nanos(Ticks(ticks)).0
    }

    /// Nanoseconds since start; 0 for a word that was never written.
    fn at_ns(&self, ticks: u64) -> u64 {
        if ticks == 0 { 0 } else { self.clock.since_start(Ticks(ticks)).0.max(1) }
    }

    fn engine(&self) -> EngineView {
        let header = self.board.header();
        let rate_hz = f64::from_bits(get(&header.rate_hz_bits));
        let spin = SpinOrder::unpack(get(&header.spin_requested));
        let notes = (get(&header.notes_count) as usize).min(NOTES_MAX);
        EngineView {
            pid: get(&header.pid) as u32,
            version: header.version.read(),
            phase: Phase::from_code(get(&header.phase)),
            started_utc_s: get(&header.started_utc_s),
            profile: header.profile.read(),
            label: header.label.read(),
            input: header.input.read(),
            device: header.device.read(),
            decoder: header.decoder.read(),
            predecoder: header.predecoder.read(),
            detectors: get(&header.detectors) as u32,
            observables: get(&header.observables) as u32,
            rate_hz: (rate_hz > 0.0).then_some(rate_hz),
            rate_origin: header.rate_origin.read(),
            late_ns: get(&header.late_ns),
            heartbeat_limit_ns: get(&header.heartbeat_limit_ns),
            spin_requested: spin.policy,
            spin_epoch_requested: spin.epoch,
            board_path: self.board.path().map(|path| path.display().to_string()),
            silo_memory_bytes: get(&header.arenas_touched_bytes),
            silo_memory_locked_bytes: get(&header.arenas_locked_bytes),
            notes: header.notes[..notes].iter().map(super::Text::read).collect(),
        }
    }

    fn thread(&self, index: usize) -> ThreadView {
        let block = self.board.thread(index);
        let acknowledged = SpinOrder::unpack(get(&block.policy_acknowledged));
        let roles = (get(&block.roles_count) as usize).min(ROLES_MAX);
        let state = match get(&block.state) {
            0 => ThreadState::Starting,
            1 => ThreadState::Running,
            3 => ThreadState::Panicked,
            _ => ThreadState::Finished,
        };
        let refusal = block.refusal.read();
        ThreadView {
            name: block.name.read(),
            tid: get(&block.tid) as u32,
            roles: block.roles[..roles].iter().map(role).collect(),
            core: get(&block.planned_core).checked_sub(1).map(|core| core as u32),
            pinned: get(&block.pinned) != 0,
            exclusive: get(&block.planned_exclusive) != 0,
            policy_requested: SpinOrder::unpack(get(&block.policy_requested)).policy,
            policy_acknowledged: acknowledged.policy,
            epoch_acknowledged: acknowledged.epoch,
            policy_refusal: (!refusal.is_empty()).then_some(refusal),
            priority: priority(block),
            contended_by: self.rival(block),
            heartbeat_age_ns: if state == ThreadState::Running { self.age_ns(&block.heartbeat) } else { 0 },
            frames: get(&block.frames),
            frames_busy: get(&block.frames_busy),
            items: get(&block.items),
            busy_ns: self.span_ns(get(&block.busy_ticks)),
            yields: get(&block.yields),
            stage: get(&block.stage).checked_sub(1).and_then(|code| RoleKind::ALL.get(code as usize).copied()),
            frame_gap: block.frame_gap.snapshot(),
            state,
            panic_site: match get(&block.panic_line) {
                0 => None,
                line => Some(format!("{}:{line}", block.panic_file.read())),
            },
            memory: MemoryView {
                allocations: get(&block.allocations).checked_sub(1),
                lent: get(&block.allocations_lent),
                first_site: Some(block.allocation_site.read()).filter(|site| !site.is_empty()),
                touched_bytes: get(&block.arena_touched_bytes),
                locked_bytes: get(&block.arena_locked_bytes),
            },
            frames_elsewhere: get(&block.frames_elsewhere),
            events_dropped: get(&block.events_dropped),
        }
    }

    fn rival(&self, block: &super::ThreadBlock) -> Option<RivalView> {
        let pid = get(&block.rival_pid);
        (pid != 0).then(|| RivalView {
            pid: pid as u32,
            user: block.rival_user.read(),
            command: block.rival_command.read(),
            waited_ns: get(&block.rival_waited_ns),
            ran_ns: get(&block.rival_ran_ns),
            span_ns: get(&block.rival_span_ns),
            age_ns: self.age_ns(&block.rival_seen),
            looks: get(&block.rival_looks),
        })
    }

    fn silo(&self, silo: usize) -> SiloView {
        let poll = self.board.poll(silo);
        let latency = self.board.latency(silo);
        let slots: Vec<SlotView> = self.board.slots(silo).iter().map(|stamps| self.slot(stamps)).collect();
        let time =
            |(stage, histogram): (Stage, &HistogramBlock)| StageView { name: stage.name(), time: histogram.snapshot() };
        SiloView {
            id: silo as u32,
            device: match get(&self.board.dispatch(silo).device_state) {
                0 => DeviceState::Online,
                1 => DeviceState::Lost,
                _ => DeviceState::Recovering,
            },
            counters: self.counters(silo),
            errors: self.errors(silo),
            rings: self.rings(silo, &slots),
            idle_mask: get(&poll.idle_mask),
            workers: (0..self.board.shape().workers as usize).map(|w| self.worker(silo, w)).collect(),
            slots,
            stages: Stage::ALL.into_iter().zip(&latency.stages).map(time).collect(),
            latency: latency.total.snapshot(),
            latency_from_submit: latency.from_submit.snapshot(),
            timer_lateness: poll.timer_lateness.snapshot(),
            graph: self.graph(silo),
            arbiter: self.arbiter(silo),
            moves: self.moves(silo),
            gpu: self.gpu(silo),
            overflow: self.overflow(silo),
            life: self.life(silo),
        }
    }

    fn gpu(&self, silo: usize) -> Option<GpuView> {
        let block = self.board.device(silo);
        let visible = |word| Some(get(word)).filter(|value| *value != 0);
        (get(&block.is_gpu) != 0).then(|| GpuView {
            launches: get(&block.launches),
            launch_errors: get(&block.launch_errors),
            error_code: get(&block.error_code),
            launch_ns: block.launch.snapshot(),
            graph_ns: block.graph.snapshot(),
            completion_to_claim_ns: block.transit.snapshot(),
            completion_to_claim_error_ns: get(&block.transit_error_ns),
            renewals: get(&block.renewals),
            renewals_failed: get(&block.renewals_failed),
            memory_free_bytes: visible(&block.memory_total_bytes).map(|_| get(&block.memory_free_bytes)),
            memory_total_bytes: visible(&block.memory_total_bytes),
            clock_sm_mhz: visible(&block.clock_sm_mhz),
            clock_memory_mhz: visible(&block.clock_memory_mhz),
        })
    }

    fn counters(&self, silo: usize) -> Counters {
        let (feed, dispatch) = (self.board.feed(silo), self.board.dispatch(silo));
        let (device, poll, harvest) = (self.board.device(silo), self.board.poll(silo), self.board.harvest(silo));
        let decoders = || (0..self.board.shape().decoders as usize).map(|index| self.board.decode(silo, index));
        let decode_claims_lost: u64 = decoders().map(|block| get(&block.claims_lost)).sum();
        let graph_claims_lost = get(&self.board.graph(silo).claims_lost);
        Counters {
            scheduled: get(&feed.scheduled),
            submitted: get(&feed.submitted),
            dispatched: get(&dispatch.dispatched),
            launched: get(&dispatch.launched),
            completed: get(&poll.completed),
            decoding: decoders().map(|block| get(&block.decoding)).sum(),
            answered: get(&harvest.answered),
            errored: get(&harvest.errored),
            late: get(&harvest.late),
            duplicated: get(&harvest.duplicated),
            out_of_order: get(&harvest.out_of_order),
            late_completions: get(&poll.late_completions),
            claims_lost: get(&dispatch.claims_lost) + get(&poll.claims_lost) + graph_claims_lost + decode_claims_lost,
            quarantined: get(&dispatch.quarantined) + get(&poll.quarantined),
            device_losses: get(&dispatch.device_losses),
            cpu_fallbacks: get(&dispatch.cpu_fallbacks),
            by_rounds: get(&dispatch.by_rounds),
            worker_waits: get(&dispatch.worker_waits),
            slot_waits: get(&feed.slot_waits),
            shots_with_observables: get(&harvest.judged),
            logical_errors: get(&harvest.logical_errors),
            predecoded_events: get(&device.predecoded_events)
                + decoders().map(|block| get(&block.predecoded_events)).sum::<u64>(),
            dispatch_ns: self.span_ns(get(&dispatch.busy_ticks)),
            joint_read: get(&harvest.joint_read),
            joint_consistent: get(&harvest.joint_consistent),
            joint_refused: get(&harvest.joint_refused),
        }
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
        let mut rings = vec![
            ring("rx", capacity, written.saturating_sub(taken), written, get(&feed.slot_waits)),
            ring("ready", get(&poll.ready_capacity), get(&poll.ready_depth), get(&poll.ready_pushed), 0),
            ring("tx", capacity, completed, get(&harvest.position) + completed, 0),
        ];
        if get(&harvest.sink_capacity) > 0 {
            let readers = (get(&harvest.sink_readers) as usize).min(ANSWER_READERS_MAX);
            let lag = |word: &AtomicU64| Some(get(word)).filter(|lag| *lag != u64::MAX);
            let lags: Vec<Option<u64>> = harvest.sink_lags[..readers].iter().map(lag).collect();
            // As full as its slowest reader leaves it.
            let depth = lags.iter().flatten().copied().max().unwrap_or(0);
            let (capacity, refusals) = (get(&harvest.sink_capacity), get(&harvest.sink_waits));
            rings.push(RingView { lags, ..ring("answers", capacity, depth, get(&harvest.position), refusals) });
        }
        rings
    }

    fn worker(&self, silo: usize, w: usize) -> WorkerView {
        let poll = self.board.poll(silo);
        let word = get(&poll.worker_words[w]);
        let state = match word & 3 {
            0 => WorkerState::Free,
            1 => WorkerState::Running,
            2 => WorkerState::Claimed,
            _ => WorkerState::Quarantined,
        };
        WorkerView {
            state,
            generation: word >> 2,
            since_ns: self.age_ns(&poll.worker_since[w]),
            slot: get(&poll.worker_slots[w]) as u32,
            launches: word >> 2,
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
            since_ns: self.clock.rate().nanos(self.now.since(Ticks(since))).0,
            stream: get(&stamps.stream) as u32,
            sequence: get(&stamps.sequence),
            worker: if of_this_shot(dispatched) == 0 {
                None
            } else {
                get(&stamps.worker).checked_sub(1).map(|worker| worker as u8)
            },
            times: SlotTimes {
                scheduled_ns: self.at_ns(get(&stamps.scheduled)),
                submitted_ns: self.at_ns(submitted),
                dispatched_ns: self.at_ns(of_this_shot(dispatched)),
                completed_ns: self.at_ns(of_this_shot(completed)),
                decoding_ns: self.at_ns(of_this_shot(decoding)),
                answered_ns: self.at_ns(of_this_shot(answered)),
                harvested_ns: self.at_ns(of_this_shot(harvested)),
            },
        }
    }

    fn stream(&self, stream: usize) -> StreamView {
        let (feed, harvest) = (self.board.stream_feed(stream), self.board.stream_harvest(stream));
        let hottest = feed.hottest.iter().zip(&feed.hottest_bits).filter_map(|(detector, fraction)| {
            Some((get(detector).checked_sub(1)? as u32, f64::from_bits(get(fraction))))
        });
        StreamView {
            id: stream as u32,
            silo: get(&feed.silo) as u32,
            answered: get(&harvest.answered),
            errors: get(&harvest.errors),
            late: get(&harvest.late),
            shots_with_observables: get(&harvest.judged),
            logical_errors: get(&harvest.logical_errors),
            frame: get(&harvest.frame),
            latency: harvest.latency.snapshot(),
            input_health: InputHealthView {
                verdict: HealthVerdict::from_code(get(&feed.verdict)),
                shots_examined: get(&feed.examined),
                fraction_found: f64::from_bits(get(&feed.found_bits)),
                fraction_expected: f64::from_bits(get(&feed.expected_bits)),
                hottest: hottest.collect(),
            },
            overflow: placement::outcomes(&feed.overflow),
        }
    }

    fn clock(&self) -> ClockView {
        let block = self.board.clock();
        let degraded = block.degraded.read();
        let last = |kind: usize| {
            let (by_ns, at_ns) = (get(&block.step_ns[kind]).cast_signed(), self.at_ns(get(&block.step_ticks[kind])));
            (get(&block.steps[kind]) > 0).then_some(StepView { by_ns, at_ns })
        };
        ClockView {
            source: block.source.read(),
            degraded: (!degraded.is_empty()).then_some(degraded),
            pairs: get(&block.pairs),
            pair: block.pair().map(|pair| PairView {
                at_ns: self.clock.since_start(pair.ticks).0,
                monotonic_ns: pair.monotonic.0,
                utc_ns: pair.utc.0,
                width_ns: self.span_ns(pair.width.0),
            }),
            utc_steps: get(&block.steps[0]),
            utc_step_last: last(0),
            counter_steps: get(&block.steps[1]),
            counter_step_last: last(1),
        }
    }

    fn log(&self) -> LogView {
        let block = self.board.log();
        let threads = 0..self.board.shape().threads as usize;
        let dropped = threads.map(|thread| get(&self.board.thread(thread).events_dropped)).sum();
        LogView { written: get(&block.written), dropped, unkept: get(&block.unkept) }
    }

    fn alarms(&self) -> Vec<AlarmView> {
        let records = self.board.alarms().iter().filter_map(super::AlarmRow::read);
        let mut alarms: Vec<AlarmView> = records.map(|record| self.alarm(record)).collect();
        alarms.sort_by_key(AlarmView::rank);
        alarms
    }

    fn alarm(&self, record: AlarmRecord) -> AlarmView {
        let at = |ticks: Ticks| Some(self.clock.since_start(ticks).0.max(1)).filter(|_| ticks.0 != 0);
        let end = at(record.ended).unwrap_or_else(|| self.clock.since_start(self.now).0);
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
            cause: record.cause,
            sentence: record.sentence,
            evidence: record.evidence.lines().map(str::to_owned).collect(),
            stack: record.stack.lines().map(str::to_owned).collect(),
            culprit: Some(record.culprit).filter(|culprit| !culprit.is_empty()),
            runbook: record.runbook,
        }
    }

    fn recorder(&self) -> RecorderView {
        let block = self.board.recorder();
        let words = |text: String| Some(text).filter(|text| !text.is_empty());
        RecorderView {
            state: RecorderState::from_code(get(&block.state)),
            frames: get(&block.frames),
            bytes: get(&block.bytes),
            samples: get(&block.samples),
            bursts: get(&block.bursts),
            step_ns_max: get(&block.step_ns_max),
            step_ns: get(&block.step_ns),
            trouble: words(block.trouble.read()),
            run_dir: words(block.run_dir.read()),
        }
    }

    fn faults(&self) -> Vec<FaultView> {
        let mut faults = Vec::new();
        for silo in 0..self.board.shape().silos as usize {
            for (row, code) in self.board.faults(silo).iter().zip(FaultCode::ALL) {
                if get(&row.count) > 0 {
                    faults.push(FaultView {
                        code: code.number(),
                        name: code.name().to_string(),
                        silo: Some(silo as u32),
                        count: get(&row.count),
                        first_ns: self.at_ns(get(&row.first_ticks)),
                        last_ns: self.at_ns(get(&row.last_ticks)),
                        detail: get(&row.detail),
                    });
                }
            }
        }
        faults.sort_by_key(|fault| fault.first_ns);
        faults
    }
}

fn priority(block: &super::ThreadBlock) -> PriorityView {
    let named = |word: &AtomicU64| Priority::unpack(get(word)).map(|priority| priority.to_string());
    let refusal = block.priority_refusal.read();
    PriorityView {
        asked: named(&block.priority_asked).unwrap_or_default(),
        found: named(&block.priority_found),
        why_not: (!refusal.is_empty()).then_some(refusal),
    }
}

fn role(block: &super::RoleBlock) -> RoleView {
    let identity = get(&block.identity);
    RoleView {
        kind: RoleKind::ALL[(identity & 0xff) as usize % RoleKind::ALL.len()],
        silo: (identity >> 8 & 0xffff_ffff) as u32,
        index: (identity >> 40) as u32,
        items: get(&block.items),
        died_frame: get(&block.died).checked_sub(1),
    }
}
