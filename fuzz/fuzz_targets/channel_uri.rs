#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| headrace_fuzz::channel_uri::run(input));
