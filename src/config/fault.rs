//! What is wrong with a setting.

/// A fault of one setting.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fault {
    /// The variable.
    pub setting: String,
    /// What is wrong, for use after the variable's name.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}. {}.", self.setting, self.problem, self.remedy)
    }
}
