//! Letters between nodes, and the replies to them.

use tokenrail_domain::{AgentId, NodeId, PermissionReply, ReplyFault};

use super::nodes::{Servers, SharedStore};
use crate::testing::samples::launch;
use crate::{Letter, LetterContent, LetterId, LetterReply, PermissionAnswer};

fn letter(n: u8, agent: AgentId) -> Letter {
    let reply = match n % 3 {
        0 => PermissionReply::of(None),
        1 => {
            PermissionReply { options: vec!["yes".into(), "no".into()], text: None, note: Some("n\0".into()) }
        }
        _ => PermissionReply { text: Some("Grüße".into()), ..PermissionReply::default() },
    };
    let content = match n % 4 {
        3 => LetterContent::Dismiss,
        _ => LetterContent::Answer(PermissionAnswer { request_id: format!("r{n}"), reply }),
    };
    Letter { id: LetterId([n; 16]), agent, content }
}

pub async fn a_letter_reaches_its_node_once<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (first, second) = servers.two().await;
    let agent = launch(1).0.id;
    let letters: Vec<Letter> = (0..4).rev().map(|n| letter(n, agent)).collect();
    for letter in &letters {
        for _ in 0..2 {
            other.put(first, letter.clone()).await.unwrap();
        }
    }
    other.put(first, Letter { agent: launch(2).0.id, ..letters[0].clone() }).await.unwrap();
    one.put(second, letter(9, agent)).await.unwrap();
    assert_eq!(one.letters(vec![], 9).await.unwrap(), letters, "the oldest first");
    assert_eq!(one.letters(vec![], 2).await.unwrap(), letters[..2]);
    assert_eq!(other.letters(vec![], 9).await.unwrap(), [letter(9, agent)]);
    assert_eq!(one.letters(vec![letters[0].id], 2).await.unwrap(), letters[1..3], "one is underway");
    one.reply(letters[1].id, LetterReply::Settled).await.unwrap();
    assert_eq!(one.letters(vec![], 2).await.unwrap(), [letters[0].clone(), letters[2].clone()]);
    assert_eq!(servers.third.reply_to(letters[1].id).await.unwrap(), Some(LetterReply::Settled));
    other.put(NodeId(99), letter(8, agent)).await.unwrap();
}

pub async fn the_first_reply_to_a_letter_counts<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (first, _) = servers.two().await;
    let faults = [
        ReplyFault::UnknownOption,
        ReplyFault::NotSeveral,
        ReplyFault::Unmixable,
        ReplyFault::NoText,
        ReplyFault::NoNote,
        ReplyFault::NoteWithoutRejection,
    ];
    let mut replies = vec![
        LetterReply::Settled,
        LetterReply::HandedOn,
        LetterReply::NotDelivered,
        LetterReply::AlreadySettled,
        LetterReply::Unknown,
        LetterReply::NoSuchOption { known: "yes, \0 \"no\"".into() },
    ];
    replies.extend(faults.map(LetterReply::NotAccepted));
    for (n, reply) in (0..).zip(replies) {
        let letter = letter(n, launch(1).0.id);
        other.put(first, letter.clone()).await.unwrap();
        assert_eq!(other.reply_to(letter.id).await.unwrap(), None);
        one.reply(letter.id, reply.clone()).await.unwrap();
        one.reply(letter.id, LetterReply::Unknown).await.unwrap();
        assert_eq!(other.reply_to(letter.id).await.unwrap(), Some(reply));
        assert_eq!(one.letters(vec![], 9).await.unwrap(), []);
        other.put(first, letter.clone()).await.unwrap();
        assert_eq!(one.letters(vec![], 9).await.unwrap(), [], "it was delivered");
    }
    one.reply(LetterId([99; 16]), LetterReply::Settled).await.unwrap();
    assert_eq!(one.reply_to(LetterId([99; 16])).await.unwrap(), None, "there is no such letter");
}
