//! Fields of an agent's version that a run may set, too: what of them is refused.

use super::request_parts::invalid_body;
use crate::error::Result;
use crate::model::Parameters;
use crate::store::agent_versions::References;

const STOPS_MOST: usize = 16;
/// The longest word for how much a model thinks, and the longest name of a tool.
const EFFORT_MOST: usize = 32;
const TOOL_NAME_MOST: usize = 64;
const STOP_CHARACTERS_MOST: usize = 200;
const EXTRA_BYTES_MOST: usize = 16 * 1024;

/// What of the parameters is out of bounds: its place, and what is expected there. `at` is the place of the parameters' object.
pub(super) fn parameters_fault(parameters: &Parameters, at: &str) -> Option<(String, String)> {
    let fault = |name: &str, expected: String| Some((format!("{at}.parameters.{name}"), expected));
    for (name, value, least, most) in [
        ("temperature", parameters.temperature, 0.0, 2.0),
        ("topP", parameters.top_p, 0.0, 1.0),
        ("presencePenalty", parameters.presence_penalty, -2.0, 2.0),
        ("frequencyPenalty", parameters.frequency_penalty, -2.0, 2.0),
    ] {
        if value.is_some_and(|value| !(least..=most).contains(&value)) {
            return fault(name, format!("{least} to {most}"));
        }
    }
    if !parameters
        .max_tokens
        .is_none_or(|tokens| (1..=1_000_000).contains(&tokens))
    {
        return fault("maxTokens", "1 to 1000000".to_owned());
    }
    let fits = |stop: &String| (1..=STOP_CHARACTERS_MOST).contains(&stop.chars().count());
    if parameters.stop.len() > STOPS_MOST || !parameters.stop.iter().all(fits) {
        let expected =
            format!("at most {STOPS_MOST} texts of 1 to {STOP_CHARACTERS_MOST} characters");
        return fault("stop", expected);
    }
    let is_word = |text: &String, most: usize| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=most).contains(&text.len()) && text.bytes().all(fits)
    };
    let effort = parameters.reasoning_effort.as_ref();
    if !effort.is_none_or(|effort| is_word(effort, EFFORT_MOST)) {
        let expected =
            format!("a word of 1 to {EFFORT_MOST} letters, digits, underscores and hyphens");
        return fault("reasoningEffort", expected);
    }
    let choice = parameters.tool_choice.as_ref();
    if !choice.is_none_or(|choice| is_word(choice, TOOL_NAME_MOST)) {
        return fault(
            "toolChoice",
            "auto, none, required, or the name of a tool".to_owned(),
        );
    }
    if let Some(name) = parameters.reserved_extra() {
        let expected = "a field that the service does not set itself".to_owned();
        return fault(&format!("extra.{name}"), expected);
    }
    let extra_bytes = serde_json::to_vec(&parameters.extra).map_or(usize::MAX, |bytes| bytes.len());
    if extra_bytes > EXTRA_BYTES_MOST {
        let expected = format!("at most {EXTRA_BYTES_MOST} bytes of JSON");
        return fault("extra", expected);
    }
    None
}

/// Whether the model is one of its provider's. `at` is the place of the object that names both.
pub(super) fn check_model(references: &References, at: &str) -> Result<()> {
    if !references.has_provider {
        let expected = "the id of a model provider of this tenant";
        return Err(invalid_body(&format!("{at}.modelProviderId"), expected));
    }
    if !references.has_model {
        let expected = "the name of a model of this provider";
        return Err(invalid_body(&format!("{at}.model"), expected));
    }
    Ok(())
}
