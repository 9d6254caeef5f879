//! The inboxes of the memory store.

use async_trait::async_trait;
use tokenrail_domain::NodeId;

use super::MemoryStore;
use crate::{IInbox, Letter, LetterId, LetterReply, StoreResult};

#[async_trait]
impl IInbox for MemoryStore {
    async fn put(&self, to: NodeId, letter: Letter) -> StoreResult<()> {
        self.act(|state| {
            let letters = &mut state.cluster.letters;
            if !letters.iter().any(|(_, known, _)| known.id == letter.id) {
                letters.push((to, letter, None));
            }
        })
        .await;
        Ok(())
    }

    async fn letters(&self, underway: Vec<LetterId>, limit: usize) -> StoreResult<Vec<Letter>> {
        Ok(self
            .act(|state| {
                let letters = state.cluster.letters.iter();
                let open = letters.filter(|(to, _, reply)| *to == self.node && reply.is_none());
                let letters = open.map(|(_, letter, _)| letter.clone());
                letters.filter(|letter| !underway.contains(&letter.id)).take(limit).collect()
            })
            .await)
    }

    async fn reply(&self, id: LetterId, reply: LetterReply) -> StoreResult<()> {
        self.act(|state| {
            let letter = state.cluster.letters.iter_mut().find(|(_, letter, _)| letter.id == id);
            if let Some((_, _, known)) = letter {
                known.get_or_insert(reply);
            }
        })
        .await;
        Ok(())
    }

    async fn reply_to(&self, id: LetterId) -> StoreResult<Option<LetterReply>> {
        Ok(self
            .act(|state| {
                let letter = state.cluster.letters.iter().find(|(_, letter, _)| letter.id == id);
                letter.and_then(|(_, _, reply)| reply.clone())
            })
            .await)
    }
}
