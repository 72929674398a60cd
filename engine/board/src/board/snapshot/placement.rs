//! Placement's part of the picture: how full the silos are, what was decided, what became of shots that found no slot.

use crate::board::histogram::Histogram;
use serde::Serialize;

/// What became of a shot that had arrived and found no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum OverflowOutcome {
    /// It waited, and got one.
    Waited,
    /// It waited for longer than the deadline: answered with an error.
    Expired,
    /// It was the oldest of too many: answered with an error.
    DroppedOldest,
    /// It came last: answered with an error.
    DroppedNew,
    /// It went past the device to the CPU predecoder.
    SentToCpu,
    /// It waited, and went with its stream to another silo.
    SentElsewhere,
}

impl OverflowOutcome {
    /// By number.
    pub const ALL: [OverflowOutcome; 6] = [
        OverflowOutcome::Waited,
        OverflowOutcome::Expired,
        OverflowOutcome::DroppedOldest,
        OverflowOutcome::DroppedNew,
        OverflowOutcome::SentToCpu,
        OverflowOutcome::SentElsewhere,
    ];

    /// Name on screen and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OverflowOutcome::Waited => "waited",
            OverflowOutcome::Expired => "expired",
            OverflowOutcome::DroppedOldest => "dropped_oldest",
            OverflowOutcome::DroppedNew => "dropped_new",
            OverflowOutcome::SentToCpu => "sent_to_cpu",
            OverflowOutcome::SentElsewhere => "sent_elsewhere",
        }
    }
}

/// Shots of one silo that found no slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OverflowView {
    /// The strategy in force, as the profile spells it.
    pub strategy: &'static str,
    /// The ring is full, and shots have waited for so long; `None`: none waits.
    pub full_for_ns: Option<u64>,
    /// Whose room they wait for: this silo's, or the one's that a stream of this feed is decoded in; `None`: none waits.
    pub full_silo: Option<u32>,
    /// Times that the ring became full while shots arrived.
    pub episodes: u64,
    /// The longest of them.
    pub longest_ns: u64,
    /// The longest from the last full ring to the moment when none waited any more.
    pub recovery_ns_max: u64,
    /// By outcome; only those that occurred.
    pub outcomes: Vec<OutcomeCount>,
}

/// How often one outcome occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutcomeCount {
    /// Its name.
    pub outcome: &'static str,
    /// How often.
    pub count: u64,
}

/// The director.
#[derive(Clone, Debug, Serialize)]
pub struct PlacementView {
    /// How a silo is chosen for a new stream.
    pub strategy: String,
    /// Whether streams may move while the engine runs.
    pub rebalances: bool,
    /// Why streams do not move although they should; `None`: they do, or need not.
    pub hindrance: Option<String>,
    /// Streams that take part.
    pub streams: u64,
    /// An average from here on excludes a silo.
    pub high: f64,
    /// A single queue from here on does.
    pub critical: f64,
    /// A stream would rather not go where a queue is fuller.
    pub preferred_max: f64,
    /// A queue is over from here on.
    pub enter: f64,
    /// And no longer below this.
    pub leave: f64,
    /// From one snapshot to the next.
    pub refresh_ns: u64,
    /// Number of the newest snapshot; 0: none yet.
    pub snapshot: u64,
    /// Its age.
    pub age_ns: u64,
    /// Looks of its mean.
    pub looks: u64,
    /// Standard deviation over the known silos of their fullest queue, percentage points; `None`: fewer than two are known.
    pub spread_points: Option<f64>,
    /// Streams placed.
    pub placed: u64,
    /// Of these: with every silo above the limit.
    pub placed_high: u64,
    /// Placements refused.
    pub refused: u64,
    /// Moves asked for.
    pub moves_asked: u64,
    /// Moves that could not be asked for.
    pub moves_refused: u64,
    /// Limits crossed upwards, and downwards.
    pub crossings: [u64; 2],
    /// The last of them.
    pub crossing: Option<CrossingView>,
    /// By silo.
    pub silos: Vec<SiloDepthView>,
    /// The last decisions, newest first.
    pub decisions: Vec<DecisionView>,
    /// What one decision took.
    pub decision_ns: Histogram,
    /// What one look at all silos took.
    pub look_ns: Histogram,
}

/// One queue that crossed a limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrossingView {
    /// Silo.
    pub silo: u32,
    /// Queue.
    pub queue: &'static str,
    /// Its share before; `None`: not known.
    pub old: Option<f64>,
    /// Its share then.
    pub new: f64,
    /// Upwards.
    pub is_over: bool,
    /// How long ago.
    pub age_ns: u64,
}

/// How full one silo is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiloDepthView {
    /// Number.
    pub silo: u32,
    /// Why nothing is known of it; `None`: what follows is.
    pub unknown: Option<String>,
    /// Its queues.
    pub queues: Vec<QueueView>,
    /// Their mean.
    pub average: f64,
    /// Of the fullest.
    pub max: f64,
    /// Which that is.
    pub fullest: &'static str,
    /// Shots arrived and not answered.
    pub waiting: u64,
    /// How long answering those takes.
    pub backlog_ns: u64,
    /// Shots answered in the interval.
    pub processed: u64,
    /// Of these: with an error.
    pub errors: u64,
    /// Since an answer was last seen to have come; `None`: none yet.
    pub idle_for_ns: Option<u64>,
    /// For how long it should have given streams away; `None`: it need not.
    pub pressed_for_ns: Option<u64>,
    /// Streams that it owns.
    pub streams: u64,
    /// What it was charged for picks since the snapshot.
    pub charge: f64,
}

/// One queue of a silo.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueView {
    /// Name.
    pub queue: &'static str,
    /// Share of its places taken, mean over the interval.
    pub utilization: f64,
    /// Over its limit.
    pub is_over: bool,
}

/// One decision, with the numbers that it was made on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionView {
    /// Number, from 1.
    pub number: u64,
    /// How long ago.
    pub age_ns: u64,
    /// What was decided.
    pub what: &'static str,
    /// Why.
    pub why: Option<&'static str>,
    /// Stream.
    pub stream: u32,
    /// Silo that it leaves.
    pub from: Option<u32>,
    /// Silo that it goes to.
    pub to: Option<u32>,
    /// The silos compared: the one chosen or left first.
    pub on: Vec<CandidateView>,
    /// Of a move: the share that is expected to go with it.
    pub share: f64,
}

/// A silo as it stood when it was compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateView {
    /// Number.
    pub silo: u32,
    /// Mean over its queues.
    pub average: f64,
    /// Of its fullest queue.
    pub max: f64,
    /// How long answering what waits takes.
    pub backlog_ns: u64,
    /// Charged for picks since the snapshot.
    pub charge: f64,
}
