//! The report as text and the progress lines: every number with its unit and meaning.
//!
//! Pure: writes to the given output only. Lists at most [`STREAMS_SHOWN_MAX`] streams; the JSON has
//! all.

use super::{
    AbstentionReport, DeadlineReport, DecoderReport, GpuReport, JointReport, LifecycleReport, Report, merged, sum,
};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{DriftView, IncidentView, Snapshot, drift_sentence};
use pinwheel_engine::profile::{NO_DEVICE, Severity};
use pinwheel_engine::stall::verdict::times;
use pinwheel_engine::streams::HealthVerdict;
use std::fmt::{self, Display, Formatter};

/// Most streams that are listed individually; with more streams only alarms are shown.
const STREAMS_SHOWN_MAX: usize = 8;
/// Most unanswered shots that are listed; the JSON has all.
const UNANSWERED_SHOWN_MAX: usize = 8;

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate with three digits.
pub fn rate_text(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate < 0.1 => format!("{rate:.2e}"),
        rate => format!("{rate:.3}"),
    }
}

/// A share of shots, or a number per time: with three digits below ten, else whole.
pub fn short(rate: f64) -> String {
    if rate < 10.0 { rate_text(rate) } else { grouped(rate.round() as u64) }
}

/// A time in the largest fitting unit, with three digits.
pub fn duration_text(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

/// One line on the time between two snapshots.
pub fn progress_line(earlier: &Snapshot, now: &Snapshot) -> String {
    let (before, after) = (earlier.totals(), now.totals());
    let span_s = now.at_ns.saturating_sub(earlier.at_ns) as f64 / 1e9;
    let answered = after.answered.saturating_sub(before.answered);
    let rate = if span_s > 0.0 { answered as f64 / span_s } else { 0.0 };
    let latency = merged(now.silos.iter().map(|silo| &silo.latency));
    let recent = latency.since(&merged(earlier.silos.iter().map(|silo| &silo.latency)));
    let p99 = if recent.count() > 0 { duration_text(recent.quantile_ns(0.99)) } else { "-".to_owned() };
    format!(
        "{:>7.1} s  {:<8} {:>13} answered  {:>11}/s  p99 {p99:>8}  in flight {:>6}  late {}  errors {}",
        now.at_ns as f64 / 1e9,
        format!("{:?}", now.engine.phase),
        grouped(after.answered),
        short(rate),
        grouped(after.submitted.saturating_sub(after.answered)),
        grouped(after.late),
        grouped(after.errored),
    )
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.shots(f)?;
        self.gpus(f)?;
        self.latency(f)?;
        self.accuracy(f)?;
        self.decoders(f)?;
        self.shadow.as_ref().map_or(Ok(()), |shadow| shadow.write(f))?;
        self.joint(f)?;
        self.moves(f)?;
        self.lifecycles(f)?;
        self.input(f)?;
        self.sources(f)?;
        self.machine(f)?;
        self.clock(f)?;
        self.tail(f)
    }
}

/// Writes one line: name, value, meaning.
pub(super) fn line(f: &mut Formatter<'_>, what: &str, value: impl Display, meaning: impl Display) -> fmt::Result {
    let text = format!("  {what:<15} {value:>16}   {meaning}");
    writeln!(f, "{}", text.trim_end())
}

impl Report {
    fn head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Run of profile {}", self.profile)?;
        if let Some(file) = &self.profile_file {
            write!(f, " ({file})")?;
        }
        write!(f, " on {}", self.input)?;
        if !self.label.is_empty() {
            write!(f, ": {}", self.label)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "  detectors {}, observables {}; device {}, predecoder {}, decoder {}; model {} ({}); silos {}, streams {}",
            self.detectors,
            self.observables,
            self.device,
            self.predecoder,
            self.decoder,
            self.model.path,
            self.model.hash,
            self.silos,
            self.streams.len()
        )?;
        let sound = if self.exit_status == 1 { "something is wrong, see Alarms" } else { "sound" };
        writeln!(f, "  ended by {} after {} live: {sound}", self.ended_by, duration_text(self.elapsed_live_ns))
    }

    /// Activity of each silo's GPU.
    fn gpus(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for GpuReport { silo, gpu, launches_per_s } in &self.gpus {
            writeln!(f, "\nGPU of silo {silo}")?;
            let rate = launches_per_s.map_or_else(String::new, |rate| format!("{}/s", short(rate)));
            line(f, "launches", grouped(gpu.launches), rate)?;
            let within = duration_text(gpu.completion_to_claim_error_ns);
            let to_claim = format!("from the graph's end to poll's claim, sampled; clocks agree within {within}");
            for (what, times, meaning) in [
                ("launch call", &gpu.launch_ns, "time of a launch call in the dispatcher"),
                ("graph", &gpu.graph_ns, "measured by device events, sampled"),
                ("claimed", &gpu.completion_to_claim_ns, to_claim.as_str()),
            ] {
                if times.count() > 0 {
                    let (p50, p99) = (duration_text(times.quantile_ns(0.5)), duration_text(times.quantile_ns(0.99)));
                    line(f, what, p50, format_args!("p50, p99 {p99}; {meaning}"))?;
                }
            }
            if gpu.launch_errors > 0 {
                let meaning = format_args!("failed launch calls; last driver code {}", gpu.error_code);
                line(f, "errors", grouped(gpu.launch_errors), meaning)?;
            }
            if gpu.renewals.max(gpu.renewals_failed) > 0 {
                let meaning = format_args!("contexts recreated; {} attempts failed", gpu.renewals_failed);
                line(f, "renewals", grouped(gpu.renewals), meaning)?;
            }
            if gpu.needs_restart_code > 0 {
                line(
                    f,
                    "lost",
                    "for good",
                    format_args!("CUDA error {}; start the engine again", gpu.needs_restart_code),
                )?;
            }
            if let (Some(free), Some(total)) = (gpu.memory_free_bytes, gpu.memory_total_bytes) {
                line(
                    f,
                    "memory free",
                    format!("{} MiB", grouped(free >> 20)),
                    format_args!("of {} MiB", grouped(total >> 20)),
                )?;
            }
            if let (Some(sm), Some(memory)) = (gpu.clock_sm_mhz, gpu.clock_memory_mhz) {
                line(f, "clocks", format!("{sm} MHz"), format_args!("multiprocessors; memory {memory} MHz"))?;
            }
        }
        Ok(())
    }

    fn shots(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nShots")?;
        line(f, "submitted", grouped(self.submitted), "written into a slot")?;
        line(f, "answered", grouped(self.answered), "must equal submitted: each shot is answered exactly once")?;
        line(f, "lost", grouped(self.lost), "must be 0")?;
        line(f, "duplicated", grouped(self.duplicated), "must be 0")?;
        line(
            f,
            "out of order",
            grouped(self.out_of_order),
            "overtook an earlier shot of their stream; normal with several workers",
        )?;
        let deadline = duration_text(self.deadline_ns);
        line(
            f,
            "late",
            grouped(self.late),
            format_args!("answered more than {deadline} after their scheduled arrival"),
        )?;
        let DeadlineReport { missed, refused, rescued, rescued_wrong } = self.deadlines;
        if missed.max(rescued) > 0 {
            line(f, "missed", grouped(missed), "no answer by their deadline, errors included")?;
            line(f, "refused", grouped(refused), "of these: no decoder could have answered by the deadline")?;
            let wrong = format_args!("answered by the rescue decoder; {} of them wrong", grouped(rescued_wrong));
            line(f, "rescued", grouped(rescued), wrong)?;
        }
        for (code, count) in &self.errors {
            let name = self.error_names.get(code).map_or("", String::as_str);
            line(f, "errors", grouped(*count), format_args!("code {code}: {name}"))?;
        }
        if self.overflow.episodes > 0 {
            line(f, "rings full", grouped(self.overflow.episodes), self.overflow.text())?;
        }
        if let Some(rate) = self.throughput_per_s {
            let scheduled =
                self.rate_hz.map_or_else(|| "unpaced".to_owned(), |hz| format!("{}/s scheduled", short(hz)));
            line(f, "throughput", format!("{}/s", short(rate)), format_args!("{scheduled} ({})", self.rate_origin))?;
        }
        let behind = self.scheduled.saturating_sub(self.submitted);
        if behind > 0 {
            line(
                f,
                "never fed",
                grouped(behind),
                "no slot was free at their scheduled time: the rate is above the capacity",
            )?;
        }
        Ok(())
    }

    fn latency(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.latency_ns.count() == 0 {
            return Ok(());
        }
        writeln!(f, "\nTimes                    p50        p90        p99      p99.9        max")?;
        row(f, "latency", &self.latency_ns, "from scheduled arrival to answer")?;
        row(f, "from submission", &self.latency_from_submit_ns, "without the wait for a slot")?;
        for (name, time) in &self.stages {
            let meaning = match *name {
                "feed" => "scheduled to written: grows when the rate is above the capacity",
                "device" if self.device == NO_DEVICE => continue,
                "dispatch" if self.device == NO_DEVICE => "written to taken by dispatch",
                "dispatch" => "written to launched: grows when all workers are busy",
                "device" => "launched to ready flag claimed",
                "queue" => "waiting for a decoder: grows when decoding is the bottleneck",
                "decode" => "in the decoder",
                "harvest" => "answered to harvested",
                _ => "",
            };
            row(f, &format!("  {name}"), time, meaning)?;
        }
        if let Some(ns) = self.dispatch_ns_per_shot {
            writeln!(f, "  dispatch works {ns:.0} ns per shot (mean)")?;
        }
        Ok(())
    }

    fn accuracy(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rate = self.logical_error_rate.zip(self.logical_error_rate_ci95);
        if rate.is_some() || self.abstention.is_some() || self.predecoded_events > 0 {
            writeln!(f, "\nAccuracy")?;
        }
        if let Some((rate, interval)) = rate {
            self.error_rate(f, rate, interval)?;
        }
        self.abstention(f)?;
        if self.predecoded_events > 0 {
            line(f, "predecoded", grouped(self.predecoded_events), "detection events resolved before the decoder")?;
        }
        Ok(())
    }

    fn error_rate(&self, f: &mut Formatter<'_>, rate: f64, [low, high]: [f64; 2]) -> fmt::Result {
        line(f, "compared", grouped(self.shots_with_observables), "answers that have true observables")?;
        line(f, "logical errors", grouped(self.logical_errors), "answers that differ from the true observables")?;
        line(
            f,
            "rate",
            format!("{rate:.3e}"),
            format_args!("per shot; 95 % between {low:.3e} and {high:.3e} (Wilson)"),
        )?;
        // From the last deadline that nearly all shots miss to the first by which nearly all are there.
        let first = self.ler_at.iter().rposition(|at| at.rate > 0.99).unwrap_or(0);
        let in_the_end = self.ler_at.last().map_or(0.0, |last| last.rate);
        for at in self.ler_at.iter().skip(first) {
            let meaning = "of all shots: wrong, an error, or not there by then";
            line(f, &format!("by {}", duration_text(at.t_ns)), format!("{:.3e}", at.rate), meaning)?;
            if at.rate <= in_the_end * 1.01 {
                break;
            }
        }
        Ok(())
    }

    /// The answers that are not to be trusted, and the error rate of the others.
    fn abstention(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(abstention) = &self.abstention else { return Ok(()) };
        let AbstentionReport { below_db, abstained, share, logical_error_rate_ci95: interval, .. } = abstention;
        let told = format!("{:.2} % of the answers, of a gap below {below_db} dB", share.unwrap_or(0.0) * 100.0);
        line(f, "not trusted", grouped(*abstained), told)?;
        let Some((rate, [low, high])) = abstention.logical_error_rate.zip(*interval) else { return Ok(()) };
        let told = format!("per trusted shot; 95 % between {low:.3e} and {high:.3e} (Wilson)");
        line(f, "rate, trusted", format!("{rate:.3e}"), told)
    }

    /// Each decoder's answers, if there were several decoders.
    fn decoders(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.decoders.len() < 2 {
            return Ok(());
        }
        writeln!(f, "\nDecoders")?;
        for DecoderReport { name, shots, share, logical_error_rate, .. } in &self.decoders {
            let rate =
                logical_error_rate.map_or_else(String::new, |rate| format!("; {rate:.3e} logical errors a shot"));
            line(f, name, grouped(*shots), format_args!("answers, {:.1} %{rate}", share * 100.0))?;
        }
        Ok(())
    }

    fn joint(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let JointReport { read, consistent, refused } = self.joint;
        if read.max(refused) == 0 {
            return Ok(());
        }
        writeln!(f, "\nJoint readouts")?;
        line(f, "read", grouped(read), "two streams at one sequence number, under LOCK")?;
        line(f, "consistent", grouped(consistent), "equal to the answers of both streams; must equal read")?;
        line(
            f,
            "refused",
            grouped(refused),
            "a stream did not reach the sequence number, or its state was in another silo",
        )
    }

    fn moves(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(moves) = self.moves.as_ref().filter(|moves| moves.asked > 0) else { return Ok(()) };
        writeln!(f, "\nMoves of streams between silos")?;
        line(f, "made", grouped(moves.done), format_args!("of {} requested", grouped(moves.asked)))?;
        line(f, "abandoned", grouped(moves.failed), "the stream stayed in its silo")?;
        if moves.pause_ns.count() > 0 {
            let (half, worst) = (moves.pause_ns.quantile_ns(0.5), moves.pause_ns.max_ns());
            let told = format_args!("median pause of a stream; longest {}", duration_text(worst));
            line(f, "pause", duration_text(half), told)?;
        }
        line(f, "staged", grouped(moves.staged), "shots that waited for their stream's move")
    }

    fn lifecycles(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let died = |life: &&LifecycleReport| life.deaths.max(life.drains) > 0;
        let lifecycles: Vec<&LifecycleReport> = self.lifecycles.iter().flatten().filter(died).collect();
        if lifecycles.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nSilos that failed, restarted or were drained")?;
        for life in lifecycles {
            let elsewhere = match life.fenced_to_elsewhere_ns.count() {
                0 => String::new(),
                _ => format!(", the longest after {}", duration_text(life.fenced_to_elsewhere_ns.max_ns())),
            };
            let told = format_args!(
                "{} failures, {} restarts, {} drains; {} shots answered with an error, {} streams taken over{elsewhere}",
                life.deaths,
                life.rejoins,
                life.drains,
                grouped(life.errored),
                grouped(life.left)
            );
            line(f, &format!("silo {}", life.id), life.state.name().to_owned(), told)?;
        }
        Ok(())
    }

    fn input(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.streams.is_empty() || self.streams.len() > STREAMS_SHOWN_MAX {
            return Ok(());
        }
        writeln!(f, "\nInput: share of firing detectors, compared with the model")?;
        for stream in &self.streams {
            let health = &stream.input_health;
            let (found, expected) = (health.fraction_found * 100.0, health.fraction_expected * 100.0);
            let told = match health.verdict {
                HealthVerdict::TooFew => {
                    format!("{} shots examined are too few for a verdict", grouped(health.shots_examined))
                }
                _ => format!("{found:.3} % of detectors fire, the model predicts {expected:.3} %"),
            };
            line(f, &format!("stream {}", stream.id), format!("{:?}", health.verdict), told)?;
            if let Some(DriftView { detector, partner, ratio, shots, .. }) = health.drift {
                let told = format!("{}; {} shots counted", drift_sentence(detector, partner, ratio), grouped(shots));
                line(f, "", "drift", told)?;
            }
        }
        Ok(())
    }

    fn sources(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for source in &self.sources {
            writeln!(f, "\nSource {}", source.name)?;
            line(f, "accepted", grouped(source.accepted), "shots; each sender receives the answers")?;
            let dropped = format!(
                "sent back; {} dropped because the sender did not read them in time",
                grouped(source.answers_dropped)
            );
            line(f, "answered", grouped(source.answered), dropped)?;
            let missing = sum(source.streams.iter().map(|stream| stream.gaps.saturating_sub(stream.reordered)));
            line(f, "missing", grouped(missing), "sequence numbers that never arrived")?;
            line(
                f,
                "kernel drops",
                grouped(source.kernel_drops),
                "datagrams dropped because the socket's buffer was full",
            )?;
            let refused = sum([source.malformed, source.foreign, source.other_epoch, source.unknown_streams]);
            line(
                f,
                "refused",
                grouped(refused),
                "malformed, from a foreign sender, of another epoch, or for an unknown stream",
            )?;
        }
        Ok(())
    }

    fn machine(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nThreads                  gaps between frames: p50, p99, p99.9, max")?;
        for thread in &self.threads {
            let core = match (thread.core, thread.pinned) {
                (Some(core), true) => format!("core {core}"),
                (Some(core), false) => format!("core {core} (not pinned)"),
                (None, _) => "unpinned".to_owned(),
            };
            let gap = &thread.frame_gap_ns;
            let gaps = [0.5, 0.99, 0.999].map(|q| duration_text(gap.quantile_ns(q))).join(", ");
            let max = duration_text(gap.max_ns());
            writeln!(f, "  {:<15} {core:>10}   {gaps}, {max}   {}", thread.name, thread.roles.join(" "))?;
        }
        match self.threads.iter().map(|thread| thread.allocations).collect::<Option<Vec<u64>>>().map(sum) {
            Some(calls) => {
                let lent = sum(self.threads.iter().map(|thread| thread.allocations_lent));
                writeln!(
                    f,
                    "  allocator calls of hot threads in Live: {calls} (and {lent} served from their own reserve)"
                )?;
            }
            None => writeln!(f, "  allocator calls of hot threads: not visible")?,
        }
        self.noise(f)?;
        self.environment(f)
    }

    /// The thread whose core was away for the largest share of the time, and what would mend it.
    fn noise(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let all = self.threads.iter().filter_map(|thread| Some((thread, thread.noise.shares()?)));
        let worst = all.max_by(|(_, one), (_, other)| one.lost().total_cmp(&other.lost()));
        let Some((thread, shares)) = worst else { return Ok(()) };
        writeln!(f, "  most noise: {}, {}", thread.name, shares.text())?;
        match thread.noise.source_text(thread.contended_by.as_ref(), thread.core) {
            said if said.is_empty() => Ok(()),
            said => writeln!(f, "    {said}"),
        }
    }

    fn environment(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(found) = &self.environment else { return Ok(()) };
        writeln!(f, "\nMachine")?;
        for (what, rows) in [("rows that fail", &found.fail), ("rows that warn", &found.warn)] {
            let names = if rows.is_empty() { "none".to_owned() } else { rows.join(" ") };
            line(f, what, rows.len(), names)?;
        }
        match &found.file {
            Some(file) => writeln!(f, "  each row with its remedy: pinwheel check --verify {file}"),
            None => Ok(()),
        }
    }

    /// Lists problems of the clock only.
    fn clock(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.clock.degraded {
            writeln!(f, "  Times come from the {}: {why}", self.clock.source)?;
        }
        let (utc, counter) = (self.clock.utc_steps, self.clock.counter_steps);
        if utc > 0 {
            writeln!(
                f,
                "  UTC was set {} during the run: times of day in the logs jump there, durations do not",
                times(utc)
            )?;
        }
        if counter > 0 {
            writeln!(
                f,
                "  The counter jumped {} against monotonic time: latencies across a jump are wrong",
                times(counter)
            )?;
        }
        Ok(())
    }

    fn tail(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.alarms.is_empty() || !self.unanswered.is_empty() {
            writeln!(f, "\nAlarms")?;
        }
        for alarm in self.alarms.iter().filter(|alarm| !alarm.is_logged()) {
            writeln!(f, "  {}: {}", alarm.alarm, alarm.what)?;
        }
        // Notes need no action. They are in the JSON and on the console only.
        let is_note = |incident: &&IncidentView| incident.severity == Severity::Note;
        for incident in self.incidents.iter().filter(|incident| !is_note(incident)) {
            writeln!(f, "  {}: {}", incident.root.rule, incident.root.sentence)?;
            for consequence in &incident.consequences {
                writeln!(f, "    led to {}: {}", consequence.rule, consequence.sentence)?;
            }
        }
        let notes = self.incidents.iter().filter(is_note).count();
        if notes > 0 {
            writeln!(f, "  incidents of severity note: {notes}; --json has their causes")?;
        }
        for (stream, sequence) in self.unanswered.iter().take(UNANSWERED_SHOWN_MAX) {
            writeln!(f, "  unanswered: stream {stream}, sequence {sequence}")?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "\nNotes")?;
        }
        for note in &self.notes {
            writeln!(f, "  {note}")?;
        }
        match &self.run_dir {
            Some(run_dir) => writeln!(f, "\nKept in {run_dir}"),
            None => Ok(()),
        }
    }
}

fn row(f: &mut Formatter<'_>, what: &str, time: &Histogram, meaning: &str) -> fmt::Result {
    if time.count() == 0 {
        return Ok(());
    }
    let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|q| duration_text(time.quantile_ns(q)));
    let max = duration_text(time.max_ns());
    let text = format!("  {what:<15} {p50:>10} {p90:>10} {p99:>10} {p999:>10} {max:>10}   {meaning}");
    writeln!(f, "{}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::{duration_text, grouped, rate_text, short};

    #[test]
    fn a_rate_has_three_digits_and_a_large_one_is_whole() {
        assert_eq!([0.0, 0.000_123_4, 0.099, 0.305, 1.0].map(rate_text), ["0", "1.23e-4", "9.90e-2", "0.305", "1.000"]);
        assert_eq!([0.5, 9.999, 10.4, 19_999.6].map(short), ["0.500", "9.999", "10", "20,000"]);
    }

    #[test]
    fn numbers_are_grouped_and_times_carry_their_unit() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        for (ns, text) in [
            (999, "999 ns"),
            (1_500, "1.50 µs"),
            (84_200, "84.2 µs"),
            (250_000_000, "250 ms"),
            (10_000_000_000, "10.0 s"),
        ] {
            assert_eq!(duration_text(ns), text);
        }
    }
}
