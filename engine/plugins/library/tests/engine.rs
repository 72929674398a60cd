//! Each decoder through the engine's own host of plugins answers as it does by itself.

use pinwheel_engine::code::{Model, Sampler, bundled_named};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::profile::{Decoder, Predecoder, Window};
use pinwheel_library::{Config, Decoder as Library};
use std::path::PathBuf;

const CONFIGS: [&str; 4] =
    [r#"{"decoder": "bp_osd"}"#, r#"{"decoder": "bp_lsd"}"#, r#"{"decoder": "relay_bp"}"#, r#"{"decoder": "search"}"#];

/// Mechanisms of three detectors, which no matching can have.
const HYPERGRAPH: &str = "error(0.02) D0 D1 D2 L0\nerror(0.03) D1 D2 D3\nerror(0.01) D0 L1\nerror(0.04) D2 D4 D5 L0\n\
                          error(0.02) D3\nerror(0.01) D4 L1\nerror(0.03) D5 D0\nerror(0.02) D1\n";

fn library() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let found = folder.join("libpinwheel_library.so");
    assert!(found.exists(), "{} is built with this test", found.display());
    found
}

/// A number from the environment, where a campaign sets it.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

/// Shots of a model on which both answer, and those on which both find nothing; and how many answers are wrong.
fn compare(model: &Model, config: &str, shots: u64) -> (u64, u64, u64) {
    let decoder = Decoder::Plugin {
        path: library().display().to_string(),
        config: config.to_owned(),
        trusted: true,
        limit_us: Some(1_000_000),
    };
    let mut through = MatcherModel::of(model, decoder, Predecoder::None, Window::None).unwrap().matcher();
    let mechanisms: Vec<_> = model
        .errors
        .iter()
        .map(|error| (error.probability, error.effect()))
        .filter(|(probability, effect)| *probability > 0.0 && !effect.detectors.is_empty())
        .collect();
    let own: Vec<_> = mechanisms.iter().map(|(probability, effect)| (*probability, effect.detectors.clone())).collect();
    let mut library = Library::new(&Config::parse(config.as_bytes()).unwrap(), model.detectors as usize, &own).unwrap();
    let mut sampler = Sampler::new(model, number("PINWHEEL_SEED", 3));
    let (mut words, mut truth) = (vec![0; model.detector_words()], vec![0; model.observable_words()]);
    let (mut found, mut nothing, mut wrong) = (0, 0, 0);
    for shot in 0..shots {
        sampler.draw(&mut words, &mut truth);
        let bit = |of: u32| (words[of as usize / 64] >> (of % 64) & 1) as u8;
        let syndrome: Vec<u8> = (0..model.detectors).map(bit).collect();
        let mut expected = vec![0u64; truth.len()];
        let explained = library.decode(&syndrome, |mechanism| {
            for observable in &mechanisms[mechanism as usize].1.observables {
                expected[*observable as usize / 64] ^= 1 << (observable % 64);
            }
        });
        let mut observables = vec![0; truth.len()];
        let answered = through.decode(&words, &mut observables);
        match (explained, answered) {
            (Ok(()), Ok(_)) => {
                assert_eq!(observables, expected, "shot {shot} by {config}");
                found += 1;
                wrong += u64::from(observables != truth);
            }
            (Err(_), Err(_)) => nothing += 1,
            (explained, answered) => panic!("shot {shot} by {config}: {explained:?}, {}", answered.is_ok()),
        }
    }
    (found, nothing, wrong)
}

#[test]
fn each_decoder_answers_as_by_itself_also_where_no_matching_can() {
    let shots = number("PINWHEEL_SHOTS", 500);
    let hypergraph = Model::parse(HYPERGRAPH.as_bytes()).unwrap();
    let surface = bundled_named("surface_d3").unwrap();
    for config in CONFIGS {
        for (name, model) in [("hypergraph", &hypergraph), ("surface_d3", &surface)] {
            let (found, nothing, wrong) = compare(model, config, shots);
            let decoder = config.split('"').nth(3).unwrap();
            println!("DECODERS name={decoder} model={name} answered={found} unexplained={nothing} wrong={wrong}");
            assert!(nothing * 50 <= shots, "{config} of {name}: {nothing} of {shots} shots are unexplained");
        }
    }
}

#[test]
fn a_configuration_that_is_none_is_refused_in_words() {
    for json in ["{}", "bp_osd", r#"{"decoder": "bp_osd", "iteration": 3}"#, r#"{"decoder": "magic"}"#] {
        let said = Config::parse(json.as_bytes()).unwrap_err();
        assert!(said.starts_with("the configuration is not understood: "), "{said}");
    }
    assert_eq!(Config::parse(b"").unwrap(), Config::parse(CONFIGS[0].as_bytes()).unwrap());
}
