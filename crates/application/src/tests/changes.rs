//! What an agent has changed since a turn started.

use std::sync::Arc;

use tokenrail_domain::{CommitId, TurnNumber};
use tokenrail_ports::testing::{MemoryStore, NotedWorkspace, PretendRepository, ScriptedRunner, Step};
use tokenrail_ports::{
    ChangedFile, Changes, ChangesError, Extent, FileStatus, IGitRepository, MockIGitRepository, Patch,
};
use tokio::runtime::Handle;

use super::harness::{Harness, outside};
use crate::error::{NoChanges, Refusal};
use crate::{AgentService, Limits, Outside};

fn commit(digit: &str) -> CommitId {
    CommitId::new(&digit.repeat(40)).unwrap()
}

fn harness(repository: impl IGitRepository + 'static) -> Harness {
    harness_with(repository, vec![Vec::new(); 3], &Limits::default())
}

fn harness_with(
    repository: impl IGitRepository + 'static,
    scripts: Vec<Vec<Step>>,
    limits: &Limits,
) -> Harness {
    let (store, workspace) = (Arc::new(MemoryStore::new(1)), Arc::new(NotedWorkspace::default()));
    let runner = Arc::new(ScriptedRunner::new(scripts));
    let outside = Outside { git: Arc::new(repository), ..outside(&store, &runner, &workspace) };
    let service = AgentService::new(outside, *limits, Handle::current());
    Harness { service, store, runner, workspace }
}

#[tokio::test(start_paused = true)]
async fn each_turn_is_compared_with_the_commit_at_its_start() {
    let mut repository = MockIGitRepository::new();
    let mut heads = vec![None, Some(commit("1")), Some(commit("2"))].into_iter();
    repository.expect_head().returning(move |_| heads.next().flatten());
    repository.expect_changes().returning(|_, base| {
        let extent = Extent::Uncounted;
        let file = ChangedFile { path: base.to_string(), status: FileStatus::Added, extent };
        Ok(Changes { files: vec![file], truncated: false })
    });
    repository
        .expect_patch()
        .returning(|_, base, _| Ok(Patch { text: base.as_str().into(), truncated: false }));
    let h = harness(repository);
    let id = h.launch("one").await;
    h.watch(id).await;
    for prompt in ["two", "three"] {
        h.service.send(id, prompt.into(), None).await.unwrap();
        h.watch(id).await;
    }
    let since = async |turn: Option<u32>| h.service.changes(id, turn.map(TurnNumber)).await;
    for (asked, turn, base) in [(None, 2, commit("1")), (Some(2), 2, commit("1")), (Some(3), 3, commit("2"))]
    {
        let found = since(asked).await.unwrap();
        assert_eq!((found.turn, &found.base), (TurnNumber(turn), &base));
        assert_eq!(found.changes.files[0].path, base.as_str());
    }
    let patch = h.service.patch(id, Some(TurnNumber(3)), None).await.unwrap();
    assert_eq!(patch.text, commit("2").as_str().as_bytes());
    for none in [0, 1, 9] {
        assert!(matches!(since(Some(none)).await, Err(Refusal::ChangesUnknown(NoChanges::NoCommit))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_the_agent_begins_by_itself_has_no_commit() {
    let mut repository = MockIGitRepository::new();
    repository.expect_head().returning(|_| Some(commit("1")));
    let lines = ["say a", "close a", "next", "say b", "close b"].map(str::to_owned);
    let h = harness_with(repository, vec![vec![Step::Lines(lines.into())]], &Limits::default());
    let id = h.launch("one").await;
    h.watch(id).await;
    let turns = h.service.turns(id, TurnNumber(0), 9).await.unwrap();
    let bases: Vec<_> = turns.into_iter().map(|turn| turn.base).collect();
    assert_eq!(bases, [Some(commit("1")), None]);
}

#[tokio::test(start_paused = true)]
async fn the_first_commit_is_found_behind_more_turns_than_a_list_has() {
    let mut repository = MockIGitRepository::new();
    let mut heads = vec![None, None, Some(commit("1"))].into_iter();
    repository.expect_head().returning(move |_| heads.next().flatten());
    repository.expect_changes().returning(|_, _| Ok(Changes::default()));
    let mut limits = Limits::default();
    limits.lists.list_agents = 1;
    let h = harness_with(repository, vec![Vec::new(); 3], &limits);
    let id = h.launch("one").await;
    h.watch(id).await;
    for prompt in ["two", "three"] {
        h.service.send(id, prompt.into(), None).await.unwrap();
        h.watch(id).await;
    }
    let found = h.service.changes(id, None).await.unwrap();
    assert_eq!((found.turn, found.base), (TurnNumber(3), commit("1")));
}

#[tokio::test(start_paused = true)]
async fn an_agent_outside_of_a_repository_has_no_changes() {
    let h = harness(PretendRepository::default());
    let id = h.launch("one").await;
    h.watch(id).await;
    let answer = h.service.changes(id, None).await;
    assert!(matches!(answer, Err(Refusal::ChangesUnknown(NoChanges::NoCommit))), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn every_error_of_the_repository_has_a_reason() {
    let mut errors = vec![
        (ChangesError::NoRepository, Some(NoChanges::NoRepository)),
        (ChangesError::NoGit, Some(NoChanges::NoGit)),
        (ChangesError::CommitGone(commit("1")), Some(NoChanges::CommitGone)),
        (ChangesError::TimedOut, Some(NoChanges::TimedOut)),
        (ChangesError::Failed(std::io::Error::other("it is broken")), Some(NoChanges::GitFailed)),
        (ChangesError::Busy, None),
    ];
    let expected: Vec<_> = errors.iter().map(|(_, expected)| *expected).collect();
    let mut repository = MockIGitRepository::new();
    repository.expect_head().returning(|_| Some(commit("1")));
    repository.expect_changes().returning(move |_, _| Err(errors.remove(0).0));
    let h = harness(repository);
    let id = h.launch("one").await;
    h.watch(id).await;
    for expected in expected {
        match (h.service.changes(id, None).await, expected) {
            (Err(Refusal::ChangesUnknown(why)), Some(expected)) => assert_eq!(why, expected),
            (Err(Refusal::TooManyChanges), None) => {}
            (answer, expected) => panic!("{answer:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_has_no_folder_here() {
    let h = harness(PretendRepository { head: Some(commit("1")), ..PretendRepository::default() });
    let id = h.launch("one").await;
    h.watch(id).await;
    let copy = h.service.replay(id, 0.0).await.unwrap();
    let answer = h.service.changes(copy.id, None).await;
    assert!(matches!(answer, Err(Refusal::ChangesUnknown(NoChanges::Copy))), "{answer:?}");
}
