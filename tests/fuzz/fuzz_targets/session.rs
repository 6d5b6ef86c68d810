#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cofferdam_properties::session(bytes));
