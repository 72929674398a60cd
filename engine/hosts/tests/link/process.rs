//! Hosts in processes of their own, which can be stopped and killed.

use crate::authority::Authority;
use crate::certificates::{free_quic, secured};
use crate::cluster::{Host, cluster, settings};
use pinwheel_hosts::link::{NoAnswer, Topic};
use pinwheel_hosts::settings::HostSettings;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Settings file of the host in a helper process.
const HELPER: &str = "PINWHEEL_HOSTS_HELPER";
/// A limit that no question of these tests reaches.
const FAR: Duration = Duration::from_secs(60);
/// What the helper says when its host is open.
const OPEN: &str = "helper is open";

/// A host in a process of its own. Dropping it kills the process.
struct Helper(Child);

impl Helper {
    /// Starts a host with these settings.
    fn start(settings: &Path) -> Helper {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "process::helper", "--nocapture", "--ignored"]);
        command.env(HELPER, settings).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        assert!(said.lines().map_while(Result::ok).any(|line| line.contains(OPEN)), "the helper did not open");
        Helper(child)
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
#[ignore = "the helper process of the tests in this file"]
fn helper() {
    let Ok(settings) = std::env::var(HELPER) else { return };
    let host = Host::open(&HostSettings::read(Path::new(&settings)).unwrap());
    println!("{OPEN}");
    // Until the test ends.
    let _ended = std::io::stdin().read(&mut [0]);
    drop(host);
}

/// A host here, and host `helper` in a process of its own.
struct Pair {
    one: Host,
    helper: Helper,
    /// Holds the files, which zenoh reads for each new connection.
    _authority: Option<Authority>,
}

fn without_certificates() -> Pair {
    let cluster = cluster();
    let one = Host::open(&settings(&cluster, "one", &[]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helper.ron");
    let connect = &one.link.endpoints()[0];
    let text = format!("(cluster: {cluster:?}, name: \"helper\", connect: [{connect:?}], scout: false)");
    std::fs::write(&file, text).unwrap();
    Pair { one, helper: Helper::start(&file), _authority: None }
}

fn with_certificates() -> Pair {
    let (cluster, authority) = (cluster(), Authority::new());
    let one = secured(&cluster, "one", authority.host("one"), "quic/127.0.0.1:0", &[], &["helper"]);
    let one = Host::open(&one);
    let own = authority.host("helper");
    let file = own.authority.with_file_name("helper.ron");
    let (connect, listen) = (&one.link.endpoints()[0], free_quic());
    let text = format!(
        "(cluster: {cluster:?}, name: \"helper\", listen: [{listen:?}], connect: [{connect:?}], allow: [\"one\"],
          certificates: Some((authority: \"authority.pem\", certificate: \"helper.pem\", key: \"helper.key\")))"
    );
    std::fs::write(&file, text).unwrap();
    Pair { one, helper: Helper::start(&file), _authority: Some(authority) }
}

fn is_missed_after_a_kill(pair: &Pair) {
    let Pair { one, helper, .. } = pair;
    let incarnation = one.sees("helper");
    assert_eq!(one.ask("helper", Topic::Board, b"1", FAR), Ok(b"1".to_vec()));
    helper.signal("-KILL");
    let took = one.misses("helper", incarnation);
    println!("a killed host is gone after {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

fn is_missed_while_it_hangs(pair: &Pair) {
    let Pair { one, helper, .. } = pair;
    let incarnation = one.sees("helper");
    helper.signal("-STOP");
    let answers = one.ask_later("helper", Topic::Board, b"1", FAR);
    let took = one.misses("helper", incarnation);
    println!("a hung host is gone after {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(answers.recv_timeout(Duration::from_secs(2)), Ok(Err(NoAnswer::Unreachable)));
    helper.signal("-CONT");
    assert_eq!(one.sees("helper"), incarnation);
    assert_eq!(one.ask("helper", Topic::Board, b"2", FAR), Ok(b"2".to_vec()));
}

#[test]
fn a_killed_host_is_gone_within_two_seconds() {
    is_missed_after_a_kill(&without_certificates());
    is_missed_after_a_kill(&with_certificates());
}

#[test]
fn a_hung_host_is_gone_after_the_lease_and_back_when_it_goes_on() {
    is_missed_while_it_hangs(&without_certificates());
}

#[test]
fn a_hung_host_with_certificates_is_gone_after_the_lease_and_back_when_it_goes_on() {
    is_missed_while_it_hangs(&with_certificates());
}
