#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| headrace_fuzz::events::run(input));
