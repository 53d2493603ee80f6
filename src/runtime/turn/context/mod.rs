//! Fits a prompt into a model's context window: shortens results of earlier turns, the oldest first, then leaves out the oldest
//! exchanges of the conversation.
//!
//! An exchange is a message of the user with everything up to the user's next message. The instructions and the newest
//! exchange always stay, so a tool call and its result are never separated. The decision depends only on the request and on
//! the token counts of earlier calls of the conversation, so it is the same whenever it is repeated.
//!
//! There is no tokenizer. Text that the newest call sent has the provider's own count. Of all other text, three bytes count
//! as one token, which is more than most languages need. Not here: a prompt that is nevertheless too long, which the
//! provider refuses (`model::failure`).

use crate::model::{ChatRequest, Message, Parameters};
use crate::runtime::journal::PromptSize;
use crate::text::beginning;

/// A token has at least so many bytes, where nothing was counted.
const BYTES_A_TOKEN: u64 = 3;
/// A token has at most so many bytes. A prompt that is too long by this measure is not sent.
const BYTES_A_TOKEN_MOST: u64 = 8;
/// The part of the window that is kept for the answer where the agent has no limit for it, and the most of it.
const ANSWER_SHARE: u64 = 4;
const ANSWER_TOKENS: u64 = 4096;

/// The beginning of a result that is kept where room is scarce, in bytes.
const SHORT_BYTES: usize = 200;
const MARK: &str = "\n[… shortened]";

/// Shortens as many results and leaves out as many of the oldest exchanges as it takes, and sends no more than `most`. `said`: how many messages stand
/// before the first step of this turn, whose corrections begin no exchange.
///
/// # Errors
/// A sentence: what always stays is too long.
pub(super) fn fit(
    request: &mut ChatRequest,
    said: usize,
    window: u32,
    counted: Option<PromptSize>,
    most: Option<usize>,
) -> Result<PromptSize, String> {
    let answer = answer_tokens(&request.parameters, window);
    let room = u64::from(window).saturating_sub(answer);
    let starts = exchanges(&request.messages[..said]);
    let mut sizes: Vec<u64> = request.messages.iter().map(bytes_of).collect();
    let tools = request.tools.iter().map(|tool| tool.wire_bytes() as u64);
    let schema = request.schema_bytes() as u64;
    let mut bytes = sizes.iter().sum::<u64>() + tools.sum::<u64>() + schema;
    for (message, size) in request.messages[..said].iter_mut().zip(&mut sizes) {
        if tokens(bytes, counted) <= room {
            break;
        }
        if shorten(message) {
            let before = std::mem::replace(size, bytes_of(message));
            bytes = bytes - before + *size;
        }
    }
    let mut left_out = 0;
    for exchange in starts.windows(2) {
        let is_few = most.is_none_or(|most| starts.len() - left_out <= most);
        if is_few && tokens(bytes, counted) <= room {
            break;
        }
        bytes -= sizes[exchange[0]..exchange[1]].iter().sum::<u64>();
        left_out += 1;
    }
    let fewest = bytes / BYTES_A_TOKEN_MOST;
    if fewest > room {
        return Err(format!(
            "The model {} has a context window of {window} tokens (contextWindow), and {answer} of them are kept for the \
             answer. The instructions, the tools and the newest message with what followed it have {fewest} tokens or more. \
             Shorten them, lower maxOutputTokens, or use a model with a larger context window.",
            request.model
        ));
    }
    if let (Some(first), Some(end)) = (starts.first(), starts.get(left_out)) {
        request.messages.drain(*first..*end);
    }
    Ok(PromptSize {
        bytes,
        tokens: None,
        exchanges_left_out: left_out,
        exchanges_sent: Some(starts.len() - left_out),
    })
}

/// Shortens the result of a tool; `false`: it is another message, or short.
fn shorten(message: &mut Message) -> bool {
    let Message::Tool { content, .. } = message else {
        return false;
    };
    let short = beginning(content, SHORT_BYTES);
    let shortened = format!("{short}{MARK}");
    let is_shorter = shortened.len() < content.len();
    if is_shorter {
        *content = shortened;
    }
    is_shorter
}

fn answer_tokens(parameters: &Parameters, window: u32) -> u64 {
    let share = (u64::from(window) / ANSWER_SHARE).min(ANSWER_TOKENS);
    parameters.answer_tokens().unwrap_or(share)
}

/// Where each exchange begins. What stands before the first message of the user, but for the instructions, is one too.
pub(super) fn exchanges(messages: &[Message]) -> Vec<usize> {
    let mut starts = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        match message {
            Message::System { .. } => {}
            Message::User { .. } => starts.push(place),
            _ if starts.is_empty() => starts.push(place),
            _ => {}
        }
    }
    starts
}

fn bytes_of(message: &Message) -> u64 {
    message.wire_bytes() as u64
}

/// How many tokens so many bytes are, rather too many than too few.
fn tokens(bytes: u64, counted: Option<PromptSize>) -> u64 {
    let known = counted.and_then(|size| Some((size.bytes, size.tokens?)));
    let (known_bytes, known_tokens) = known.filter(|(bytes, _)| *bytes > 0).unwrap_or((0, 0));
    let known_tokens = known_tokens.clamp(known_bytes / BYTES_A_TOKEN_MOST, known_bytes);
    let same = bytes.min(known_bytes);
    let share = match known_bytes {
        0 => 0,
        _ => (u128::from(same) * u128::from(known_tokens)).div_ceil(u128::from(known_bytes)),
    };
    u64::try_from(share).unwrap_or(u64::MAX) + (bytes - same).div_ceil(BYTES_A_TOKEN)
}

#[cfg(test)]
mod tests;
