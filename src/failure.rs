//! Why a run failed, in two texts: the whole message, for those who may read the run, and a summary that may leave the
//! service, in webhook events, log records and lists.
//!
//! Guarantees: a summary contains no data of a run. It is made of [`Part`]s alone, and no text that was read at run time is one
//! of them unless the caller names it as [`Authored`].

use std::fmt::Display;

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The whole message: one or more sentences. It may quote data of the run.
    pub message: String,
    /// The same without data.
    pub summary: Summary,
}

/// One or more sentences without data of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary(String);

/// A name that an author wrote into a definition: of a task, a tool, an agent, a flow, or a literal title. Never what a model, a
/// caller or a server wrote.
#[derive(Debug, Clone, Copy)]
pub struct Authored<'a>(pub &'a str);

/// A part of a summary.
pub trait Part: sealed::Sealed {
    /// Appends it.
    fn append(&self, text: &mut String);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! parts {
    ($($kind:ty),*) => {
        $(
            impl sealed::Sealed for $kind {}
            impl Part for $kind {
                fn append(&self, text: &mut String) {
                    push(text, self);
                }
            }
        )*
    };
}

// Text of this program, and numbers. A text with another lifetime is no part.
parts!(&'static str, u16, i32, u32, i64, u64, usize, uuid::Uuid);

impl sealed::Sealed for Authored<'_> {}

impl Part for Authored<'_> {
    fn append(&self, text: &mut String) {
        text.push_str(self.0);
    }
}

impl sealed::Sealed for Summary {}

impl Part for Summary {
    fn append(&self, text: &mut String) {
        text.push_str(&self.0);
    }
}

fn push(text: &mut String, part: impl Display) {
    text.push_str(&part.to_string());
}

impl Summary {
    /// The parts in a row.
    pub fn of(parts: &[&dyn Part]) -> Self {
        let mut text = String::new();
        for part in parts {
            part.append(&mut text);
        }
        Self(text)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Summary {
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

impl Failure {
    /// A failure whose whole message is free of data.
    pub fn of(parts: &[&dyn Part]) -> Self {
        Summary::of(parts).into()
    }

    /// A failure whose message may quote data.
    pub fn quoting(message: impl Into<String>, summary: impl Into<Summary>) -> Self {
        Self {
            message: message.into(),
            summary: summary.into(),
        }
    }

    /// The same with another sentence, in both texts.
    pub fn then(mut self, parts: &[&dyn Part]) -> Self {
        for text in [&mut self.message, &mut self.summary.0] {
            text.push(' ');
            for part in parts {
                part.append(text);
            }
        }
        self
    }
}

impl From<Summary> for Failure {
    fn from(summary: Summary) -> Self {
        Self {
            message: summary.0.clone(),
            summary,
        }
    }
}

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Summary::from(text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_its_parts_and_a_sentence_is_added_to_both_texts() {
        let summary = Summary::of(&[
            &"The task ",
            &Authored("/do/0/pay"),
            &" failed (status ",
            &503_u16,
            &").",
        ]);
        assert_eq!(summary.as_str(), "The task /do/0/pay failed (status 503).");
        let failure =
            Failure::quoting("It said secret.", summary).then(&[&"It was tried ", &2, &" times."]);
        assert_eq!(failure.message, "It said secret. It was tried 2 times.");
        assert_eq!(
            failure.summary.as_str(),
            "The task /do/0/pay failed (status 503). It was tried 2 times."
        );
    }
}
