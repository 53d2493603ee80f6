//! What the packages bring along from the program's own tables: completions and manual pages.

use crate::commands::COMMANDS;
use crate::harness::run;
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn every_shell_is_told_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell], &[]).expect(0).out;
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    run(&["completions", "no-such-shell"], &[]).expect(2);
}

/// The script in the shell that it is for.
#[test]
fn bash_completes_with_it() {
    let script = run(&["completions", "bash"], &[]).expect(0).out;
    // The function's name is the generator's own.
    let try_it = "COMP_WORDS=(agent-runtime check) COMP_CWORD=1; \
         completer=$(complete -p agent-runtime); completer=${completer#*-F }; \
         ${completer%% *} agent-runtime check agent-runtime; echo \"${COMPREPLY[*]}\"";
    // A file: the script is longer than an argument may be.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("try.sh");
    std::fs::write(&file, format!("{script}\n{try_it}")).unwrap();
    let output = Command::new("bash")
        .arg("--norc")
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let faults = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "check-config", "{faults}");
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().to_str().unwrap();
    run(&["manual-pages", directory], &[]).expect(0);
    let pages: BTreeMap<String, String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let text = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        })
        .collect();
    let overview = &pages["agent-runtime.1"];
    assert!(overview.contains(".B SVC_LICENSE_KEY\n"));
    for command in COMMANDS {
        let page = &pages[&format!("agent-runtime-{command}.1")];
        assert!(page.contains(".SH SYNOPSIS\n"), "{page}");
    }
    let verify = &pages["agent-runtime-audit-verify.1"];
    let title = ".TH AGENT\\-RUNTIME\\-AUDIT\\-VERIFY 1 \"\" ";
    assert!(verify.starts_with(title), "{verify}");
    assert!(verify.contains("\\-\\-public\\-key"), "{verify}");
    assert!(verify.contains(".SH EXAMPLES\n.nf\n"), "{verify}");
    assert!(
        verify.contains("\n.fi\n.PP\nThe database is ")
            && verify.contains("\n.PP\nThe public key is "),
        "{verify}"
    );
    assert!(overview.contains(".BR agent\\-runtime\\-audit\\-verify (1)\n"));
    assert!(!pages.keys().any(|name| name.contains("manual-pages")));
    // The settings stand on one page alone.
    assert!(!pages["agent-runtime-serve.1"].contains("SVC_LICENSE_KEY"));
    run(&["manual-pages", "/no/such/directory"], &[]).expect(1);
}
