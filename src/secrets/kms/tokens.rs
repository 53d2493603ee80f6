//! The present access token and its renewal, which one request at a time makes before the token
//! expires.
//!
//! While one thread renews, the others use the present token. Without a valid token they wait for
//! that renewal until their own deadline, and share its failure.
//!
//! Not here: the request for a token (`credentials`).

use super::{Kind, KmsFailure};
use crate::secret::Secret;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long before it expires a token is renewed; half its lifetime if that is shorter.
const AHEAD: Duration = Duration::from_secs(300);
/// Pause after a failed renewal while a token is still valid.
const PAUSE: Duration = Duration::from_secs(10);

/// A token with its lifetime.
pub(super) struct Granted {
    pub(super) token: Secret,
    /// Its lifetime, counted from the request for it.
    pub(super) life: Duration,
}

#[derive(Default)]
pub(super) struct Tokens {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    kept: Option<KeptToken>,
    renewing: bool,
    /// Renewals that have ended, successful or not.
    rounds: u64,
    /// Why the last one failed, if no token is valid.
    failure: Option<KmsFailure>,
}

struct KeptToken {
    token: Secret,
    renew_at: Instant,
    ends_at: Instant,
}

enum Step {
    Use(Secret),
    Renew,
    Wait,
}

impl State {
    fn kept(&self, now: Instant) -> Option<&KeptToken> {
        self.kept.as_ref().filter(|kept| now < kept.ends_at)
    }

    fn step(&self, now: Instant) -> Step {
        match self.kept(now) {
            Some(it) if self.renewing || now < it.renew_at => Step::Use(it.token.clone()),
            _ if self.renewing => Step::Wait,
            _ => Step::Renew,
        }
    }
}

/// One renewal. Waiting threads are notified when it is dropped.
struct Round<'a>(&'a Tokens);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.renewing = false;
        state.rounds += 1;
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Tokens {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token that is valid at `now`. Calls `renew` with its deadline if this thread is to renew.
    pub(super) fn get(
        &self,
        now: Instant,
        deadline: Instant,
        renew: impl FnOnce(Instant) -> Result<Granted, KmsFailure>,
    ) -> Result<Secret, KmsFailure> {
        let began = Instant::now();
        let mut state = self.lock();
        let round = state.rounds;
        loop {
            let now = now + began.elapsed();
            match (state.step(now), &state.failure) {
                (Step::Use(token), _) => return Ok(token),
                (_, Some(failure)) if state.rounds != round => return Err(failure.clone()),
                (Step::Renew, _) => {
                    state.renewing = true;
                    let left = deadline.saturating_duration_since(now);
                    // A slow renewal must leave time to use the present token.
                    let share = if state.kept(now).is_some() { 2 } else { 1 };
                    drop(state);
                    return self.renew(now, || renew(now + left / share));
                }
                (Step::Wait, _) => {
                    let left = deadline.saturating_duration_since(now);
                    if left.is_zero() {
                        return Err(waited());
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    fn renew(
        &self,
        now: Instant,
        renew: impl FnOnce() -> Result<Granted, KmsFailure>,
    ) -> Result<Secret, KmsFailure> {
        let _round = Round(self);
        let began = Instant::now();
        let granted = renew();
        let ended = now + began.elapsed();
        let mut state = self.lock();
        match granted {
            Ok(Granted { token, life }) => {
                state.failure = None;
                state.kept = Some(KeptToken {
                    token: token.clone(),
                    renew_at: now + life.saturating_sub(AHEAD.min(life / 2)),
                    ends_at: now + life,
                });
                Ok(token)
            }
            Err(failure) => match &mut state.kept {
                Some(kept) if ended < kept.ends_at => {
                    kept.renew_at = ended + PAUSE;
                    Ok(kept.token.clone())
                }
                _ => {
                    state.failure = Some(failure.clone());
                    Err(failure)
                }
            },
        }
    }

    /// Discards a token that the service refused.
    pub(super) fn refused(&self, token: &Secret) {
        let mut state = self.lock();
        if state.kept.as_ref().is_some_and(|it| it.token == *token) {
            state.kept = None;
        }
    }
}

fn waited() -> KmsFailure {
    KmsFailure::new(
        Kind::Timeout,
        "No access token for the key-management service came in time: another request for one is \
         still under way.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    const SECOND: Duration = Duration::from_secs(1);

    fn granted(text: &str, life_s: u32) -> Result<Granted, KmsFailure> {
        Ok(Granted {
            token: Secret::new(text),
            life: SECOND * life_s,
        })
    }

    fn failed() -> KmsFailure {
        KmsFailure::new(Kind::Credentials, "refused")
    }

    /// What is used at `now`, where a renewal gives `next`.
    fn at(tokens: &Tokens, now: Instant, next: Result<&str, KmsFailure>) -> String {
        let renew = |_| next.and_then(|text| granted(text, 3600));
        match tokens.get(now, now + SECOND * 20, renew) {
            Ok(token) => token.expose().to_owned(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn a_token_is_renewed_five_minutes_ahead_of_its_end() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        assert_eq!(at(&tokens, now, Ok("first")), "first");
        assert_eq!(at(&tokens, now + SECOND * 3290, Ok("second")), "first");
        assert_eq!(at(&tokens, now + SECOND * 3301, Ok("second")), "second");
        assert_eq!(at(&tokens, now + SECOND * 6500, Ok("third")), "second");
    }

    #[test]
    fn a_short_token_is_renewed_at_half_its_life() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        let soon = now + SECOND * 20;
        tokens.get(now, soon, |_| granted("first", 200)).unwrap();
        assert_eq!(at(&tokens, now + SECOND * 90, Ok("second")), "first");
        assert_eq!(at(&tokens, now + SECOND * 101, Ok("second")), "second");
    }

    #[test]
    fn a_failed_renewal_leaves_the_token_that_stands_and_pauses() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        at(&tokens, now, Ok("first"));
        let late = now + SECOND * 3400;
        assert_eq!(at(&tokens, late, Err(failed())), "first");
        assert_eq!(at(&tokens, late + SECOND * 5, Ok("second")), "first");
        assert_eq!(at(&tokens, late + SECOND * 15, Ok("second")), "second");
        // Past its end it is used no more, and the failure is told.
        assert_eq!(at(&tokens, late + SECOND * 9000, Err(failed())), "refused");
    }

    #[test]
    fn a_renewal_leaves_half_the_time_for_the_call_where_a_token_stands() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        let renew = |now: Instant| {
            let mut until = None;
            let deadline = now + SECOND * 100;
            let _ = tokens.get(now, deadline, |at| {
                until = Some(at);
                granted("t", 3600)
            });
            (until.unwrap() - now).as_secs()
        };
        assert!(renew(now) >= 90);
        assert!(renew(now + SECOND * 3400) <= 50);
    }

    #[test]
    fn the_others_go_on_with_the_token_that_stands() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        at(&tokens, now, Ok("first"));
        let late = now + SECOND * 3400;
        let (began, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let tokens = &tokens;
            let renewing = scope.spawn(move || {
                let renew = |_| {
                    began.send(()).unwrap();
                    released.recv().unwrap();
                    granted("second", 3600)
                };
                tokens.get(late, late + SECOND * 20, renew).unwrap()
            });
            begun.recv().unwrap();
            assert_eq!(at(tokens, late, Ok("third")), "first");
            release.send(()).unwrap();
            assert_eq!(renewing.join().unwrap().expose(), "second");
        });
        assert_eq!(at(&tokens, late, Ok("third")), "second");
    }

    #[test]
    fn thirty_two_threads_without_a_token_ask_once() {
        let (tokens, asked, here) = (Tokens::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let now = Instant::now();
        let renew = |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            while here.load(Ordering::Relaxed) < 32 {
                std::thread::yield_now();
            }
            granted("only", 3600)
        };
        std::thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| {
                    here.fetch_add(1, Ordering::Relaxed);
                    let token = tokens.get(now, now + SECOND * 60, renew).unwrap();
                    assert_eq!(token.expose(), "only");
                });
            }
        });
        assert_eq!(asked.into_inner(), 1);
    }

    /// The error of a thread that comes while another asks for a token in vain.
    fn error_while_another_fails() -> String {
        let (tokens, now) = (Tokens::default(), Instant::now());
        let deadline = now + SECOND * 60;
        let (began, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let tokens = &tokens;
            scope.spawn(move || {
                let renew = |_| {
                    began.send(()).unwrap();
                    released.recv().unwrap();
                    Err(failed())
                };
                assert!(tokens.get(now, deadline, renew).is_err());
            });
            begun.recv().unwrap();
            let own = |_| Err(KmsFailure::new(Kind::Timeout, "asked for itself"));
            let waiting = scope.spawn(move || tokens.get(now, deadline, own).unwrap_err());
            std::thread::sleep(Duration::from_millis(2));
            release.send(()).unwrap();
            waiting.join().unwrap().message
        })
    }

    #[test]
    fn those_who_waited_share_the_failure() {
        // Whether a thread came before the failure is the scheduler's to say: it gets some tries.
        assert!((0..200).any(|_| error_while_another_fails() == "refused"));
    }

    #[test]
    fn a_wait_ends_at_its_own_deadline() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        let (release, released) = mpsc::channel::<()>();
        let (began, begun) = mpsc::channel();
        std::thread::scope(|scope| {
            let tokens = &tokens;
            scope.spawn(move || {
                let renew = |_| {
                    began.send(()).unwrap();
                    released.recv().unwrap();
                    granted("late", 3600)
                };
                tokens.get(now, now + SECOND * 60, renew).unwrap();
            });
            begun.recv().unwrap();
            let deadline = Instant::now() + Duration::from_millis(20);
            let failure = tokens.get(Instant::now(), deadline, |_| granted("x", 1));
            assert_eq!(failure.unwrap_err().kind, Kind::Timeout);
            release.send(()).unwrap();
        });
        assert_eq!(at(&tokens, Instant::now(), Ok("unused")), "late");
    }

    #[test]
    fn a_token_that_was_refused_is_renewed_once_and_not_its_successor() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        at(&tokens, now, Ok("first"));
        tokens.refused(&Secret::new("first"));
        assert_eq!(at(&tokens, now, Ok("second")), "second");
        tokens.refused(&Secret::new("first"));
        assert_eq!(at(&tokens, now, Ok("third")), "second");
    }
}
