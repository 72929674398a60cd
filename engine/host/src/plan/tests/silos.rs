//! How many silos `Auto` is, on machines as they would be recorded.

use std::collections::BTreeSet;

use super::{Threads, assert_sound, spec};
use crate::host::{HostFacts, Quota, trees};
use crate::plan::{Plan, PlannedThread, RoleKind};
use crate::profile::{Device, Profile, Silos, Source, Window, WindowRounds};

fn auto() -> Profile {
    let (mut profile, _) = Profile::load("prod", None).unwrap();
    assert_eq!(profile.silos, Silos::Auto, "that is the default");
    profile.input.streams = 64;
    profile
}

/// A machine of these nodes: the system's list of each one's cores, of which those of `online` are
/// switched on and those of `allowed` are this process's.
fn machine(nodes: &[&str], online: &str, allowed: &str) -> HostFacts {
    let dir = tempfile::tempdir().unwrap();
    trees::write(dir.path(), "sys/devices/system/cpu/online", online);
    trees::write(dir.path(), "proc/self/status", &format!("Cpus_allowed_list:\t{allowed}\n"));
    for (node, cores) in nodes.iter().enumerate() {
        trees::write(dir.path(), &format!("sys/devices/system/node/node{node}/cpulist"), cores);
    }
    HostFacts::read_recorded(dir.path()).unwrap()
}

/// The plan's number of silos and why, having looked that it is sound and that each silo is on a
/// node of its own.
#[track_caller]
fn settled(profile: &Profile, host: &HostFacts) -> (u32, String) {
    let plan = Plan::make(profile, host).unwrap();
    assert_sound(&plan, profile, host, &plan.silos.why);
    assert!(plan.notes.contains(&format!("silos auto: {}, {}", plan.silos.count, plan.silos.why)), "{:?}", plan.notes);
    let nodes: Vec<BTreeSet<Option<u32>>> = (0..plan.silos.count)
        .map(|silo| {
            let with = |thread: &&PlannedThread| thread.roles.iter().any(|role| role.silo == silo);
            plan.threads.iter().filter(with).map(|thread| thread.node).collect()
        })
        .collect();
    assert!(nodes.iter().all(|of| of.len() == 1), "{nodes:?}");
    if !matches!(profile.device, Device::Cuda { .. }) {
        assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), nodes.len(), "{nodes:?}");
    }
    (plan.silos.count, plan.silos.why)
}

#[test]
fn each_node_with_cores_for_a_silo_gets_one() {
    let one = machine(&["0-7"], "0-7", "0-7");
    assert_eq!(settled(&auto(), &one), (1, "one NUMA node has two hot cores".to_owned()));
    let two = machine(&["0-7", "8-15"], "0-15", "0-15");
    assert_eq!(settled(&auto(), &two), (2, "one for each NUMA node with two hot cores: 0,1".to_owned()));
    let four = machine(&["0-3", "4-7", "8-11", "12-15"], "0-15", "0-15");
    assert_eq!(settled(&auto(), &four).0, 4);
    let two_cores = machine(&["0-1"], "0-1", "0-1");
    assert_eq!(settled(&auto(), &two_cores).0, 1);
}

#[test]
fn an_offline_forbidden_or_small_node_gets_no_silo() {
    let nodes = ["0-7", "8-15", "16-23"];
    let off = machine(&nodes, "0-7,16-23", "0-23");
    assert_eq!(settled(&auto(), &off), (2, "one for each NUMA node with two hot cores: 0,2".to_owned()));
    let not_ours = machine(&nodes, "0-23", "0-15");
    assert_eq!(settled(&auto(), &not_ours), (2, "one for each NUMA node with two hot cores: 0,1".to_owned()));
    let small = machine(&nodes, "0-23", "0-8,16-23");
    assert_eq!(settled(&auto(), &small), (2, "one for each NUMA node with two hot cores: 0,2".to_owned()));
    // The system's own cores are not counted: nothing is left of node 0.
    let system = machine(&["0-1", "2-9", "10-17"], "0-17", "0-17");
    assert_eq!(settled(&auto(), &system), (2, "one for each NUMA node with two hot cores: 1,2".to_owned()));
}

#[test]
fn two_cores_on_two_nodes_are_one_silos() {
    let plan = Plan::make(&auto(), &machine(&["0", "1"], "0-1", "0-1")).unwrap();
    assert_eq!((plan.silos.count, &*plan.silos.why), (1, "no NUMA node has two hot cores"));
    assert_eq!(plan.hot_cores(), [0, 1]);
}

#[test]
fn a_silo_that_would_lack_cores_time_or_streams_is_not_made() {
    let host = machine(&["0-7", "8-15", "16-23", "24-31"], "0-31", "0-31");
    let told = |profile: &Profile, host: &HostFacts, count: u32, part: &str| {
        let (found, why) = settled(profile, host);
        assert!(found == count && why.ends_with(&format!(", but {part}")), "{found}: {why}");
    };
    told(&Profile { max_cores: Some(5), ..auto() }, &host, 2, "max_cores 5, of which each takes two");
    told(&Profile { max_cores: Some(1), ..auto() }, &host, 1, "max_cores 1, of which each takes two");
    let with_quota = HostFacts { cpu_quota: Quota::Limited { quota_us: 650_000, period_us: 100_000 }, ..host.clone() };
    told(&auto(), &with_quota, 3, "a CPU quota of 6.5 cores, of which each takes two");
    let mut few = auto();
    few.input.streams = 3;
    told(&few, &host, 3, "each takes one stream of 3");
    few.input.joint_every = Some(100);
    told(&few, &host, 1, "3 streams, read jointly by two");
    let mut live = auto();
    live.input.source = Source::Shm { name: "fpga0".to_owned(), group: None, model: "surface_d5".to_owned() };
    assert_eq!(settled(&live, &host).0, 4);
    live.window = Window::Some(WindowRounds { commit_rounds: 5, buffer_rounds: 5 });
    told(&live, &host, 1, "the rounds of a live source are decoded as they come by one alone");
    let nodes: Vec<String> = (0..80).map(|node| format!("{}-{}", node * 4, node * 4 + 3)).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut many = auto();
    many.input.streams = 1024;
    assert_eq!(settled(&many, &machine(&nodes, "0-319", "0-319")).0, 64);
}

#[test]
fn each_gpu_gets_a_silo_as_far_as_there_are_cores() {
    let with_gpus = |gpus: u32, cores: u32| {
        let host = machine(&["0-15"], "0-15", &format!("0-{}", cores - 1));
        HostFacts { gpus, ..host }
    };
    let on_gpus = Profile { device: Device::Cuda { index: None, batch_shots: 1 }, ..auto() };
    let told = |profile: &Profile, host: &HostFacts| Plan::make(profile, host).unwrap().silos;
    assert_eq!(
        (told(&on_gpus, &with_gpus(4, 16)).count, &*told(&on_gpus, &with_gpus(4, 16)).why),
        (4, "one for each of 4 GPUs")
    );
    assert_eq!(told(&on_gpus, &with_gpus(1, 16)).count, 1);
    let few = told(&on_gpus, &with_gpus(4, 2));
    assert_eq!((few.count, &*few.why), (1, "one for each of 4 GPUs, but each takes two hot cores of 2"));
    let shared = Profile { device: Device::Cuda { index: Some(2), batch_shots: 1 }, ..auto() };
    assert_eq!((told(&shared, &with_gpus(4, 16)).count, &*told(&shared, &with_gpus(4, 16)).why), (1, "for GPU 2"));
    // The stand-in does not care for them.
    assert_eq!(told(&auto(), &with_gpus(4, 16)).count, 1);
}

#[test]
fn silos_that_get_no_stream_are_noted() {
    let host = machine(&["0-15"], "0-15", "0-15");
    let noted = |streams: u32| {
        let mut profile = Profile { silos: Silos::Count(3), ..auto() };
        profile.input.streams = streams;
        let notes = Plan::make(&profile, &host).unwrap().notes;
        notes.contains(&format!("silos 3, streams {streams}: a silo without a stream gets no shots; run fewer silos"))
    };
    assert_eq!((noted(2), noted(3)), (true, false));
}

#[test]
fn the_gpus_of_a_bus_are_counted_one_of_no_node_too() {
    let dir = trees::machine("server64");
    assert_eq!(HostFacts::read_recorded(dir.path()).unwrap().gpus, 1);
    for (file, word) in [("vendor", "0x10de"), ("class", "0x030200"), ("numa_node", "-1")] {
        trees::write(dir.path(), &format!("sys/bus/pci/devices/0000:9c:00.0/{file}"), word);
    }
    let host = HostFacts::read_recorded(dir.path()).unwrap();
    assert_eq!((host.gpus, &host.gpu_nodes[..]), (2, &[1][..]));
}

#[test]
fn listed_threads_name_their_silos() {
    let mut specs = Vec::new();
    for silo in 0..3 {
        let core = Some(silo + 1);
        let roles = RoleKind::ALL.to_vec();
        specs.push(super::ThreadSpec { name: format!("hot-{silo}"), roles, silo, core });
    }
    let profile = Profile { threads: Threads::Explicit(specs), ..auto() };
    assert_eq!(profile.validate(), []);
    let plan = Plan::make(&profile, &machine(&["0-7"], "0-7", "0-7")).unwrap();
    assert_eq!((plan.silos.count, &*plan.silos.why), (3, "as the listed threads name them"));
    let far = Profile {
        threads: Threads::Explicit(vec![super::ThreadSpec { silo: 64, ..spec("far", &[], None) }]),
        ..auto()
    };
    assert!(far.validate().iter().any(|error| error.field == "threads[0].silo"), "{:?}", far.validate());
}

#[test]
fn a_requested_number_is_used_without_a_note() {
    let profile = Profile { silos: Silos::Count(3), ..auto() };
    let plan = Plan::make(&profile, &machine(&["0-7"], "0-7", "0-7")).unwrap();
    assert_eq!((plan.silos.count, plan.silos.auto), (3, false));
    assert!(!plan.notes.iter().any(|note| note.contains("silos auto")), "{:?}", plan.notes);
}
