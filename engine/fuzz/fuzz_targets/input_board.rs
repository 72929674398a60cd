#![no_main]

#[path = "../src/inputs.rs"]
#[expect(dead_code, reason = "each target has one check")]
mod inputs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| inputs::any_board(bytes));
