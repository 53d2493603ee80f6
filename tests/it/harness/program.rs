//! Programs of a page as processes, each in a directory of its own, with the public libraries that
//! `make setup` puts in place. A page has two files in each language: one that verifies a request, and one that
//! serves.

use super::page::{Page, part};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lines of code that verify a request, at most.
const LINES_MOST: usize = 10;

const KEPT_IN_PYTHON: &str = "
import json, sqlite3
rows = sqlite3.connect('events.db').execute('select id, body from events order by id')
print(json.dumps([[id, body.decode()] for id, body in rows]))
";

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Language {
    Python,
    TypeScript,
}

/// Where the page's files stand, and what a receiver of webhooks keeps.
pub(crate) struct Directory {
    path: PathBuf,
    language: Language,
    /// The file that serves, without its ending.
    main: &'static str,
}

impl Language {
    /// A directory with the page's files, ready to run.
    #[track_caller]
    pub(crate) fn prepare(self, page: &'static str, main: &'static str) -> Directory {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{main}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        let files = match self {
            Self::Python => Page::read(page).files("python", "# "),
            Self::TypeScript => Page::read(page).files("typescript", "// "),
        };
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let end = if self == Self::Python { "py" } else { "ts" };
        assert_eq!(names, [format!("verify.{end}"), format!("{main}.{end}")]);
        for (name, text) in &files {
            std::fs::write(path.join(name), text).unwrap();
        }
        let lines = files[0].1.lines().skip(1).filter(|line| !line.is_empty());
        let lines = lines.count();
        assert!(lines <= LINES_MOST, "{lines} lines to verify");
        let directory = Directory {
            path,
            language: self,
            main,
        };
        if self == Self::TypeScript {
            directory.compile();
        }
        directory
    }
}

impl Directory {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.path).stdin(Stdio::null());
        command
    }

    /// What a person's project has beside the files, and their types checked.
    fn compile(&self) {
        let modules = part("webhook-receiver/node_modules");
        std::os::unix::fs::symlink(&modules, self.path.join("node_modules")).unwrap();
        std::fs::write(self.path.join("package.json"), r#"{"type": "module"}"#).unwrap();
        let main = format!("{}.ts", self.main);
        let compiled = self
            .command(Path::new("node"))
            .arg(modules.join("typescript/bin/tsc"))
            .args(["--strict", "--target", "es2022", "--module", "nodenext"])
            .args(["--types", "node", "verify.ts", &main])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&compiled.stdout);
        assert!(compiled.status.success(), "{said}");
    }

    /// What the receiver has kept, by id: ids and bodies.
    pub(crate) fn kept(&self) -> Vec<(String, String)> {
        if self.language == Language::Python {
            let mut command = self.command(&part("python/bin/python"));
            let listed = command.args(["-c", KEPT_IN_PYTHON]).output().unwrap();
            return serde_json::from_slice(&listed.stdout).unwrap();
        }
        let files = std::fs::read_dir(self.path.join("events")).unwrap();
        let mut kept: Vec<_> = files
            .map(|file| {
                let path = file.unwrap().path();
                let id = path.file_name().unwrap().to_str().unwrap();
                let id = id.strip_suffix(".json").unwrap().to_owned();
                (id, std::fs::read_to_string(&path).unwrap())
            })
            .collect();
        kept.sort();
        kept
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Best effort: it stands in the build's own directory.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A program that runs. It ends with the test.
pub(crate) struct Program {
    process: Child,
    address: SocketAddr,
}

impl Program {
    #[track_caller]
    pub(crate) fn start(directory: &Directory, secret: &str) -> Self {
        let (program, end) = match directory.language {
            Language::Python => (part("python/bin/python"), "py"),
            Language::TypeScript => (PathBuf::from("node"), "js"),
        };
        let mut process = directory
            .command(&program)
            .arg(format!("{}.{end}", directory.main))
            .env("WEBHOOK_SECRET", secret)
            .env("TOOL_SECRET", secret)
            .env("PORT", "0")
            .stdout(Stdio::piped())
            // What it logs of requests.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        // Its end, too, ends the line.
        output.read_line(&mut said).unwrap();
        let port = said.trim().strip_prefix("listening on port ");
        let port = port.and_then(|port| port.parse().ok());
        let port: u16 = port.unwrap_or_else(|| panic!("the program said {said:?}"));
        Self {
            process,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/webhooks", self.address)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
