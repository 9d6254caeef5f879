//! Answers to permission requests, typed while the agent is followed.

use std::future::pending;
use std::io;

use super::asked::Asked;
use super::client::Client;
use super::screen::{Screen, Style};
use super::typed::{TypedLines, can_type};
use super::{Exit, Failure};

/// The open permission requests of an agent, and the user who may answer them.
pub(crate) struct Answers<'a> {
    client: &'a Client,
    agent: &'a str,
    /// The oldest first.
    open: Vec<Asked>,
    /// The id of the request that the user is asked about. Empty if none was yet.
    prompted: String,
    /// The id of the request that was shown last.
    last_shown: String,
    lines: Option<TypedLines>,
    /// Whether the user can type.
    can_type: bool,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(client: &'a Client, agent: &'a str, screen: &Screen) -> Self {
        let can_type = screen.is_live() && can_type();
        let (prompted, last_shown) = (String::new(), String::new());
        Self { client, agent, open: Vec::new(), prompted, last_shown, lines: None, can_type }
    }

    /// Whether the user can type an answer.
    pub(crate) fn can_type(&self) -> bool {
        self.can_type
    }

    /// Shows a request, and how to answer it if the user cannot type the answer here.
    pub(crate) fn asked(&mut self, asked: Asked, screen: &mut Screen) {
        asked.show(screen);
        if self.can_type {
            asked.show_more_answers(screen);
        } else {
            screen.line(Style::Dim, &format!("  {}", self.command(&asked)));
        }
        self.last_shown.clone_from(&asked.request_id);
        self.open.push(asked);
    }

    /// The command that answers the request.
    fn command(&self, asked: &Asked) -> String {
        self.client.command(&format!("answer {} {} {}", self.agent, asked.request_id, asked.choices()))
    }

    /// Removes a request that is settled.
    pub(crate) fn settled(&mut self, request: &str) {
        self.open.retain(|asked| asked.request_id != request);
    }

    /// Asks for an answer to the oldest request. Returns false if none is open, or if the user cannot type.
    ///
    /// # Errors
    /// If the terminal cannot be read.
    pub(crate) fn prompt(&mut self, screen: &mut Screen) -> io::Result<bool> {
        let Some(asked) = self.open.first().filter(|_| self.can_type) else { return Ok(false) };
        if self.prompted != asked.request_id {
            match &mut self.lines {
                Some(lines) => lines.discard(),
                None => self.lines = Some(TypedLines::listen()?),
            }
            if self.last_shown != asked.request_id {
                asked.show(screen);
                asked.show_more_answers(screen);
            }
            self.prompted.clone_from(&asked.request_id);
            self.last_shown.clone_from(&asked.request_id);
        }
        screen.prompt(&format!("answer ({}): ", asked.numbers()));
        Ok(true)
    }

    /// Waits for what the user types next. `None` if nothing can be typed any more.
    pub(crate) async fn typed(&mut self) -> Option<String> {
        match &mut self.lines {
            Some(lines) => lines.next().await,
            None => pending().await,
        }
    }

    /// Sends the answer that the user has typed, if a request is open. `None` closes the input.
    ///
    /// # Errors
    /// [`Exit::Unreachable`] if no server answers. Other errors are shown, and the request stays open.
    pub(crate) async fn answer(&mut self, line: Option<String>, screen: &mut Screen) -> Result<(), Failure> {
        screen.after_typed_line();
        self.can_type = line.is_some();
        let Some(asked) = self.open.first() else { return Ok(()) };
        let Some(line) = line else {
            screen.remark(&format!("to answer: {}", self.command(asked)));
            return Ok(());
        };
        let Some(answer) = asked.answer(&line) else {
            if !line.trim().is_empty() {
                screen.remark(&format!("type {}, or the id or the name of an option", asked.numbers()));
            }
            return Ok(());
        };
        let path = ["api", "agents", self.agent, "permissions", &asked.request_id];
        match self.client.post(&path, &answer).await {
            Ok(_) => drop(self.open.remove(0)),
            Err(error) if error.exit == Exit::Unreachable => return Err(error),
            // For example, somebody else was faster. Then the agent's next event says so.
            Err(error) => screen.remark(&error.to_string()),
        }
        Ok(())
    }
}
