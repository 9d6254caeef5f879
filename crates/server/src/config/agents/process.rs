//! `runner = "process"`: a program, and how an interactive one is spoken to.

use std::collections::BTreeMap;
use std::path::Path;

use tokenrail_parser::Format;
use tokenrail_runner::{Protocol, Unanswered};

use super::{ConverseBlock, ProcessBlock, built_in};
use crate::config::problem::{Wrong, missing};
use crate::config::{TOKEN_VARIABLE, absolute, expand_home};

/// The keys of a program as they are written.
pub(super) struct ProcessKeys {
    pub(super) program: Option<String>,
    pub(super) args: Option<Vec<String>>,
    pub(super) resume_args: Option<Vec<String>>,
    pub(super) model_args: Option<Vec<String>>,
    pub(super) prompt: Option<String>,
    pub(super) env: Option<BTreeMap<String, String>>,
    pub(super) pass_env: Option<Vec<String>>,
    pub(super) interrupt: Option<bool>,
    pub(super) converse: ConverseKeys,
}

/// The keys of an interactive program as they are written.
pub(super) struct ConverseKeys {
    pub(super) permission_timeout_s: Option<u64>,
    pub(super) permission_default: Option<Unanswered>,
    pub(super) files: Option<bool>,
    pub(super) rest_s: Option<u64>,
}

impl ProcessKeys {
    /// `changed`: the built-in type that the block changes.
    pub(super) fn check(
        self,
        format: Format,
        changed: Option<ProcessBlock>,
        home: Option<&Path>,
    ) -> Result<ProcessBlock, Wrong> {
        let program = self.program.or_else(|| changed.as_ref().map(|changed| changed.program.clone()));
        let usual = changed.unwrap_or_else(|| built_in::process(format.name));
        let converse = self.converse.check(format, usual.converse)?;
        let program =
            program.ok_or_else(|| missing("program", "set the name or path of the program to run"))?;
        check_program(&program, home)?;
        if self.prompt.as_deref().is_some_and(|prompt| prompt != "stdin") {
            return Err((
                "prompt",
                "prompt: only \"stdin\" is supported; a prompt is never passed as an argument".to_owned(),
            ));
        }
        if self.pass_env.iter().flatten().any(|name| name == TOKEN_VARIABLE) {
            let message = format!("pass_env: agents must not get {TOKEN_VARIABLE}; remove it from the list");
            return Err(("pass_env", message));
        }
        Ok(ProcessBlock {
            converse,
            program,
            args: self.args.unwrap_or(usual.args),
            resume_args: self.resume_args.unwrap_or(usual.resume_args),
            model_args: self.model_args.unwrap_or(usual.model_args),
            env: self.env.unwrap_or(usual.env),
            pass_env: self.pass_env.unwrap_or(usual.pass_env),
            interrupt: self.interrupt.unwrap_or(usual.interrupt),
        })
    }
}

impl ConverseKeys {
    fn check(&self, format: Format, usual: Option<ConverseBlock>) -> Result<Option<ConverseBlock>, Wrong> {
        let given = [
            ("permission_timeout_s", self.permission_timeout_s.is_some()),
            ("permission_default", self.permission_default.is_some()),
            ("files", self.files.is_some()),
            ("rest_s", self.rest_s.is_some()),
        ];
        let Some(usual) = usual else {
            let given = given.into_iter().find(|(_, is_given)| *is_given);
            return given.map_or(Ok(None), |(key, _)| {
                Err((
                    key,
                    format!("{key}: not used with format = {:?}, which is not interactive", format.name),
                ))
            });
        };
        if self.files.is_some() && usual.protocol != Protocol::Acp {
            return Err((
                "files",
                format!("files: not used with format = {:?}, only with \"acp\"", format.name),
            ));
        }
        if self.rest_s.is_some() && !usual.protocol.can_be_idle() {
            return Err((
                "rest_s",
                format!(
                    "rest_s: not used with format = {:?}: its process exits at the end of each turn",
                    format.name
                ),
            ));
        }
        if self.permission_timeout_s == Some(0) {
            return Err((
                "permission_timeout_s",
                "permission_timeout_s: 0 is too small; it must be at least 1".to_owned(),
            ));
        }
        Ok(Some(ConverseBlock {
            permission_timeout_s: self.permission_timeout_s.unwrap_or(usual.permission_timeout_s),
            permission_default: self.permission_default.unwrap_or(usual.permission_default),
            files: self.files.unwrap_or(usual.files),
            rest_s: self.rest_s.unwrap_or(usual.rest_s),
            ..usual
        }))
    }
}

/// A name without a folder is looked up on `PATH` when the agent starts. A relative path would depend on the folder in
/// which the server was started.
fn check_program(program: &str, home: Option<&Path>) -> Result<(), Wrong> {
    if !program.is_empty() && (!program.contains('/') || program.starts_with('/')) {
        return Ok(());
    }
    let hint = match program {
        "" => String::new(),
        _ => format!("; did you mean \"{}\"?", absolute(&expand_home(Path::new(program), home)).display()),
    };
    Err(("program", format!("program: {program:?} must be a name on PATH or an absolute path{hint}")))
}
