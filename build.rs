//! Unpacks the files of the API reference UI from the crate that carries them.

use std::io::{Cursor, Read};
use std::path::Path;

const WANTED: [&str; 2] = ["swagger-ui-bundle.js", "swagger-ui.css"];

#[allow(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let archive = Cursor::new(utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED);
    let mut archive = zip::ZipArchive::new(archive).expect("the crate holds a zip archive");
    let mut found = 0;
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).expect("the archive is whole");
        let path = file
            .name()
            .expect("names in the archive are text")
            .into_owned();
        let Some(name) = WANTED
            .iter()
            .find(|name| path.ends_with(&format!("/dist/{name}")))
        else {
            continue;
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("the archive is whole");
        std::fs::write(Path::new(&out).join(name), bytes).expect("OUT_DIR can be written");
        found += 1;
    }
    assert_eq!(found, WANTED.len(), "the archive lacks one of {WANTED:?}");
}
