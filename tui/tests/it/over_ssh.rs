//! `attach ssh:HOST`: the host's own program, by a program `ssh` of the test that runs each command line here.

use crate::attach::Headless;
use crate::console::answered_after;
use crate::terminal::Terminal;
use crate::world::{World, engine, until, word};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Lets its user in, restores the terminal's modes as ssh does, and runs the last word by a shell.
/// While there is a file `cut` it says that the link is lost.
const SSH: &str = r#"#!/bin/sh
for line; do :; done
old=$(stty -g 2>/dev/null)
echo "$@" >>ssh.words
echo 'Authenticated to lab2 ([10.0.0.5]:22) using "publickey".' >&2
SSH_CONNECTION='10.0.0.5 50000 10.0.0.1 22' sh -c "echo \$\$ >inner.pid; exec $line"
status=$?
[ -z "$old" ] || stty "$old"
if [ -e cut ]; then rm cut; echo 'Connection to lab2 closed by remote host.' >&2; exit 255; fi
exit $status
"#;

/// A world with that `ssh`; its PATH.
fn with_ssh(world: &World, text: &str) -> String {
    let program = world.put("bin/ssh", text);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_console_over_ssh_comes_back_after_a_cut_link_and_its_commands_have_an_address() {
    let _one = engine();
    let world = World::new();
    let path = with_ssh(&world, SSH);
    let _run = Headless::start(&world);
    let program = word(env!("CARGO_BIN_EXE_pinwheel"));
    let words = format!("attach ssh:ann@lab2 --control --program {program}");
    let mut console = Terminal::start(&world, &words, (100, 30), &[("PATH", &path)]);
    console.see_live();
    console.see_words(&["ATTACHED"]);
    let sent = fs::read_to_string(world.path("ssh.words")).unwrap();
    assert!(sent.contains(&format!("-- ann@lab2 {program} attach --control --colour 256 --glyphs utf-8")), "{sent}");
    console.press("H");
    console.see_words(&["hold the feed?"]);
    console.press("y");
    console.see_words(&["HELD"]);
    let events = || {
        let runs = fs::read_dir(world.path("logs")).unwrap().flatten();
        runs.map(|run| fs::read_to_string(run.path().join("events.jsonl")).unwrap_or_default()).collect::<String>()
    };
    until("an action with its address", || events().contains(", over ssh from 10.0.0.5)"));
    // The console over there goes with the link, and restores nothing.
    world.put("cut", "");
    let inner = fs::read_to_string(world.path("inner.pid")).unwrap();
    assert!(Command::new("kill").args(["-9", inner.trim()]).status().unwrap().success());
    console.see_words(&["the link was lost (Connection to lab2 closed by remote host.)", "the engine goes on"]);
    assert!(!console.screen().alternate_screen());
    console.see_live();
    console.see_words(&["HELD"]);
    console.press("q");
    assert_eq!(console.end(), 0);
    console.is_restored();
}

/// The session of another ssh's connection, which is cut; then one that ends with a status of its own.
const SHARED: &str = r#"#!/bin/sh
[ -e cut ] || exit 7
rm cut
printf '\033[?1049h'
echo 'Shared connection to lab2 closed.' >&2
exit 255
"#;

#[test]
fn a_console_over_the_connection_of_another_ssh_comes_back_after_a_cut_link() {
    let world = World::new();
    let path = with_ssh(&world, SHARED);
    world.put("cut", "");
    let mut console = Terminal::start(&world, "attach ssh:lab2", (100, 30), &[("PATH", &path)]);
    console.see_words(&["the link was lost (Shared connection to lab2 closed.)", "the engine goes on"]);
    assert!(!console.screen().alternate_screen());
    assert_eq!(console.end(), 7);
}

#[test]
fn a_host_without_the_program_or_without_a_link_is_refused_in_one_sentence() {
    let world = World::new();
    for (ssh, said) in [
        (SSH, "lab2: found no program ./absent in the PATH of a command over ssh"),
        ("#!/bin/sh\nexit 126\n", "lab2: found a file ./absent that cannot be executed"),
        (
            "#!/bin/sh\necho 'Permission denied (publickey).' >&2; exit 255\n",
            "lab2: found no link (ssh says why above)",
        ),
    ] {
        let path = with_ssh(&world, ssh);
        let ran = world.command("attach ssh:lab2 --json --program ./absent").env("PATH", path).output().unwrap();
        let sentences =
            String::from_utf8_lossy(&ran.stderr).lines().filter(|line| line.starts_with("pinwheel: ")).count();
        assert_eq!((ran.status.code(), sentences), (Some(2), 1), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).contains(said), "{ran:?}");
    }
    for (words, said) in [
        ("attach ssh:-oProxyCommand=x --json", "expected a host as ssh names it"),
        ("attach --json --program x", "--program names the program on another host"),
    ] {
        let ran = world.run(words).exits(2);
        assert!(ran.err.contains(said), "{}", ran.err);
    }
}

/// Prints how soon a key's picture is on a terminal over ssh: a figure of the specification.
/// `PINWHEEL_TEST_SSH` names a host that is this machine, as the user's own ssh reaches it; without it
/// the test's `ssh` measures what the console adds.
#[test]
#[ignore = "a measurement of half a minute, for a quiet machine"]
fn keys_over_ssh() {
    let _one = engine();
    let world = World::new();
    let host = std::env::var("PINWHEEL_TEST_SSH").ok();
    let path = match host {
        Some(_) => std::env::var("PATH").unwrap(),
        None => with_ssh(&world, SSH),
    };
    // A real ssh hands on none of the world's variables.
    let variables =
        world.variables().iter().map(|(name, value)| format!("export {name}='{}'\n", word(value))).collect::<String>();
    let there = world.put("there", format!("#!/bin/sh\n{variables}exec {} \"$@\"\n", env!("CARGO_BIN_EXE_pinwheel")));
    fs::set_permissions(&there, fs::Permissions::from_mode(0o755)).unwrap();
    let _run = Headless::start(&world);
    let words = format!("attach ssh:{} --program {}", host.as_deref().unwrap_or("lab2"), word(&there));
    let mut console = Terminal::start(&world, &words, (200, 60), &[("PATH", &path)]);
    console.see_live();
    let took = answered_after(&mut console, 300);
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    eprintln!("300 keys over ssh: p50 {:?}, p99 {:?}, longest {:?}", at(0.5), at(0.99), at(1.0));
    console.press("q");
    assert_eq!(console.end(), 0);
}
