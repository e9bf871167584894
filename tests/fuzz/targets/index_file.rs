#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| tapelog_fuzz::decoders::index_file(input));
