//! `pinwheel plan`: which roles would run on which threads and cores, without starting anything.
//!
//! Reads the machine and a profile. A plan that this machine refuses is unusable input, as it is for a
//! run: exit status 2.

use super::args::PlanArgs;
use super::places::{self, Surroundings};
use super::refusal::Refusal;
use super::{UNUSABLE, say, written};
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::plan::{Plan, PlanError};
use pinwheel_engine::profile::{DEFAULT_NAME, Profile};
use std::fmt::Write;
use std::io;

pub fn plan(args: &PlanArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let dir = places::profiles(args.profiles.as_deref(), around)?;
    let name = args.profile.as_deref().unwrap_or(DEFAULT_NAME);
    let (profile, _) = Profile::load(name, dir.as_deref())?;
    let made = Plan::make(&profile, &HostFacts::read()?);
    Ok(tell(&made, args.json, &mut io::stdout().lock()))
}

fn tell(made: &Result<Plan, PlanError>, json: bool, out: &mut dyn io::Write) -> u8 {
    match made {
        Ok(plan) => written(if json { say::json(out, plan) } else { say::text(out, &text(plan)) }, 0),
        Err(refused) => {
            say::people(&format!("pinwheel: plan: {refused}"));
            written(if json { say::json(out, refused) } else { Ok(()) }, UNUSABLE)
        }
    }
}

fn text(plan: &Plan) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for thread in &plan.threads {
        let place = match (thread.core, thread.exclusive) {
            (Some(core), true) => format!("core {core}, its own"),
            (Some(core), false) => format!("core {core}, shared"),
            (None, _) => "not pinned".to_owned(),
        };
        let roles: Vec<&str> = thread.roles.iter().map(|role| role.kind.name()).collect();
        let _ = writeln!(text, "{:<15}  {place:<16}  {}", thread.name, roles.join(" "));
    }
    let _ = writeln!(text, "{:<15}  cores {}", "cold work", cores(&plan.cold_cores));
    if !plan.unused_cores.is_empty() {
        let _ = writeln!(text, "{:<15}  cores {} (siblings of hot cores)", "left unused", cores(&plan.unused_cores));
    }
    for note in &plan.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

fn cores(cores: &[u32]) -> String {
    let names: Vec<String> = cores.iter().map(u32::to_string).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::tell;
    use pinwheel_engine::host::HostFacts;
    use pinwheel_engine::plan::Plan;
    use pinwheel_engine::profile::{Profile, RoleKind, ThreadSpec, Threads};
    use std::path::Path;

    fn told(threads: Option<Vec<ThreadSpec>>, json: bool) -> (u8, String) {
        let (mut profile, _) = Profile::load("lab", None).unwrap();
        profile.threads = threads.map_or(Threads::Auto, Threads::Explicit);
        let host = HostFacts::read_at(Path::new("/no/such"), &[0, 1]);
        let mut out = Vec::new();
        let status = tell(&Plan::make(&profile, &host), json, &mut out);
        (status, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_plan_for_two_cores_names_every_role() {
        let (status, text) = told(None, false);
        assert_eq!(status, 0);
        for role in RoleKind::ALL {
            assert!(text.contains(role.name()), "{role} in {text}");
        }
        let plan: serde_json::Value = serde_json::from_str(&told(None, true).1).unwrap();
        for key in ["threads", "cold_cores", "unused_cores", "refused"] {
            assert!(plan.get(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_plan_on_a_core_that_is_not_there_is_refused_with_2() {
        let roles = RoleKind::ALL.to_vec();
        let spec = ThreadSpec { name: "hot-0".to_owned(), roles, silo: 0, core: Some(7) };
        let (status, text) = told(Some(vec![spec.clone()]), true);
        let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(status == 2 && plan["refused"].as_str().unwrap().contains('7'), "{text}");
        assert_eq!(told(Some(vec![spec]), false), (2, String::new()));
    }
}
