use crate::cluster::{A_WHILE, Host, SOON, cluster, open_all, pair, session, settings};
use pinwheel_hosts::link::Presence;
use pinwheel_hosts::settings::HostSettings;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use zenoh::Wait;

#[test]
fn each_host_sees_the_other_whichever_starts_first() {
    let (one, two) = pair(|_, _| {});
    assert!(one.presence.try_recv().is_err() && two.presence.try_recv().is_err(), "nobody sees itself");

    let (cluster, endpoint) = (cluster(), free_endpoint());
    let early = Host::open(&settings(&cluster, "early", std::slice::from_ref(&endpoint)));
    let late = Host::open(&HostSettings { listen: vec![endpoint], ..settings(&cluster, "late", &[]) });
    assert_eq!(early.sees("late"), late.link.incarnation());
    assert_eq!(late.sees("early"), early.link.incarnation());
}

#[test]
fn three_hosts_that_list_each_other_see_each_other() {
    let (cluster, endpoints) = (cluster(), [free_endpoint(), free_endpoint(), free_endpoint()]);
    let hosts = open_all([(0, "one"), (1, "two"), (2, "three")].map(|(index, name): (usize, _)| {
        let others = endpoints.iter().filter(|&endpoint| *endpoint != endpoints[index]).cloned().collect::<Vec<_>>();
        HostSettings { listen: vec![endpoints[index].clone()], ..settings(&cluster, name, &others) }
    }));
    for (host, others) in hosts.iter().zip([["two", "three"], ["one", "three"], ["one", "two"]]) {
        let mut seen = vec![seen(host), seen(host)];
        seen.sort();
        let mut others = others.map(str::to_owned).to_vec();
        others.sort();
        assert_eq!(seen, others, "each host once");
    }
}

#[test]
fn the_end_of_a_host_is_seen_within_two_seconds() {
    let (one, two) = pair(|_, _| {});
    let incarnation = one.link.incarnation();
    drop(one);
    let took = two.misses("one", incarnation);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_host_that_comes_back_is_seen_again_under_its_new_incarnation() {
    let (cluster, endpoint) = (cluster(), free_endpoint());
    let own = HostSettings { listen: vec![endpoint.clone()], ..settings(&cluster, "one", &[]) };
    let one = Host::open(&own);
    let two = Host::open(&settings(&cluster, "two", &[endpoint]));
    let before = two.sees("one");
    drop(one);
    two.misses("one", before);
    let one = Host::open(&own);
    assert_eq!(two.sees("one"), one.link.incarnation());
    assert_ne!(before, one.link.incarnation());
    assert_eq!(one.sees("two"), two.link.incarnation());
}

#[test]
fn hosts_of_another_cluster_are_not_seen() {
    let cluster = cluster();
    let one = Host::open(&settings(&cluster, "one", &[]));
    let stranger = Host::open(&settings(&format!("{cluster}-other"), "stranger", &one.link.endpoints()));
    let two = Host::open(&settings(&cluster, "two", &one.link.endpoints()));
    two.sees("one");
    one.sees("two");
    assert!(one.presence.recv_timeout(A_WHILE).is_err());
    assert!(stranger.presence.try_recv().is_err());
}

#[test]
fn presence_of_a_garbage_name_is_ignored() {
    let cluster = cluster();
    let one = Host::open(&settings(&cluster, "one", &[]));
    let speaker = session(&one.link.endpoints(), &serde_json::json!({}));
    let present =
        |rest: &str| speaker.liveliness().declare_token(format!("pinwheel/{cluster}/present/{rest}")).wait().unwrap();
    let tokens = ["NAME/1", "a b/1", "two/xyz", "two/05", "two/1/more", "two"].map(present);
    let good = present("two/1f");
    let told = one.presence.recv_timeout(SOON);
    assert_eq!(told, Ok(Presence::Here { name: "two".to_owned(), incarnation: 0x1f }), "no earlier one was told");
    drop((tokens, good));
    one.misses("two", 0x1f);
}

#[test]
fn hosts_of_one_machine_find_each_other_by_scouting() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    if let Err(error) = socket.join_multicast_v4(&Ipv4Addr::new(224, 0, 0, 225), &Ipv4Addr::LOCALHOST) {
        println!("skipped: the loopback interface has no multicast here: {error}");
        return;
    }
    let cluster = cluster();
    let scouting = |name: &str| HostSettings { scout: true, ..settings(&cluster, name, &[]) };
    let [one, two] = open_all([scouting("one"), scouting("two")]);
    two.sees("one");
    one.sees("two");
    let three = Host::open(&scouting("three"));
    let mut seen_by_three = [seen(&three), seen(&three)];
    seen_by_three.sort();
    assert_eq!(seen_by_three, ["one", "two"]);
}

#[test]
fn hosts_that_do_not_scout_are_not_found() {
    let cluster = cluster();
    let scouting = HostSettings { scout: true, ..settings(&cluster, "one", &[]) };
    let [one, two] = open_all([scouting, settings(&cluster, "two", &[])]);
    assert!(one.presence.recv_timeout(A_WHILE).is_err());
    assert!(two.presence.try_recv().is_err());
}

#[test]
fn an_unreachable_host_does_not_delay_the_opening() {
    let begun = Instant::now();
    let nobody = free_endpoint();
    let one = Host::open(&settings(&cluster(), "one", &[nobody]));
    let took = begun.elapsed();
    // Beside much other work the opening alone took more than three.
    assert!(took < Duration::from_secs(8), "{took:?}");
    drop(one);
}

/// Name of the next host that is there.
#[test]
fn a_handshake_that_is_held_up_for_seconds_goes_on() {
    let (cluster, endpoint) = (cluster(), free_endpoint());
    let target = endpoint.strip_prefix("tcp/").unwrap().to_owned();
    let relay = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let through = format!("tcp/{}", relay.local_addr().unwrap());
    let connections = Arc::new(AtomicU16::new(0));
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for near in relay.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::SeqCst);
            let far = TcpStream::connect(&target).unwrap();
            let ways = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
            for (mut from, mut to) in ways {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_secs(4));
                    let _ended = std::io::copy(&mut from, &mut to);
                });
            }
        }
    });
    let one = Host::open(&HostSettings { listen: vec![endpoint], ..settings(&cluster, "one", &[]) });
    let two = Host::open(&settings(&cluster, "two", &[through]));
    two.sees("one");
    one.sees("two");
    assert_eq!(connections.load(Ordering::SeqCst), 1, "a further attempt to connect was made");
}

#[test]
fn a_host_ends_within_seconds_though_it_connects_to_one_that_says_nothing() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = format!("tcp/{}", silent.local_addr().unwrap());
    let one = Host::open(&settings(&cluster(), "one", &[endpoint]));
    let _connection = silent.accept().unwrap();
    let begun = Instant::now();
    drop(one);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

fn seen(host: &Host) -> String {
    match host.presence.recv_timeout(SOON).unwrap() {
        Presence::Here { name, .. } => name,
        gone => panic!("{gone:?}"),
    }
}

/// An endpoint of this machine where nobody listens at present, at an address that other processes do not use.
pub(crate) fn free_endpoint() -> String {
    format!("tcp/{}", free_address(|at| TcpListener::bind(at).is_ok()))
}

/// An address of this process with a port that no other call gets, and no connection: those have
/// ports from 32,768 on.
pub(crate) fn free_address(can_bind: impl Fn(SocketAddrV4) -> bool) -> SocketAddrV4 {
    static PORT: AtomicU16 = AtomicU16::new(20_000);
    let [_, _, middle, low] = std::process::id().to_be_bytes();
    let next = || SocketAddrV4::new(Ipv4Addr::new(127, 3, middle, low), PORT.fetch_add(1, Ordering::Relaxed));
    std::iter::repeat_with(next).find(|at| can_bind(*at)).unwrap()
}
