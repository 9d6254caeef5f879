//! A further turn of a program that is idle.

use std::io;

use tokenrail_ports::AddedLine;

use super::Exchange;
use crate::converse::conversation::Conversation;

/// The default capacity of a pipe, in bytes.
const PIPE_BYTES: usize = 64 << 10;

impl Exchange<'_> {
    /// Begins a further turn. The spool records the request before the program gets it, so that a reader of the spool
    /// knows whether it did. The line is written at once, because the program is not in the middle of a line.
    pub(super) fn begin_further(&mut self, conversation: &mut dyn Conversation) -> io::Result<()> {
        // The program may have begun something by itself. Then it is not asked.
        self.drain(conversation)?;
        if !self.printer.is_between_lines() {
            return Ok(());
        }
        self.has_further = false;
        let Some(further) = self.idle.take_further()? else { return Ok(()) };
        self.printer.added(&AddedLine::Further { turn: further.run })?;
        self.requests.begin_run(further.run);
        let prompt = self.idle.prompt(further)?;
        self.image_bytes = prompt.image_bytes();
        self.converse_with(conversation, |conversation, out| conversation.further_turn(prompt, out))
    }

    /// Reads what the program has written by now, up to the capacity of a pipe: other processes may write to it
    /// forever.
    pub(super) fn drain(&mut self, conversation: &mut dyn Conversation) -> io::Result<()> {
        let mut drained = 0;
        while drained < PIPE_BYTES {
            match self.read_output(conversation)? {
                0 => break,
                read => drained += read,
            }
        }
        Ok(())
    }
}
