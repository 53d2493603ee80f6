//! Tells reasoning that a model writes into its text, between tags, from the text.
//!
//! Tags count at the start of the text alone. Input may be split anywhere; nothing is held back longer than it takes to tell a tag
//! from text. Not here: reasoning that comes in a field of its own.

/// The tags of models and servers: of DeepSeek, Qwen and most others; of Gemini; of Mistral; of Seed; of Kimi; of Sky-T1; of
/// Cohere; of gpt-oss, whose server does not take its channels apart.
const TAGS: [(&str, &str); 10] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
];

/// Before the text of gpt-oss, whose reasoning may be before it.
const MARKS: [&str; 2] = ["<|start|>assistant", "<|channel|>final<|message|>"];

/// A part of the text that a model wrote.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Reasoning(String),
}

/// Splits one text.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    at: At,
    /// What is not decided yet: blanks, and the start of what may be a tag.
    held: String,
    /// A tag was taken off, so blanks before the text are dropped.
    has_thought: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum At {
    /// Before the text.
    #[default]
    Start,
    /// Before this closing tag.
    Inside(&'static str),
    /// In the text, to its end.
    Text,
}

impl Splitter {
    /// Adds text; returns what is decided.
    pub(super) fn push(&mut self, piece: &str) -> Vec<Part> {
        if let At::Text = self.at {
            return vec![Part::Text(piece.to_owned())];
        }
        self.held.push_str(piece);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Decides about a part of what is held; `false` once more text is needed.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.at {
            At::Start => self.begin(parts),
            At::Inside(close) => self.think(close, parts),
            At::Text => {
                let text = std::mem::take(&mut self.held);
                if !text.is_empty() {
                    parts.push(Part::Text(text));
                }
                false
            }
        }
    }

    fn begin(&mut self, parts: &mut Vec<Part>) -> bool {
        let text = self.held.trim_start_matches(is_blank);
        let blanks = self.held.len() - text.len();
        // Templates that switch reasoning off leave its closing tag alone.
        let tags = TAGS.iter().flat_map(|(open, close)| {
            let opened: (&str, At) = (open, At::Inside(close));
            [opened, (close, At::Start)]
        });
        let mut marks = tags.chain(MARKS.map(|mark| (mark, At::Start)));
        if let Some((mark, then)) = marks.clone().find(|(mark, _)| text.starts_with(mark)) {
            self.held.drain(..blanks + mark.len());
            self.at = then;
            self.has_thought = true;
            return true;
        }
        // Blanks without end are text.
        let may_begin = text.is_empty() || marks.any(|(mark, _)| mark.starts_with(text));
        if may_begin && self.held.len() < 64 * 1024 {
            return false;
        }
        if self.has_thought {
            self.held.drain(..blanks);
        }
        self.at = At::Text;
        self.step(parts)
    }

    fn think(&mut self, close: &'static str, parts: &mut Vec<Part>) -> bool {
        let found = self.held.find(close);
        let end = found.unwrap_or_else(|| self.held.len() - started(&self.held, close));
        let thought: String = self.held.drain(..end).collect();
        if !thought.is_empty() {
            parts.push(Part::Reasoning(thought));
        }
        if found.is_some() {
            self.held.drain(..close.len());
            self.at = At::Start;
        }
        found.is_some()
    }

    /// The rest, once no more comes.
    pub(super) fn finish(&mut self) -> Option<Part> {
        let rest = std::mem::take(&mut self.held);
        match self.at {
            At::Inside(_) => Some(Part::Reasoning(rest)),
            At::Start if self.has_thought && rest.trim().is_empty() => None,
            At::Start | At::Text => Some(Part::Text(rest)),
        }
        .filter(|part| !matches!(part, Part::Text(rest) | Part::Reasoning(rest) if rest.is_empty()))
    }
}

/// Splits a whole text whose reasoning has no opening tag, because the server's template wrote that into the prompt, as those of
/// DeepSeek R1 and QwQ do: its closing tag is the only one, has a line of its own, and is not in a block of code.
pub(super) fn split_unopened(text: &str) -> Option<(&str, &str)> {
    let (open, close) = TAGS[0];
    let at = text.find(close)?;
    let (thought, rest) = (&text[..at], &text[at + close.len()..]);
    let alone = |line: Option<&str>| line.is_some_and(|line| line.trim().is_empty());
    let has_line = alone(thought.rsplit('\n').next()) && alone(rest.split('\n').next());
    let is_code = thought.matches("```").count() % 2 == 1;
    let is_one = !thought.contains(open) && !rest.contains(open) && !rest.contains(close);
    (has_line && is_one && !is_code).then(|| (thought, rest.trim_start_matches(is_blank)))
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// How many bytes at the end of the text are the start of the tag.
fn started(text: &str, tag: &str) -> usize {
    let lengths = (1..tag.len()).rev();
    lengths
        .filter(|length| tag.is_char_boundary(*length))
        .find(|length| text.ends_with(&tag[..*length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reasoning and the text of these pieces.
    fn split<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let mut splitter = Splitter::default();
        let mut parts: Vec<Part> = Vec::new();
        for piece in pieces {
            parts.extend(splitter.push(piece));
        }
        parts.extend(splitter.finish());
        let (mut reasoning, mut text) = (String::new(), String::new());
        for part in parts {
            match part {
                Part::Reasoning(piece) => reasoning.push_str(&piece),
                Part::Text(piece) => text.push_str(&piece),
            }
        }
        (reasoning, text)
    }

    #[test]
    fn tags_at_the_start_are_reasoning() {
        for (whole, reasoning, text) in [
            ("<think>\nplan\n</think>\n\nHello.", "\nplan\n", "Hello."),
            ("\n<thinking>a</thinking>b", "a", "b"),
            ("[THINK]a[/THINK] b", "a", "b"),
            ("◁think▷a◁/think▷b", "a", "b"),
            ("<think></think>\n\n<think>x</think>\ny", "x", "y"),
            ("</think>\n\nHello.", "", "Hello."),
            ("<think>never closed", "never closed", ""),
            ("<think>a < b </thin x</think>c", "a < b </thin x", "c"),
            ("  Hello.", "", "  Hello."),
            ("Hello <think>a</think>", "", "Hello <think>a</think>"),
            ("<thin air", "", "<thin air"),
            ("<", "", "<"),
            ("", "", ""),
            ("\n\n", "", "\n\n"),
        ] {
            let expected = (reasoning.to_owned(), text.to_owned());
            assert_eq!(split([whole]), expected, "{whole:?}");
            let one_by_one = whole.split_inclusive(|_: char| true);
            assert_eq!(split(one_by_one), expected, "{whole:?}");
        }
    }

    #[test]
    fn text_is_not_held_longer_than_needed() {
        let mut splitter = Splitter::default();
        assert_eq!(splitter.push("<th"), []);
        assert_eq!(splitter.push("e"), [Part::Text("<the".to_owned())]);
        assert_eq!(splitter.push("<think>"), [Part::Text("<think>".to_owned())]);
    }

    #[test]
    fn reasoning_without_an_opening_tag_is_found_by_its_closing_one() {
        assert_eq!(
            split_unopened("I plan.\n</think>\n\nHello."),
            Some(("I plan.\n", "Hello."))
        );
        for text in [
            "Write `</think>` at the end.",
            "```\na\n</think>\nb\n```",
            "a\n</think>\nb\n</think>\nc",
            "See <think>\n</think>\nb",
            "none",
        ] {
            assert_eq!(split_unopened(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just("<think>"), Just("</think>"), Just("<th"), Just("ink>"), Just("◁think▷"), Just("◁/think▷"), Just(" "),
                    Just("\n"), Just("é"), Just("</"), Just("x"),
                ],
                0..12,
            ),
        ) {
            let whole = pieces.concat();
            let at_once = split([whole.as_str()]);
            prop_assert_eq!(&split(pieces), &at_once);
            let one_by_one = whole.split_inclusive(|_: char| true);
            prop_assert_eq!(&split(one_by_one), &at_once);
        }
    }
}
