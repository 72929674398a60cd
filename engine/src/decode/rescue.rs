//! Whether a shot's own decoder or the rescue decoder answers it, by the times that both are expected to take
//! on this worker.
//!
//! Owned by a worker's matchers ([`prepared`](super::prepared)), one [`RescueChoice`] for each decoder and
//! model; other matchers begin with nothing measured. Used only where shots have deadlines
//! (`deadlines.order`). Bounds: [`CLASSES`] classes of detection events. Never allocates after
//! construction.
//!
//! # Why a mean by number of detection events
//! That number explains most of the spread of a decode's time, and it is known before the decode. Classes
//! are as narrow as one eighth. Each keeps an [`ExpectedTime`]. A shot's own decoder fits if mean and deviation fit, because a shot that fails takes
//! its time from all that wait. The rescue decoder fits if its mean does: no other answer is left.
//!
//! # Why shots are rescued before they must be
//! If only shots that do not fit were rescued, they would be the ones with the most detection events, on
//! which the rescue decoder is wrong most often, and the others would have used up the time. While a
//! shot waits that own decoders make late, shots of up to a quarter more detection events than usual are
//! rescued, if that is faster: they lose least. At 120 % load that takes misses from 13 % to 4 to 8 %
//! (distance 5 to 9).

use crate::pipe::ExpectedTime;

/// Classes of detection events: eight for each power of two.
const CLASSES: usize = 96;
/// The mean number of detection events moves by this part of a difference.
const EVENTS_STEP: u64 = 64;

/// What answers a shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Its own decoder.
    Own,
    /// The rescue decoder.
    Rescue,
    /// Nothing, by its deadline.
    Refuse,
}

/// What is known of a shot when its decode begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Detection events.
    pub(super) events: u32,
    /// Time until its decode has to end for its deadline, ticks.
    pub(super) left: u64,
    /// A shot waits that will be late if each before it is answered by its own decoder.
    pub(super) is_behind: bool,
}

/// Times of one decoder by class of detection events.
struct DecodeTimes([ExpectedTime; CLASSES]);

impl DecodeTimes {
    /// The class of `events`, or the nearest class below that was measured; nothing without one.
    fn expected(&self, events: u32) -> ExpectedTime {
        let measured = self.0[..=class(events)].iter().rev().find(|expected| expected.is_known());
        measured.copied().unwrap_or_default()
    }

    fn note(&mut self, events: u32, ticks: u64) {
        self.0[class(events)].note(ticks);
    }

    fn fade(&mut self, events: u32) {
        self.0[class(events)].fade();
    }
}

/// The class of a number of detection events: exact below 16.
fn class(events: u32) -> usize {
    let octave = (events.max(8).ilog2() - 3) as usize;
    let class = if events < 8 { events as usize } else { 8 * octave + (events >> octave) as usize };
    class.min(CLASSES - 1)
}

/// The choice between one decoder and the rescue decoder, on one worker.
pub(super) struct RescueChoice {
    own: DecodeTimes,
    rescue: DecodeTimes,
    has_rescue: bool,
    /// Mean number of detection events, in 1/[`EVENTS_STEP`].
    events: u64,
}

impl RescueChoice {
    /// With nothing measured.
    pub(super) fn new(has_rescue: bool) -> RescueChoice {
        let times = || DecodeTimes([ExpectedTime::default(); CLASSES]);
        RescueChoice { own: times(), rescue: times(), has_rescue, events: 0 }
    }

    /// Chooses for a shot whose decode begins now.
    pub(super) fn choose(&mut self, shot: Pending) -> Choice {
        let Pending { events, left, is_behind } = shot;
        self.events = self.events - self.events / EVENTS_STEP + u64::from(events);
        let own = self.own.expected(events);
        let fits = own.usual_most() <= left;
        if !self.has_rescue {
            if own.mean() <= left {
                return Choice::Own;
            }
            self.own.fade(events);
            return Choice::Refuse;
        }
        let rescue = self.rescue.expected(events);
        let is_usual = 4 * EVENTS_STEP * u64::from(events) <= 5 * self.events;
        let gives_way = is_behind && is_usual;
        if fits && gives_way && rescue.mean() >= own.mean() {
            self.rescue.fade(events);
        }
        if fits && !(gives_way && rescue.mean() < own.mean()) {
            return Choice::Own;
        }
        if !fits {
            self.own.fade(events);
        }
        match (rescue.mean() <= left, fits) {
            (true, _) => Choice::Rescue,
            (false, true) => Choice::Own,
            (false, false) => {
                self.rescue.fade(events);
                Choice::Refuse
            }
        }
    }

    /// A decode of this many detection events has taken `ticks`.
    pub(super) fn note(&mut self, choice: Choice, events: u32, ticks: u64) {
        match choice {
            Choice::Own => self.own.note(events, ticks),
            Choice::Rescue => self.rescue.note(events, ticks),
            Choice::Refuse => {}
        }
    }

    /// Ticks that the own and the rescue decoder are expected to take for a shot with the mean number of
    /// detection events; 0: not measured yet.
    pub(super) fn expected(&self) -> (u64, u64) {
        let events = (self.events / EVENTS_STEP) as u32;
        (self.own.expected(events).mean(), self.rescue.expected(events).mean())
    }
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, Choice, Pending, RescueChoice, class};

    fn shot(events: u32, left: u64) -> Pending {
        Pending { events, left, is_behind: false }
    }

    /// Decodes of 100 ticks a detection event, rescues of 40.
    fn measured() -> RescueChoice {
        let mut choice = RescueChoice::new(true);
        for events in (1..40).chain(1..40).chain(1..40) {
            choice.choose(shot(events, u64::MAX));
            choice.note(Choice::Own, events, u64::from(events) * 100);
            choice.note(Choice::Rescue, events, u64::from(events) * 40);
        }
        choice
    }

    #[test]
    fn classes_grow_with_the_events_and_are_as_narrow_as_an_eighth() {
        let mut before = 0;
        for events in 0..4096u32 {
            let now = class(events);
            assert!(now == before || now == before + 1, "{events}");
            assert!(
                events < 16
                    || now == class(events + 1)
                    || events / 8 >= events - (0..events).rfind(|&of| class(of) < now).unwrap_or(0) - 1
            );
            before = now;
        }
        assert_eq!(class(u32::MAX), CLASSES - 1);
    }

    #[test]
    fn a_shot_that_its_decoder_cannot_finish_is_rescued_and_one_that_nothing_can_finish_is_refused() {
        let mut choice = measured();
        assert_eq!(choice.choose(shot(20, 10_000)), Choice::Own);
        assert_eq!(choice.choose(shot(20, 1_500)), Choice::Rescue);
        assert_eq!(choice.choose(shot(20, 500)), Choice::Refuse);
        let mut alone = RescueChoice::new(false);
        assert_eq!(alone.choose(shot(20, 1)), Choice::Own, "nothing is measured yet");
        (0..3).for_each(|_| alone.note(Choice::Own, 20, 2_000));
        assert_eq!(alone.choose(shot(20, 1_500)), Choice::Refuse);
        assert_eq!(alone.choose(shot(20, 2_500)), Choice::Own);
    }

    #[test]
    fn while_the_workers_are_behind_usual_shots_are_rescued_and_large_ones_are_not() {
        let mut choice = measured();
        let waiting = |events| Pending { is_behind: true, ..shot(events, 100_000) };
        assert_eq!(choice.choose(shot(18, 100_000)), Choice::Own);
        assert_eq!(choice.choose(waiting(18)), Choice::Rescue);
        assert_eq!(choice.choose(waiting(35)), Choice::Own);
    }

    #[test]
    fn a_rescue_that_is_slower_rescues_nobody_who_fits() {
        let mut choice = RescueChoice::new(true);
        for _ in 0..100 {
            choice.choose(shot(10, u64::MAX));
            choice.note(Choice::Own, 10, 1_000);
            choice.note(Choice::Rescue, 10, 1_100);
        }
        let waiting = Pending { is_behind: true, ..shot(10, 100_000) };
        assert_eq!(choice.choose(waiting), Choice::Own);
    }

    #[test]
    fn a_rescue_whose_first_decodes_were_slow_is_tried_again() {
        let mut choice = RescueChoice::new(true);
        (0..100).for_each(|_| choice.note(Choice::Own, 10, 1_000));
        (0..3).for_each(|_| choice.note(Choice::Rescue, 10, 50_000));
        let waiting = Pending { is_behind: true, ..shot(10, 100_000) };
        let own = (0..1_000).take_while(|_| choice.choose(waiting) == Choice::Own).count();
        assert!((100..600).contains(&own), "{own} shots were decoded first");
    }

    #[test]
    fn a_class_is_tried_again_after_a_measurement_that_was_too_long() {
        let mut choice = RescueChoice::new(true);
        (0..3).for_each(|_| choice.note(Choice::Own, 10, 1_000_000));
        (0..3).for_each(|_| choice.note(Choice::Rescue, 10, 400));
        let rescued = (0..1_000).take_while(|_| choice.choose(shot(10, 2_000)) == Choice::Rescue).count();
        assert!((100..600).contains(&rescued), "{rescued} shots were rescued first");
    }
}
