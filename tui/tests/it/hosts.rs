//! Several hosts: refusals of every build, and real processes that share streams in builds with the feature
//! `hosts`.

use crate::world::{World, engine};

#[test]
fn what_cannot_be_shared_is_refused_in_one_sentence() {
    let _one = engine();
    let world = World::new();
    world.put("good.ron", "(cluster: \"c\", name: \"a\")");
    let no_hosts = world.run("hosts").exits(2).err;
    assert!(no_hosts.contains("engine"), "{no_hosts}");
    world.run("cluster up 0").exits(2);
    world.run("cluster up 2 --rate 0").exits(2);
    if !cfg!(feature = "hosts") {
        for words in ["cluster up 2 --duration 1s", "run --headless --input unix:s --hosts good.ron"] {
            let said = world.run(words).exits(2).err;
            assert!(said.contains("cargo build --release --features hosts"), "{words}: {said}");
        }
        return;
    }
    let refused = |words: &str, expected: &str| {
        let said = world.run(words).exits(2).err;
        assert!(said.contains(expected) && said.lines().count() == 1, "{words}: {said}");
    };
    refused("run --headless --hosts good.ron --count 5", "a live source of shots");
    for option in ["--kill-one-after", "--kill-every", "--cut-every", "--move-every"] {
        refused(&format!("cluster up 1 {option} 1s --duration 2s"), "at least two");
    }
    world.put("misspelt.ron", "(\n    cluster: \"c\",\n    nmae: \"a\",\n)");
    refused("run --headless --input unix:s --hosts misspelt.ron", "misspelt.ron:3");
    world.put("open.ron", "(cluster: \"c\", name: \"a\", listen: [\"tcp/0.0.0.0:7447\"])");
    refused("run --headless --input unix:s --hosts open.ron", "certificates");
    refused("run --headless --input unix:s --hosts absent.ron", "absent.ron");
}

#[cfg(feature = "hosts")]
mod cluster {
    use super::World;
    use crate::terminal::Terminal;
    use crate::world::{Ran, golden, only_engine, until};
    use rustix::process::{Pid, Signal, kill_process};
    use serde_json::Value;
    use std::path::PathBuf;
    use std::process::{Child, Stdio};

    #[test]
    fn a_cluster_answers_each_shot_once_while_streams_move_and_a_host_is_killed() {
        // Each cluster is several engines.
        let _one = only_engine();
        let world = World::new();
        world.put_calm("--profiles calm");
        let words = "cluster up 3 --rate 300 --duration 6s --move-every 150ms --kill-one-after 3s --json";
        let ran = world.run(&format!("{words} --profile calm/shared.ron")).exits(0);
        let report = ran.json();
        let count = |name: &str| report[name].as_u64().unwrap();
        assert!(count("submitted") > 1_000 && count("moves") > 10, "{report}");
        assert_eq!(count("submitted"), count("answered"), "{report}");
        for name in ["lost", "duplicated", "out_of_order", "wrong", "errors"] {
            assert_eq!(count(name), 0, "{name}: {report}");
        }
        let hosts = report["hosts"].as_array().unwrap();
        let states: Vec<&str> = hosts.iter().map(|host| host["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["up", "up", "gone"], "{report}");
        let forwarded: u64 = hosts.iter().map(|host| host["forwarded"].as_u64().unwrap()).sum();
        assert!(forwarded > 0, "{report}");
        assert!(hosts.iter().any(|host| host["link_ns"]["p50"].as_u64() > Some(0)), "{report}");
    }

    #[test]
    fn a_cluster_answers_each_shot_once_while_its_engines_are_killed_in_turn_and_its_links_are_cut() {
        let _one = only_engine();
        let world = World::new();
        world.put_calm("--profiles calm");
        let words = "cluster up 3 --rate 300 --duration 8s --kill-every 1s --cut-every 300ms --move-every 200ms --json";
        let ran = world.run(&format!("{words} --profile calm/shared.ron")).exits(0);
        let report = ran.json();
        let count = |name: &str| report[name].as_u64().unwrap();
        assert!(count("kills") > 0 && count("cuts") > 10 && count("moves") > 5, "{report}");
        assert_eq!(count("submitted"), count("answered"), "{report}");
        for name in ["lost", "duplicated", "out_of_order", "wrong", "errors"] {
            assert_eq!(count(name), 0, "{name}: {report}");
        }
        assert!(report["takeover_ns"]["p50"].as_u64() > Some(0), "{report}");
    }

    /// A cluster that runs until it is dropped.
    struct Up(Child);

    impl Up {
        fn start(world: &World) -> Up {
            world.put_calm("--profiles calm");
            let mut command = world.command("cluster up 2 --rate 100 --profile calm/shared.ron");
            Up(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
        }

        /// Processes of its engines, by their hosts' names.
        fn engines(&self) -> Vec<u32> {
            children(&self.0)
        }

        /// Where its engines' files are.
        fn directory(&self) -> PathBuf {
            std::env::temp_dir().join(format!("pinwheel-cluster-{}-0", self.0.id()))
        }
    }

    fn children(of: &Child) -> Vec<u32> {
        let id = of.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    impl Drop for Up {
        fn drop(&mut self) {
            // Its engines end with it: it drains them.
            let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
            let _ = self.0.wait();
        }
    }

    #[test]
    fn an_operator_sees_the_hosts_places_streams_and_commands_another_host() {
        // Each cluster is several engines.
        let _one = only_engine();
        let world = World::new();
        let up = Up::start(&world);
        let is_joined =
            |rows: &Value| rows.as_array().unwrap().iter().filter(|row| row["why_not"].is_null()).count() == 2;
        until("both hosts", || {
            up.engines().first().and_then(|engine| seen(&world, *engine)).is_some_and(|rows| is_joined(&rows))
        });
        let first = up.engines()[0];
        let moved = world.run(&format!("hosts move 0 host-2 --to {first}")).exits(0).text();
        assert!(moved.contains("host-2 decodes stream 0"), "{moved}");
        until("answers of the other host", || {
            let Some(rows) = seen(&world, first) else { return false };
            let is_given = rows[1]["given"][0] == 0;
            if !is_given {
                // On a busy machine the other host answers too few, and the stream comes back.
                world.run(&format!("hosts move 0 host-2 --to {first}"));
            }
            let listed = world.run(&format!("hosts --to {first}")).exits(0).text();
            let is_listed = listed.contains("decodes streams [0] for this host");
            is_given && is_listed && rows[0]["is_self"] == true && rows[1]["answered"].as_u64() > Some(20)
        });
        let noted = world.run(&format!("ctl --host host-2 --to {first} note pump on")).exits(0).json();
        world.run(&format!("ctl --host host-2 --to {first} resume --why lunch"));
        assert_eq!((noted["host"].as_str(), noted["action"].as_str()), (Some("host-2"), Some("note")));
        let board = world.run(&format!("hosts board host-2 --to {first}")).exits(0).json();
        let second = up.engines()[1];
        assert_eq!(board["attach"]["pid"].as_u64(), Some(second.into()));
        let attached = world.run(&format!("attach host:host-2:{first} --json")).exits(0).json();
        assert_eq!(attached["board"]["engine"]["pid"].as_u64(), Some(second.into()), "{attached}");
        assert!(attached["board"]["at_ns"].as_u64() > board["board"]["at_ns"].as_u64());
        let screen = world.run(&format!("attach host:host-2:{first} --snapshot --view cores")).exits(0).text();
        assert!(screen.contains("READ-ONLY host-2") && screen.contains("host host-2 has its files"), "{screen}");
        for (words, expected) in [("host:host-9", "host-9"), ("--control host:host-2", "read-only")] {
            let said = world.run(&format!("attach --json {words}:{first}")).exits(2).err;
            assert!(said.contains(expected) && said.lines().count() == 1, "{words}: {said}");
        }
        let runs = up.directory().join("host-2");
        let run =
            std::fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
        until("the command and who asked, in the events", || {
            let events = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
            events.contains("pump on (from host host-1)") && events.contains("from host host-1: lunch")
        });
        for (words, expected) in [
            ("hosts move 99 host-2", "no stream 99"),
            ("hosts move 0 host-9", "no host of this name"),
            ("ctl --host host-9 pause", "host-9"),
            ("ctl --host host-1 pause", "host-1 is this engine's own"),
            ("hosts board host-1", "host-1 is this engine's own"),
            ("ctl --host host-2 profile no-such", "no-such"),
        ] {
            let said = world.run(&format!("{words} --to {first}")).exits(2).err;
            assert!(said.contains(expected) && said.lines().count() == 1, "{words}: {said}");
        }
        // Another model of one stream there: streams come home until both have the same ones again.
        let model = std::fs::read_to_string(golden("surf_z_d3_r3_p0.005.dem")).unwrap();
        world.put("other.dem", model.replacen("error(0.0", "error(0.1", 1));
        world.run(&format!("ctl --to {second} model other.dem --stream 1")).exits(0);
        let is_other = |rows: &Value| rows[1]["why_not"].as_str().is_some_and(|why| why.contains("error model"));
        let given = |rows: &Value| rows[1]["given"].as_array().unwrap().len();
        let rows_are = |are: &dyn Fn(&Value) -> bool| seen(&world, first).is_some_and(|rows| are(&rows));
        until("a stream at home", || rows_are(&|rows| is_other(rows) && given(rows) == 0));
        world.run(&format!("ctl --to {second} model --undo")).exits(0);
        until("a stream away again", || rows_are(&|rows| !is_other(rows) && given(rows) == 1));
        // A host that takes no more shots: its streams come home, and others say why.
        let closed = world.run(&format!("hosts --json close --to {second}")).exits(0).json();
        assert!(closed["action"] == "close" && closed["said"].is_string(), "{closed}");
        let is_home = |rows: &Value| rows[1]["given"] == Value::from(Vec::<u32>::new());
        // Its refusal of shots may come before its description.
        let is_known = |rows: &Value| rows[1]["why_not"].as_str().is_some_and(|why| why.contains("draining"));
        until("a stream at home", || seen(&world, first).is_some_and(|rows| is_home(&rows) && is_known(&rows)));
        let said = world.run(&format!("hosts move 0 host-2 --to {first}")).exits(2).err;
        assert!(said.contains("draining"), "{said}");
    }

    #[test]
    fn engines_of_a_cluster_that_is_killed_end_and_leave_no_process() {
        let _one = only_engine();
        let world = World::new();
        world.put_calm("--profiles calm");
        let mut up = Up::start(&world);
        let mut engines = Vec::new();
        until("two engines that run", || {
            engines = up.engines();
            engines.len() == 2 && engines.iter().all(|engine| seen(&world, *engine).is_some())
        });
        up.0.kill().unwrap();
        up.0.wait().unwrap();
        until("their end", || engines.iter().all(|engine| !std::path::Path::new(&format!("/proc/{engine}")).exists()));
        let _ = std::fs::remove_dir_all(up.directory());
    }

    #[test]
    fn a_cluster_whose_engines_do_not_join_leaves_no_directory_or_says_where_it_is() {
        let _one = only_engine();
        let world = World::new();
        let tmp = world.path("tmp");
        std::fs::create_dir(&tmp).unwrap();
        let files = || std::fs::read_dir(&tmp).unwrap().count();
        let words = "cluster up 2 --profile calm/shared.ron --json";
        world.put_calm("--profiles calm");
        let mut command = world.command(words);
        let up = command.env("TMPDIR", &tmp).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("an engine that has hardly begun", || !children(&up).is_empty());
        kill_process(Pid::from_child(&up), Signal::INT).unwrap();
        let interrupted = Ran::new(words, up.wait_with_output().unwrap()).exits(130);
        assert_eq!((interrupted.text().as_str(), files()), ("", 0), "{}", interrupted.err);
        let words = "cluster up 2 --profile absent";
        let refused = Ran::new(words, world.command(words).env("TMPDIR", &tmp).output().unwrap()).exits(2).err;
        assert!(refused.contains("absent") && refused.contains(tmp.to_str().unwrap()), "{refused}");
        assert_eq!(files(), 1);
    }

    #[test]
    fn an_interrupt_from_the_terminal_lets_a_cluster_drain_its_engines() {
        let _one = only_engine();
        let world = World::new();
        world.put_calm("--profiles calm");
        let words = "cluster up 2 --rate 100 --profile calm/shared.ron";
        let mut terminal = Terminal::start(&world, words, (160, 40), &[]);
        terminal.see_words(&["submitted"]);
        terminal.press("\x03");
        terminal.see_words(&["0 lost", "host-2  up"]);
        assert_eq!(terminal.end(), 0, "{}", terminal.text());
    }

    /// Two engines, `a` and `b`, that see each other; `a` takes shots of one stream at `a.s`, which
    /// `b` decodes. Dropping it kills them.
    struct Two([Child; 2]);

    impl Two {
        /// Engines with these words; the first is a profile's name.
        fn start(world: &World, words: [&str; 2]) -> Two {
            world.put_calm("--profiles calm");
            // No other test binds a port of this address before the engine does.
            let [_, _, middle, low] = std::process::id().to_be_bytes();
            let address = format!("127.2.{middle}.{low}");
            let free = || std::net::TcpListener::bind((address.as_str(), 0)).unwrap().local_addr().unwrap().port();
            let ports = [free(), free()];
            let start = |at: usize| {
                let (host, own, other) = (["a", "b"][at], ports[at], ports[1 - at]);
                let hosts = format!(
                    "(cluster: \"n{}\", name: {host:?}, listen: [\"tcp/{address}:{own}\"], connect: [\"tcp/{address}:{other}\"], scout: false)",
                    std::process::id()
                );
                world.put(&format!("{host}.ron"), hosts);
                let words = format!(
                    "run --headless --json --profile calm/{} --dem surface_d3 --streams 1 --input unix:{host}.s --hosts {host}.ron --logs {host}",
                    words[at]
                );
                let out = std::fs::File::create(world.path(&format!("{host}.json"))).unwrap();
                world.command(&words).stdout(out).stderr(Stdio::null()).spawn().unwrap()
            };
            let two = Two([start(0), start(1)]);
            let is_up =
                |rows: Value| rows.as_array().unwrap().iter().filter(|row| row["why_not"].is_null()).count() == 2;
            until("both hosts", || seen(world, two.first()).is_some_and(is_up));
            let place = format!("hosts move 0 b --to {}", two.first());
            until("a stream at the other", || world.run(&place).status == Some(0));
            two
        }

        fn first(&self) -> u32 {
            self.0[0].id()
        }
    }

    impl Drop for Two {
        fn drop(&mut self) {
            for engine in &mut self.0 {
                let _ = engine.kill();
                let _ = engine.wait();
            }
        }
    }

    #[test]
    fn a_run_of_a_count_ends_although_another_host_has_decoded_some_of_its_shots() {
        let _one = only_engine();
        let world = World::new();
        world.put("s.b8", vec![0u8; 3 * 400]);
        let mut two = Two::start(&world, ["shared.ron --count 400", "shared.ron"]);
        let sent = world.run("send s.b8 unix:a.s --rate 400 --json").exits(0).json();
        assert_eq!((sent["answered"].as_u64(), sent["lost"].as_u64()), (Some(400), Some(0)));
        assert!(two.0[0].wait().unwrap().success(), "it ends by itself");
        let report = std::fs::read_to_string(world.path("a.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert!(report["sources"][0]["forwarded"].as_u64() > Some(0), "{}", report["sources"]);
        assert_eq!(report["lost"].as_u64(), Some(0));
    }

    #[test]
    fn a_stream_comes_back_from_a_host_that_answers_fewer_shots_than_come() {
        const COUNT: usize = 6_000;
        let _one = only_engine();
        let world = World::new();
        world.put("s.b8", vec![0u8; 3 * COUNT]);
        // A shot each five milliseconds, and a thousand a second come.
        world.put_calm("--profiles calm");
        let mut slow = std::fs::read_to_string(world.path("calm/shared.ron")).unwrap();
        for (from, to) in [
            (
                "device: Sim(latency: LogNormal(median_us: 500.0, sigma: 0.3))",
                "device: Sim(latency: Fixed(us: 5000.0))",
            ),
            ("workers: 4,", "workers: 1,"),
        ] {
            assert!(slow.contains(from), "{from}");
            slow = slow.replace(from, to);
        }
        world.put("calm/slow.ron", slow);
        let _two = Two::start(&world, ["shared.ron", "slow.ron"]);
        let sent = world.run("send s.b8 unix:a.s --rate 1000 --json").exits(0).json();
        assert_eq!((sent["answered"].as_u64(), sent["errors"].as_u64()), (Some(COUNT as u64), Some(0)), "{sent}");
        // Where the stream stays there, the last ones wait for fifteen seconds.
        assert!(sent["round_trip_ns"]["max"].as_u64() < Some(10_000_000_000), "{sent}");
    }

    #[test]
    fn an_engine_whose_feed_is_held_decodes_nothing_of_other_hosts_and_gives_nothing_away() {
        let _one = only_engine();
        let world = World::new();
        let two = Two::start(&world, ["shared.ron", "shared.ron"]);
        let [first, second] = [two.first(), two.0[1].id()];
        let rows_are = |are: &dyn Fn(&Value) -> bool| seen(&world, first).is_some_and(|rows| are(&rows));
        let state = |at: usize, state: &'static str| move |rows: &Value| rows[at]["state"] == state;
        let given = |rows: &Value| rows[1]["given"].as_array().unwrap().len();
        until("a stream away", || rows_are(&|rows| given(rows) == 1));
        world.run(&format!("ctl pause --to {second}")).exits(0);
        until("a host that takes none", || rows_are(&|rows| state(1, "draining")(rows) && given(rows) == 0));
        let opened = world.run(&format!("hosts open --to {second}")).exits(0).text();
        assert!(opened.contains("held no longer"), "{opened}");
        world.run(&format!("ctl resume --to {second}")).exits(0);
        until("the stream there again", || rows_are(&|rows| state(1, "up")(rows) && given(rows) == 1));
        world.run(&format!("ctl pause --to {first}")).exits(0);
        until("the stream here", || rows_are(&|rows| state(0, "draining")(rows) && given(rows) == 0));
        world.run(&format!("ctl resume --to {first}")).exits(0);
        until("the stream there once more", || rows_are(&|rows| given(rows) == 1));
    }

    fn seen(world: &World, engine: u32) -> Option<Value> {
        let ran = world.run(&format!("hosts --json --to {engine}"));
        (ran.status == Some(0)).then(|| ran.json()["hosts"].clone())
    }
}
