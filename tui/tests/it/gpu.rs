//! The unmodified program on a driver of our own: what it answers, what it survives, what it says without one.

use crate::world::{Ran, World, engine, has_keys, lab_with, until_seen};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// Where the driver lies, made once; `flags` for one that is not as it should be.
fn made(flags: &[&str]) -> TempDir {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine");
    let dir = tempfile::tempdir().unwrap();
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"])
        .args(flags)
        .arg("-I")
        .arg(engine.join("kernels"))
        .arg("-o")
        .arg(dir.path().join("libcuda.so"))
        .arg(engine.join("tests/fake-driver/fake.c"))
        .status()
        .unwrap();
    assert!(compiled.success(), "the driver of our own compiles");
    dir
}

fn driver() -> &'static Path {
    static DRIVER: OnceLock<TempDir> = OnceLock::new();
    DRIVER.get_or_init(|| made(&[])).path()
}

/// Lab for the GPU, with all the time that a busy machine may take, and the predecoder that the kernels have.
fn world(batch_shots: u32) -> World {
    world_with(batch_shots, 20_000_000)
}

/// The same, with a launch deadline.
fn world_with(batch_shots: u32, launch_deadline_us: u32) -> World {
    let world = World::new();
    let device = format!("device: Cuda(index: None, batch_shots: {batch_shots})");
    let deadline = format!("launch_deadline_us: {launch_deadline_us},");
    let text = lab_with(&[
        ("spin: Lab", "spin: Shared"),
        ("launch_deadline_us: 20000,", &deadline),
        ("shot_deadline_us: 1000000,", "shot_deadline_us: 60000000,"),
        // Behind a launch that is late the answers of its stream wait, and the ring is full.
        ("deadline_ms: 1000,", "deadline_ms: 60000,"),
        ("predecoder: None", "predecoder: Local"),
        ("device: Sim(latency: LogNormal(median_us: 120.0, sigma: 0.4))", &device),
    ]);
    world.put("gpu/gpu.ron", text);
    world
}

/// Runs the program on the driver; `fake` are the driver's variables.
fn on_driver(world: &World, words: &str, fake: &[(&str, &str)]) -> Ran {
    let mut command = world.command(words);
    command.env("LD_LIBRARY_PATH", driver()).envs(fake.iter().copied());
    Ran::new(words, command.output().unwrap())
}

fn run(world: &World, more: &str, fake: &[(&str, &str)]) -> Ran {
    on_driver(world, &format!("run --profiles gpu --profile gpu --json {more}"), fake)
}

#[track_caller]
fn answered(report: &Value, shots: u64) {
    assert_eq!((report["submitted"].as_u64(), report["answered"].as_u64()), (Some(shots), Some(shots)), "{report}");
    assert_eq!((report["lost"].as_u64(), report["duplicated"].as_u64()), (Some(0), Some(0)), "{report}");
}

/// Answers with each error code.
fn errors(report: &Value, code: &str) -> u64 {
    report["errors"][code].as_u64().unwrap_or(0)
}

#[test]
fn a_gpu_predicts_what_the_stand_in_predicts_bit_for_bit() {
    let _one = engine();
    for batch_shots in [1, 3] {
        let world = world(batch_shots);
        let report = run(&world, "--count 3000 --rate max --predictions gpu.b8", &[]).exits(0).json();
        answered(&report, 3_000);
        assert!(report["device"].as_str().unwrap().contains("Pinwheel fake 0; CUDA 13.0"), "{}", report["device"]);
        let gpu = &report["gpus"][0];
        has_keys(
            gpu,
            "silo launches launch_errors launch_ns graph_ns renewals needs_restart_code memory_total_bytes launches_per_s",
        );
        let launches = gpu["launches"].as_u64().unwrap();
        assert!(if batch_shots == 1 { launches == 3_000 } else { (1_000..=3_000).contains(&launches) }, "{gpu}");
        assert!(
            report["threads"]
                .as_array()
                .unwrap()
                .iter()
                .all(|thread| { thread["roles"].as_array().unwrap().iter().all(|role| role != "device") })
        );
        // Without --device sim's own latency: only what is predicted is compared.
        run(&world, "--device sim --count 3000 --rate max --predictions sim.b8", &[]).exits(0);
        let [gpu, sim] = ["gpu.b8", "sim.b8"].map(|name| std::fs::read(world.path(name)).unwrap());
        assert!(gpu == sim && gpu.iter().any(|byte| *byte != 0));
    }
}

/// Two clocks are compared: the figure comes with what it may be wrong by, and is less than a shot's whole way.
#[test]
fn the_time_from_completion_to_claim_is_reported_with_its_bounds() {
    let _one = engine();
    let world = world(1);
    // A shot of each tenth of a second is looked at.
    until_seen([8_000, 40_000, 200_000], |shots| {
        let report = run(&world, &format!("--count {shots} --rate 8000"), &[]).exits(0).json();
        answered(&report, shots);
        let gpu = &report["gpus"][0];
        let wrong_by_ns = gpu["completion_to_claim_error_ns"].as_u64().unwrap();
        let (claims, latency) = (&gpu["completion_to_claim_ns"], &report["latency_ns"]["max"]);
        assert!(claims["max"].as_u64().unwrap() <= latency.as_u64().unwrap() + wrong_by_ns, "{claims} {latency}");
        wrong_by_ns > 0 && claims["count"].as_u64() > Some(8)
    });
}

#[test]
fn silos_auto_is_one_for_each_gpu_that_the_driver_has_as_far_as_there_are_cores() {
    let _one = engine();
    let world = world(1);
    let two = [("FAKE_DEVICES", "2")];
    let plan = on_driver(&world, "plan --profiles gpu --profile gpu --json", &two).exits(0).json();
    let ran = run(&world, "--count 300 --rate max", &two).exits(0).json();
    answered(&ran, 300);
    for (count, why) in [(&plan["silos"]["count"], &plan["silos"]["why"]), (&ran["silos"], &ran["silos_auto"])] {
        let few = why.as_str().unwrap().strip_prefix("one for each of 2 GPUs").unwrap();
        assert!(count == if few.is_empty() { 2 } else { 1 } && (few.is_empty() || few.contains("hot core")), "{why}");
    }
    assert_eq!(ran["gpus"].as_array().unwrap().len() as u64, ran["silos"].as_u64().unwrap());
    assert!(ran["notes"].to_string().contains("silos auto: "), "{}", ran["notes"]);
    let asked = run(&world, "--silos 2 --count 300 --rate max", &two).exits(0).json();
    assert_eq!((&asked["silos"], &asked["silos_auto"]), (&2.into(), &Value::Null));
}

fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
}

/// Its graphs' memory stays theirs, and its device is opened anew only when nothing runs there any more.
#[test]
fn a_silo_on_a_gpu_dies_and_comes_back_and_after_it_its_device() {
    let _one = engine();
    let world = world(1);
    // In the second run some graphs end long after the silo that launched them has died, and has come back.
    let fake = [("FAKE_DEVICES", "2"), ("FAKE_RULES", "cuGraphLaunch:700:6000:16:delay")];
    for fake in [&fake[..1], &fake] {
        until_seen([10_000, 40_000, 160_000], |shots| {
            let words = format!("--silos 2 --streams 4 --rate 2000 --kill-every 800ms --count {shots}");
            let report = run(&world, &words, fake).json();
            answered(&report, shots);
            let (lifecycles, gpus) = (&report["lifecycles"], &report["gpus"]);
            assert_eq!(errors(&report, "17"), sum(lifecycles, "errored"));
            // Beside those of a dead silo, such whose graph was late.
            let codes: Vec<&String> = report["errors"].as_object().unwrap().keys().collect();
            assert!(codes.iter().all(|code| ["5", "17"].contains(&code.as_str())), "{}", report["errors"]);
            let is_alive = sum(gpus, "renewals") > 1 && sum(gpus, "launches") > 2_000;
            is_alive && sum(lifecycles, "deaths") > 2 && sum(lifecycles, "rejoins") > 1
        });
    }
}

#[test]
fn auto_takes_an_available_gpu_and_otherwise_says_why_not() {
    let _one = engine();
    let world = World::new();
    let found = on_driver(&world, "run --device auto --json --count 200 --rate max", &[]).exits(0).json();
    assert!(found["device"].as_str().unwrap().starts_with("cuda:0"), "{}", found["device"]);
    let none = [("FAKE_DEVICES", "0")];
    let found = on_driver(&world, "run --device auto --json --count 200 --rate max", &none).exits(0).json();
    assert_eq!(found["device"], "none");
    let notes = found["notes"].to_string();
    assert!(notes.contains("the CUDA driver finds no device") && !notes.contains("--device sim"), "{notes}");
    let faulty = "run --profile drill --device auto --json --count 200 --rate max";
    assert_eq!(on_driver(&world, faulty, &none).json()["device"], "sim, no latency");
    // A device that is there and cannot be opened.
    let taken = [("FAKE_RULES", "cuCtxCreate_v4:46:1:0")];
    let found = on_driver(&world, "run --device auto --json --count 200 --rate max", &taken).exits(0).json();
    assert!(found["notes"].to_string().contains("another process uses it"), "{}", found["notes"]);
}

#[test]
fn an_unavailable_gpu_is_refused_in_one_sentence() {
    for (fake, part) in [
        (("FAKE_DEVICES", "0"), "no device"),
        (("FAKE_VERSION", "12080"), "CUDA 12.8, older than 13.0"),
        (("FAKE_CAPABILITY", "70"), "compute capability 7.0"),
        (("FAKE_RULES", "cuInit:999:1:0"), "CUDA_ERROR_UNKNOWN"),
        (("FAKE_RULES", "cuCtxCreate_v4:46:1:0"), "nvidia-smi -c 0"),
        (("FAKE_RULES", "cuModuleLoadData:209:1:0"), "no code for it"),
        (("FAKE_RULES", "cuMemAlloc_v2:2:3:0"), "fewer workers"),
        (("FAKE_RULES", "cuMemHostRegister_v2:801:1:0"), "cannot be shared with the host"),
        (("FAKE_RULES", "cuStreamEndCapture:900:1:0"), "capturing the graphs"),
        (("FAKE_RULES", "cuGraphUpload:2:1:0"), "uploading the graphs"),
    ] {
        let _one = engine();
        let world = World::new();
        let ran = on_driver(&world, "run --device cuda --count 10", &[fake]);
        // A device that fails in Warmup is a fault of a run that has begun.
        assert!(matches!(ran.status, Some(1 | 2)), "{part}: {:?} {}", ran.status, ran.err);
        if ran.status == Some(2) {
            // Later than the choice of the device, the role that opens it says what it found.
            let is_role = ran.err.contains("cannot start");
            assert!(is_role || ran.err.contains("; without a GPU: --device sim"), "{part}: {}", ran.err);
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
            assert_eq!(ran.err.trim().lines().count(), 1, "{part}: {}", ran.err);
            // Its locks of cores stay, and no board for a post-mortem.
            let left = std::fs::read_dir(world.path("shm")).into_iter().flatten().flatten();
            let is_lock = |name: &str| name.starts_with("cpu") && name.ends_with(".lock");
            let left: Vec<_> =
                left.map(|file| file.file_name()).filter(|name| !is_lock(&name.to_string_lossy())).collect();
            assert!(left.is_empty(), "{part}: {left:?}");
        }
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
    let ran = on_driver(&World::new(), "run --device cuda:3 --count 10", &[]).exits(2);
    assert!(ran.err.contains("there is no device 3, the driver has 1; choose a number below 1"), "{}", ran.err);
}

#[test]
fn a_library_that_lacks_a_symbol_is_refused_and_no_panic() {
    let old = made(&["-DWITHOUT_GRAPH_UPLOAD"]);
    let world = World::new();
    let mut command = world.command("run --device cuda --count 10");
    let ran = Ran::new("run", command.env("LD_LIBRARY_PATH", old.path()).output().unwrap()).exits(2);
    assert!(ran.err.contains("lacks cuGraphUpload") && !ran.err.contains("panicked"), "{}", ran.err);
}

/// The report of a run; where shots were answered with an error, the exit status is 1.
#[track_caller]
fn judged(ran: Ran) -> Value {
    let report = ran.json();
    let status = i32::from(!report["errors"].as_object().unwrap().is_empty());
    assert_eq!(ran.status, Some(status), "{}", report["alarms"]);
    report
}

#[test]
fn each_shot_is_answered_whatever_a_launch_says() {
    let _one = engine();
    for (rule, code, most) in [
        ("cuGraphLaunch:2:2000:5", "1", 5),
        ("cuGraphLaunch:999:2000:3", "2", 3),
        ("cuGraphLaunch:6500:2000:2:delay", "5", 2),
    ] {
        // Longer than a busy machine keeps a thread waiting; what is late is later than that again.
        let world = world_with(1, 4_000_000);
        let report = judged(run(&world, "--count 6000 --rate 6000", &[("FAKE_RULES", rule)]));
        answered(&report, 6_000);
        // A fault in warm-up is nobody's shot.
        assert!(errors(&report, code) <= most, "{rule}: {}", report["errors"]);
        assert_eq!(report["errors"].as_object().unwrap().keys().filter(|key| *key != code).count(), 0, "{report}");
    }
}

#[test]
fn a_lost_device_is_made_anew_while_the_cpu_goes_on() {
    let _one = engine();
    // In Live: warm-up at this rate launches fewer.
    for rules in ["cuGraphLaunch:710:3000:1:sticky", "cuGraphLaunch:710:3000:1:sticky,cuCtxCreate_v4:46:2:2"] {
        // Launches that have not ended by then hold all workers, now and then.
        let world = world_with(1, 2_000_000);
        until_seen([12_000, 48_000, 192_000], |shots| {
            let words = format!("--count {shots} --rate 6000");
            let report = judged(run(&world, &words, &[("FAKE_RULES", rules)]));
            answered(&report, shots);
            let (lost, gpu) = (errors(&report, "7"), &report["gpus"][0]);
            assert!(lost <= 8, "at most the shots under way: {}", report["errors"]);
            assert_eq!((&gpu["error_code"], &gpu["needs_restart_code"]), (&710.into(), &0.into()), "{gpu}");
            // A cold thread makes it anew, when it has its turn.
            let [renewals, failed] = ["renewals", "renewals_failed"].map(|key| gpu[key].as_u64().unwrap());
            assert!(renewals <= 1, "{gpu}");
            if renewals == 1 {
                assert_eq!(failed, if rules.contains("Create") { 2 } else { 0 }, "{gpu}");
            }
            renewals == 1
        });
    }
}

/// As on an H100: the driver keeps the error of a kernel for the process, and opens no context there any more.
#[test]
fn after_an_error_of_a_kernel_the_cpu_goes_on_and_the_report_asks_for_a_restart() {
    let _one = engine();
    // The launch says so, or the driver notices 150 ms later, when the launches are overdue. Until
    // then the shots of launches that have not ended wait.
    for (rule, deadline_us) in [("sticky", 2_000_000), ("fault", 100_000)] {
        let world = world_with(1, deadline_us);
        until_seen([12_000, 48_000, 192_000], |shots| {
            let words = format!("--count {shots} --rate 6000");
            let rules = format!("cuGraphLaunch:719:3000:1:{rule}");
            let report = judged(run(&world, &words, &[("FAKE_RULES", &rules)]));
            answered(&report, shots);
            let gpu = &report["gpus"][0];
            let [renewals, failed, code] = ["renewals", "renewals_failed", "needs_restart_code"].map(|key| &gpu[key]);
            assert_eq!(renewals, 0, "{gpu}");
            let alarms = report["alarms"].to_string();
            let says = |what: &str| alarms.contains(what);
            // One attempt is enough to know. The alarm may have been raised before that.
            let is_told = says("start the engine again") && says("restart the engine: after CUDA error 719");
            failed == 1 && code == 719 && is_told
        });
    }
}

/// Of one silo's kernel, on the device that both share.
#[test]
fn an_error_of_a_kernel_takes_the_device_from_every_silo_of_the_process() {
    let _one = engine();
    // Where launches of all workers are under way, the other silo notices when they are overdue.
    let world = world_with(1, 2_000_000);
    until_seen([12_000, 48_000, 192_000], |shots| {
        let words = format!("--silos 2 --streams 4 --count {shots} --rate 6000");
        let report = judged(run(&world, &words, &[("FAKE_RULES", "cuGraphLaunch:700:3000:1:sticky")]));
        answered(&report, shots);
        report["gpus"].as_array().unwrap().iter().all(|gpu| gpu["needs_restart_code"] == 700)
    });
}

#[test]
fn a_device_whose_graphs_all_hang_is_opened_anew_when_they_have_ended() {
    let _one = engine();
    let world = world_with(1, 100_000);
    // Graphs of every worker end long after the deadline of a launch.
    let fake = [("FAKE_RULES", "cuGraphLaunch:1500:3000:64:delay")];
    until_seen([24_000, 72_000, 216_000], |shots| {
        let report = judged(run(&world, &format!("--count {shots} --rate 6000"), &fake));
        answered(&report, shots);
        let gpu = &report["gpus"][0];
        assert_eq!(gpu["needs_restart_code"], 0, "{gpu}");
        gpu["renewals"].as_u64() >= Some(1)
    });
}

#[test]
fn every_silo_has_a_device_and_its_own_context() {
    let _one = engine();
    let world = world(1);
    let two = [("FAKE_DEVICES", "2")];
    let report = run(&world, "--silos 2 --count 3000 --rate max", &two).exits(0).json();
    answered(&report, 3_000);
    let device = report["device"].as_str().unwrap();
    assert!(device.contains("cuda:0") && device.contains("cuda:1"), "{device}");
    assert!(report["gpus"].as_array().unwrap().iter().all(|gpu| gpu["launches"].as_u64() > Some(0)));
    let report = run(&world, "--silos 2 --count 1000 --rate max", &[]).exits(0).json();
    assert!(report["notes"].to_string().contains("silos 2, devices 1: several silos"), "{}", report["notes"]);
}

/// As on a machine whose driver is in trouble: `nvidia-smi` never ends there.
#[test]
fn a_management_library_that_never_answers_holds_up_no_start_and_no_end() {
    let _one = engine();
    let (world, libraries) = (world(1), tempfile::tempdir().unwrap());
    let source = world.put(
        "nvml.c",
        "#include <unistd.h>\nint nvmlInit_v2(void) { for (;;) pause(); }\n\
        int nvmlDeviceGetHandleByPciBusId_v2(void) { return 0; }\nint nvmlDeviceGetClockInfo(void) { return 0; }\n",
    );
    let library = libraries.path().join("libnvidia-ml.so.1");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(compiled.success());
    let words = "run --profiles gpu --profile gpu --json --count 300 --rate max";
    let path = std::env::join_paths([driver(), libraries.path()]).unwrap();
    let report = Ran::new(words, world.command(words).env("LD_LIBRARY_PATH", path).output().unwrap()).exits(0).json();
    answered(&report, 300);
    assert_eq!(report["gpus"][0]["launches"], 300);
}

#[test]
fn check_says_what_there_is() {
    let world = World::new();
    let row = |ran: Ran, id: &str| -> Value {
        let rows = ran.json()["rows"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["id"] == id).unwrap()
    };
    let device = row(on_driver(&world, "check --json", &[]), "cuda_device");
    assert_eq!(device["verdict"], "pass", "{device}");
    assert!(device["found"].as_str().unwrap().contains("Pinwheel fake 0 (9.0, 16 GiB"), "{device}");
    let old = row(on_driver(&world, "check --json", &[("FAKE_VERSION", "12040")]), "cuda_driver");
    assert!(old["verdict"] == "warn" && old["fix"].as_str().unwrap().contains("580"), "{old}");
}

#[test]
fn gpu_check_holds_on_a_sound_driver_and_fails_on_another() {
    let _one = engine();
    let world = World::new();
    // An error of one context alone; one of a kernel would fail the following steps too.
    let broken = [("FAKE_RULES", "cuGraphLaunch:710:700:1:sticky")];
    let check = |fake: &[(&str, &str)]| on_driver(&World::new(), "gpu-check --quick --json", fake);
    // Each waits for much of its time.
    let (ran, broken) = std::thread::scope(|scope| {
        let broken = scope.spawn(|| check(&broken));
        (check(&[]).exits(0), broken.join().unwrap())
    });
    let found = ran.json();
    has_keys(&found, "driver device steps launch_ns rx_to_ready_ns host_overhead_ns batches compared faults");
    for step in found["steps"].as_array().unwrap() {
        assert!(step["ok"] == true && ran.err.contains(step["name"].as_str().unwrap()), "{step}");
    }
    let sticky = found["steps"].as_array().unwrap().last().unwrap();
    assert!(sticky["detail"].as_str().unwrap().contains("restart the engine"), "{sticky}");
    assert!(found["faults"].as_array().unwrap().len() >= 6 && found["launch_ns"]["count"].as_u64() > Some(0));
    let found = broken.exits(1).json();
    let failed: Vec<_> = found["steps"].as_array().unwrap().iter().filter(|step| step["ok"] == false).collect();
    assert_eq!(failed.len(), 1, "one step meets it, the others have contexts of their own: {failed:?}");
    assert!(failed[0]["detail"].as_str().unwrap().contains("classified as Lost"), "{failed:?}");
    let none = on_driver(&world, "gpu-check", &[("FAKE_DEVICES", "0")]).exits(2);
    assert!(none.err.contains("the CUDA driver finds no device") && none.out.is_empty(), "{}", none.err);
    assert!(!none.err.contains("--device"), "it has no such option: {}", none.err);
    let elsewhere = on_driver(&world, "gpu-check --quick --core 1023", &[]).exits(2);
    assert!(elsewhere.err.contains("core 1023 is not allowed to this process"), "{}", elsewhere.err);
}

/// A device so slow that steps end at their time. Some 2,500 launches come before the step `launches`, which
/// ends with launches under way: each of them completes. Later steps end before their first measurement.
#[test]
fn gpu_check_fails_steps_that_measured_nothing() {
    let _one = engine();
    let slow = [("FAKE_RULES", "cuGraphLaunch:400:2600:0:delay")];
    // A model that draws no error: no shot shows what the kernel does.
    let world = World::new();
    world.put("quiet.dem", "error(1e-9) D0 L0\nerror(1e-9) D0 D1\nerror(1e-9) D1\n");
    // The slow one waits for nearly all of its time.
    let (slow, quiet) = std::thread::scope(|scope| {
        let slow = scope.spawn(|| on_driver(&World::new(), "gpu-check --quick --json", &slow));
        let quiet = on_driver(&world, "gpu-check --quick --json --dem quiet.dem", &[]);
        (slow.join().unwrap().exits(1), quiet.exits(1))
    });
    let found = slow.json();
    let step = |name: &str| found["steps"].as_array().unwrap().iter().find(|step| step["name"] == name).unwrap();
    assert!(step("launches")["ok"] == true && found["launch_ns"]["count"].as_u64() > Some(0), "{}", step("launches"));
    for name in ["rx_to_ready", "batch_1", "batch_4", "batch_16", "compare"] {
        let step = step(name);
        assert!(step["ok"] == false && step["detail"].as_str().unwrap().contains("measured nothing"), "{step}");
    }
    assert_eq!(found["batches"].as_array().unwrap().len(), 0);
    let found = quiet.json();
    let failed: Vec<_> = found["steps"].as_array().unwrap().iter().filter(|step| step["ok"] == false).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0]["detail"].as_str().unwrap().contains("had a detection event"), "{failed:?}");
}

/// A driver allocates small requests from memory that it keeps. A context that is not destroyed keeps its memory.
#[test]
fn gpu_check_measures_free_memory_by_more_than_a_driver_keeps() {
    let _one = engine();
    let teardown = |fake: (&str, &str)| {
        let found = on_driver(&World::new(), "gpu-check --quick --json", &[fake]).json();
        let step = found["steps"].as_array().unwrap().iter().find(|step| step["name"] == "teardown").unwrap().clone();
        (step["ok"] == true, step["detail"].as_str().unwrap().to_owned())
    };
    // Each waits most of its time.
    let drivers = [("FAKE_POOL", "32"), ("FAKE_POOL", "1024"), ("FAKE_RULES", "cuCtxDestroy_v2:999:1:0")];
    let [sound, kept, left] = std::thread::scope(|scope| {
        drivers.map(|fake| scope.spawn(move || teardown(fake))).map(|check| check.join().unwrap())
    });
    assert!(sound.0, "{}", sound.1);
    assert!(!kept.0 && kept.1.contains("measured nothing"), "{}", kept.1);
    assert!(!left.0 && left.1.contains("bytes of device memory are missing"), "{}", left.1);
}
