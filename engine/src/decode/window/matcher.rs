//! The window decoders of one thread: one window at a time, and a whole shot by its windows.
//!
//! Called by one decode worker. Allocates only when built. A call's work is bounded by its window's
//! graph.

use std::sync::Arc;

use super::super::by_graph::GraphMatcher;
use super::super::{DecodeError, Decoded, Matcher};
use super::cut::Cut;
use super::{Form, WindowModel};
use crate::code::{flip, ones};
use crate::predecode::Local;

/// Decodes one window per call, of any shot: the shot's state is its carry and its observables.
pub struct WindowWorker {
    model: Arc<WindowModel>,
    /// One for each form of window.
    matchers: Vec<GraphMatcher>,
    /// Edges resolved by predecoding.
    pub(super) edges: Vec<u32>,
    /// The bits flipped by a matching: observables, followed by the outer ends of committed edges.
    flipped: Vec<u64>,
    /// A window's syndrome and its residual after predecoding.
    syndrome: Vec<u64>,
    residual: Vec<u64>,
}

impl WindowWorker {
    /// Builds a worker for the calling thread.
    pub fn new(model: Arc<WindowModel>) -> Self {
        let matchers = model.forms.iter().map(|form| GraphMatcher::new(Arc::clone(&form.matching))).collect();
        let edges_max = model.forms.iter().map(|form| form.cut.graph.edges.len()).max().unwrap_or(0);
        let words_max = model.forms.iter().map(|form| form.cut.graph.detector_words).max().unwrap_or(0);
        let (syndrome, residual) = (vec![0; words_max], vec![0; words_max]);
        let flips_max = model.forms.iter().map(|form| form.matching.observable_words()).max().unwrap_or(0);
        let (edges, flipped) = (Vec::with_capacity(edges_max), vec![0; flips_max]);
        Self { matchers, edges, flipped, syndrome, residual, model }
    }

    /// Begins a shot: writes its carry and its observables, and returns the weight of the
    /// always-flipped edges.
    ///
    /// # Panics
    ///
    /// If a slice differs in length from the model's words.
    pub fn begin(&self, syndrome: &[u64], carry: &mut [u64], observables: &mut [u64]) -> f64 {
        let model = &*self.model;
        assert_eq!(syndrome.len(), model.detector_words, "the syndrome must be as wide as the model");
        assert_eq!(observables.len(), model.observable_words, "observables must be as wide as the model");
        assert_eq!(carry.len(), model.carry_words(), "the carry must be as wide as the model's rounds");
        carry.fill(0);
        for detector in ones(syndrome).chain(ones(&model.always_detectors)) {
            flip(carry, model.rounds.position(detector));
        }
        observables.copy_from_slice(&model.always_observables);
        model.always_weight
    }

    /// As [`Self::begin`], for a shot of which no round has arrived.
    ///
    /// # Panics
    ///
    /// If a slice differs in length from the model's words.
    pub fn begin_by_rounds(&self, carry: &mut [u64], observables: &mut [u64]) -> f64 {
        let model = &*self.model;
        assert_eq!(observables.len(), model.observable_words, "observables must be as wide as the model");
        assert_eq!(carry.len(), model.carry_words(), "the carry must be as wide as the model's rounds");
        carry.fill(0);
        ones(&model.always_detectors).for_each(|detector| flip(carry, model.rounds.position(detector)));
        observables.copy_from_slice(&model.always_observables);
        model.always_weight
    }

    /// Copies the rounds that window `index` is the first to read into the carry; `word` reads a
    /// word of the packed shot.
    ///
    /// # Panics
    ///
    /// If there is no such window, or the carry is too short.
    pub fn take_rounds(&self, index: u32, word: impl Fn(u32) -> u64, carry: &mut [u64]) {
        for &(at, bits) in &self.model.arrivals[index as usize].fresh {
            for bit in ones(&[word(at) & bits]) {
                flip(carry, self.model.rounds.position(at * 64 + bit));
            }
        }
    }

    /// Decodes window `index` of the shot in `carry`, after all earlier windows, and commits.
    /// Returns the weight of its matching; only the last window commits all of it.
    ///
    /// # Errors
    /// [`DecodeError`]; carry and observables are then of no use.
    ///
    /// # Panics
    ///
    /// If there is no such window, or a slice differs in length from those of [`Self::begin`].
    pub fn window(&mut self, index: u32, carry: &mut [u64], observables: &mut [u64]) -> Result<f64, DecodeError> {
        let model = Arc::clone(&self.model);
        let window = &model.windows[index as usize];
        let cut = &model.forms[window.form].cut;
        let defects = ones(&carry[window.own_words.clone()]).map(|bit| cut.detector_at(bit));
        let weight = matched(&mut self.matchers[window.form], cut, defects, &mut self.flipped, observables)?;
        self.settle(index, carry, observables);
        Ok(weight)
    }

    /// Commits the bits flipped by the matching of window `index`.
    fn settle(&self, index: u32, carry: &mut [u64], observables: &mut [u64]) {
        let window = &self.model.windows[index as usize];
        let cut = &self.model.forms[window.form].cut;
        if cut.is_last {
            carry[window.own_words.clone()].fill(0);
            return;
        }
        let carried = &mut carry[window.words.clone()];
        carried[..cut.commit_words].fill(0);
        let observed = self.model.observables;
        for bit in ones(&self.flipped[..self.model.forms[window.form].matching.observable_words()]) {
            match bit.checked_sub(observed) {
                None => flip(observables, bit),
                Some(outer) => flip(carried, cut.outer[outer as usize]),
            }
        }
    }

    /// As [`Self::window`], but predecodes the window first if the model enables it. Returns the
    /// number of detection events that predecoding explained and committed.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; carry and observables are then undefined.
    ///
    /// # Panics
    ///
    /// As [`Self::window`].
    pub fn window_predecoded(
        &mut self,
        index: u32,
        carry: &mut [u64],
        observables: &mut [u64],
    ) -> Result<u32, DecodeError> {
        let model = Arc::clone(&self.model);
        let window = &model.windows[index as usize];
        let Form { cut, local: Some(local), .. } = &model.forms[window.form] else {
            return self.window(index, carry, observables).map(|_| 0);
        };
        self.edges.clear();
        let own = &carry[window.own_words.clone()];
        let residual =
            resolved(cut, local, own, (&mut self.syndrome, &mut self.residual), |edge| self.edges.push(edge));
        let explained = commit_edges(cut, &self.edges, &mut carry[window.words.clone()], observables);
        matched(&mut self.matchers[window.form], cut, ones(residual), &mut self.flipped, observables)?;
        self.settle(index, carry, observables);
        Ok(explained)
    }

    /// As [`Self::window_predecoded`], for a shot that arrives by rounds: before the last window it
    /// also matches what has arrived of that one, and drops the result. The last window's graph,
    /// which no other window has, is in the cache then when the last round comes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; carry and observables are then undefined.
    ///
    /// # Panics
    ///
    /// As [`Self::window`].
    pub fn window_by_rounds(
        &mut self,
        index: u32,
        carry: &mut [u64],
        observables: &mut [u64],
    ) -> Result<u32, DecodeError> {
        let explained = self.window_predecoded(index, carry, observables)?;
        if index + 2 == self.model.plan.count() {
            self.warm_up_last(carry);
        }
        Ok(explained)
    }

    /// Matches the rounds that the last window has in common with the one before.
    fn warm_up_last(&mut self, carry: &[u64]) {
        let Self { model, matchers, flipped, syndrome, residual, .. } = self;
        let [.., before, last] = &*model.windows else { return };
        let Form { cut, local, .. } = &model.forms[last.form];
        let (matcher, dropped) = (&mut matchers[last.form], &mut flipped[..model.observable_words]);
        let common = &carry[last.own_words.start..before.own_words.end];
        // Rounds that are missing may leave an event without a partner.
        let _unmatched = match local {
            Some(local) => matcher.matched(ones(resolved(cut, local, common, (syndrome, residual), |_| {})), dropped),
            None => matcher.matched(ones(common).map(|bit| cut.detector_at(bit)), dropped),
        };
    }

    /// Matches, and commits edge by edge; returns the committed weight.
    #[cfg(test)]
    pub(super) fn commit_traced(
        &mut self,
        index: u32,
        carry: &mut [u64],
        observables: &mut [u64],
    ) -> Result<f64, DecodeError> {
        let window = &self.model.windows[index as usize];
        let cut = &self.model.forms[window.form].cut;
        let defects = ones(&carry[window.own_words.clone()]).map(|bit| cut.detector_at(bit));
        self.matchers[window.form].edges(defects, &mut self.edges)?;
        commit_edges(cut, &self.edges, &mut carry[window.words.clone()], observables);
        let committed = self.edges.iter().filter_map(|&edge| cut.commits[edge as usize].as_ref());
        Ok(committed.map(|commit| commit.weight).sum())
    }
}

/// What predecoding leaves of the events in `words` of a window. Calls `each` with the resolved
/// edges.
fn resolved<'a>(
    cut: &Cut,
    local: &Local,
    words: &[u64],
    (syndrome, residual): (&mut [u64], &'a mut [u64]),
    each: impl FnMut(u32),
) -> &'a [u64] {
    let count = cut.graph.detector_words;
    let (syndrome, residual) = (&mut syndrome[..count], &mut residual[..count]);
    syndrome.fill(0);
    ones(words).for_each(|bit| flip(syndrome, cut.detector_at(bit)));
    local.resolve_edges(syndrome, residual, each);
    residual
}

/// Matches `defects` of a window: writes its observables to `flipped`, or to `observables` if the
/// window commits everything.
fn matched(
    matcher: &mut GraphMatcher,
    cut: &Cut,
    defects: impl Iterator<Item = u32>,
    flipped: &mut [u64],
    observables: &mut [u64],
) -> Result<f64, DecodeError> {
    if cut.is_last {
        return matcher.matched(defects, observables);
    }
    flipped.fill(0);
    matcher.matched(defects, flipped)
}

/// Commits those of `edges` that the window commits; returns how many ends they have.
fn commit_edges(cut: &Cut, edges: &[u32], carried: &mut [u64], observables: &mut [u64]) -> u32 {
    let mut ends = 0;
    for commit in edges.iter().filter_map(|&edge| cut.commits[edge as usize].as_ref()) {
        commit.flips.iter().for_each(|&bit| flip(carried, bit));
        observables.iter_mut().zip(&commit.observables).for_each(|(word, by)| *word ^= by);
        ends += commit.flips.len() as u32;
    }
    ends
}

/// Decodes a whole shot window by window.
pub struct WindowMatcher {
    worker: WindowWorker,
    carry: Vec<u64>,
    /// Whether it predecodes each window, as for a shot that arrives by rounds.
    predecodes: bool,
}

impl WindowMatcher {
    /// Builds a matcher for the calling thread.
    pub fn new(model: Arc<WindowModel>) -> Self {
        Self { carry: vec![0; model.carry_words()], worker: WindowWorker::new(model), predecodes: false }
    }

    /// As [`Self::new`], but predecodes each window if the model enables it, as for a shot that
    /// arrives by rounds.
    pub fn by_rounds(model: Arc<WindowModel>) -> Self {
        Self { predecodes: true, ..Self::new(model) }
    }
}

impl Matcher for WindowMatcher {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        let Self { worker, carry, predecodes } = self;
        let always = worker.begin(syndrome, carry, observables);
        let mut weight = None;
        for index in 0..worker.model.plan.count() {
            let decoded = if *predecodes {
                worker.window_predecoded(index, carry, observables).map(|_| None)
            } else {
                worker.window(index, carry, observables).map(|weight| Some(weight + always))
            };
            weight = decoded.inspect_err(|_| observables.fill(0))?.filter(|_| index == 0);
        }
        Ok(Decoded { weight, gap: None })
    }

    fn bytes(&self) -> usize {
        let words = &self.worker;
        let words = words.flipped.capacity() + words.syndrome.capacity() + words.residual.capacity();
        let matchers = self.worker.matchers.iter().map(Matcher::bytes).sum::<usize>();
        matchers + 8 * (words + self.carry.capacity()) + 4 * self.worker.edges.capacity()
    }
}
