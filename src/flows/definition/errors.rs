//! `try`: what it handles, and when it is tried again.

use super::around::{Around, Targets};
use super::fault::{Code, Fault};
use super::tree::{
    Backoff, Catch, DELAY_LONGEST, ErrorFilter, LONGEST, Retry, TRIES_MOST, TaskKind, Time, Try,
};
use super::unsupported::Part;
use super::values::{Moment, Scope};
use super::walk::{Fields, Location, Walk};
use expressions::Expression;
use serde_json::{Map, Value};
use std::time::Duration;

impl<'a> Walk<'a> {
    /// `try`, with `catch` beside it.
    pub(super) fn tries(
        &mut self,
        (value, location, catch): (&'a Value, &Location, Option<(&'a Value, Location)>),
        fields: &Fields<'a>,
        (around, targets): (&Around<'a>, Targets<'_>),
    ) -> Option<TaskKind> {
        let tasks = self.list(value, location, &around.within(&[]));
        let Some((value, location)) = catch else {
            self.tell(
                &fields.location,
                Code::MissingField,
                "`catch` is missing beside `try`.",
            );
            return None;
        };
        let catch = self.catch(value, &location, (around, targets));
        Some(TaskKind::Try(Box::new(Try {
            tasks: tasks?,
            catch: catch?,
        })))
    }

    fn catch(
        &mut self,
        value: &'a Value,
        location: &Location,
        (around, targets): (&Around<'a>, Targets<'_>),
    ) -> Option<Catch> {
        let mut fields = self.object(value, location)?;
        let variable = self.variable(fields.take("as"), "error");
        let inside = around.handling(variable.as_deref().unwrap_or("error"));
        let errors = match fields.take("errors") {
            Some((value, location)) => self.error_filter(value, &location),
            None => Some(ErrorFilter::default()),
        };
        let when = self.conditions(&mut fields, &inside.scope);
        let retry = match fields.take("retry") {
            Some((value, location)) => {
                let found = match value.as_str() {
                    Some(name) => self.find_declared("retries", name, &location),
                    None => Some((value, location)),
                };
                found
                    .and_then(|(value, location)| {
                        self.retry(value, &location, (&inside.scope, &around.scope))
                    })
                    .map(Some)
            }
            None => Some(None),
        };
        let tasks = match fields.take("do") {
            Some((value, location)) => self.list(value, &location, &inside).map(Some),
            None => Some(None),
        };
        let then = match fields.take("then") {
            Some((value, location)) => self.then(value, &location, (around, targets)).map(Some),
            None => Some(None),
        };
        fields.close(self, Part::Other);
        let (when, except_when) = when?;
        Some(Catch {
            errors: errors?,
            variable: variable?,
            when,
            except_when,
            retry: retry?,
            tasks: tasks?,
            then: then?,
        })
    }

    /// `when` and `exceptWhen`.
    fn conditions(
        &mut self,
        fields: &mut Fields<'_>,
        scope: &Scope,
    ) -> Option<(Option<Expression>, Option<Expression>)> {
        let mut of = |name| match fields.take(name) {
            Some((value, location)) => {
                let found = self.expression(value, &location, (scope, Moment::Within));
                found.map(|condition| {
                    self.check_condition(&condition, &location, scope);
                    Some(condition)
                })
            }
            None => Some(None),
        };
        let (when, except_when) = (of("when"), of("exceptWhen"));
        Some((when?, except_when?))
    }

    fn error_filter(&mut self, value: &Value, location: &Location) -> Option<ErrorFilter> {
        let mut fields = self.object(value, location)?;
        let with = fields.take("with");
        fields.close(self, Part::Other);
        let Some((value, location)) = with else {
            return Some(ErrorFilter::default());
        };
        let mut fields = self.object(value, &location)?;
        if value.as_object().is_some_and(Map::is_empty) {
            let said = "What the errors have is expected. Without `errors` all of them are taken.";
            self.fault(Fault::new(&location.path, Code::BadValue, said).hint("{\"status\": 503}"));
            return None;
        }
        let status = match fields.take("status") {
            Some((value, location)) => self.whole(value, &location, (100, 599)).map(Some),
            None => Some(None),
        };
        let mut of = |name| match fields.take(name) {
            Some((value, location)) => self.literal(value, &location, 2_000).map(Some),
            None => Some(None),
        };
        let (kind, instance) = (of("type"), of("instance"));
        let (title, detail) = (of("title"), of("detail"));
        fields.close(self, Part::Other);
        if let Some(Some(kind)) = &kind {
            let caught = (kind.clone(), location.key("type").path);
            self.types.caught.push(caught);
        }
        Some(ErrorFilter {
            kind: kind?,
            status: status?.and_then(|status| u16::try_from(status).ok()),
            instance: instance?,
            title: title?,
            detail: detail?,
        })
    }

    /// A policy of retries. Its expressions see the error, but for those of its limits: they count from before there is one.
    pub(super) fn retry(
        &mut self,
        value: &'a Value,
        location: &Location,
        (scope, outer): (&Scope, &Scope),
    ) -> Option<Retry> {
        let at = (scope, Moment::Within);
        let mut fields = self.object(value, location)?;
        let conditions = self.conditions(&mut fields, scope);
        let delay = match fields.take("delay") {
            Some((value, location)) => self.time(value, &location, (at, DELAY_LONGEST)).map(Some),
            None => Some(None),
        };
        let backoff = match fields.take("backoff") {
            Some((value, location)) => self.backoff(value, &location),
            None => Some(Backoff::Constant),
        };
        let jitter = match fields.take("jitter") {
            Some((value, location)) => self.jitter(value, &location, at).map(Some),
            None => Some(None),
        };
        let limit = self.limit(fields.take("limit"), (outer, Moment::Within));
        fields.close(self, Part::Other);
        let ((when, except_when), (tries_most, try_timeout, timeout)) = (conditions?, limit?);
        Some(Retry {
            when,
            except_when,
            delay: delay?,
            backoff: backoff?,
            jitter: jitter?,
            tries_most,
            try_timeout,
            timeout,
        })
    }

    fn backoff(&mut self, value: &'a Value, location: &Location) -> Option<Backoff> {
        let mut fields = self.object(value, location)?;
        let known = [
            ("constant", Backoff::Constant),
            ("linear", Backoff::Linear),
            ("exponential", Backoff::Exponential),
        ];
        let mut found = Vec::new();
        for (name, backoff) in known {
            if let Some((value, location)) = fields.take(name) {
                let inner = self.object(value, &location)?;
                inner.close(self, Part::Other);
                found.push(backoff);
            }
        }
        let is_one = found.len() == 1 || fields.has_unknown();
        fields.close(self, Part::Other);
        if !is_one {
            let said = "One of constant, linear and exponential is expected.";
            let fault = Fault::new(&location.path, Code::BadValue, said);
            self.fault(fault.hint("{\"exponential\": {}}"));
        }
        found.first().copied()
    }

    fn jitter(
        &mut self,
        value: &Value,
        location: &Location,
        at: (&Scope, Moment),
    ) -> Option<(Time, Time)> {
        let mut fields = self.object(value, location)?;
        let mut of = |walk: &mut Self, name| {
            let (value, location) = fields.need(walk, name)?;
            walk.time(value, &location, (at, DELAY_LONGEST))
        };
        let (from, to) = (of(self, "from"), of(self, "to"));
        fields.close(self, Part::Other);
        let (from, to) = (from?, to?);
        if matches!((&from, &to), (Time::Fixed(from), Time::Fixed(to)) if from > to) {
            self.tell(location, Code::BadValue, "`from` has to be at most `to`.");
            return None;
        }
        Some((from, to))
    }

    /// `limit`: the most tries, how long one may take, and how long all may take.
    fn limit(
        &mut self,
        found: Option<(&Value, Location)>,
        at: (&Scope, Moment),
    ) -> Option<(u32, Option<Time>, Option<Time>)> {
        let Some((value, location)) = found else {
            return Some((TRIES_MOST, None, None));
        };
        let mut fields = self.object(value, &location)?;
        let timeout = self.optional_time(fields.take("duration"), (at, LONGEST));
        let attempt = fields.take("attempt");
        fields.close(self, Part::Other);
        let Some((value, location)) = attempt else {
            return Some((TRIES_MOST, None, timeout?));
        };
        let mut fields = self.object(value, &location)?;
        let count = match fields.take("count") {
            Some((value, location)) => self.whole(value, &location, (1, TRIES_MOST)),
            None => Some(TRIES_MOST),
        };
        let try_timeout = self.optional_time(fields.take("duration"), (at, LONGEST));
        fields.close(self, Part::Other);
        Some((count?, try_timeout?, timeout?))
    }

    fn optional_time(
        &mut self,
        found: Option<(&Value, Location)>,
        of: ((&Scope, Moment), Duration),
    ) -> Option<Option<Time>> {
        match found {
            Some((value, location)) => self.some_time(value, &location, of).map(Some),
            None => Some(None),
        }
    }
}
