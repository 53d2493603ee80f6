//! The whole: what a flow is called, what it takes and gives, and what it declares.

use super::around::Around;
use super::fault::{Code, Fault};
use super::tree::{DEFINITION_BYTES, Definition, Document, Needs};
use super::unsupported::{self, Part};
use super::values::{Moment, Scope};
use super::walk::{Location, Walk};
use serde_json::Value;

/// The versions of the language that are read.
const VERSIONS: [&str; 4] = ["1.0.0", "1.0.1", "1.0.2", "1.0.3"];

/// Namespaces of what the service brings along.
const RESERVED: [&str; 3] = ["agent", "eval", "svc"];

/// The longest summary, in bytes.
const SUMMARY_BYTES: usize = 16 * 1024;
/// The longest version of a flow or an agent.
const VERSION_MOST: usize = 100;

impl<'a> Walk<'a> {
    pub(super) fn definition(&mut self, value: &'a Value) -> Option<Definition> {
        let location = Location::root();
        let bytes = value.to_string().len();
        if bytes > DEFINITION_BYTES {
            let said = format!(
                "A definition has {DEFINITION_BYTES} bytes of JSON at most, and this one {bytes}."
            );
            self.tell(&location, Code::TooLarge, said);
            return None;
        }
        let mut fields = self.object(value, &location)?;
        let scope = Scope::outer();
        let document = fields.need(self, "document");
        let document = document.and_then(|(value, location)| self.document(value, &location));
        self.declarations(fields.take("use"));
        if let Some((value, location)) = fields.take("evaluate") {
            self.language(value, &location);
        }
        let input = self.shape(fields.take("input"), "from", (&scope, Moment::Start));
        let output = self.shape(fields.take("output"), "as", (&scope, Moment::End));
        let timeout = self.timeout(fields.take("timeout"), (&scope, Moment::Start));
        let tasks = fields.need(self, "do");
        let tasks =
            tasks.and_then(|(value, location)| self.list(value, &location, &Around::outer()));
        fields.close(self, Part::Definition);
        self.unused_declarations();
        for warning in std::mem::take(&mut self.types).warnings() {
            self.warn(warning);
        }
        Some(Definition {
            document: document?,
            input: input?,
            output: output?,
            timeout: timeout?,
            tasks: tasks?,
            references: Vec::new(),
            source: None,
            needs: Needs::default(),
        })
    }

    fn document(&mut self, value: &'a Value, location: &Location) -> Option<Document> {
        let mut fields = self.object(value, location)?;
        let dsl = fields.need(self, "dsl");
        let dsl = dsl.and_then(|(value, location)| self.dsl(value, &location));
        let namespace = fields.need(self, "namespace");
        let namespace = namespace.and_then(|(value, location)| {
            let namespace = self.label(value, &location)?;
            if RESERVED.contains(&namespace.as_str()) {
                let said = format!(
                    "The namespaces {} are the service's own.",
                    RESERVED.join(", ")
                );
                self.tell(&location, Code::BadValue, said);
                return None;
            }
            Some(namespace)
        });
        let name = fields.need(self, "name");
        let name = name.and_then(|(value, location)| self.label(value, &location));
        let version = fields.need(self, "version");
        let version = version.and_then(|(value, location)| self.version(value, &location));
        let title = match fields.take("title") {
            Some((value, location)) => self.short_text(value, &location, 200).map(Some),
            None => Some(None),
        };
        let summary = match fields.take("summary") {
            Some((value, location)) => self.summary(value, &location).map(Some),
            None => Some(None),
        };
        for name in ["tags", "metadata"] {
            if let Some((value, location)) = fields.take(name) {
                self.object(value, &location);
            }
        }
        fields.close(self, Part::Other);
        Some(Document {
            dsl: dsl?,
            namespace: namespace?,
            name: name?,
            version: version?,
            title: title?,
            summary: summary?,
        })
    }

    fn dsl(&mut self, value: &Value, location: &Location) -> Option<String> {
        let text = self.text(value, location)?;
        if VERSIONS.contains(&text) {
            return Some(text.to_owned());
        }
        let said = match text.starts_with("0.") {
            true => {
                "0.x is the older language Serverless Workflow, which is another one. 1.0.0 to 1.0.3 are read."
            }
            false => "1.0.0 to 1.0.3 of the Open Workflow DSL are read.",
        };
        self.fault(Fault::new(&location.path, Code::Unsupported, said).hint("Write \"1.0.3\"."));
        None
    }

    fn summary(&mut self, value: &Value, location: &Location) -> Option<String> {
        let text = self.text(value, location)?;
        if text.len() > SUMMARY_BYTES {
            let said = format!("A summary has {SUMMARY_BYTES} bytes at most.");
            self.tell(location, Code::TooLarge, said);
            return None;
        }
        Some(text.to_owned())
    }

    fn language(&mut self, value: &'a Value, location: &Location) {
        let Some(mut fields) = self.object(value, location) else {
            return;
        };
        for (name, taken, sentence) in [
            ("language", "jq", "evaluate.language"),
            ("mode", "strict", "evaluate.mode"),
        ] {
            if let Some((value, location)) = fields.take(name)
                && value.as_str() != Some(taken)
            {
                self.tell(&location, Code::Unsupported, unsupported::other(sentence));
            }
        }
        fields.close(self, Part::Other);
    }

    /// A namespace or a name.
    pub(super) fn label(&mut self, value: &Value, location: &Location) -> Option<String> {
        let text = self.text(value, location)?;
        if is_label(text) {
            return Some(text.to_owned());
        }
        let said = "1 to 63 lowercase letters, digits and inner hyphens are expected.";
        let fault = Fault::new(&location.path, Code::BadValue, said);
        let lowercase = text.to_lowercase();
        self.fault(match lowercase == text {
            true => fault,
            false => fault.hint("Ids are compared byte by byte: write lowercase letters."),
        });
        None
    }

    /// A semantic version.
    pub(super) fn version(&mut self, value: &Value, location: &Location) -> Option<String> {
        let text = self.text(value, location)?;
        let parsed = semver::Version::parse(text).ok();
        if parsed.is_some_and(|version| version.build.is_empty()) && text.len() <= VERSION_MOST {
            return Some(text.to_owned());
        }
        let said = format!(
            "A semantic version such as 1.2.3 or 2.0.0-rc.1 is expected, without build metadata, of at most {VERSION_MOST} characters."
        );
        self.tell(location, Code::BadValue, said);
        None
    }
}

/// Whether a text can be the id of a flow: `namespace.name`.
pub fn is_flow_id(text: &str) -> bool {
    let parts = text.split_once('.');
    parts.is_some_and(|(namespace, name)| is_label(namespace) && is_label(name))
}

fn is_label(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_long_enough = (1..=63).contains(&text.len());
    is_long_enough && text.bytes().all(is_part) && !text.starts_with('-') && !text.ends_with('-')
}
