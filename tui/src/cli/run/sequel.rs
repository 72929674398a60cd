//! What a run on another input is to do, and which runs can have none after them.
//!
//! Pure but for the directory that paths start from. Bounded by the words that were written.

use crate::cli::args::RunArgs;
use crate::cli::refusal::Refusal;
use crate::cli::request::{Face, RunRequest, ShotSource};
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::engine::wire::InputSpec;
use pinwheel_engine::profile::{Profile, Source};
use std::path::{Path, PathBuf, absolute};

/// What a run writes is of one input. Refused, in a sentence, where another one would be mixed into it.
pub(super) fn keeps_results_apart(request: &RunRequest) -> Result<(), String> {
    let outputs = [
        ("--answers", request.answers.is_some(), "whose file belongs"),
        ("--predictions", request.predictions.is_some(), "whose file belongs"),
        ("--count", request.count.is_some(), "whose shots belong"),
        ("--json", request.face == Face::Scripts, "whose one report belongs"),
        ("--shots -", request.shots == ShotSource::Stdin, "whose writer belongs"),
    ];
    match outputs.into_iter().find(|(_, is_given, _)| *is_given) {
        None => Ok(()),
        Some((option, _, whose)) => Err(format!(
            "found {option}, {whose} to this run's input, expected a run without; end this one and start another"
        )),
    }
}

/// The run that follows: as this one was asked for, on its profile in force, with shots from elsewhere.
pub(super) fn request(
    args: &RunArgs,
    name: &str,
    profile: &Profile,
    spec: &InputSpec,
    face: Face,
) -> Result<RunRequest, Refusal> {
    let (mut args, mut profile, from) = (args.clone(), profile.clone(), spec.from.as_str());
    let model = profile.input.source.model().to_owned();
    (args.shots, args.input, args.rate) = (None, None, None);
    args.observables = spec.observables.as_ref().map(PathBuf::from);
    args.dem = spec.dem.as_ref().map(PathBuf::from).or(args.dem);
    if let Some(format) = &spec.format {
        let content = |said| Refusal::Content { about: format!("input {from} --format"), said };
        args.format = Some(format.parse().map_err(content)?);
    }
    if !matches!(profile.input.source, Source::Sampler { .. }) {
        profile.input.source = Source::Sampler { model: model.clone(), seed: 1 };
    }
    match LivePlace::parse(from) {
        _ if from == "sampler" => {}
        Ok(_) if spec.observables.is_some() => {
            let about = format!("input {from} --observables");
            let remedy = "name a file of shots, or leave the observables out";
            return Err(Refusal::unusable(about, "a live source", "shots from a file", remedy));
        }
        Ok(place) => args.input = Some(place),
        Err(said) if ["udp:", "unix:", "shm:"].iter().any(|kind| from.starts_with(kind)) => {
            return Err(Refusal::Content { about: format!("input {from}"), said });
        }
        Err(_) if from == "-" => {
            let (about, found) = ("input -", "standard input, which this process had at its start");
            return Err(Refusal::unusable(about, found, "a file", "name one"));
        }
        Err(_) => {
            args.shots = Some(Path::new(from).to_owned());
            args.dem = args.dem.or(Some(PathBuf::from(model)));
        }
    }
    RunRequest::settle(&args, name.to_owned(), profile, face == Face::Console)
}

/// Whether two live sources cannot be open at the same time.
pub(super) fn is_same(one: &LivePlace, other: &LivePlace) -> bool {
    match (one, other) {
        (LivePlace::Udp { at: one, .. }, LivePlace::Udp { at: other, .. }) => one == other,
        (LivePlace::Unix(one), LivePlace::Unix(other)) => absolute(one).ok() == absolute(other).ok(),
        (LivePlace::Shm { name: one, .. }, LivePlace::Shm { name: other, .. }) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Face, InputSpec, LivePlace, RunRequest, is_same, keeps_results_apart, request};
    use crate::cli::args::RunArgs;
    use crate::cli::request::{ModelSource, ShotSource};
    use pinwheel_engine::code::Format;
    use pinwheel_engine::profile::{Profile, Silos};
    use std::path::PathBuf;

    fn lab() -> Profile {
        Profile::load("lab", None).unwrap().0
    }

    #[test]
    fn another_input_keeps_the_model_and_what_else_was_asked_for() {
        let args = RunArgs { silos: Some(Silos::Count(2)), shots: Some(PathBuf::from("old")), ..RunArgs::default() };
        let asked = |profile: &Profile, text: &str| {
            request(&args, "lab", profile, &InputSpec::parse(text).unwrap(), Face::Console)
        };
        let of = |text: &str| asked(&lab(), text).unwrap();
        let file = of("new.b8");
        assert_eq!(file.shots, ShotSource::File { shots: PathBuf::from("new.b8"), observables: None });
        assert_eq!(
            (file.model, file.profile.silos),
            (ModelSource::Option(PathBuf::from("surface_d5")), Silos::Count(2))
        );
        assert!(matches!(of("sampler").shots, ShotSource::Sampler { .. }));
        let live = of("udp:127.0.0.1:7000");
        assert!(matches!(live.shots, ShotSource::Live(_)) && live.profile.input.source.model() == "surface_d5");
        // Back from there the sampler draws of the same model.
        let back = asked(&live.profile, "sampler").unwrap();
        assert!(matches!(back.shots, ShotSource::Sampler { .. }));
        for (text, about) in [
            ("udp:nowhere", "input udp:nowhere"),
            ("-", "input -"),
            ("udp:127.0.0.1:7000 --observables o", "--observables"),
            ("sampler --observables o", "--observables"),
            ("a.b8 --format stim", "--format"),
        ] {
            let said = asked(&lab(), text).unwrap_err().to_string();
            assert!(said.contains(about) && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn another_model_truth_and_format_come_with_the_input() {
        let spec = InputSpec::parse("new.01 --dem m.dem --observables truth.01 --format 01").unwrap();
        let of = |spec: &InputSpec| request(&RunArgs::default(), "lab", &lab(), spec, Face::People).unwrap();
        let file = of(&spec);
        let observables = Some(PathBuf::from("truth.01"));
        assert_eq!(file.shots, ShotSource::File { shots: PathBuf::from("new.01"), observables });
        assert_eq!((file.model, file.format), (ModelSource::Option(PathBuf::from("m.dem")), Format::Text01));
        let drawn = of(&InputSpec::parse("sampler --dem surface_d3").unwrap());
        assert_eq!(drawn.model, ModelSource::Option(PathBuf::from("surface_d3")));
        assert_eq!(drawn.face, Face::People);
    }

    #[test]
    fn the_place_that_a_run_has_is_known_by_any_of_its_names() {
        let place = |text: &str| LivePlace::parse(text).unwrap();
        let here = format!("unix:{}/in", std::env::current_dir().unwrap().display());
        for (one, other, expected) in [
            ("unix:in", here.as_str(), true),
            ("unix:in", "unix:/in", false),
            ("udp:127.0.0.1:7000", "udp:127.0.0.1:7000", true),
            ("udp:127.0.0.1:7000", "udp:127.0.0.1:7001", false),
            ("shm:a", "shm:a", true),
            ("shm:a", "unix:a", false),
        ] {
            assert_eq!(is_same(&place(one), &place(other)), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_run_whose_results_are_of_one_input_takes_no_other() {
        let settled = |args: &RunArgs| RunRequest::settle(args, "lab".to_owned(), lab(), true).unwrap();
        assert_eq!(keeps_results_apart(&settled(&RunArgs::default())), Ok(()));
        let (file, dem) = (Some(PathBuf::from("f")), Some(PathBuf::from("surface_d3")));
        for (option, args) in [
            ("--count", RunArgs { count: Some(5), ..RunArgs::default() }),
            ("--json", RunArgs { json: true, ..RunArgs::default() }),
            ("--answers", RunArgs { answers: file.clone(), ..RunArgs::default() }),
            ("--predictions", RunArgs { predictions: file, ..RunArgs::default() }),
            ("--shots -", RunArgs { shots: Some(PathBuf::from("-")), dem, ..RunArgs::default() }),
        ] {
            let said = keeps_results_apart(&settled(&args)).unwrap_err();
            assert!(said.contains(&format!("found {option}, ")) && said.contains("start another"), "{said}");
        }
    }
}
