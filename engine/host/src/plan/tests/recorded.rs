//! Plans of machines that were recorded: see `testdata/sys`.

use std::collections::BTreeSet;

use super::{assert_sound, lines, profile};
use crate::host::HostFacts;
use crate::plan::{Plan, PlannedThread};
use crate::profile::{Decoders, Profile, SpinPolicy};

/// A recorded machine.
fn recorded(name: &str) -> HostFacts {
    HostFacts::read_recorded(crate::host::trees::machine(name).path()).unwrap()
}

#[test]
fn plans_of_recorded_machines_are_sound_and_keep_each_silo_on_one_node() {
    for (name, _) in crate::host::trees::MACHINES {
        let host = recorded(name);
        for silos in [1, 2, 3, 5, 8, 40, 64] {
            for max_cores in [None, Some(1), Some(2), Some(3), Some(4), Some(7), Some(30)] {
                for decoders in [Decoders::Auto, Decoders::Count(1), Decoders::Count(40)] {
                    let profile = Profile { decoders, max_cores, ..profile(silos) };
                    let plan = Plan::auto(&profile, &host);
                    let machine = format!("{name}, {silos} silos, {decoders:?}, max {max_cores:?}");
                    assert_sound(&plan, &profile, &host, &machine);
                    for silo in 0..silos {
                        let with = |thread: &&PlannedThread| thread.roles.iter().any(|role| role.silo == silo);
                        let nodes: BTreeSet<Option<u32>> = plan.threads.iter().filter(with).map(|t| t.node).collect();
                        assert_eq!(nodes.len(), 1, "{machine}: silo {silo} on nodes {nodes:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn recorded_machines_have_the_cores_and_nodes_that_they_had() {
    let found: Vec<(usize, u32, usize, Vec<u32>)> = ["vm2", "desktop8", "server64", "grace72", "container4"]
        .map(recorded)
        .into_iter()
        .map(|host| {
            let last = host.cores.last().unwrap();
            (host.cores.len(), last.core, last.siblings.len(), host.gpu_nodes)
        })
        .collect();
    let expected =
        [(2, 1, 0, vec![]), (16, 15, 1, vec![]), (128, 127, 1, vec![1]), (72, 71, 0, vec![0]), (4, 11, 0, vec![])];
    assert_eq!(found, expected);
    assert_eq!(recorded("server64").core(40).unwrap().node, 1);
}

#[test]
fn a_single_silo_of_a_server_is_on_the_node_of_its_gpu() {
    let plan = Plan::auto(&profile(1), &recorded("server64"));
    assert_eq!(plan.threads.len(), 13);
    assert!(plan.threads.iter().all(|thread| thread.node == Some(1) && thread.exclusive), "{:?}", lines(&plan));
    let mut host = recorded("server64");
    host.gpu_nodes.clear();
    assert!(Plan::auto(&profile(1), &host).threads.iter().all(|thread| thread.node == Some(0)));
    // A silo that can use more than a node has takes the node that has more: cores 0 and 1 are the
    // system's.
    let many = Profile { decoders: Decoders::Count(64), ..profile(1) };
    assert!(Plan::auto(&many, &host).threads.iter().all(|thread| thread.node == Some(1)));
}

#[test]
fn three_silos_of_a_server_divide_its_nodes_not_themselves() {
    let plan = Plan::auto(&profile(3), &recorded("server64"));
    let nodes: Vec<Option<u32>> = (0..3)
        .map(|silo| plan.threads.iter().find(|thread| thread.silo == silo).and_then(|thread| thread.node))
        .collect();
    assert_eq!(nodes, [Some(0), Some(1), Some(1)]);
}

#[test]
fn a_container_keeps_to_its_cpuset() {
    let plan = Plan::auto(&profile(1), &recorded("container4"));
    let ring = "hot-0 9!: feed0 dispatch0 device0 poll0 graph0 harvest0";
    assert_eq!(lines(&plan), [ring, "decode-0 10!: decode0", "decode-1 11!: decode0"]);
    assert!(plan.notes.iter().any(|note| note.contains("worth 2.0 cores")), "{:?}", plan.notes);
}

#[test]
fn a_desktop_with_smt_leaves_the_siblings_of_hot_cores_unused() {
    let plan = Plan::auto(&profile(1), &recorded("desktop8"));
    assert_eq!(plan.hot_cores(), [2, 3, 4, 5, 6, 7]);
    assert_eq!((plan.cold_cores, plan.unused_cores), (vec![0, 1, 8, 9], vec![10, 11, 12, 13, 14, 15]));
}

#[test]
fn a_plan_may_be_restricted_to_cores_that_the_machine_has() {
    let mut host = recorded("desktop8");
    host.restrict(&[2, 3, 4, 5, 8]).unwrap();
    let plan = Plan::auto(&profile(1), &host);
    assert_eq!((plan.hot_cores(), plan.cold_cores), (vec![3, 4, 5, 8], vec![2]));
    let said = host.restrict(&[2, 9]).unwrap_err().to_string();
    assert_eq!(said, "core 9 is not allowed to this process; name cores of 2-5,8");
}

#[test]
fn a_contested_thread_refuses_prod_and_is_not_claimed() {
    let host = recorded("desktop8");
    let mut plan = Plan::auto(&profile(1), &host);
    plan.contest(11, &host);
    assert_eq!(plan.claims(), [2, 4, 5, 6, 7]);
    let thread = plan.threads.iter().find(|thread| thread.core == Some(3)).unwrap();
    assert_eq!(thread.refuses(SpinPolicy::Prod), Some("another process has claimed its core"));
}
