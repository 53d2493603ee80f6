//! Variables and functions by their names.

use std::ops::Range;

use serde_json::Value as Json;

use super::{Parsed, Parser};
use crate::fault::Fault;
use crate::functions;
use crate::tree::Term;

impl Parser<'_> {
    /// An unknown name is told, and the reading goes on.
    pub(super) fn variable(&mut self, name: &str, span: Range<usize>) -> Term {
        if let Some(place) = self.variables.iter().rposition(|known| known == name) {
            return Term::Variable(place);
        }
        let known = self.variables.iter().map(|known| format!("${known}"));
        let known: Vec<String> = known.collect();
        let fault = Fault::new(span, format!("There is no variable `${name}`."));
        self.tell(fault.hint(match name {
            "ENV" | "__prog_args" => {
                "An expression sees its input and its variables alone.".to_owned()
            }
            "__loc__" => "The place in the text is not told.".to_owned(),
            "secrets" | "authorization" => {
                "What an expression sees is kept with the run, so it sees no secret.".to_owned()
            }
            _ if known.is_empty() => "None is defined here.".to_owned(),
            _ => format!("Defined here: {}.", known.join(", ")),
        }));
        Term::Constant(Json::Null)
    }

    pub(super) fn call(&mut self, name: &str, span: Range<usize>) -> Parsed<Term> {
        match name {
            "true" => return Ok(Term::Constant(Json::Bool(true))),
            "false" => return Ok(Term::Constant(Json::Bool(false))),
            "null" => return Ok(Term::Constant(Json::Null)),
            _ => {}
        }
        let mut arguments = Vec::new();
        if self.takes("(")? {
            arguments.push(self.pipe()?);
            while self.takes(";")? {
                arguments.push(self.pipe()?);
            }
            self.expect(")")?;
        }
        if let Some(function) = functions::find(name, arguments.len()) {
            return Ok(Term::Call(function, arguments));
        }
        let fault = self.unknown_function(name, &arguments, span);
        self.tell(fault);
        Ok(Term::Constant(Json::Null))
    }

    fn unknown_function(&self, name: &str, arguments: &[Term], span: Range<usize>) -> Fault {
        if let Some(why) = functions::refused(name) {
            return Fault::new(span, format!("`{name}` is not supported here.")).hint(why);
        }
        let arities = functions::arities(name);
        if !arities.is_empty() {
            let message = format!(
                "`{name}` takes {}, not {}.",
                counted(&arities),
                arguments.len()
            );
            let fault = Fault::new(span, message);
            return match arguments {
                [Term::Comma(_)] => fault.hint("Arguments are separated by `;`."),
                _ => fault,
            };
        }
        let fault = Fault::new(span, format!("There is no function `{name}`."));
        if self.variables.iter().any(|known| known == name) {
            return fault.hint(format!("The variable is `${name}`."));
        }
        match functions::similar(name) {
            Some(similar) => fault.hint(format!("Did you mean `{similar}`?")),
            None if arguments.is_empty() => {
                fault.hint(format!("A field is `.{name}`, a string `\"{name}\"`."))
            }
            None => fault,
        }
    }
}

/// "1 argument", "2 or 3 arguments"
fn counted(arities: &[usize]) -> String {
    match arities {
        [1] => "1 argument".to_owned(),
        [only] => format!("{only} arguments"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(usize::to_string).collect();
            format!("{} or {last} arguments", first.join(", "))
        }
        [] => "no arguments".to_owned(),
    }
}
