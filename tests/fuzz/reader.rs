//! Any bytes as the answer of a model server, chosen by libFuzzer for the code that they reach.
//!
//! The first byte is the size of the pieces in which the rest arrives. What has to hold is in `src/model/reading/any_bytes.rs`.

#![no_main]

use agent_runtime::model::check_any_bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((size, body)) = data.split_first() {
        check_any_bytes(body, usize::from(*size));
    }
});
