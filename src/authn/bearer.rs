//! Bearer tokens: `svc_bt_`, 43 base62 characters (32 random bytes), and 6 base62 characters of
//! their CRC-32. The checksum lets a scanner distinguish a leaked token from a look-alike. The
//! server does not check it, because an operator's seed token may have any form.

use crate::error::{Error, Result};
use crate::secret::Secret;
use sha2::{Digest, Sha256};

/// The prefix of bearer tokens that this service makes.
pub const PREFIX: &str = "svc_bt_";

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The prefix of enrolment codes; the rest has the form of a bearer token.
pub const ENROLMENT_PREFIX: &str = "svc_en_";

/// The prefix of sessions; the rest has the form of a bearer token.
pub const SESSION_PREFIX: &str = "svc_ss_";

/// A new token.
///
/// # Errors
/// The system gives no random bytes.
pub fn mint() -> Result<Secret> {
    mint_as(PREFIX)
}

/// A new enrolment code, which a person exchanges for a first key.
///
/// # Errors
/// The system gives no random bytes.
pub fn mint_enrolment() -> Result<Secret> {
    mint_as(ENROLMENT_PREFIX)
}

/// A new value of a session, which its browser keeps in a cookie.
///
/// # Errors
/// The system gives no random bytes.
pub fn mint_session() -> Result<Secret> {
    mint_as(SESSION_PREFIX)
}

fn mint_as(prefix: &str) -> Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(Error::internal)?;
    let body = base62(&bytes, 43);
    let check = base62(&crc32fast::hash(body.as_bytes()).to_be_bytes(), 6);
    Ok(Secret::new(format!("{prefix}{body}{check}")))
}

/// The digest that is stored of a token.
pub fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The last four characters, by which people distinguish tokens.
pub fn last_four(token: &Secret) -> String {
    let text = token.expose();
    let start = text.char_indices().rev().nth(3).map_or(0, |(at, _)| at);
    text[start..].to_owned()
}

/// The big-endian number in base 62, padded to `width` digits.
fn base62(bytes: &[u8], width: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits = vec![DIGITS[0]; width];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        *digit = DIGITS[remainder as usize];
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_form_and_its_checksum() {
        let token = mint().unwrap();
        let rest = token.expose().strip_prefix(PREFIX).unwrap();
        assert_eq!(rest.len(), 49);
        let (body, check) = rest.split_at(43);
        assert_eq!(
            check,
            base62(&crc32fast::hash(body.as_bytes()).to_be_bytes(), 6)
        );
        assert_ne!(mint().unwrap(), token);
        assert_eq!(last_four(&token), check[2..]);
        assert_eq!(format!("{token:?}"), "[redacted]");
        let code = mint_enrolment().unwrap();
        let body = code.expose().strip_prefix(ENROLMENT_PREFIX).unwrap();
        assert_eq!(body.len(), 49);
    }

    #[test]
    fn base62_is_the_number() {
        assert_eq!(base62(&[0], 2), "00");
        assert_eq!(base62(&[61], 2), "0z");
        assert_eq!(base62(&[62], 2), "10");
        assert_eq!(base62(&[0xff; 32], 43).len(), 43);
        assert_ne!(base62(&[0xff; 32], 43).as_bytes()[0], b'0');
    }
}
