//! What the packages say must agree with itself: versions, files that are there, deb and rpm.

use crate::hold;
use std::collections::BTreeSet;
use std::path::Path;

/// Where deb and rpm put the same thing: Debian's place, and that of the others.
const PLACES: [(&str, &str); 3] = [
    (
        "usr/share/zsh/vendor-completions/",
        "usr/share/zsh/site-functions/",
    ),
    // cargo-generate-rpm cannot say "a settings file that is not to be replaced": the rpm's script copies it.
    ("etc/agent-runtime/", "usr/share/agent-runtime/"),
    (
        "etc/agent-runtime-openfga/",
        "usr/share/agent-runtime-openfga/",
    ),
];

/// What one kind of package holds and the other does not.
const ONE_KIND: [&str; 2] = ["usr/share/lintian/overrides/", "/changelog"];

/// A section of Cargo.toml, and the source and the place of each file that it puts into a package.
struct Package<'a> {
    section: &'a str,
    files: Vec<(&'a str, String)>,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The quoted texts of a line.
fn quoted(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

/// Each section whose files are listed, as they stand in Cargo.toml.
fn packages(manifest: &str) -> Vec<Package<'_>> {
    let mut found: Vec<Package> = Vec::new();
    let mut section = "";
    for line in manifest.lines() {
        if let Some(name) = line.strip_prefix("[package.metadata.") {
            section = name.trim_end_matches(']');
        }
        let is_file = line.starts_with("  [\"") || line.starts_with("  { source = \"");
        let quoted = quoted(line);
        let (true, [source, place, ..]) = (is_file, quoted.as_slice()) else {
            continue;
        };
        let mut place = place.trim_start_matches('/').to_owned();
        if place.ends_with('/') && !source.contains('*') {
            place.push_str(source.rsplit('/').next().unwrap());
        }
        if found.last().is_none_or(|last| last.section != section) {
            found.push(Package {
                section,
                files: Vec::new(),
            });
        }
        found.last_mut().unwrap().files.push((source, place));
    }
    found
}

/// The places that both kinds of packages should have.
fn common(package: &Package) -> BTreeSet<String> {
    package
        .files
        .iter()
        .map(|(_, place)| place.clone())
        .filter(|place| !ONE_KIND.iter().any(|only| place.contains(only)))
        .map(|place| {
            PLACES
                .iter()
                .fold(place, |place, (debian, other)| place.replace(debian, other))
        })
        .collect()
}

fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The version of OpenFGA that is packaged.
fn openfga_version() -> String {
    let list = read("tests/setup/openfga.txt");
    list.lines().next().unwrap().to_owned()
}

#[test]
fn changelogs_begin_with_the_version_that_is_built() {
    let openfga = format!(
        "agent-runtime-openfga ({}-{})",
        openfga_version(),
        version()
    );
    for (path, expected) in [
        (
            "packaging/changelog",
            format!("agent-runtime ({}-1)", version()),
        ),
        ("packaging/openfga/changelog", openfga),
    ] {
        let text = read(path);
        assert!(
            text.starts_with(&format!("{expected} ")),
            "{path} should begin with {expected}: add an entry that says what is new."
        );
    }
}

#[test]
fn one_version_of_openfga_is_tested_and_packaged() {
    // The specification names 1.22.0 and 1.9.0. 1.22.1 is the patch release that can be built.
    assert!(
        openfga_version().starts_with("1.22."),
        "{}",
        openfga_version()
    );
    assert!(read(".ci/test").contains("older_openfga=1.9.0\n"));
    let wanted = format!("\"{}\"", openfga_version());
    for path in [
        "tests/it/harness/openfga.rs",
        "tests/bench/openfga.rs",
        "tests/show/parts.py",
    ] {
        assert!(read(path).contains(&wanted), "{path} tests another version");
    }
}

#[test]
fn what_packages_are_made_of_is_there() {
    let example = packages("[package.metadata.deb]\n  [\"a/b\", \"c/\", \"644\"],\n");
    assert_eq!(example[0].files, [("a/b", "c/b".to_owned())]);
    let manifest = read("Cargo.toml");
    let packages = packages(&manifest);
    assert_eq!(packages.len(), 4);
    let missing: Vec<String> = packages
        .iter()
        .flat_map(|package| &package.files)
        .map(|(source, _)| *source)
        // What the build makes; it fails by itself.
        .filter(|source| !source.starts_with("target/release/"))
        .filter(|source| !Path::new(env!("CARGO_MANIFEST_DIR")).join(source).is_file())
        .map(str::to_owned)
        .collect();
    hold(
        &missing,
        "Cargo.toml packages files that are not there. Add the file or take its line out.",
    );
}

#[test]
fn deb_and_rpm_hold_the_same() {
    let manifest = read("Cargo.toml");
    let packages = packages(&manifest);
    for (deb, rpm) in [
        ("deb", "generate-rpm"),
        ("deb.variants.openfga", "generate-rpm.variants.openfga"),
    ] {
        let [deb, rpm] = [deb, rpm].map(|section| {
            let package = packages.iter().find(|package| package.section == section);
            common(package.unwrap())
        });
        let differing: Vec<String> = deb.symmetric_difference(&rpm).cloned().collect();
        hold(
            &differing,
            "These files are in the deb or in the rpm alone. Add the other's line in Cargo.toml.",
        );
    }
}

/// The sample is a conffile: what it says of modes and places must be what the unit reads.
#[test]
fn units_read_what_packages_install() {
    let manifest = read("Cargo.toml");
    let openfga = "agent-runtime-openfga";
    for (directory, unit, file) in [
        (
            "packaging",
            "agent-runtime",
            "etc/agent-runtime/agent-runtime.env",
        ),
        (
            "packaging/openfga",
            openfga,
            "etc/agent-runtime-openfga/openfga.env",
        ),
    ] {
        let text = read(&format!("{directory}/{unit}.service"));
        assert!(text.contains(&format!("\nEnvironmentFile=/{file}\n")));
        assert!(text.contains(&format!("\nUser={unit}\n")));
        let users = read(&format!("{directory}/{unit}.sysusers"));
        assert!(users.starts_with(&format!("u {unit} ")));
        let modes = read(&format!("{directory}/{unit}.tmpfile"));
        assert!(modes.contains(&format!("\nz /{file} 0640 root {unit} -\n")));
        assert!(manifest.contains(&format!("\"{file}\", \"640\"]")));
    }
}

/// The server ends where it cannot listen, and after 30 starts it stays down: the address of SVC_BIND_ADDRESS has to
/// be there first. `After=` alone orders the unit after a target that nothing may have started.
#[test]
fn the_service_wants_the_network_and_waits_for_it() {
    let unit = read("packaging/agent-runtime.service");
    let names = |key: &str| {
        let mut values = unit.lines().filter_map(|line| line.strip_prefix(key));
        values.any(|value| value.split(' ').any(|name| name == "network-online.target"))
    };
    assert!(names("Wants="), "it wants network-online.target");
    assert!(names("After="), "it starts after network-online.target");
}

/// What the specification says of the authorization server's place (section 1.2): a migration before each start, no
/// way in from another host, and no setting of idle connections that means another thing to another version.
#[test]
fn the_companion_migrates_first_and_stays_on_its_host() {
    let unit = read("packaging/openfga/agent-runtime-openfga.service");
    let at = |line: &str| {
        let found = unit.lines().position(|other| other == line);
        found.unwrap_or_else(|| panic!("the unit does not say {line}"))
    };
    let program = "/usr/lib/agent-runtime-openfga/openfga";
    assert!(
        at(&format!("ExecStartPre={program} migrate")) < at(&format!("ExecStart={program} run"))
    );
    assert!(at("IPAddressDeny=any") < at("IPAddressAllow=localhost"));
    let settings = read("packaging/openfga/openfga.env");
    let set = |name: &str| {
        let prefix = format!("{name}=");
        settings.lines().find_map(|line| line.strip_prefix(&prefix))
    };
    for name in ["OPENFGA_HTTP_ADDR", "OPENFGA_GRPC_ADDR"] {
        assert!(
            set(name).is_some_and(|at| at.starts_with("127.0.0.1:")),
            "{name}"
        );
    }
    assert!(
        set("OPENFGA_DATASTORE_URI").is_some_and(|uri| uri.contains("/agent_runtime_openfga?"))
    );
    for name in ["OPENFGA_AUTHN_METHOD", "OPENFGA_DATASTORE_MAX_IDLE_CONNS"] {
        assert_eq!(set(name), None, "{name}");
    }
    let page = read("docs/openfga.md");
    let row = page
        .lines()
        .find(|line| line.contains("`OPENFGA_DATASTORE_MIN_IDLE_CONNS`"));
    assert!(row.is_some_and(|row| row.contains("1.11") && row.contains("minimum")));
}
