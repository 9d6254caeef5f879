//! Answers on the page that are more than one option: a note with a rejection, several answers, and another answer.

use serde_json::{Value, json};

use super::accessible::LOOKS;
use super::{Browser, address, ended, says, tab_on};
use crate::harness::TestServer;
use crate::richer_answers::{server_with_colours, server_with_note};

/// What `permission_resolved` has.
async fn resolved(server: &TestServer, id: &str) -> Value {
    let events = server.events(id).await;
    let resolved = |event: &&Value| event["metadata"]["eventType"] == "permission_resolved";
    events.iter().find(resolved).expect("it is settled")["content"].clone()
}

#[tokio::test]
async fn a_rejection_with_a_note_reaches_the_agent() {
    let server = server_with_note();
    let browser = Browser::start();
    let id = crate::questions::asking(&server).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.click("#events [data-testid=with-note]").await;
    // The field has the focus, and digits in it are text.
    tab.type_in("use 1 or 2 other files").await;
    tab.until("document.activeElement.name === 'note' && document.activeElement.value.endsWith('files')")
        .await;
    tab.press("Enter").await;
    tab.until(&ended(1)).await;
    tab.until(&says("It was told: The user rejected this action and says: use 1 or 2 other files")).await;
    let expected =
        json!({ "requestId": "1-1", "optionId": "reject", "by": "user", "note": "use 1 or 2 other files" });
    assert_eq!(resolved(&server, &id).await, expected);
    let shown = "Answered: Reject. Note to the agent: “use 1 or 2 other files”";
    assert!(tab.text("#events").await.contains(shown));
}

#[tokio::test]
async fn several_answers_and_another_one_are_chosen_by_keys() {
    let server = server_with_colours();
    let browser = Browser::start();
    let id = crate::questions::asking(&server).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until_there("#events [data-testid=answer-other]").await;
    for key in ["1", "2", "3"] {
        tab.press(key).await;
    }
    tab.until("document.activeElement.name === 'other'").await;
    tab.type_in("3 greens").await;
    tab.press("Enter").await;
    tab.until(&ended(1)).await;
    tab.until(&says("It was told: Red 🟥, Blue, 3 greens")).await;
    let answered = resolved(&server, &id).await;
    assert_eq!(answered["optionIds"], json!(["answer_1", "answer_2"]), "{answered}");
    assert_eq!(answered["text"], "3 greens");
    assert!(tab.text("#events").await.contains("Answered: Red 🟥, Blue, “3 greens”."));
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_the_fields_of_an_answer() {
    let (note, colours) = (server_with_note(), server_with_colours());
    let browser = Browser::start();
    let with_note = crate::questions::asking(&note).await;
    let with_colours = crate::questions::asking(&colours).await;
    for (name, look) in LOOKS {
        let tab = browser.tab(look).await;
        tab.visit(&address(&note, &format!("/agents/{with_note}"))).await;
        tab.click("#events [data-testid=with-note]").await;
        tab.until_there("#events [data-testid=send-note]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, the field for a note");
        let tab = browser.tab(look).await;
        tab.visit(&address(&colours, &format!("/agents/{with_colours}"))).await;
        tab.click("#events [data-testid=answer-other]").await;
        tab.until_there("#events [name=other]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, the field for another answer");
    }
}
