//! What the kernels order memory by, read from their compiled form: no device is needed.

use std::path::Path;

/// The PTX in the fatbin, which `engine/kernels/build` does not compress.
fn ptx() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/predecoder.fatbin");
    let bytes = std::fs::read(path).unwrap();
    let from = bytes.windows(9).position(|part| part == b".version ").expect("there is PTX");
    let text = bytes[from..].split(|byte| *byte == 0).next().unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

/// An instruction of a line, without the predicate before it.
fn instruction(line: &str) -> &str {
    let line = line.trim();
    let line = if line.starts_with('@') { line.split_once(' ').map_or("", |(_, rest)| rest) } else { line };
    line.split_whitespace().next().unwrap_or("").trim_end_matches(';')
}

#[test]
fn the_kernels_order_memory_by_acquire_and_release_of_the_system_and_by_nothing_else() {
    let ptx = ptx();
    for kernel in ["pinwheel_shot", "pinwheel_litmus_out", "pinwheel_litmus_in"] {
        assert!(ptx.contains(&format!(".entry {kernel}(")), "no kernel {kernel}");
    }
    let all: Vec<&str> = ptx.lines().map(instruction).collect();
    let count = |what: &str| all.iter().filter(|one| one.starts_with(what)).count();
    assert!(count("ld.acquire.sys.") > 2 && count("st.release.sys.") > 1 && count("ld.global.") > 10);
    for one in all {
        let is_forbidden = ["fence", "membar", "red.async"].iter().any(|what| one.starts_with(what))
            || one.contains(".volatile")
            || one.contains(".acq_rel");
        assert!(!is_forbidden, "{one}");
        let orders = one.contains(".acquire") || one.contains(".release");
        let is_named = one.starts_with("ld.acquire.sys.") || one.starts_with("st.release.sys.");
        assert!(!orders || is_named, "{one}");
    }
}
