//! Builds the request of the next run after a change of input, and refuses runs that allow none.
//!
//! Pure, except that relative paths are resolved in the working directory.

use super::args::RunArgs;
use crate::cli::refusal::Refusal;
use crate::cli::request::{OutputMode, RunRequest, ShotSource};
use pinwheel_engine::engine::{InputSpec, LivePlace};
use pinwheel_engine::profile::{Profile, Source};
use std::path::{Path, PathBuf, absolute};

/// Refuses a change of input where the run's options or results belong to one input only.
pub(super) fn allows_next_run(request: &RunRequest) -> Result<(), String> {
    let outputs = [
        ("--answers", request.answers.is_some(), "the answers file belongs"),
        ("--predictions", request.predictions.is_some(), "the predictions file belongs"),
        ("--count", request.count.is_some(), "the number of shots belongs"),
        ("--json", request.output_mode == OutputMode::Scripts, "the report belongs"),
        ("--hosts", request.hosts.is_some(), "the streams that other hosts decode belong"),
        ("--shots -", request.shots == ShotSource::Stdin, "standard input belongs"),
    ];
    match outputs.into_iter().find(|(_, is_given, _)| *is_given) {
        None => Ok(()),
        Some((option, _, reason)) => Err(format!(
            "a run with {option} cannot change its input: {reason} to the current one; end this run and start another"
        )),
    }
}

/// The request of the next run: the options and `profile` of this run, with the new input.
pub(super) fn request(
    args: &RunArgs,
    name: &str,
    profile: &Profile,
    spec: &InputSpec,
    output_mode: OutputMode,
) -> Result<RunRequest, Refusal> {
    let mut args = args.clone();
    let mut profile = profile.clone();
    let from = spec.from.as_str();
    let model = profile.input.source.model().to_owned();
    (args.shots, args.soft, args.input) = (None, None, None);
    // The profile has them as they were given or changed since.
    (args.rate, args.deadline, args.decoder, args.shadow) = (None, None, None, None);
    // The configuration belongs to the input that ends.
    (args.cudaq_config, args.ready_line) = (None, false);
    args.observables = spec.observables.as_ref().map(PathBuf::from);
    args.dem = spec.dem.as_ref().map(PathBuf::from).or(args.dem);
    if let Some(format) = &spec.format {
        let content = |said| Refusal::Content { about: format!("input {from} --format"), said };
        args.format = Some(format.parse().map_err(content)?);
    }
    if !matches!(profile.input.source, Source::Sampler { .. }) {
        profile.input.source = Source::Sampler { model: model.clone(), seed: 1 };
    }
    let place = LivePlace::parse(from);
    // They belong to such a source.
    if !matches!(place, Ok(LivePlace::Udp { .. } | LivePlace::Cudaq { .. })) {
        args.allow.clear();
    }
    if !matches!(place, Ok(LivePlace::Cudaq { .. })) {
        args.cudaq_slot_size = None;
    }
    match place {
        _ if from == "sampler" => {}
        Ok(_) if spec.observables.is_some() => {
            let about = format!("input {from} --observables");
            let remedy = "name a file of shots, or omit the observables";
            return Err(Refusal::unusable(about, "a live source", "shots from a file", remedy));
        }
        Ok(place) => args.input = Some(place),
        Err(said) if ["udp:", "cudaq:", "unix:", "shm:"].iter().any(|kind| from.starts_with(kind)) => {
            return Err(Refusal::Content { about: format!("input {from}"), said });
        }
        Err(_) if from == "-" => {
            let (about, found) = ("input -", "standard input, which can only be given at the start");
            return Err(Refusal::unusable(about, found, "a file", "name one"));
        }
        Err(_) => {
            args.shots = Some(Path::new(from).to_owned());
            args.dem = args.dem.or(Some(PathBuf::from(model)));
        }
    }
    RunRequest::resolve(&args, name.to_owned(), profile, output_mode == OutputMode::Console)
}

/// Whether two live sources use the same address, so that only one can be open.
pub(super) fn is_same(one: &LivePlace, other: &LivePlace) -> bool {
    match (one, other) {
        (
            LivePlace::Udp { at: one, .. } | LivePlace::Cudaq { at: one, .. },
            LivePlace::Udp { at: other, .. } | LivePlace::Cudaq { at: other, .. },
        ) => one == other,
        (LivePlace::Unix(one), LivePlace::Unix(other)) => absolute(one).ok() == absolute(other).ok(),
        (LivePlace::Shm { name: one, .. }, LivePlace::Shm { name: other, .. }) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::RunArgs;
    use super::{InputSpec, LivePlace, OutputMode, RunRequest, allows_next_run, is_same, request};
    use crate::cli::request::{ModelSource, ShotSource};
    use pinwheel_engine::code::Format;
    use pinwheel_engine::profile::{Decoder, Profile, Rate, Shadow, Silos};
    use std::path::PathBuf;
    use std::time::Duration;

    fn lab() -> Profile {
        Profile::load("lab", None).unwrap().0
    }

    #[test]
    fn a_new_input_keeps_the_model_and_the_other_options() {
        let args = RunArgs { silos: Some(Silos::Count(2)), shots: Some(PathBuf::from("old")), ..RunArgs::default() };
        let asked = |profile: &Profile, text: &str| {
            request(&args, "lab", profile, &InputSpec::parse(text).unwrap(), OutputMode::Console)
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
        // After a live source, the sampler uses the same model again.
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
    fn what_was_changed_during_the_run_is_not_taken_back_by_the_options_of_its_start() {
        let args = RunArgs {
            rate: Some(Rate::Hz(5.0)),
            deadline: Some(Duration::from_micros(20)),
            decoder: Some(Decoder::Correlated),
            shadow: Some(Shadow { decoder: Decoder::Lookup, one_in: 7, model: None }),
            ..RunArgs::default()
        };
        let mut now = lab();
        (now.decoder, now.limits.late_us) = (Decoder::UnionFind, 77);
        let spec = InputSpec::parse("sampler").unwrap();
        let next = request(&args, "lab", &now, &spec, OutputMode::People).unwrap().profile;
        assert_eq!((next.decoder, next.limits.late_us, next.shadow), (Decoder::UnionFind, 77, None));
        assert_eq!(next.input.rate, now.input.rate);
    }

    #[test]
    fn options_of_a_source_on_the_network_are_left_out_where_the_next_is_none() {
        let args = RunArgs { allow: vec!["10.0.0.7".to_owned()], cudaq_slot_size: Some(300), ..RunArgs::default() };
        let of = |text: &str| request(&args, "lab", &lab(), &InputSpec::parse(text).unwrap(), OutputMode::People);
        for text in ["unix:/a", "shm:a", "sampler", "a.b8"] {
            assert!(of(text).is_ok(), "{text}: {:?}", of(text).err().map(|refusal| refusal.to_string()));
        }
        let ShotSource::Live(LivePlace::Udp { allow, .. }) = of("udp:0.0.0.0:7000").unwrap().shots else { panic!() };
        assert_eq!(allow.len(), 1);
        let ShotSource::Live(LivePlace::Cudaq { allow, slot_bytes, .. }) = of("cudaq:0.0.0.0:7000").unwrap().shots
        else {
            panic!()
        };
        assert_eq!((allow.len(), slot_bytes), (1, 300));
    }

    #[test]
    fn another_model_truth_and_format_come_with_the_input() {
        let spec = InputSpec::parse("new.01 --dem m.dem --observables truth.01 --format 01").unwrap();
        let of = |spec: &InputSpec| request(&RunArgs::default(), "lab", &lab(), spec, OutputMode::People).unwrap();
        let file = of(&spec);
        let observables = Some(PathBuf::from("truth.01"));
        assert_eq!(file.shots, ShotSource::File { shots: PathBuf::from("new.01"), observables });
        assert_eq!((file.model, file.format), (ModelSource::Option(PathBuf::from("m.dem")), Format::Text01));
        let drawn = of(&InputSpec::parse("sampler --dem surface_d3").unwrap());
        assert_eq!(drawn.model, ModelSource::Option(PathBuf::from("surface_d3")));
        assert_eq!(drawn.output_mode, OutputMode::People);
    }

    #[test]
    fn a_live_source_is_recognised_under_other_spellings() {
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
    fn a_run_whose_results_belong_to_one_input_refuses_another() {
        let resolved = |args: &RunArgs| RunRequest::resolve(args, "lab".to_owned(), lab(), true).unwrap();
        assert_eq!(allows_next_run(&resolved(&RunArgs::default())), Ok(()));
        let (file, dem) = (Some(PathBuf::from("f")), Some(PathBuf::from("surface_d3")));
        for (option, args) in [
            ("--count", RunArgs { count: Some(5), ..RunArgs::default() }),
            ("--json", RunArgs { json: true, ..RunArgs::default() }),
            ("--answers", RunArgs { answers: file.clone(), ..RunArgs::default() }),
            ("--predictions", RunArgs { predictions: file, ..RunArgs::default() }),
            ("--shots -", RunArgs { shots: Some(PathBuf::from("-")), dem, ..RunArgs::default() }),
        ] {
            let said = allows_next_run(&resolved(&args)).unwrap_err();
            assert!(said.contains(&format!("a run with {option} ")) && said.contains("start another"), "{said}");
        }
    }
}
