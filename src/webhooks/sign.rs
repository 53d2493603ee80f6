//! Signatures of Standard Webhooks 1.0, of deliveries and of calls of tools, and which secrets are
//! strong enough (specification sections 2.6 and 8).
//!
//! HMAC-SHA256 over `id.timestamp.body`, exact bytes. The key is the base64 after `whsec_`. During
//! a rotation there are several signatures, separated by a space, the newest secret's first.

use crate::secret::{Secret, decoded};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use zeroize::Zeroizing;

const PREFIX: &str = "whsec_";
/// Of a key (specification section 8). There is no upper bound but that of a stored secret.
const BYTES_LEAST: usize = 24;

/// Whether the secret can sign.
///
/// # Errors
/// A sentence that says what is wrong, without the secret.
pub fn check_secret(secret: &Secret) -> Result<(), String> {
    key(secret).map(|_| ())
}

/// The key that a secret stands for.
///
/// # Errors
/// As [`check_secret`].
pub fn key(secret: &Secret) -> Result<Zeroizing<Vec<u8>>, String> {
    let Some(text) = secret.expose().strip_prefix(PREFIX) else {
        return Err(format!("A signing secret begins with {PREFIX}."));
    };
    let Some(bytes) = decoded(text, text.len()) else {
        return Err(format!(
            "What follows {PREFIX} in a signing secret is base64 with its padding."
        ));
    };
    if bytes.len() < BYTES_LEAST {
        return Err(format!(
            "A signing secret is {PREFIX} and the base64 of at least {BYTES_LEAST} random bytes; this one has fewer."
        ));
    }
    Ok(bytes)
}

/// The header `webhook-signature` of what has this `webhook-id`. `timestamp` is in Unix seconds.
///
/// # Errors
/// As [`check_secret`], for the first secret. Another one that cannot sign is left out.
pub fn header(secrets: &[Secret], id: &str, timestamp: i64, body: &str) -> Result<String, String> {
    let mut signatures = Vec::with_capacity(secrets.len());
    for secret in secrets {
        match key(secret) {
            Ok(key) => signatures.push(signature(&key, id, timestamp, body)),
            Err(why) if signatures.is_empty() => return Err(why),
            Err(_) => {}
        }
    }
    Ok(signatures.join(" "))
}

fn signature(key: &[u8], id: &str, timestamp: i64, body: &str) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(format!("{id}.{timestamp}.").as_bytes());
    context.update(body.as_bytes());
    format!("v1,{}", STANDARD.encode(context.sign().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_standards_vector() {
        let key = key(&Secret::new(SECRET)).unwrap();
        assert_eq!(
            signature(
                &key,
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                r#"{"test": 2432232314}"#
            ),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn weak_and_broken_secrets_are_told_apart_without_being_shown() {
        let of = |bytes: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7_u8; bytes]));
        for bytes in [24, 32, 64, 65, 5000] {
            check_secret(&Secret::new(of(bytes))).unwrap();
        }
        for (secret, says) in [
            (of(23), "fewer"),
            ("whsec_".to_owned(), "fewer"),
            ("whsec_!!!".to_owned(), "base64"),
            (SECRET.replace("LaSw", "LaS"), "base64"),
            (SECRET.replace("whsec_", ""), "begins"),
            (String::new(), "begins"),
        ] {
            let why = check_secret(&Secret::new(secret.clone())).unwrap_err();
            assert!(why.contains(says), "{secret}: {why}");
            let rest = secret.trim_start_matches(PREFIX);
            assert!(rest.len() < 3 || !why.contains(rest));
        }
    }

    #[test]
    fn the_newest_secret_signs_first_and_a_broken_older_one_is_left_out() {
        let new = Secret::new(SECRET);
        let old = Secret::new(format!("{PREFIX}{}", STANDARD.encode([1_u8; 32])));
        let broken = Secret::new("whsec_short");
        let signed = |secrets: &[Secret]| header(secrets, "an-id", 1, "{}");
        let both = signed(&[new.clone(), old.clone()]).unwrap();
        let (first, second) = both.split_once(' ').unwrap();
        assert_eq!(signed(std::slice::from_ref(&new)).unwrap(), first);
        assert_eq!(signed(std::slice::from_ref(&old)).unwrap(), second);
        assert_eq!(signed(&[new, broken.clone()]).unwrap(), first);
        assert!(signed(&[broken, old]).is_err());
    }
}
