//! The images of prompts.

use tokenrail_domain::{
    Copied, ImageType, Sequence, Timestamp, Turn, TurnImage, TurnNumber, TurnOutcome, TurnState,
};

use super::saved;
use crate::testing::samples::{Scribe, WHOLE_LIST, image, launch, queued_turn};
use crate::{Deletion, Enqueued, IAgentRepository, IArchive, IJournal, NewTurn, TurnLimit, TurnRange};

pub async fn a_turn_keeps_its_images<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn) = launch(1);
    let id = agent.id;
    let mut scribe = Scribe::new(&agent);
    let files =
        vec![image(ImageType::Png, "one"), image(ImageType::Webp, "two"), image(ImageType::Png, "one")];
    let first = NewTurn::new(turn, files.clone());
    let summaries = first.turn().images.clone();
    store.create(agent, first, None).await.unwrap();
    let plain = queued_turn(id, TurnNumber(0), "without");
    store.enqueue(plain.into(), 16, None).await.unwrap();
    let more = NewTurn::new(queued_turn(id, TurnNumber(0), "with"), vec![image(ImageType::Gif, "three")]);
    let queued = store.enqueue(more, 16, None).await.unwrap();
    assert!(matches!(queued, Enqueued::New { turn: TurnNumber(3), .. }), "{queued:?}");

    let open = store.open_turns(id).await.unwrap();
    let types = |turn: usize| open[turn].images.iter().map(|it| it.media_type).collect::<Vec<_>>();
    assert_eq!(open[0].images, summaries);
    assert_eq!((types(1), types(2)), (vec![], vec![ImageType::Gif]));
    saved(store, scribe.start(&open[0])).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;

    let limit = TurnLimit { turns: 16, bytes: usize::MAX };
    assert_eq!(store.turns(id, TurnNumber(0), limit).await.unwrap()[0].images, summaries);
    let range = TurnRange { limit: 16, ..TurnRange::default() };
    assert_eq!(store.list_turns(id, range, WHOLE_LIST).await.unwrap().items[0].turn.images, summaries);
    assert_eq!(store.turn_at(id, Sequence(1)).await.unwrap().unwrap().images, summaries);
    for (position, file) in (0..).zip(&files) {
        let kept = store.prompt_image(id.turn(TurnNumber(1)), position).await.unwrap();
        assert_eq!(kept.as_ref(), Some(file));
    }
    for (turn, position) in [(1, 3), (2, 0), (4, 0)] {
        assert_eq!(store.prompt_image(id.turn(TurnNumber(turn)), position).await.unwrap(), None);
    }
}

pub async fn the_turn_of_a_replay_lists_images_that_the_store_has_only_with_the_original<
    S: IJournal + IAgentRepository,
>(
    store: &S,
) {
    let (agent, turn) = launch(1);
    let id = agent.id;
    let mut scribe = Scribe::new(&agent);
    let images = vec![image(ImageType::Png, "one").summary()];
    let turn = tokenrail_domain::Turn { images: images.clone(), ..turn };
    store.create(agent, turn.into(), None).await.unwrap();
    let open = store.open_turns(id).await.unwrap();
    assert_eq!(open[0].images, images);
    saved(store, scribe.start(&open[0])).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let next = tokenrail_domain::Turn { images: images.clone(), ..queued_turn(id, TurnNumber(2), "next") };
    saved(store, scribe.start(&next)).await;
    let limit = TurnLimit { turns: 16, bytes: usize::MAX };
    let turns = store.turns(id, TurnNumber(0), limit).await.unwrap();
    assert_eq!(turns.iter().map(|turn| turn.images.clone()).collect::<Vec<_>>(), [images.clone(), images]);
    assert_eq!(store.prompt_image(id.turn(TurnNumber(1)), 0).await.unwrap(), None);
}

pub async fn the_images_of_a_purged_agent_are_gone<S: IAgentRepository>(store: &S) {
    let (agent, turn) = launch(1);
    let id = agent.id;
    store.create(agent, NewTurn::new(turn, vec![image(ImageType::Jpeg, "one")]), None).await.unwrap();
    assert!(store.prompt_image(id.turn(TurnNumber(1)), 0).await.unwrap().is_some());
    store.delete(id, Timestamp(5), Deletion::Purge).await.unwrap();
    store.purge(id, Timestamp(6)).await.unwrap();
    assert_eq!(store.prompt_image(id.turn(TurnNumber(1)), 0).await.unwrap(), None);
}

/// Begins the import of an agent, and returns its first turn.
async fn import_begun(store: &impl IArchive) -> Turn {
    let (mut agent, turn) = launch(1);
    agent.copy = Some(Copied::File);
    store.begin_import(agent).await.unwrap();
    Turn {
        state: TurnState::Ended(TurnOutcome::Completed),
        first_sequence: Some(Sequence(1)),
        last_sequence: Some(Sequence(2)),
        ..turn
    }
}

pub async fn an_imported_turn_has_its_images<S: IAgentRepository + IArchive>(store: &S) {
    let turn = import_begun(store).await;
    let id = turn.agent;
    let file = image(ImageType::Png, "kept");
    store.import_turns(id, vec![NewTurn::new(turn, vec![file.clone()])]).await.unwrap();
    assert_eq!(store.prompt_image(id.turn(TurnNumber(1)), 0).await.unwrap(), Some(file));
    store.discard_import(id).await.unwrap();
    assert_eq!(store.prompt_image(id.turn(TurnNumber(1)), 0).await.unwrap(), None);
}

pub async fn an_imported_turn_may_lack_images_and_the_others_keep_their_places<
    S: IAgentRepository + IArchive,
>(
    store: &S,
) {
    let turn = import_begun(store).await;
    let id = turn.agent;
    let (lost, kept) = (image(ImageType::Gif, "lost").summary(), image(ImageType::Png, "kept"));
    let images = vec![TurnImage::Lost(lost), TurnImage::File(kept.clone())];
    let turn = NewTurn::with_lost(turn, images);
    let summaries = turn.turn().images.clone();
    assert_eq!(summaries, [lost, kept.summary()]);
    store.import_turns(id, vec![turn]).await.unwrap();
    let limit = TurnLimit { turns: 16, bytes: usize::MAX };
    assert_eq!(store.turns(id, TurnNumber(0), limit).await.unwrap()[0].images, summaries);
    assert_eq!(store.prompt_image(id.turn(TurnNumber(1)), 0).await.unwrap(), None);
    assert_eq!(store.prompt_image(id.turn(TurnNumber(1)), 1).await.unwrap(), Some(kept));
}
