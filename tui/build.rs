//! Compresses the line tables of a release build, which are most of the program's file.
//!
//! Verdicts about stalls need those lines, so they are never stripped. A development build keeps them as they are: its
//! decompression is not optimised, and would delay each verdict by seconds.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
    }
}
