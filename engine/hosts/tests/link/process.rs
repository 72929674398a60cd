//! Hosts in processes of their own, which can be stopped and killed.

use crate::authority::Authority;
use crate::certificates::{free_quic, secured};
use crate::cluster::{Host, SOON, cluster, settings};
use pinwheel_hosts::link::{BODY_BYTES_MAX, NoAnswer, Topic};
use pinwheel_hosts::settings::HostSettings;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

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

    /// Stops it, and waits until each of its threads has stopped.
    fn stop(&self) {
        self.signal("-STOP");
        let tasks = format!("/proc/{}/task", self.0.id());
        let has_stopped = |task: std::fs::DirEntry| {
            // A thread may end meanwhile.
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.is_empty() || stat.rsplit(") ").next().unwrap().starts_with('T')
        };
        while !std::fs::read_dir(&tasks).unwrap().all(|task| has_stopped(task.unwrap())) {
            std::thread::sleep(Duration::from_millis(1));
        }
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
    cluster: String,
    one: Host,
    helper: Helper,
    settings: PathBuf,
    /// Hold the files, which zenoh reads for each new connection.
    _folder: Option<TempDir>,
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
    let helper = Helper::start(&file);
    Pair { cluster, one, helper, settings: file, _folder: Some(folder), _authority: None }
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
    let helper = Helper::start(&file);
    Pair { cluster, one, helper, settings: file, _folder: None, _authority: Some(authority) }
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
    helper.stop();
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

#[test]
fn a_host_that_has_stopped_holds_up_no_question_to_another() {
    let Pair { cluster, one, helper, .. } = &without_certificates();
    one.sees("helper");
    let two = Host::open(&settings(cluster, "two", &one.link.endpoints()));
    one.sees("two");
    helper.stop();
    // More than the connection's buffers hold.
    let body = vec![7; BODY_BYTES_MAX];
    let stuck: Vec<_> = (0..8).map(|_| one.ask_later("helper", Topic::Shots, &body, FAR)).collect();
    let begun = Instant::now();
    assert_eq!(one.ask("two", Topic::Board, b"1", FAR), Ok(b"1".to_vec()));
    let took = begun.elapsed();
    println!("a question beside a stuck connection takes {took:?}");
    assert!(took < Duration::from_millis(500), "{took:?}");
    let last = stuck.last().unwrap();
    assert_eq!(last.recv_timeout(SOON), Ok(Err(NoAnswer::Unreachable)), "it was stuck");
    drop(two);
}

#[test]
fn a_host_that_was_replaced_goes_on_and_ends_leaves_its_name_to_the_other_one() {
    let Pair { one, helper, settings, .. } = &without_certificates();
    let old = one.sees("helper");
    helper.stop();
    one.misses("helper", old);
    let _other = Helper::start(settings);
    let new = one.sees("helper");
    helper.signal("-CONT");
    assert_eq!(one.sees("helper"), old);
    helper.signal("-KILL");
    one.misses("helper", old);
    assert_eq!(one.sees("helper"), new);
    assert_eq!(one.ask("helper", Topic::Board, b"1", FAR), Ok(b"1".to_vec()));
}
