//! The general decoders of `stabilizer_qec` as one decoder plugin: BP+OSD, BP+LSD, Relay-BP and its A* search.
//!
//! They take models of any mechanisms, decomposed or not. The configuration is JSON; without one BP+OSD decodes.
//! Each value may be left out:
//!
//! ```json
//! {"decoder": "bp_osd", "iterations": 30, "order": 7}
//! {"decoder": "bp_lsd", "iterations": 30, "order": 0}
//! {"decoder": "relay_bp", "iterations": 60, "legs": 60, "solutions": 5, "seed": 0}
//! {"decoder": "search", "beam": 5, "orders": 20, "queue": 200000, "seed": 2384753}
//! ```
//!
//! A decoder is used by one thread. All allocate while they decode; the bounds on their work are iterations, legs and
//! the queue. A shot that they cannot explain within them is an error. The host limits the time.
//!
//! # Why a plugin
//! The library takes two minutes to build and its decoders take up to milliseconds a shot, allocate and may panic. In a
//! process of its own none of this affects the engine, and a build of the engine does not need it.

use deq_decoder_abi::plugin::{DeqDecoder, HypergraphView, OutputBuffer, SyndromeView};
use serde::Deserialize;
use stabilizer_qec::bp::Method;
use stabilizer_qec::dem::{Dem, Mechanism};
use stabilizer_qec::lsd::{BpLsd, BpLsdWork};
use stabilizer_qec::osd::{BpOsd, BpOsdWork, OsdMethod};
use stabilizer_qec::relay::{Relay, RelayConfig, RelayWork};
use stabilizer_qec::search::{Flavour, OrderMethod, Search, SearchConfig, generated_orders};

/// Which decoder, and the bounds on its work.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "decoder", rename_all = "snake_case", deny_unknown_fields)]
pub enum Config {
    /// Belief propagation, then ordered statistics.
    BpOsd {
        #[serde(default = "thirty")]
        iterations: usize,
        /// Order of the combination sweep.
        #[serde(default = "seven")]
        order: usize,
    },
    /// Belief propagation, then localized statistics.
    BpLsd {
        #[serde(default = "thirty")]
        iterations: usize,
        /// Order of the combination sweep in each cluster; 0: each cluster is solved once.
        #[serde(default)]
        order: usize,
    },
    /// Belief propagation with memory, in several legs; the values left out are those of the library.
    RelayBp {
        /// Of each leg.
        #[serde(default = "sixty")]
        iterations: usize,
        #[serde(default = "sixty")]
        legs: usize,
        /// Legs that must explain the shot; the likeliest of their answers is taken.
        #[serde(default = "five")]
        solutions: usize,
        #[serde(default)]
        seed: u64,
    },
    /// Search for the likeliest mechanisms, as Tesseract does; the values left out are Tesseract's.
    Search {
        #[serde(default = "five")]
        beam: usize,
        /// Orders of detectors that are tried.
        #[serde(default = "twenty")]
        orders: usize,
        /// Most entries of the queue.
        #[serde(default = "queue")]
        queue: usize,
        #[serde(default = "seed")]
        seed: u64,
    },
}

fn five() -> usize {
    5
}

fn seven() -> usize {
    7
}

fn twenty() -> usize {
    20
}

fn thirty() -> usize {
    30
}

fn sixty() -> usize {
    60
}

fn queue() -> usize {
    200_000
}

fn seed() -> u64 {
    2_384_753
}

impl Config {
    /// Reads JSON; nothing stands for BP+OSD.
    ///
    /// # Errors
    /// If it is no configuration: in a sentence.
    pub fn parse(json: &[u8]) -> Result<Config, String> {
        if json.is_empty() {
            return Ok(Config::BpOsd { iterations: thirty(), order: seven() });
        }
        serde_json::from_slice(json).map_err(|refused| format!("the configuration is not understood: {refused}"))
    }
}

/// One decoder with its memory.
pub enum Decoder {
    /// See [`Config::BpOsd`].
    BpOsd(Box<(BpOsd, BpOsdWork)>),
    /// See [`Config::BpLsd`].
    BpLsd(Box<(BpLsd, BpLsdWork)>),
    /// See [`Config::RelayBp`].
    RelayBp(Box<(Relay, RelayWork)>),
    /// See [`Config::Search`].
    Search(Box<Search>),
}

/// `ldpc`'s adaptive scaling of min-sum messages.
const METHOD: Method = Method::MinSum { scale: 0.0 };

fn sweep(order: usize) -> OsdMethod {
    if order == 0 { OsdMethod::Osd0 } else { OsdMethod::CombinationSweep(order) }
}

impl Decoder {
    /// A decoder of mechanisms: the probability of each, and the detectors that it fires.
    ///
    /// # Errors
    /// What the library refuses, in its words.
    pub fn new(config: &Config, detectors: usize, mechanisms: &[(f64, Vec<u32>)]) -> Result<Decoder, String> {
        let columns = || mechanisms.iter().map(|(_, fired)| fired.clone()).collect::<Vec<_>>();
        let priors: Vec<f64> = mechanisms.iter().map(|(probability, _)| *probability).collect();
        match *config {
            Config::BpOsd { iterations, order } => {
                let decoder = BpOsd::new(detectors, columns(), &priors, METHOD, iterations, sweep(order))?;
                let work = decoder.work();
                Ok(Decoder::BpOsd(Box::new((decoder, work))))
            }
            Config::BpLsd { iterations, order } => {
                let decoder = BpLsd::new(detectors, columns(), &priors, METHOD, iterations, sweep(order), 1, false)?;
                let work = decoder.work();
                Ok(Decoder::BpLsd(Box::new((decoder, work))))
            }
            Config::RelayBp { iterations, legs, solutions, seed } => {
                let config = RelayConfig {
                    pre_iter: iterations,
                    legs,
                    leg_iter: iterations,
                    solutions: Some(solutions),
                    seed,
                    ..RelayConfig::default()
                };
                let decoder = Relay::new(detectors, &columns(), &priors, config)?;
                let work = decoder.work();
                Ok(Decoder::RelayBp(Box::new((decoder, work))))
            }
            Config::Search { beam, orders, queue, seed } => {
                let dem = dem_of(detectors, mechanisms);
                let flavour = Flavour::native();
                let config = SearchConfig {
                    beam: Some(beam),
                    beam_climbing: false,
                    no_revisit: true,
                    queue_limit: Some(queue),
                    orders: generated_orders(&dem, orders, OrderMethod::Index, seed, flavour),
                    detector_penalty: 0.0,
                    merge_errors: true,
                    flavour,
                    sparsify: None,
                    visualize: false,
                    verbose: false,
                };
                Ok(Decoder::Search(Box::new(Search::new(&dem, None, config)?)))
            }
        }
    }

    /// The mechanisms that explain the fired detectors: calls `chosen` for each.
    ///
    /// # Errors
    /// If none were found within its bounds. BP+OSD chooses some in any case, which then explain
    /// another shot.
    pub fn decode(&mut self, syndrome: &[u8], mut chosen: impl FnMut(u64)) -> Result<(), String> {
        let unexplained = || "it found no mechanisms that explain the shot within its bounds".to_owned();
        let correction = match self {
            Decoder::BpOsd(both) => {
                let (decoder, work) = &mut **both;
                decoder.decode(syndrome, work);
                &work.correction
            }
            Decoder::BpLsd(both) => {
                let (decoder, work) = &mut **both;
                if !decoder.decode(syndrome, work).solved {
                    return Err(unexplained());
                }
                &work.correction
            }
            Decoder::RelayBp(both) => {
                let (decoder, work) = &mut **both;
                if !decoder.decode(syndrome, work).converged {
                    return Err(unexplained());
                }
                &work.correction
            }
            Decoder::Search(search) => {
                let fired = (0..).zip(syndrome).filter(|(_, is_fired)| **is_fired != 0);
                let fired: Vec<u32> = fired.map(|(detector, _)| detector).collect();
                let found = search.decode(&fired);
                if found.low_confidence {
                    return Err(unexplained());
                }
                found.faults.iter().for_each(|mechanism| chosen(*mechanism as u64));
                return Ok(());
            }
        };
        let all = (0..).zip(correction).filter(|(_, is_chosen)| **is_chosen != 0);
        all.for_each(|(mechanism, _)| chosen(mechanism));
        Ok(())
    }
}

/// The mechanisms in the library's terms. Which observables they flip is not known here: each has its own number in
/// their place, so that none are merged.
fn dem_of(detectors: usize, mechanisms: &[(f64, Vec<u32>)]) -> Dem {
    let mechanism = |(number, (p, fired)): (u64, &(f64, Vec<u32>))| {
        let mut detectors = fired.clone();
        detectors.sort_unstable();
        Mechanism { p: *p, detectors, observables: number, pieces: Vec::new(), tag: String::new() }
    };
    Dem {
        num_detectors: detectors,
        num_observables: 0,
        detector_coords: vec![Vec::new(); detectors],
        mechanisms: (0..).zip(mechanisms).map(mechanism).collect(),
        detector_tags: Vec::new(),
        observable_tags: Vec::new(),
    }
}

struct Plugin {
    decoder: Decoder,
    /// By detector whether it fired.
    syndrome: Vec<u8>,
}

impl DeqDecoder for Plugin {
    fn create(graph: HypergraphView<'_>, config_json: &[u8]) -> Result<Self, String> {
        let config = Config::parse(config_json)?;
        let detectors = graph.vertex_num as usize;
        let fired = |detectors: &[u64]| detectors.iter().map(|detector| *detector as u32).collect();
        let mechanisms: Vec<_> = graph.edges().map(|(p, detectors)| (p, fired(detectors))).collect();
        let decoder = Decoder::new(&config, detectors, &mechanisms)?;
        Ok(Plugin { decoder, syndrome: vec![0; detectors] })
    }

    fn decode(&mut self, syndrome: SyndromeView<'_>, out: &mut OutputBuffer) -> Result<(), String> {
        self.syndrome.fill(0);
        syndrome.sparse_indices().for_each(|detector| self.syndrome[detector as usize] = 1);
        self.decoder.decode(&self.syndrome, |mechanism| out.push(mechanism))
    }
}

deq_decoder_abi::declare_decoder!(Plugin);
