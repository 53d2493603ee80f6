//! Credentials, by forms that their issuers document: keys of clouds, tokens with a prefix, private keys, signed tokens, passwords
//! in URLs, and this service's own.

use super::finding::{Finding, Forms};
use std::sync::LazyLock;

static FORMS: LazyLock<Forms> = LazyLock::new(|| {
    Forms::new(&[
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "cloud key"),
        (r"\bAIza[0-9A-Za-z_-]{35}", "cloud key"),
        (r"\bya29\.[0-9A-Za-z_-]{20,}", "token"),
        (r"\bgh[opusr]_[0-9A-Za-z]{36,}", "token"),
        (r"\bgithub_pat_[0-9A-Za-z_]{22,}", "token"),
        (r"\bglpat-[0-9A-Za-z_-]{20,}", "token"),
        (r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}", "token"),
        (r"\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,}", "token"),
        (r"\bsk-[0-9A-Za-z_-]{20,}", "token"),
        (r"\bhf_[A-Za-z]{30,}", "token"),
        (r"\bnpm_[0-9A-Za-z]{36}", "token"),
        (r"\bpypi-[0-9A-Za-z_-]{50,}", "token"),
        (r"\bSG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}", "token"),
        (r"\bsvc_(?:bt|en|ss)_[0-9A-Za-z_-]{8,}", "token"),
        (r"\bsvc_(?:pt|lk)_[0-9A-Za-z_.-]{8,}", "token"),
        (r"\bwhsec_[0-9A-Za-z+/=_-]{8,}", "signing secret"),
        (
            r"\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*",
            "signed token",
        ),
        (
            r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----[0-9A-Za-z+/=\s:,-]*?(?:-----END [A-Z0-9 ]{0,32}PRIVATE KEY-----|$)",
            "private key",
        ),
        (
            r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:]{0,128}:[^\s/@]{1,256}@",
            "password in a URL",
        ),
        (r"(?i)\bbearer [0-9a-z._~+/-]{16,}=*", "bearer credential"),
    ])
});

pub(super) fn find(text: &str, found: &mut Vec<Finding>) {
    FORMS.find(text, found);
}

#[cfg(feature = "bench")]
pub(super) fn expressions() -> Vec<&'static str> {
    FORMS.each.iter().map(|(form, _)| form.as_str()).collect()
}
