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
