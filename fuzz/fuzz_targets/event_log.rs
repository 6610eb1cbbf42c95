#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| headrace_fuzz::event_log::run(input));
