#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| headrace_fuzz::log_file::run(input));
