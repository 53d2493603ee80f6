//! W3C Trace Context (Recommendation of 2021): a request's position in its caller's trace.
//!
//! The ids appear in records, in the answer's `traceresponse`, in outbound calls and in exported
//! spans. Those of runs and steps follow from the run's id, so every process that carries a run on
//! continues the same trace.
//!
//! Not here: spans and their export (`traces`).

use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// The one flag that version 00 defines.
const SAMPLED: u8 = 1;
/// The length up to which a `tracestate` is forwarded (section 3.3.1.5).
const TRACESTATE_MAX_BYTES: usize = 512;
/// Members of a `tracestate`, at most (section 3.3.1.1).
const TRACESTATE_MEMBERS_MAX: usize = 32;

/// A trace and the present span in it. Pass it to a logger to add `traceId` and `spanId`:
/// `log.new(slog::o!(trace.clone()))`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    parent_id: Option<u64>,
    sampled: bool,
    tracestate: String,
}

impl TraceContext {
    /// Starts a new trace. It is sampled: whoever is called next may record it, whether or not spans
    /// are exported here.
    pub fn fresh() -> Self {
        Self {
            trace_id: u128::from(random()) << 64 | u128::from(random()),
            span_id: random(),
            parent_id: None,
            sampled: true,
            tracestate: String::new(),
        }
    }

    /// The caller's trace with a new child span, or a new trace if `traceparent` is missing or
    /// malformed. More than one `traceparent` header counts as malformed: pass `None`. Join several
    /// `tracestate` headers with commas.
    pub fn incoming(traceparent: Option<&str>, tracestate: Option<&str>) -> Self {
        let Some((trace_id, parent_id, sampled)) = traceparent.and_then(parse) else {
            return Self::fresh();
        };
        Self {
            trace_id,
            span_id: random(),
            parent_id: Some(parent_id),
            sampled,
            tracestate: tracestate.map(members).unwrap_or_default(),
        }
    }

    /// A new child span in the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            span_id: random(),
            parent_id: Some(self.span_id),
            ..self.clone()
        }
    }

    /// The span of a run, below the span that `traceparent` names: equal in every process. A
    /// malformed `traceparent` starts a new trace.
    pub fn of_run(traceparent: &str, run_id: Uuid) -> Self {
        // The lower half of a UUID is never zero, because it begins with the variant's bits.
        let (_, span_id) = run_id.as_u64_pair();
        Self {
            span_id,
            ..Self::incoming(Some(traceparent), None)
        }
    }

    /// The span of one attempt of a step below this run's span: equal in every process, and never
    /// the run's own.
    #[must_use]
    pub fn of_attempt(&self, step: i32, attempt: i32) -> Self {
        let place = u64::from(step.unsigned_abs()) << 32 | u64::from(attempt.unsigned_abs());
        Self {
            span_id: self.span_id ^ place,
            parent_id: Some(self.span_id),
            ..self.clone()
        }
    }

    /// Whether the caller, or the start of the trace, asks for its spans to be recorded.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// 32 lowercase hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// 16 lowercase hexadecimal digits.
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span_id)
    }

    /// The parent span, if there is one.
    pub fn parent_id(&self) -> Option<String> {
        self.parent_id.map(|id| format!("{id:016x}"))
    }

    /// The header `traceparent` of an outbound call.
    pub fn traceparent(&self) -> String {
        let flags = u8::from(self.sampled) * SAMPLED;
        format!(
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.span_id
        )
    }

    /// The header `traceresponse` of the answer: version, trace, present span, flags.
    pub fn traceresponse(&self) -> String {
        self.traceparent()
    }

    /// The header `tracestate` of an outbound call; none if the caller sent no valid one.
    pub fn tracestate(&self) -> Option<&str> {
        (!self.tracestate.is_empty()).then_some(self.tracestate.as_str())
    }
}

impl slog::KV for TraceContext {
    fn serialize(&self, _: &slog::Record<'_>, out: &mut dyn slog::Serializer) -> slog::Result {
        out.emit_arguments("spanId", &format_args!("{:016x}", self.span_id))?;
        out.emit_arguments("traceId", &format_args!("{:032x}", self.trace_id))
    }
}

/// Parses trace, parent and sampled flag of a `traceparent` (sections 3.2.2 and 4.3). A later
/// version is parsed as version 00; what follows must then begin with `-`.
fn parse(text: &str) -> Option<(u128, u64, bool)> {
    let head = text.get(..55)?;
    let version = hex(head.get(..2)?)?;
    let ends_well = match text.as_bytes().get(55) {
        None => true,
        Some(next) => version != 0 && *next == b'-',
    };
    let bytes = head.as_bytes();
    let separated = [2, 35, 52].into_iter().all(|at| bytes[at] == b'-');
    if version == 0xff || !ends_well || !separated {
        return None;
    }
    let trace_id = hex(head.get(3..35)?)?;
    let parent_id = u64::try_from(hex(head.get(36..52)?)?).ok()?;
    let flags = hex(head.get(53..55)?)?;
    (trace_id != 0 && parent_id != 0).then_some((
        trace_id,
        parent_id,
        flags & u128::from(SAMPLED) != 0,
    ))
}

/// Whether the text is lowercase hexadecimal digits only.
fn hex(text: &str) -> Option<u128> {
    let digits = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    digits.then(|| u128::from_str_radix(text, 16).ok())?
}

/// The members of a `tracestate` that fit, in order; none if it is malformed.
fn members(text: &str) -> String {
    let mut kept = String::new();
    let listed = text
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']));
    let mut full = false;
    for (count, member) in listed.filter(|member| !member.is_empty()).enumerate() {
        let printable = member.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !printable || !member.contains('=') || count >= TRACESTATE_MEMBERS_MAX {
            return String::new();
        }
        full = full || kept.len() + 1 + member.len() > TRACESTATE_MAX_BYTES;
        if !full {
            if !kept.is_empty() {
                kept.push(',');
            }
            kept.push_str(member);
        }
    }
    kept
}

/// A random id other than zero. Trace ids are not secret: without the system's randomness a counter
/// is used.
fn random() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    match getrandom::u64() {
        Ok(id) if id != 0 => id,
        _ => NEXT.fetch_add(1, Ordering::Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn a_valid_header_continues_the_trace_with_a_new_span() {
        let header = format!("00-{TRACE}-{PARENT}-01");
        let context = TraceContext::incoming(Some(&header), None);
        assert_eq!(context.trace_id(), TRACE);
        assert_eq!(context.parent_id().as_deref(), Some(PARENT));
        assert_ne!(context.span_id(), PARENT);
        let expected = format!("00-{TRACE}-{}-01", context.span_id());
        assert_eq!(context.traceresponse(), expected);
        assert_eq!(context.traceparent(), expected);

        let child = context.child();
        assert_eq!(child.trace_id(), TRACE);
        assert_eq!(child.parent_id(), Some(context.span_id()));
        assert_ne!(child.span_id(), context.span_id());
        assert!(child.traceparent().ends_with("-01"));
    }

    #[test]
    fn the_spans_of_a_run_are_the_same_in_every_process() {
        let header = format!("00-{TRACE}-{PARENT}-01");
        let run_id = Uuid::from_u128(1);
        let run = TraceContext::of_run(&header, run_id);
        assert_eq!(run, TraceContext::of_run(&header, run_id));
        assert_eq!(run.trace_id(), TRACE);
        assert_eq!(run.parent_id().as_deref(), Some(PARENT));
        let mut ids = std::collections::HashSet::from([run.span_id()]);
        for (step, attempt) in [(1, 1), (1, 2), (2, 1), (2, 2), (i32::MAX, i32::MAX)] {
            let attempt = run.of_attempt(step, attempt);
            assert_eq!(attempt.parent_id(), Some(run.span_id()));
            assert!(parse(&attempt.traceparent()).is_some());
            assert!(ids.insert(attempt.span_id()));
        }
        let other = TraceContext::of_run(&header, Uuid::from_u128(2));
        assert_ne!(other.span_id(), run.span_id());
        assert!(other.is_sampled());
        let unsampled = TraceContext::of_run(&format!("00-{TRACE}-{PARENT}-00"), run_id);
        assert!(!unsampled.of_attempt(1, 1).is_sampled());
    }

    #[test]
    fn only_the_sampled_flag_is_carried_on() {
        for (flags, expected) in [("00", "-00"), ("01", "-01"), ("02", "-00"), ("ff", "-01")] {
            let header = format!("00-{TRACE}-{PARENT}-{flags}");
            let context = TraceContext::incoming(Some(&header), None);
            assert!(context.traceparent().ends_with(expected), "{flags}");
        }
    }

    #[test]
    fn versions_follow_the_standard() {
        let taken = |text: &str| parse(text).is_some();
        let base = format!("{TRACE}-{PARENT}-01");
        assert!(taken(&format!("00-{base}")));
        assert!(!taken(&format!("00-{base}-")));
        assert!(!taken(&format!("00-{base}-extra")));
        assert!(taken(&format!("01-{base}")));
        assert!(taken(&format!("01-{base}-what-the-future-holds")));
        assert!(taken(&format!("cc-{base}-")));
        assert!(!taken(&format!("01-{base}.extra")));
        assert!(!taken(&format!("ff-{base}")));
        assert!(!taken(&format!("0-{base}")));
        assert!(!taken(&format!("0x-{base}")));
        assert!(!taken(&format!("+1-{base}")));
    }

    #[test]
    fn malformed_headers_start_a_fresh_trace() {
        let upper = TRACE.to_uppercase();
        let malformed = [
            String::new(),
            "00".to_owned(),
            format!("00-{}-{PARENT}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{upper}-{PARENT}-01"),
            format!("00-{TRACE}-00F067AA0BA902B7-01"),
            format!("00-{TRACE}-{PARENT}-0G"),
            format!("00-{TRACE}-{PARENT}-1"),
            format!("00-{TRACE}-{PARENT}"),
            format!("00_{TRACE}-{PARENT}-01"),
            format!(" 00-{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}-{PARENT}-01,00-{TRACE}-{PARENT}-01"),
            format!("00-{}é-{PARENT}-01", &TRACE[..30]),
        ];
        for header in malformed {
            let context = TraceContext::incoming(Some(&header), Some("a=b"));
            assert_ne!(context.trace_id(), TRACE, "{header}");
            assert_eq!(context.parent_id(), None);
            assert_eq!(context.tracestate(), None);
            assert!(parse(&context.traceparent()).is_some());
        }
        assert_ne!(TraceContext::fresh(), TraceContext::fresh());
    }

    #[test]
    fn tracestate_is_passed_on_bounded() {
        let header = format!("00-{TRACE}-{PARENT}-01");
        let state = |text: &str| {
            let context = TraceContext::incoming(Some(&header), Some(text));
            context.tracestate().map(str::to_owned)
        };
        assert_eq!(state("a=1, b@c=2,,").as_deref(), Some("a=1,b@c=2"));
        assert_eq!(state(""), None);
        assert_eq!(state("a"), None);
        assert_eq!(state("a=1\r\nSet-Cookie: x=y"), None);
        assert_eq!(state(&"a=1,".repeat(33)), None);
        let long = format!("a={},b={},c=1", "x".repeat(250), "y".repeat(300));
        assert_eq!(state(&long), Some(format!("a={}", "x".repeat(250))));
    }

    proptest::proptest! {
        #[test]
        fn parsing_takes_any_text(text in "\\PC{0,80}") {
            if parse(&text).is_some() {
                proptest::prop_assert!(text.len() >= 55);
            }
        }
    }
}
