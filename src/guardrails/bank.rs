//! Numbers of payment cards and of bank accounts, which carry a check of their own digits.

use super::finding::{Finding, stands_alone};
use regex::Regex;
use std::sync::LazyLock;

/// 12 to 19 digits, in groups or not. The digits decide.
static CARDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[0-9](?:[ -]?[0-9]){11,18}").unwrap_or_else(|fault| panic!("{fault}"))
});

/// Country, two digits, and groups or not.
static IBANS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}").unwrap_or_else(|fault| panic!("{fault}"))
});

/// The lengths of account numbers by country (ISO 13616, registry of SWIFT).
const IBAN_LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NL", 18),
    ("NO", 15),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("SA", 24),
    ("SC", 31),
    ("SD", 18),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
];

/// Issuers by the begin of the number, with the lengths that they give (ISO/IEC 7812).
fn is_of_issuer(digits: &[u8]) -> bool {
    let begin = |count: usize| {
        digits[..count]
            .iter()
            .fold(0_u32, |number, digit| 10 * number + u32::from(*digit))
    };
    let (two, three, four) = (begin(2), begin(3), begin(4));
    match digits.len() {
        13 | 19 if digits[0] == 4 => true,
        14 => (300..=305).contains(&three) || matches!(two, 36 | 38 | 39),
        15 => matches!(two, 34 | 37),
        16 => {
            digits[0] == 4
                || (51..=55).contains(&two)
                || (2221..=2720).contains(&four)
                || four == 6011
                || two == 65
                || (644..=649).contains(&three)
                || (3528..=3589).contains(&four)
                || two == 62
        }
        17..=19 => two == 62 || (3528..=3589).contains(&four),
        _ => false,
    }
}

/// The check digit of cards (Luhn).
fn is_checked(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => 2 * digit - 9,
            (_, digit) => 2 * digit,
        })
        .sum();
    sum.is_multiple_of(10)
}

pub(super) fn cards(text: &str, found: &mut Vec<Finding>) {
    for one in CARDS.find_iter(text) {
        let digits: Vec<u8> = one
            .as_str()
            .bytes()
            .filter(u8::is_ascii_digit)
            .map(|digit| digit - b'0')
            .collect();
        if digits.len() >= 13
            && stands_alone(text, &one.range())
            && is_of_issuer(&digits)
            && is_checked(&digits)
        {
            found.push(Finding {
                range: one.range(),
                kind: "card",
            });
        }
    }
}

pub(super) fn ibans(text: &str, found: &mut Vec<Finding>) {
    for one in IBANS.find_iter(text) {
        let Some(length) = IBAN_LENGTHS
            .iter()
            .find(|(country, _)| one.as_str().starts_with(country))
            .map(|(_, length)| *length)
        else {
            continue;
        };
        // A word in capitals may follow the number, in the same run of characters.
        let mut left = length;
        let end = one.as_str().char_indices().find_map(|(at, c)| {
            left -= usize::from(c != ' ');
            (left == 0).then_some(at + 1)
        });
        let Some(end) = end else { continue };
        let range = one.start()..one.start() + end;
        if stands_alone(text, &range) && is_account(&text[range.clone()]) {
            found.push(Finding {
                range,
                kind: "iban",
            });
        }
    }
}

/// The check of account numbers: the number, its first four characters at the end and letters as numbers from ten on, is one more
/// than a multiple of 97.
fn is_account(text: &str) -> bool {
    let characters: Vec<u32> = text.chars().filter_map(|c| c.to_digit(36)).collect();
    let Some((head, tail)) = characters.split_at_checked(4) else {
        return false;
    };
    let rest = tail.iter().chain(head).fold(0, |rest, value| {
        let shift = if *value < 10 { 10 } else { 100 };
        (rest * shift + value) % 97
    });
    rest == 1
}

#[cfg(feature = "bench")]
pub(super) fn expressions() -> Vec<&'static str> {
    vec![CARDS.as_str(), IBANS.as_str()]
}
