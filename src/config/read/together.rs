//! Checks settings together: two forms of one value, and bounds that depend on each other.

use super::{Origination, Reader, Row, value};
use crate::config::parse::Value;
use crate::config::table;

impl Reader<'_> {
    /// Two forms of one value, both given.
    pub(super) fn variants(&mut self, rows: &[Row]) {
        let given = |name: &str| {
            rows.iter().any(|row| {
                row.setting.name == name
                    && !matches!(row.from, Origination::Default | Origination::Unset)
            })
        };
        for setting in table::settings() {
            if let Some(other) = setting.variant_of
                && given(setting.name)
                && given(other)
            {
                let problem = format!("and {other} give the same thing, and both are set");
                self.fault(setting.name, problem, "Keep one of them");
            }
        }
    }

    /// A purge must sign its anchors.
    pub(super) fn retention(&mut self, rows: &[Row]) {
        let key = rows
            .iter()
            .find(|row| row.setting.name == "SVC_AUDIT_SIGNING_KEY_PATH");
        let no_key = key.is_none_or(|row| matches!(row.from, Origination::Unset));
        if value(rows, "SVC_COMPLIANCE_CLASSIFIER").is_some() && no_key {
            self.fault(
                "SVC_AUDIT_SIGNING_KEY_PATH",
                "is not set, but SVC_COMPLIANCE_CLASSIFIER purges the audit, which has to be signed",
                "Make a key with: openssl genpkey -algorithm ed25519, in a file of mode 0600, and name it here",
            );
        }
    }

    pub(super) fn body_limits(&mut self, rows: &[Row]) {
        let number = |name: &str| match value(rows, name) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        };
        let one = number("SVC_MAX_BODY_BYTES");
        let all = number("SVC_MAX_BODY_BYTES_IN_FLIGHT");
        if let (Some(one), Some(all)) = (one, all)
            && one > all
        {
            self.fault(
                "SVC_MAX_BODY_BYTES_IN_FLIGHT",
                "is less than SVC_MAX_BODY_BYTES, so the longest body could never be taken",
                "Raise it, or lower SVC_MAX_BODY_BYTES",
            );
        }
    }
}
