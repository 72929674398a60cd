//! Plans of many machines: exact ones for the common sizes, invariants for all.
#![allow(clippy::unwrap_used, reason = "harness")]

mod recorded;
mod silos;

use std::collections::BTreeSet;

use super::{Plan, PlanError, PlannedRole, PlannedThread, RoleKind};
use crate::host::{CoreFacts, HostFacts, Quota};
use crate::profile::{Decoders, Profile, Silos, Source, SpinPolicy, ThreadSpec, Threads};

use RoleKind::{Decode, Device, Dispatch, Feed, Harvest, Poll};

fn host(cores: Vec<CoreFacts>) -> HostFacts {
    HostFacts {
        hostname: None,
        kernel_release: None,
        boot_id: None,
        user: None,
        cpu_model: None,
        hypervisor: None,
        memory_bytes: None,
        cpu_quota: Quota::NotVisible,
        cores,
        gpu_nodes: vec![],
        gpus: 0,
    }
}

fn plain(cores: impl IntoIterator<Item = u32>) -> HostFacts {
    host(cores.into_iter().map(|core| CoreFacts { core, node: 0, siblings: vec![] }).collect())
}

/// `count` physical cores of two SMT threads, numbered `n` and `n + count`.
fn smt(count: u32) -> HostFacts {
    let thread = |core: u32| CoreFacts { core, node: 0, siblings: vec![(core + count) % (2 * count)] };
    host((0..2 * count).map(thread).collect())
}

/// `count` physical cores of two SMT threads, numbered `2n` and `2n + 1`.
fn smt_adjacent(count: u32) -> HostFacts {
    host((0..2 * count).map(|core| CoreFacts { core, node: 0, siblings: vec![core ^ 1] }).collect())
}

fn profile(silos: u32) -> Profile {
    let (mut profile, _) = Profile::load("prod", None).unwrap();
    profile.silos = Silos::Count(silos);
    profile
}

/// `name core: roles`, exclusive threads marked by `!`.
fn lines(plan: &Plan) -> Vec<String> {
    let line = |thread: &PlannedThread| {
        let roles: Vec<String> = thread.roles.iter().map(|role| format!("{}{}", role.kind, role.silo)).collect();
        let core = thread.core.map_or_else(|| "-".to_owned(), |core| core.to_string());
        format!("{} {core}{}: {}", thread.name, if thread.exclusive { "!" } else { "" }, roles.join(" "))
    };
    plan.threads.iter().map(line).collect()
}

/// What holds for every plan, with the machine named in the message.
fn assert_sound(plan: &Plan, profile: &Profile, host: &HostFacts, machine: &str) {
    let mut ring: Vec<(u32, RoleKind)> = Vec::new();
    for role in plan.roles().filter(|role| role.kind != Decode) {
        ring.push((role.silo, role.kind));
    }
    ring.sort_unstable();
    let expected: Vec<(u32, RoleKind)> =
        (0..plan.silos.count).flat_map(|silo| RoleKind::RING.map(|kind| (silo, kind))).collect();
    assert_eq!(ring, expected, "{machine}: each ring role of each silo exactly once");
    for silo in 0..plan.silos.count {
        let decode = plan.roles().filter(|role| role.kind == Decode && role.silo == silo);
        let mut indices: Vec<u32> = decode.map(|role| role.index).collect();
        indices.sort_unstable();
        assert_eq!(indices, (0..plan.decoders(silo)).collect::<Vec<_>>(), "{machine}: decoders are numbered");
        match profile.decoders {
            Decoders::Auto => assert!((1..=8).contains(&indices.len()), "{machine}: 1..=8 decoders"),
            Decoders::Count(count) => assert_eq!(indices.len(), count as usize, "{machine}: as many as asked for"),
        }
    }

    let names: BTreeSet<&str> = plan.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names.len(), plan.threads.len(), "{machine}: names are unique");
    assert!(names.iter().all(|name| (1..=15).contains(&name.len())), "{machine}: names fit");
    assert!(plan.threads.iter().all(|thread| !thread.roles.is_empty()), "{machine}: no idle thread");

    let hot: Vec<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
    assert_eq!(hot.len(), hot.iter().collect::<BTreeSet<_>>().len(), "{machine}: no core for two threads");
    assert!(hot.iter().all(|&core| host.core(core).is_some()), "{machine}: allowed cores only");
    assert!(hot.len() <= profile.max_cores.map_or(usize::MAX, |max| max as usize), "{machine}: max_cores");
    assert!(!plan.cold_cores.is_empty(), "{machine}: cold work has a core");
    for thread in &plan.threads {
        let core = thread.core.unwrap();
        let siblings = &host.core(core).unwrap().siblings;
        assert!(!siblings.iter().any(|s| hot.contains(s)), "{machine}: no thread on a hot core's sibling");
        if thread.exclusive {
            assert!(!plan.cold_cores.contains(&core), "{machine}: no cold work on an exclusive core");
            assert!(siblings.iter().all(|s| plan.unused_cores.contains(s)), "{machine}: siblings are unused");
            assert_eq!(thread.refuses(SpinPolicy::Prod), None);
        } else {
            assert!(thread.refuses(SpinPolicy::Prod).is_some(), "{machine}: Prod needs a core of its own");
        }
        assert_eq!(thread.refuses(SpinPolicy::Lab), None);
    }
    let mut all: Vec<u32> = [&plan.cold_cores[..], &plan.unused_cores].concat();
    all.extend(plan.threads.iter().filter(|thread| thread.exclusive).filter_map(|thread| thread.core));
    let distinct: BTreeSet<u32> = all.iter().copied().collect();
    assert_eq!(all.len(), distinct.len(), "{machine}: a core has one use");
}

#[test]
fn plans_of_all_machines_are_sound() {
    let mut machines: Vec<(String, HostFacts)> =
        [1, 2, 3, 4, 5, 6, 7, 8, 16, 64, 128].iter().map(|&n| (format!("{n} cores"), plain(0..n))).collect();
    machines.extend([1, 2, 4, 8].map(|n| (format!("{n} cores with SMT"), smt(n))));
    machines.extend([1, 4, 8].map(|n| (format!("{n} cores with adjacent SMT"), smt_adjacent(n))));
    machines.push(("cpuset 8..12".to_owned(), plain(8..12)));
    machines.push(("cpuset 8..20".to_owned(), plain(8..20)));
    for (machine, host) in &machines {
        for silos in [1, 2, 4, 64] {
            for decoders in [Decoders::Auto, Decoders::Count(1), Decoders::Count(3), Decoders::Count(64)] {
                for max_cores in [None, Some(1), Some(2), Some(4)] {
                    let profile = Profile { decoders, max_cores, ..profile(silos) };
                    let machine = format!("{machine}, {silos} silos, {decoders:?}, max {max_cores:?}");
                    assert_sound(&Plan::auto(&profile, host), &profile, host, &machine);
                }
            }
        }
    }
}

#[test]
fn a_balanced_plan_decodes_beside_the_roles_that_follow_a_decode() {
    let balanced = Profile { threads: Threads::Balanced, ..profile(1) };
    let of = |cores: u32| lines(&Plan::auto(&balanced, &plain(0..cores)));
    let (front, back) = ("feed0 dispatch0 device0 poll0", "graph0 decode0 harvest0");
    assert_eq!(of(1), [format!("hot-0 0: {front} {back}")], "folded");
    assert_eq!(of(2), [format!("hot-0 1!: {front}"), format!("hot-1 0: {back}")]);
    assert_eq!(of(4), [format!("hot-0 1!: {front}"), format!("hot-1 2!: {back}"), "decode-0 3!: decode0".to_owned()]);
    for cores in 1..12 {
        for silos in 1..4 {
            let (host, balanced) = (plain(0..cores), Profile { threads: Threads::Balanced, ..profile(silos) });
            assert_sound(&Plan::auto(&balanced, &host), &balanced, &host, &format!("{cores} cores, {silos} silos"));
        }
    }
}

#[test]
fn one_core_runs_everything_and_shares_it() {
    let plan = Plan::auto(&profile(1), &plain([0]));
    assert_eq!(lines(&plan), ["hot-0 0: feed0 dispatch0 device0 poll0 graph0 decode0 harvest0"]);
    assert_eq!(plan.cold_cores, [0]);
}

#[test]
fn two_cores_give_the_ring_the_higher_and_decode_shares_the_lower() {
    let plan = Plan::auto(&profile(1), &plain([0, 1]));
    assert_eq!(lines(&plan), ["hot-0 1!: feed0 dispatch0 device0 poll0 graph0 harvest0", "decode-0 0: decode0"]);
    assert_eq!(plan.cold_cores, [0]);
    let plan = Plan::auto(&profile(2), &plain([0, 1]));
    let ring = "hot-0 1!: feed0 dispatch0 device0 poll0 graph0 harvest0 feed1 dispatch1 device1 poll1 graph1 harvest1";
    assert_eq!(lines(&plan), [ring, "decode-0 0: decode0 decode1"]);
}

#[test]
fn calls_of_cuda_q_leave_the_lower_of_two_cores_to_the_client() {
    let mut profile = profile(1);
    profile.input.source = Source::Cudaq {
        address: "127.0.0.1:0".to_owned(),
        allow: Vec::new(),
        config: "surface_d3".to_owned(),
        slot_size: 256,
    };
    let plan = Plan::auto(&profile, &plain([0, 1]));
    assert_eq!(lines(&plan), ["hot-0 1!: feed0 dispatch0 device0 poll0 graph0 decode0 harvest0"]);
    assert_eq!(
        (&plan.cold_cores[..], &plan.notes[0][..]),
        (&[0][..], "core 0 left to the client, which waits for each reply")
    );
    assert_eq!(Plan::auto(&profile, &plain(0..3)).threads.len(), 2);
    profile.threads = Threads::Balanced;
    assert_eq!(Plan::auto(&profile, &plain([0, 1])).threads.len(), 2);
}

#[test]
fn three_cores_give_decode_its_own() {
    let plan = Plan::auto(&profile(1), &plain(0..3));
    assert_eq!(lines(&plan), ["hot-0 1!: feed0 dispatch0 device0 poll0 graph0 harvest0", "decode-0 2!: decode0"]);
    assert_eq!(plan.cold_cores, [0]);
}

#[test]
fn four_cores_have_two_decoders() {
    let plan = Plan::auto(&profile(1), &plain(0..4));
    let ring = "hot-0 1!: feed0 dispatch0 device0 poll0 graph0 harvest0";
    assert_eq!(lines(&plan), [ring, "decode-0 2!: decode0", "decode-1 3!: decode0"]);
    assert_eq!(plan.cold_cores, [0]);
}

#[test]
fn five_cores_split_the_ring_in_two() {
    let plan = Plan::auto(&profile(1), &plain(0..5));
    let ring = ["hot-0 1!: feed0 harvest0", "hot-1 2!: dispatch0 device0 poll0 graph0"];
    assert_eq!(lines(&plan), [ring[0], ring[1], "decode-0 3!: decode0", "decode-1 4!: decode0"]);
}

#[test]
fn eight_cores_leave_two_to_the_system() {
    let expected = [
        "hot-0 2!: feed0 harvest0",
        "hot-1 3!: dispatch0 poll0 graph0",
        "device-0 4!: device0",
        "decode-0 5!: decode0",
        "decode-1 6!: decode0",
        "decode-2 7!: decode0",
    ];
    let plan = Plan::auto(&profile(1), &plain(0..8));
    assert_eq!(lines(&plan), expected);
    assert_eq!((plan.cold_cores, plan.unused_cores), (vec![0, 1], vec![]));

    let plan = Plan::auto(&profile(1), &smt(8));
    assert_eq!(lines(&plan), expected);
    assert_eq!((plan.cold_cores, plan.unused_cores), (vec![0, 1, 8, 9], vec![10, 11, 12, 13, 14, 15]));
}

#[test]
fn twelve_cores_give_every_role_its_own_but_graph_stays_with_poll() {
    let plan = Plan::auto(&profile(1), &plain(0..12));
    let names: Vec<&str> = plan.threads.iter().map(|thread| thread.name.as_str()).collect();
    let ring = ["feed-0", "dispatch-0", "device-0", "hot-0", "harvest-0"];
    assert_eq!(names, [&ring[..], &["decode-0", "decode-1", "decode-2", "decode-3", "decode-4"]].concat());
}

#[test]
fn four_silos_on_eight_cores_take_turns() {
    let plan = Plan::auto(&profile(4), &plain(0..8));
    let expected = [
        "hot-0 2!: feed0 dispatch0 device0 poll0 graph0 harvest0 feed3 dispatch3 device3 poll3 graph3 harvest3",
        "hot-1 3!: feed1 dispatch1 device1 poll1 graph1 harvest1",
        "hot-2 4!: feed2 dispatch2 device2 poll2 graph2 harvest2",
        "decode-0 5!: decode0 decode3",
        "decode-1 6!: decode1",
        "decode-2 7!: decode2",
    ];
    assert_eq!(lines(&plan), expected);
}

#[test]
fn two_siblings_are_one_core_with_room_for_cold_work() {
    let plan = Plan::auto(&profile(1), &smt(1));
    assert_eq!(lines(&plan), ["hot-0 0: feed0 dispatch0 device0 poll0 graph0 decode0 harvest0"]);
    assert_eq!((plan.cold_cores, plan.unused_cores), (vec![1], vec![]));
}

#[test]
fn a_silo_keeps_to_one_node_where_the_cores_allow() {
    let node = |core: u32| CoreFacts { core, node: core % 2, siblings: vec![] };
    let plan = Plan::auto(&profile(2), &host((0..18).map(node).collect()));
    for thread in &plan.threads {
        assert_eq!(thread.node, Some(thread.silo), "{}", thread.name);
    }
}

#[test]
fn max_cores_bounds_the_hot_cores_and_is_noted() {
    let (lab, _) = Profile::load("lab", None).unwrap();
    let plan = Plan::auto(&lab, &plain(0..16));
    assert_eq!(plan.threads.iter().map(|thread| thread.core.unwrap()).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert!(plan.notes.iter().any(|note| note == "max_cores leaves 10 of 14 hot cores to others"), "{:?}", plan.notes);
}

#[test]
fn a_quota_below_the_hot_threads_is_noted() {
    let mut host = plain(0..4);
    host.cpu_quota = Quota::Limited { quota_us: 150_000, period_us: 100_000 };
    let plan = Plan::auto(&profile(1), &host);
    assert!(plan.notes.iter().any(|note| note.contains("worth 1.5 cores")), "{:?}", plan.notes);
}

#[test]
fn without_known_cores_nothing_is_pinned() {
    let plan = Plan::auto(&profile(1), &plain([]));
    assert_eq!(lines(&plan), ["hot-0 -: feed0 dispatch0 device0 poll0 graph0 decode0 harvest0"]);
    assert!(!plan.threads[0].hot());
    assert!(plan.threads[0].refuses(SpinPolicy::Prod).is_some());
}

fn spec(name: &str, roles: &[RoleKind], core: Option<u32>) -> ThreadSpec {
    ThreadSpec { name: name.to_owned(), roles: roles.to_vec(), silo: 0, core }
}

fn two_threads() -> Vec<ThreadSpec> {
    vec![spec("ring", &RoleKind::RING, Some(1)), spec("work", &[Decode, Decode], Some(2))]
}

fn refusal(specs: Vec<ThreadSpec>) -> PlanError {
    let profile = Profile { threads: Threads::Explicit(specs), ..profile(1) };
    Plan::make(&profile, &plain(0..4)).unwrap_err()
}

#[test]
fn an_explicit_plan_is_taken_as_it_is() {
    let profile = Profile { threads: Threads::Explicit(two_threads()), ..profile(1) };
    let plan = Plan::make(&profile, &plain(0..4)).unwrap();
    assert_eq!(lines(&plan), ["ring 1!: feed0 dispatch0 device0 poll0 graph0 harvest0", "work 2!: decode0 decode0"]);
    assert_eq!(plan.threads[1].roles[1], PlannedRole { kind: Decode, silo: 0, index: 1 });
    assert_eq!(plan.cold_cores, [0, 3]);
}

#[test]
fn a_silo_on_a_gpu_or_without_a_device_has_no_device_role_and_its_hot_core_goes_to_others() {
    use crate::profile::Device::{Cuda, None};
    let on_gpu = |cores, profile: Profile| {
        let planned = |device| lines(&Plan::make(&Profile { device, ..profile.clone() }, &plain(0..cores)).unwrap());
        let lines = planned(Cuda { index: Option::None, batch_shots: 1 });
        assert_eq!(planned(None), lines);
        lines
    };
    assert_eq!(on_gpu(2, profile(1))[0], "hot-0 1!: feed0 dispatch0 poll0 graph0 harvest0");
    let eight = on_gpu(8, profile(1));
    assert_eq!(eight[..3], ["hot-0 2!: feed0 harvest0", "dispatch-0 3!: dispatch0", "hot-1 4!: poll0 graph0"]);
    assert_eq!(eight.len(), 6, "{eight:?}");
    assert!(on_gpu(16, profile(2)).iter().all(|line| !line.contains("device")));
    let mut specs = two_threads();
    specs[0].roles.retain(|role| *role != Device);
    let listed = |specs: &[ThreadSpec]| Profile { threads: Threads::Explicit(specs.to_vec()), ..profile(1) };
    let expected = ["ring 1!: feed0 dispatch0 poll0 graph0 harvest0", "work 2!: decode0 decode0"];
    assert_eq!(on_gpu(4, listed(&specs))[..], expected, "the role is not missed");
    specs.push(spec("alone", &[Device], Some(3)));
    assert_eq!(on_gpu(4, listed(&specs))[..], expected);
}

#[test]
fn an_explicit_plan_on_all_cores_shares_its_last_with_cold_work() {
    let profile = Profile { threads: Threads::Explicit(two_threads()), ..profile(1) };
    let plan = Plan::make(&profile, &plain([1, 2])).unwrap();
    assert_eq!(plan.threads.iter().map(|thread| thread.exclusive).collect::<Vec<_>>(), [true, false]);
    assert_eq!(plan.cold_cores, [2]);
}

#[test]
fn a_thread_that_is_not_pinned_leaves_cold_work_a_core() {
    let mut specs = two_threads();
    specs[0].roles.retain(|&role| role != Harvest);
    specs.push(spec("ends", &[Harvest], None));
    let profile = Profile { threads: Threads::Explicit(specs), ..profile(1) };
    let plan = Plan::make(&profile, &plain([1, 2])).unwrap();
    assert_eq!(plan.threads.iter().map(|thread| thread.exclusive).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!((plan.cold_cores, plan.notes), (vec![2], vec!["ends is not pinned".to_owned()]));
}

#[test]
fn threads_that_share_a_core_or_its_sibling_are_not_exclusive() {
    let mut specs = two_threads();
    specs[1].core = Some(5);
    let mut profile = Profile { threads: Threads::Explicit(specs.clone()), ..profile(1) };
    let plan = Plan::make(&profile, &smt(4)).unwrap();
    assert!(plan.threads.iter().all(|thread| !thread.exclusive));
    specs[1].core = Some(1);
    profile.threads = Threads::Explicit(specs);
    profile.spin = SpinPolicy::Lab;
    let plan = Plan::make(&profile, &plain(0..4)).unwrap();
    assert!(plan.threads.iter().all(|thread| !thread.exclusive));
    assert_eq!(plan.cold_cores, [0, 2, 3]);
}

#[test]
fn impossible_explicit_plans_are_refused_with_the_reason() {
    let with = |change: &dyn Fn(&mut Vec<ThreadSpec>)| {
        let mut specs = two_threads();
        change(&mut specs);
        refusal(specs)
    };
    let error = with(&|specs| specs[1].core = Some(4));
    assert_eq!(error.to_string(), "found thread work on core 4, expected one of 0-3; name one of these or say None");
    let parts = ["thread work on core 4", "one of 0-3", "name one of these or say None"];
    assert_eq!(error.parts(), parts.map(str::to_owned).into());
    let error = with(&|specs| specs.extend((3..8).map(|n| spec(&format!("d{n}"), &[Decode], Some(n)))));
    assert_eq!(error, PlanError::TooManyCores { found: 7, allowed: 4 });
    let error = with(&|specs| specs[0].roles = vec![Feed, Dispatch, Device, Harvest]);
    assert_eq!(error, PlanError::RoleMissing { silo: 0, role: Poll });
    let error = with(&|specs| drop(specs.pop()));
    assert_eq!(error, PlanError::RoleMissing { silo: 0, role: Decode });
    let error = with(&|specs| specs[1].roles.push(Feed));
    assert!(matches!(error, PlanError::RoleTwice { role: Feed, .. }), "{error}");
    let error = with(&|specs| specs[1].silo = 1);
    assert!(matches!(error, PlanError::UnknownSilo { silo: 1, silos: 1, .. }), "{error}");
    let error = with(&|specs| specs[1].name = "ring".to_owned());
    assert_eq!(error, PlanError::NameTwice { name: "ring".to_owned() });
    let error = with(&|specs| specs[1].roles.clear());
    assert_eq!(error, PlanError::NoRoles { thread: "work".to_owned() });
    let error = with(&|specs| specs[1].core = Some(1));
    assert!(matches!(error, PlanError::ProdShared { core: 1, .. }), "{error}");
}

#[test]
fn an_explicit_plan_agrees_with_the_counts_of_its_profile() {
    let mut profile = Profile { threads: Threads::Explicit(two_threads()), ..profile(1) };
    profile.decoders = Decoders::Count(3);
    let error = Plan::make(&profile, &plain(0..4)).unwrap_err();
    assert_eq!(error, PlanError::DecodersDiffer { silo: 0, found: 2, expected: 3 });
    profile.decoders = Decoders::Count(2);
    assert!(Plan::make(&profile, &plain(0..4)).is_ok());
    profile.max_cores = Some(1);
    let error = Plan::make(&profile, &plain(0..4)).unwrap_err();
    assert_eq!(error, PlanError::AboveMaxCores { found: 2, max: 1 });
    profile.max_cores = None;
    profile.silos = Silos::Count(2);
    let error = Plan::make(&profile, &plain(0..4)).unwrap_err();
    assert_eq!(error, PlanError::RoleMissing { silo: 1, role: Feed });
}

#[test]
fn a_limit_of_the_board_refuses_a_plan_with_too_many_roles_on_a_thread() {
    let (one, two) = (plain([0]), plain([0, 1]));
    let counted = |silos, decoders| Profile { decoders, ..profile(silos) };
    assert!(Plan::make(&counted(9, Decoders::Auto), &one).is_ok());
    assert!(Plan::make(&counted(10, Decoders::Auto), &two).is_ok());
    let cases = [
        (12, Decoders::Auto, &one, 84, "plan at most 9 silos"),
        (11, Decoders::Auto, &two, 66, "plan at most 10 silos"),
        (64, Decoders::Auto, &two, 384, "plan at most 10 silos"),
        (1, Decoders::Count(59), &one, 65, "plan fewer decoders"),
        (2, Decoders::Count(64), &one, 140, "plan fewer decoders"),
        (2, Decoders::Count(40), &two, 80, "plan at most 1 silos"),
    ];
    for (silos, decoders, host, found, part) in cases {
        let error = Plan::make(&counted(silos, decoders), host).unwrap_err();
        assert!(matches!(error, PlanError::TooManyRoles { found: is, .. } if is == found), "{error}");
        let said = error.to_string();
        for part in [part, "expected at most 64 on one thread", "give the engine more cores"] {
            assert!(said.contains(part) && !said.contains("  "), "{silos} silos: no {part} in: {said}");
        }
    }
}

#[test]
fn a_plan_serializes_as_the_contract_says() {
    let plan = serde_json::to_value(Plan::auto(&profile(1), &plain([0, 1]))).unwrap();
    let ring = &plan["threads"][0];
    assert_eq!(ring["name"], "hot-0");
    assert_eq!(ring["roles"], serde_json::json!(["feed", "dispatch", "device", "poll", "graph", "harvest"]));
    assert_eq!((&ring["core"], &ring["node"], &ring["hot"]), (&1.into(), &0.into(), &true.into()));
    assert_eq!(plan["cold_cores"], serde_json::json!([0]));
    assert_eq!(plan["refused"], serde_json::Value::Null);
    let refused = serde_json::to_value(PlanError::NameTwice { name: "x".to_owned() }).unwrap();
    assert_eq!(refused["threads"], serde_json::json!([]));
    assert!(refused["refused"].as_str().unwrap().starts_with("found two threads named x"));
    assert_eq!([Dispatch, Device].map(RoleKind::name), ["dispatch", "device"]);
    assert_eq!(Harvest.to_string(), "harvest");
}
