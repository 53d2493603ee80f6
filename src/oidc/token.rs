//! The token call (OAuth 2.0, sections 2.3.1 and 4.1.3; PKCE, section 4.5): a code for an ID token.

use super::discovery::Metadata;
use super::exchange::{Exchange, read};
use super::fault::{Code, Fault, shown};
use super::issuer::{Flow, Issuer};
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use url::form_urlencoded::{Serializer, byte_serialize};
use zeroize::Zeroizing;

const WHAT: &str = "The provider's answer to the code (token_endpoint)";

/// Room for a form: what a buffer leaves behind as it grows is not wiped.
const FORM_BYTES: usize = 32 * 1024;

/// What a code is exchanged for.
pub(super) struct Tokens {
    pub(super) id_token: Secret,
    pub(super) access_token: Option<Secret>,
}

#[derive(Deserialize)]
struct Answer {
    id_token: Option<String>,
    access_token: Option<String>,
}

/// An error (OAuth 2.0, section 5.2). Its description is not read: nobody knows what it repeats.
#[derive(Deserialize, Default)]
struct Refusal {
    #[serde(default)]
    error: String,
}

/// `user:password` of a Basic header, each form-encoded first.
fn basic(client_id: &str, secret: &Secret) -> Zeroizing<String> {
    let encoded = |text: &str| Zeroizing::new(byte_serialize(text.as_bytes()).collect::<String>());
    let pair = Zeroizing::new(format!(
        "{}:{}",
        *encoded(client_id),
        *encoded(secret.expose())
    ));
    let encoded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
    Zeroizing::new(format!("Basic {}", *encoded))
}

/// Exchanges the code.
pub(super) fn exchange(
    exchange: &mut Exchange<'_>,
    issuer: &Issuer<'_>,
    metadata: &Metadata,
    redirect_uri: &str,
    flow: &Flow,
    code: &str,
) -> Result<Tokens, Fault> {
    let mut form = Serializer::new(String::with_capacity(FORM_BYTES));
    form.append_pair("grant_type", "authorization_code")
        .append_pair("code", code)
        .append_pair("redirect_uri", redirect_uri)
        .append_pair("code_verifier", flow.verifier.expose());
    let authorization = match issuer.client_secret {
        Some(secret) if metadata.secret_in_body => {
            form.append_pair("client_id", issuer.client_id)
                .append_pair("client_secret", secret.expose());
            None
        }
        Some(secret) => Some(basic(issuer.client_id, secret)),
        None => {
            form.append_pair("client_id", issuer.client_id);
            None
        }
    };
    let form = Zeroizing::new(form.finish());
    let headers: Vec<(&str, &str)> = authorization
        .iter()
        .map(|value| ("authorization", value.as_str()))
        .collect();
    let answer = exchange.post(WHAT, metadata.token_endpoint.as_str(), &headers, &form)?;
    let body = Zeroizing::new(answer.body);
    match answer.status {
        200 => tokens(&body),
        status => Err(refusal(status, &body)),
    }
}

fn tokens(body: &[u8]) -> Result<Tokens, Fault> {
    let answer: Answer = read(WHAT, body)?;
    let id_token = answer.id_token.ok_or_else(|| {
        let sentence = format!("{WHAT} has no ID token.");
        Fault::new(Code::AnswerMalformed, sentence)
    })?;
    Ok(Tokens {
        id_token: Secret::new(id_token),
        access_token: answer.access_token.map(Secret::new),
    })
}

fn refusal(status: u16, body: &[u8]) -> Fault {
    let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let code = match refusal.error.as_str() {
        "invalid_grant" => Code::CodeRefused,
        "invalid_client" | "unauthorized_client" => Code::ClientRefused,
        _ if status == 401 => Code::ClientRefused,
        _ => Code::AnswerMalformed,
    };
    let named = match refusal.error.as_str() {
        "" => String::new(),
        error => format!(" and the error {}", shown(error)),
    };
    Fault::new(code, format!("{WHAT} is HTTP {status}{named}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_and_secret_are_form_encoded_in_the_header() {
        // The rule of OAuth 2.0, section 2.3.1: encode, then join, then Basic.
        let header = basic("a:b c", &Secret::new("p%&é"));
        let text = header.strip_prefix("Basic ").unwrap();
        let pair = String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
        assert_eq!(pair, "a%3Ab+c:p%25%26%C3%A9");
    }

    #[test]
    fn a_refusal_names_the_error_and_repeats_nothing_else() {
        for (status, body, code) in [
            (
                400,
                r#"{"error":"invalid_grant","error_description":"code s3cret was used"}"#,
                Code::CodeRefused,
            ),
            (401, r#"{"error":"invalid_client"}"#, Code::ClientRefused),
            (401, "s3cret", Code::ClientRefused),
            (400, r#"{"error":"s3cret or else"}"#, Code::AnswerMalformed),
            (404, "<html>s3cret</html>", Code::AnswerMalformed),
        ] {
            let fault = refusal(status, body.as_bytes());
            assert_eq!(fault.code(), code, "{body}");
            assert!(!fault.sentence().contains("s3cret"), "{fault}");
        }
    }
}
