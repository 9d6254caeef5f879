//! Hints to other nodes.

use tokenrail_domain::NodeId;
use tokenrail_ports::Hint;

use super::Core;

impl Core {
    /// Sends a hint to the other nodes. Called after what it is about is saved.
    ///
    /// The next step is `PostgresBus::send_hint` (`postgres/bus.rs` in the persistence crate). The other nodes hear the
    /// hint in `use_cases/nodes/listening.rs` (`hear`). On SQLite, `SilentBus` drops it: there is no other node.
    pub(crate) fn send_hint(&self, hint: Hint) {
        self.outside.bus.send_hint(hint);
    }

    /// Any node may take an agent that has no home, this one too.
    pub(crate) fn offer_to_all_nodes(&self) {
        self.send_hint(Hint::Errand(NodeId::ANY));
        self.work_left_here.notify_one();
    }
}
