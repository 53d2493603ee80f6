//! Chromium without a window, told what to do over the pipes of the DevTools protocol. Every name that ends with `.example`
//! is this host.

use super::page::part;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// How long it may live, in seconds: nothing that waits for it waits longer.
const MOST_S: &str = "300";

/// The protocol's pipes are the descriptors 3 and 4.
const WITH_PIPES: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#;

/// A browser. It ends with the test.
pub(crate) struct Chromium {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    _profile: tempfile::TempDir,
}

/// A tab of it.
pub(crate) struct Tab(String);

impl Chromium {
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("timeout");
        command.args(["-k", "5", MOST_S, "sh", "-c", WITH_PIPES]);
        command.arg(part("chromium/browser"));
        command.args(["--headless", "--disable-gpu", "--remote-debugging-pipe"]);
        command.arg("--host-resolver-rules=MAP *.example 127.0.0.1");
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = pipes.spawn().unwrap();
        Self {
            to: process.stdin.take().unwrap(),
            from: BufReader::new(process.stdout.take().unwrap()),
            process,
            calls: 0,
            _profile: profile,
        }
    }

    /// A tab with this page, once it is loaded.
    #[track_caller]
    pub(crate) fn open(&mut self, url: &str) -> Tab {
        let made = self.call(None, "Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": made["targetId"], "flatten": true});
        let attached = self.call(None, "Target.attachToTarget", attach);
        let tab = Tab(attached["sessionId"].as_str().unwrap().to_owned());
        self.call(Some(&tab), "Page.enable", json!({}));
        let went = self.call(Some(&tab), "Page.navigate", json!({"url": url}));
        assert_eq!(went.get("errorText"), None, "{url}");
        while self.next()["method"] != "Page.loadEventFired" {}
        tab
    }

    /// What a script of the page comes to, as if its reader had clicked.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, tab: &Tab, script: &str) -> Value {
        let call = json!({
            "expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true,
        });
        let done = self.call(Some(tab), "Runtime.evaluate", call);
        assert_eq!(done.get("exceptionDetails"), None, "{script}");
        done["result"]["value"].clone()
    }

    #[track_caller]
    fn call(&mut self, tab: Option<&Tab>, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(Tab(session)) = tab {
            call["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{call}\0").as_bytes()).unwrap();
        loop {
            let said = self.next();
            if said["id"] == json!(self.calls) {
                assert_eq!(said.get("error"), None, "{method}");
                return said["result"].clone();
            }
        }
    }

    /// The next message.
    #[track_caller]
    fn next(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).unwrap();
        assert_eq!(message.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&message).unwrap()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // `timeout` passes the signal on, which SIGKILL would not let it.
        let pid = i32::try_from(self.process.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.process.wait();
    }
}
