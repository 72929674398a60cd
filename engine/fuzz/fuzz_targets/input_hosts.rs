#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pinwheel_fuzz::hosts::any_messages(bytes));
