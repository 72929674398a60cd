use crate::cluster::{Host, cluster, settings};
use crate::presence::free_endpoint;
use pinwheel_hosts::link::OpenError;
use pinwheel_hosts::settings::HostSettings;
use std::sync::mpsc::channel;

#[test]
fn a_second_host_of_a_name_is_refused() {
    let cluster = cluster();
    let one = Host::open(&settings(&cluster, "one", &[]));
    let error = Host::try_open(&settings(&cluster, "one", &one.link.endpoints())).err().unwrap();
    assert!(matches!(error, OpenError::NameTaken { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "another host of cluster \"{cluster}\" has the name \"one\"; give each host a name of its own, or end it"
        )
    );
    let other_name = Host::open(&settings(&cluster, "two", &one.link.endpoints()));
    other_name.sees("one");
    assert_eq!(one.sees("two"), other_name.link.incarnation(), "nothing was heard of the refused host");
}

#[test]
fn a_second_host_of_a_name_that_only_a_third_host_sees_is_refused() {
    let cluster = cluster();
    let third = Host::open(&settings(&cluster, "third", &[]));
    let one = Host::open(&settings(&cluster, "one", &third.link.endpoints()));
    third.sees("one");
    let error = Host::try_open(&settings(&cluster, "one", &third.link.endpoints())).err().unwrap();
    assert!(matches!(error, OpenError::NameTaken { .. }), "{error}");
    drop(one);
}

#[test]
fn a_name_is_free_again_after_its_host_ended() {
    let cluster = cluster();
    let third = Host::open(&settings(&cluster, "third", &[]));
    for _ in 0..2 {
        let one = Host::open(&settings(&cluster, "one", &third.link.endpoints()));
        one.sees("third");
        third.sees("one");
    }
}

#[test]
fn two_hosts_of_a_name_that_start_at_the_same_time_hear_of_each_other_or_are_refused() {
    let (cluster, endpoint) = (cluster(), free_endpoint());
    let (sender, opened) = channel();
    let first = HostSettings { listen: vec![endpoint.clone()], ..settings(&cluster, "one", &[]) };
    let second = settings(&cluster, "one", &[endpoint]);
    for settings in [first, second] {
        let sender = sender.clone();
        std::thread::spawn(move || sender.send(Host::try_open(&settings)).unwrap());
    }
    let (one, other) = (opened.recv().unwrap(), opened.recv().unwrap());
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one.sees("one"), other.link.incarnation());
            assert_eq!(other.sees("one"), one.link.incarnation());
        }
        (Err(error), _) | (_, Err(error)) => assert!(matches!(error, OpenError::NameTaken { .. }), "{error}"),
    }
}

#[test]
fn a_port_in_use_is_said_in_a_persons_words() {
    let cluster = cluster();
    let one = Host::open(&settings(&cluster, "one", &[]));
    let same = HostSettings { listen: one.link.endpoints(), ..settings(&cluster, "two", &[]) };
    let said = Host::try_open(&same).err().unwrap().to_string();
    assert!(said.contains("Address already in use") && said.contains("check listen"), "{said}");
    assert!(!said.contains(".rs"), "{said}");
}

#[test]
fn unusable_settings_are_refused_before_anything_is_opened() {
    let invalid = settings("Lab", "one", &[]);
    assert!(matches!(Host::try_open(&invalid), Err(OpenError::Settings { .. })));
}
