//! `pinwheel plan`: shows which roles would run on which threads and cores, without starting
//! anything.
//!
//! Reads a profile and this machine or a recorded one. A plan that the machine cannot provide is
//! unusable input, as for a run: exit status 2.

use super::places::{self, UserPaths};
use super::refusal::{Refusal, UNUSABLE};
use super::say::{self, Print};
use clap::Args as ClapArgs;
use pinwheel_engine::board;
use pinwheel_engine::engine::preview_plan;
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::plan::{Plan, PlanError};
use pinwheel_engine::profile::{DEFAULT_NAME, Device, Profile};
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub struct PlanArgs {
    /// Profile: a name or a path that ends in .ron
    #[arg(long, value_name = "P")]
    pub profile: Option<String>,
    /// Plan on these cores only, as in 2-5,8
    #[arg(long, value_name = "SPEC", value_parser = core_list)]
    pub cores: Option<CoreList>,
    /// Plan for the machine whose /sys (and /proc) was copied to this directory
    #[arg(long, value_name = "DIR")]
    pub topology: Option<PathBuf>,
    /// Directory of profiles [default: the checkout's, else those built in]
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    #[command(flatten)]
    pub print: Print,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreList(pub Vec<u32>);

fn core_list(text: &str) -> Result<CoreList, String> {
    let list = pinwheel_engine::host::parse_cpu_list(text).filter(|cores| !cores.is_empty());
    list.map(CoreList).ok_or_else(|| "expected numbers of cores; write it like --cores 2-5,8".to_owned())
}

pub fn plan(args: &PlanArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let dir = places::profiles(args.profiles.as_deref(), user_paths)?;
    let name = args.profile.as_deref().unwrap_or(DEFAULT_NAME);
    let (mut profile, _) = Profile::load(name, dir.as_deref())?;
    let host = match (&args.topology, &args.cores) {
        (Some(dir), cores) => restricted(HostFacts::read_recorded(dir)?, cores.as_ref())?,
        (None, Some(cores)) => restricted(HostFacts::read()?, Some(cores))?,
        // As a run would, excludes the cores that other engines have claimed.
        (None, None) => {
            let made = preview_plan(&profile, HostFacts::read()?, &board::directory());
            return Ok(print_plan(&made, args.print, &mut io::stdout().lock()));
        }
    };
    if profile.device == Device::Auto {
        let gpu = Device::Cuda { index: None, batch_shots: 1 };
        profile.device = if host.gpus > 0 { gpu } else { profile.device_without_gpu() };
    }
    Ok(print_plan(&make(&profile, &host), args.print, &mut io::stdout().lock()))
}

/// The plan, with a note for each thread that cannot have a setting of the profile.
fn make(profile: &Profile, host: &HostFacts) -> Result<Plan, PlanError> {
    let mut plan = Plan::make(profile, host)?;
    let refusals = plan.refusals();
    plan.notes.extend(refusals);
    Ok(plan)
}

fn restricted(mut host: HostFacts, cores: Option<&CoreList>) -> Result<HostFacts, Refusal> {
    if let Some(CoreList(cores)) = cores {
        host.restrict(cores)?;
    }
    Ok(host)
}

fn print_plan(made: &Result<Plan, PlanError>, print: Print, out: &mut dyn io::Write) -> u8 {
    match made {
        Ok(plan) => print.result(out, plan, || text(plan), 0),
        Err(refused) => {
            say::people(&format!("pinwheel: plan: {refused}"));
            print.result(out, refused, String::new, UNUSABLE)
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
    let _ = writeln!(text, "{:<15}  {}, {}", "silos", plan.silos.count, plan.silos.why);
    let _ = writeln!(text, "{:<15}  cores {}", "cold work", names_of(&plan.cold_cores));
    if !plan.unused_cores.is_empty() {
        let _ = writeln!(text, "{:<15}  cores {} (siblings of hot cores)", "left unused", names_of(&plan.unused_cores));
    }
    let _ = writeln!(text, "{:<15}  {:?}, priority {}", "spin", plan.spin, plan.priority);
    for note in &plan.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

fn names_of(cores: &[u32]) -> String {
    let names: Vec<String> = cores.iter().map(u32::to_string).collect();
    if names.is_empty() { "as the system chooses".to_owned() } else { names.join(" ") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Print, make, print_plan};
    use pinwheel_engine::host::HostFacts;
    use pinwheel_engine::plan::Plan;
    use pinwheel_engine::profile::{Priority, Profile, ThreadSpec, Threads};
    use pinwheel_engine::roles::RoleKind;
    use std::path::Path;

    fn printed(threads: Option<Vec<ThreadSpec>>, json: bool) -> (u8, String) {
        let (mut profile, _) = Profile::load("lab", None).unwrap();
        profile.threads = threads.map_or(Threads::Auto, Threads::Explicit);
        let host = HostFacts::read_at(Path::new("/no/such"), &[0, 1]);
        let mut out = Vec::new();
        let status = print_plan(&Plan::make(&profile, &host), Print { json }, &mut out);
        (status, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_plan_for_two_cores_names_every_role() {
        let (status, text) = printed(None, false);
        assert_eq!(status, 0);
        for role in RoleKind::ALL {
            assert!(text.contains(role.name()), "{role} in {text}");
        }
        let plan: serde_json::Value = serde_json::from_str(&printed(None, true).1).unwrap();
        for key in ["silos", "threads", "cold_cores", "unused_cores", "refused"] {
            assert!(plan.get(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_plan_says_who_refuses_what_the_profile_asks_and_why() {
        let (mut profile, _) = Profile::load("prod", None).unwrap();
        profile.priority = Priority::Fifo(10);
        let host = HostFacts::read_at(Path::new("/no/such"), &[0, 1]);
        let plan = make(&profile, &host);
        let mut out = Vec::new();
        print_plan(&plan, Print::default(), &mut out);
        let text = String::from_utf8(out).unwrap();
        let cold = plan.unwrap().threads.into_iter().find(|thread| !thread.exclusive).unwrap();
        for part in [
            format!("{} runs spin Lab instead of Prod: ", cold.name),
            format!("{} runs at priority normal instead of fifo 10: ", cold.name),
            "Prod, priority fifo 10".to_owned(),
        ] {
            assert!(text.contains(&part), "{part}: {text}");
        }
    }

    #[test]
    fn a_plan_on_a_core_that_is_not_there_is_refused_with_2() {
        let roles = RoleKind::ALL.to_vec();
        let spec = ThreadSpec { name: "hot-0".to_owned(), roles, silo: 0, core: Some(7) };
        let (status, text) = printed(Some(vec![spec.clone()]), true);
        let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(status == 2 && plan["refused"].as_str().unwrap().contains('7'), "{text}");
        assert_eq!(printed(Some(vec![spec]), false), (2, String::new()));
    }
}
