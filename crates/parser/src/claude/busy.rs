//! The agent's activity beside its messages.

use std::borrow::Cow;
use std::collections::HashSet;

use tokenrail_ports::Activity;

use super::lines::{self, TaskLine};

/// The states of a task that is still active.
const ACTIVE: [&str; 3] = ["pending", "running", "paused"];

/// Tool calls without a result, and background tasks that have not ended.
#[derive(Debug, Default)]
pub(super) struct Busy {
    calls: HashSet<String>,
    tasks: HashSet<String>,
}

impl Busy {
    pub(super) fn activity(&self) -> Activity {
        Activity {
            tool_running: !self.calls.is_empty(),
            background: !self.tasks.is_empty(),
            message_whole: false,
        }
    }

    pub(super) fn call_made(&mut self, call: &str) {
        self.calls.insert(call.to_owned());
    }

    pub(super) fn call_returned(&mut self, call: &str) {
        self.calls.remove(call);
    }

    /// A turn that has ended waits for no tool. Background tasks continue.
    pub(super) fn turn_ended(&mut self) {
        self.calls.clear();
    }

    /// Reads a `system` line about tasks.
    pub(super) fn task(&mut self, subtype: &str, line: &TaskLine<'_>) {
        if subtype == "background_tasks_changed" {
            let tasks = lines::elements(line.tasks).into_iter();
            self.tasks = tasks.filter_map(|task| id(&lines::read(Some(task)))).collect();
            return;
        }
        let Some(id) = id(line) else { return };
        let patch: TaskLine<'_> = lines::read(line.patch);
        let status = lines::text(line.status).or_else(|| lines::text(patch.status));
        let ended =
            subtype == "task_notification" || status.is_some_and(|status| !ACTIVE.contains(&&*status));
        if ended {
            self.tasks.remove(&id);
        } else if lines::is_true(line.is_backgrounded) || lines::is_true(patch.is_backgrounded) {
            self.tasks.insert(id);
        }
    }
}

/// Whether `system` lines of this subtype are for [`Busy::task`].
pub(super) fn is_about_tasks(subtype: &str) -> bool {
    subtype.starts_with("task_") || subtype == "background_tasks_changed"
}

fn id(line: &TaskLine<'_>) -> Option<String> {
    lines::text(line.task_id).map(Cow::into_owned)
}
