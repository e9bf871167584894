#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| tapelog_fuzz::decoders::key_table(input));
