//! Unpacks the files of the API reference UI from the crate that carries them.

use std::io::Read;
use std::path::Path;

const WANTED: [&str; 2] = ["swagger-ui-bundle.js", "swagger-ui.css"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let archive = std::io::Cursor::new(utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED);
    let mut archive = zip::ZipArchive::new(archive).expect("the crate holds a zip archive");
    for name in WANTED {
        let path = archive
            .file_names()
            .find(|path| path.ends_with(&format!("/dist/{name}")))
            .unwrap_or_else(|| panic!("the archive has no dist/{name}"))
            .to_owned();
        let mut bytes = Vec::new();
        archive
            .by_name(&path)
            .and_then(|mut file| Ok(file.read_to_end(&mut bytes)?))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        std::fs::write(Path::new(&out).join(name), bytes)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
