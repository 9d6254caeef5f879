//! What every store promises: [`IJournal`](crate::IJournal), [`IAgentRepository`](crate::IAgentRepository),
//! [`INodes`](crate::INodes) and [`IArchive`](crate::IArchive). And in [`bus`], what every bus between nodes promises.
#![expect(clippy::unwrap_used, reason = "a promise that is broken is a test that fails")]

pub mod agents;
pub mod archive;
pub mod bus;
pub mod credentials;
pub mod edits;
pub mod epochs;
pub mod homes;
pub mod images;
pub mod journal;
pub mod launches;
pub mod leftovers;
pub mod letters;
pub mod lists;
pub mod nodes;
pub mod pages;
pub mod queue;
pub mod sharing;
pub mod takeovers;

use tokenrail_domain::{Agent, AgentId, Event, Sequence, Turn};

use super::samples::{Scribe, WHOLE, launch};
use crate::{Append, IAgentRepository, IJournal};

/// Defines one test for each promise. `$fresh` is a function that returns a future of an empty store, and a guard that
/// must live as long as the store.
#[macro_export]
macro_rules! store_contract {
    ($fresh:path) => {
        $crate::store_contract! { $fresh: journal
            events_are_numbered_without_a_hole
            a_conflict_burns_no_number
            the_same_append_again_changes_nothing
            other_events_under_the_same_numbers_are_a_conflict
            an_append_that_breaks_its_form_is_refused
            a_message_is_completed_once
            an_unknown_agent_has_no_journal
            every_kind_of_event_comes_back_as_it_was
            a_read_from_any_cursor_is_a_run_of_consecutive_events
            bytes_limit_a_read_but_never_to_nothing
            a_long_turn_reads_the_same_before_and_after_compaction
        }
        $crate::store_contract! { $fresh: pages
            deltas_of_an_open_message_are_shown_and_then_covered
            an_abandoned_message_shows_none_of_its_deltas
            a_message_said_again_under_its_number_shows_what_came_after
            a_page_of_messages_is_a_prefix
            messages_of_two_turns_do_not_mix
        }
        $crate::store_contract! { $fresh: agents
            an_agent_reads_back_as_it_was_created
            an_id_is_created_once
            a_turn_moves_its_agent_in_the_same_append
            a_turn_keeps_the_commit_at_its_start
            a_failed_turn_leaves_its_error_until_the_next_starts
            a_turn_can_fail_before_it_has_run
            a_turn_that_has_ended_takes_nothing_more
            an_agent_can_begin_a_turn_by_itself
            a_chain_is_saved_as_a_whole_or_not_at_all
            a_deleted_agent_leaves_the_lists_only
            a_purged_agent_is_gone_for_good
            a_healthy_store_says_so
            turns_are_read_by_number_and_by_event
            a_conversation_has_one_agent
        }
        $crate::store_contract! { $fresh: epochs
            the_creator_owns_an_agent_and_stays_its_owner
            an_idle_agent_can_be_claimed
            an_agent_that_is_not_there_cannot_be_claimed
            what_a_former_process_sends_late_changes_nothing
            an_epoch_from_the_future_is_fenced_too
            a_node_that_joins_again_owns_what_it_owned
        }
        $crate::store_contract! { $fresh: edits
            an_edit_changes_what_it_names
            an_edit_outlives_the_turns_of_the_agent
            a_deleted_agent_is_not_edited
            a_message_brings_an_archived_agent_back
            a_permission_request_brings_an_archived_agent_back
            lists_leave_archived_agents_out_or_show_only_them
            pinned_agents_are_listed
        }
        $crate::store_contract! { $fresh: images
            a_turn_keeps_its_images
            the_turn_of_a_replay_lists_images_that_the_store_has_only_with_the_original
            the_images_of_a_purged_agent_are_gone
            an_imported_turn_has_its_images
            an_imported_turn_may_lack_images_and_the_others_keep_their_places
        }
        $crate::store_contract! { $fresh: lists
            lists_are_newest_first_and_page
            lists_filter
            a_list_has_the_children_of_an_agent
            a_list_shows_the_beginning_of_long_fields
            the_error_and_usage_of_a_listed_agent_are_cut_too
            a_list_has_a_bound_in_bytes
            turns_of_an_agent_are_listed_from_either_end
            the_first_turn_with_a_commit_is_found
            a_listed_turn_says_how_it_has_ended
            turns_of_all_agents_are_listed_as_they_were_saved
        }
        $crate::store_contract! { $fresh: archive
            an_imported_history_reads_back_as_it_was
            an_import_is_hidden_until_all_of_it_is_there
            an_import_takes_no_hole_and_nothing_twice
            events_of_an_ended_turn_are_written_anew
            a_compaction_keeps_what_is_written_anew_meanwhile
            no_number_gets_another_meaning
            a_replay_is_kept_with_its_agent
        }
        $crate::store_contract! { $fresh: queue
            turns_wait_in_order
            a_full_queue_takes_no_more
            a_turn_that_must_get_a_number_gets_no_other
            turns_that_are_cancelled_one_by_one_have_a_bound
            a_cancel_is_noted_of_every_open_turn
            a_command_that_has_waited_does_not_set_the_time_back
            the_first_reason_to_stop_a_turn_stays
            a_message_for_an_agent_that_has_ended_makes_it_wait
            an_idle_agent_begins_with_its_first_message
            open_turns_are_found_for_recovery
            a_key_launches_once
            a_key_enqueues_once
            a_key_is_forgotten_in_time
            a_key_may_last_as_long_as_its_turn_is_the_newest
        }
    };
    ($fresh:path: $area:ident $($promise:ident)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let (store, _guard) = $fresh().await;
                $crate::testing::contract::$area::$promise(&store).await;
            }
        )*
    };
}

/// Creates the `n`th sample agent.
async fn launched(store: &impl IAgentRepository, n: u8) -> (Agent, Turn, Scribe) {
    let (agent, turn) = launch(n);
    let scribe = Scribe::new(&agent);
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    (agent, turn, scribe)
}

/// Creates the `n`th sample agent and starts its first turn.
async fn running<S: IJournal + IAgentRepository>(store: &S, n: u8) -> (Agent, Scribe) {
    let (agent, turn, mut scribe) = launched(store, n).await;
    store.append(scribe.start(&turn)).await.unwrap();
    (agent, scribe)
}

async fn saved<S: IJournal>(store: &S, append: Append) -> Vec<Event> {
    let events = append.events.to_vec();
    store.append(append).await.unwrap();
    events
}

async fn everything(store: &impl IJournal, agent: AgentId) -> Vec<Event> {
    store.read(agent, Sequence::START, WHOLE).await.unwrap()
}

/// The agent as it is saved. Its home is left out: a store that cannot be shared has none.
async fn agent_now(store: &impl IAgentRepository, id: AgentId) -> Agent {
    homeless(store.get(id).await.unwrap().unwrap())
}

fn homeless(agent: Agent) -> Agent {
    Agent { home: None, ..agent }
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.sequence.0).collect()
}
