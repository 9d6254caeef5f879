//! Images of prompts on their way to the agent.

use tokenrail_domain::{AgentId, AgentStatus, EventBody, ImageType, TurnNumber};
use tokenrail_ports::Deletion;
use tokenrail_ports::testing::samples::image;
use tokenrail_ports::testing::{ScriptedRunner, Step};

use super::harness::{hanging, harness, words};
use crate::{Launch, Prompt, Refusal};

fn script() -> Vec<Step> {
    vec![Step::Lines(vec!["close a".to_owned()])]
}

#[tokio::test(start_paused = true)]
async fn an_agent_starts_with_the_images_of_its_prompt() {
    let h = harness(ScriptedRunner::new([script(), script(), script()]));
    let (one, two) = (image(ImageType::Png, "one"), image(ImageType::Jpeg, "two"));
    let images = vec![one.clone(), two.clone()];
    let launch = Launch { prompt: "look".into(), images: images.clone(), ..Launch::default() };
    let id = h.service.launch(launch).await.unwrap().agent.id;
    h.watch(id).await;
    h.service.send(id, "and now?".into(), None).await.unwrap();
    h.watch(id).await;
    h.service.send(id, Prompt { text: "this".into(), images: vec![two.clone()] }, None).await.unwrap();
    let events = h.watch(id).await;

    let given: Vec<_> = h.runner.orders().into_iter().map(|order| order.images).collect();
    assert_eq!(given, [images, vec![], vec![two.clone()]]);
    let shown = events.iter().filter_map(|event| match &event.body {
        EventBody::UserMessage { images, .. } => Some(images.clone()),
        _ => None,
    });
    assert_eq!(shown.collect::<Vec<_>>(), [vec![one.summary(), two.summary()], vec![], vec![two.summary()]]);
    assert_eq!(h.service.prompt_image(id, TurnNumber(3), 0).await.unwrap(), two);
    let unknown = h.service.prompt_image(id, TurnNumber(2), 0).await;
    assert!(matches!(unknown, Err(Refusal::ImageUnknown)), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_keeps_its_images() {
    let (h, id) = hanging("first").await;
    let file = image(ImageType::Gif, "waits");
    h.service.send(id, Prompt { text: "second".into(), images: vec![file.clone()] }, None).await.unwrap();
    assert_eq!(h.service.prompt_image(id, TurnNumber(2), 0).await.unwrap(), file);
    h.service.cancel(id).await.unwrap();
    assert!(words(&h.watch(id).await).contains(&"user second".to_owned()));
    assert_eq!(
        h.service.prompt_image(id, TurnNumber(2), 0).await.unwrap(),
        file,
        "it is part of the history"
    );
}

/// The code of the error with which the newest turn ended.
async fn error_of(h: &super::harness::Harness, id: AgentId) -> Option<String> {
    h.watch(id).await;
    let agent = h.service.get(id).await.unwrap();
    assert_eq!(agent.status, AgentStatus::Failed);
    agent.error.and_then(|error| error.code)
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_images_are_lost_or_damaged_fails_with_an_error_that_says_so() {
    for damaged in [false, true] {
        let (h, id) = hanging("first").await;
        let with_image = Prompt { text: "second".into(), images: vec![image(ImageType::Gif, "one")] };
        h.service.send(id, with_image, None).await.unwrap();
        if damaged {
            h.store.damage_images();
        } else {
            h.store.lose_image(id, TurnNumber(2), 0);
        }
        h.service.cancel_turn(id, TurnNumber(1)).await.unwrap();
        assert_eq!(error_of(&h, id).await.as_deref(), Some("image_missing"), "damaged: {damaged}");
        assert_eq!(h.runner.orders().len(), 1, "the agent gets no part of the prompt");
    }
}

#[tokio::test(start_paused = true)]
async fn replays_show_the_images_of_the_first_original_as_far_as_they_go() {
    let h = harness(ScriptedRunner::new([script(), script()]));
    let (one, two) = (image(ImageType::Png, "one"), image(ImageType::Jpeg, "two"));
    let launch = Launch { prompt: "look".into(), images: vec![one.clone()], ..Launch::default() };
    let id = h.service.launch(launch).await.unwrap().agent.id;
    h.watch(id).await;
    let replay = h.service.replay(id, 0.0).await.unwrap().id;
    h.watch(replay).await;
    h.service.send(id, Prompt { text: "this".into(), images: vec![two.clone()] }, None).await.unwrap();
    h.watch(id).await;
    let again = h.service.replay(replay, 0.0).await.unwrap().id;
    h.watch(again).await;
    for replay in [replay, again] {
        assert_eq!(h.service.prompt_image(replay, TurnNumber(1), 0).await.unwrap(), one);
        let turns = h.service.turns(replay, TurnNumber(0), 9).await.unwrap();
        assert_eq!(turns.iter().map(|turn| turn.images.clone()).collect::<Vec<_>>(), [[one.summary()]]);
        let later = h.service.prompt_image(replay, TurnNumber(2), 0).await;
        assert!(matches!(later, Err(Refusal::ImageUnknown)), "it is not part of the replay: {later:?}");
    }
    let both = h.service.replay(id, 0.0).await.unwrap().id;
    h.watch(both).await;
    assert_eq!(h.service.prompt_image(both, TurnNumber(2), 0).await.unwrap(), two);
    h.service.delete(id, Deletion::Purge).await.unwrap();
    let gone = h.service.prompt_image(again, TurnNumber(1), 0).await;
    assert!(matches!(gone, Err(Refusal::ImageUnknown)), "{gone:?}");
}
