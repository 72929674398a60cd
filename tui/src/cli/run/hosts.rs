//! The other hosts of a run: reads their settings, and joins them once the engine runs.
//!
//! Runs on the run's thread. Without the feature `hosts` it refuses the option.

use crate::cli::refusal::Refusal;
use crate::cli::request::{RunRequest, ShotSource};
use pinwheel_engine::engine::Input;
use pinwheel_engine::feed::bridge::{self, Bridge, BridgeEnd};
use pinwheel_hosts::settings::HostSettings;
use pinwheel_report::recorded::RecordedRun;
use std::path::Path;

#[cfg(feature = "hosts")]
pub(super) use pinwheel_hosts::bridge::Joined;

/// No host can be joined by this build.
#[cfg(not(feature = "hosts"))]
pub(super) enum Joined {}

/// The settings in `path`, for a run that can share its streams.
pub(super) fn settings(path: &Path, request: &RunRequest) -> Result<HostSettings, Refusal> {
    let about = format!("--hosts {}", path.display());
    crate::cli::hosts::require_build(&about)?;
    if !matches!(request.shots, ShotSource::Live(_)) || request.decoders.is_some() {
        let remedy = "add --input udp:ADDRESS:PORT, unix:PATH or shm:NAME";
        return Err(Refusal::unusable(about, "shots of this host alone", "a live source of shots", remedy));
    }
    if request.profile.input.joint_every.is_some() {
        let (found, expected) = ("a profile with joint readouts", "streams that are answered each for itself");
        return Err(Refusal::unusable(about, found, expected, "set input.joint_every: None in the profile"));
    }
    HostSettings::read(path).map_err(|error| Refusal::Content { about: "--hosts".to_owned(), said: error.to_string() })
}

/// Both ends of the engine's bridge, if the run has other hosts.
pub(super) fn bridge(request: &RunRequest, input: &Input) -> Option<(BridgeEnd, Bridge)> {
    request.hosts.as_ref().map(|_| bridge::bridge(input.model(), request.profile.input.streams))
}

#[cfg(feature = "hosts")]
pub(super) fn join(
    request: &RunRequest,
    bridge: Option<Bridge>,
    recorded: &RecordedRun,
) -> Result<Option<Joined>, Refusal> {
    use crate::cli::request::OutputMode;
    use crate::cli::say;
    use pinwheel_hosts::bridge::Ends;
    use pinwheel_report::control::ControlSocket;
    let Some((settings, bridge)) = request.hosts.as_ref().zip(bridge) else { return Ok(None) };
    let engine = recorded.engine();
    let path = engine.snapshot().control.socket.map(std::path::PathBuf::from);
    let uid = pinwheel_engine::host::neighbours::own_uid().unwrap_or_default();
    let ends = Ends {
        settings: settings.clone(),
        bridge,
        viewer: engine.viewer(),
        models: engine.models(),
        clock: engine.clock().clone(),
        run_dir: recorded.path().to_owned(),
        control: ControlSocket { pid: std::process::id(), uid, path },
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let joined = Joined::start(ends)
        .map_err(|error| Refusal::Content { about: "--hosts".to_owned(), said: error.to_string() })?;
    if request.output_mode != OutputMode::Console {
        let HostSettings { name, cluster, .. } = settings;
        say::people(&format!("pinwheel: host {name} of {cluster} at {}", joined.endpoints().join(", ")));
    }
    Ok(Some(joined))
}

/// A run has no other hosts in this build: the settings were refused.
#[cfg(not(feature = "hosts"))]
pub(super) fn join(_: &RunRequest, _: Option<Bridge>, _: &RecordedRun) -> Result<Option<Joined>, Refusal> {
    Ok(None)
}

/// Leaves the other hosts, after the engine has ended.
pub(super) fn leave(_: Option<Joined>) {}
