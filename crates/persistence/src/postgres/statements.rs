//! The SQL, beside the code that uses it.
//!
//! | module | reads and changes |
//! | --- | --- |
//! | [`heads`] | where each journal stands; the lock of all that changes one agent |
//! | [`append`] | appends: those of many agents in one statement, or one alone |
//! | [`journal`], [`read_many`] | batches of events: of one agent, or of many in one statement |
//! | [`message_row`], [`messages`] | rows of `agent_messages`; pages of messages for `GET …/messages` |
//! | [`commands`], [`enqueue`], [`stops`] | agents and turns: create, delete, purge; enqueue; stop |
//! | [`new_turn`], [`kept_turn`] | a turn that waits; the same after a failover |
//! | [`edit`] | names of agents, and their places in lists |
//! | [`agents`], [`turns`], [`turn_ends`] | one or a list of agents and turns; what lists show of a turn's end |
//! | [`prompt_images`] | the images of prompts |
//! | [`latest_result`] | what the latest result of an agent leaves in its row |
//! | [`idempotency`], [`clock`] | idempotency keys; the clock by which they age |
//! | [`ownership`] | who may append: owners and epochs |
//! | [`fence`] | whether a process is still its node |
//! | [`outdated`] | which versions may use the database; removes what only older versions need |
//! | [`nodes`], [`takeover`] | the servers that share the database; agents that nobody continues |
//! | [`age`] | what keeps the database from cleaning up |
//! | [`errands`], [`touched`], [`inbox`] | what nodes leave for each other, and what has changed |
//! | [`rounds`] | looks at more than one call returns |
//! | [`credentials`] | tickets and login codes |
//! | [`shared_token`] | the access token on which all live nodes agree |
//! | [`launches`] | agents that wait for a node to take them |
//! | [`catch_up`] | whether all nodes have repeated what a failover may have lost |
//! | [`seen`] | how far journals were shown whose ends a failover has lost |
//! | [`purge`] | the removal of everything that an agent has |
//! | [`let_go`] | agents whose home is taken away |
//! | [`list_page`] | one page of a list, in which long fields are cut |
//! | [`archive`], [`compaction`] | imports and rewrites; packing the batches of ended turns tighter |
//! | [`columns`] | columns as domain values |
//!
//! **Open turns.** `state <> 'ended'` is the condition of a partial index. PostgreSQL uses that index only if it can
//! see that a statement implies it, so statements say `state <> 'ended' AND state = 'queued'`.

pub(crate) mod age;
pub(crate) mod agents;
pub(crate) mod append;
pub(crate) mod archive;
pub(crate) mod catch_up;
pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod commands;
pub(crate) mod compaction;
pub(crate) mod credentials;
pub(crate) mod edit;
pub(crate) mod enqueue;
pub(crate) mod errands;
pub(crate) mod fence;
pub(crate) mod heads;
pub(crate) mod idempotency;
pub(crate) mod inbox;
pub(crate) mod journal;
pub(crate) mod kept_turn;
pub(crate) mod latest_result;
pub(crate) mod launches;
pub(crate) mod let_go;
pub(crate) mod list_page;
pub(crate) mod message_row;
pub(crate) mod messages;
pub(crate) mod new_turn;
pub(crate) mod nodes;
pub(crate) mod outdated;
pub(crate) mod ownership;
pub(crate) mod prompt_images;
pub(crate) mod purge;
pub(crate) mod read_many;
pub(crate) mod rounds;
pub(crate) mod seen;
pub(crate) mod shared_token;
pub(crate) mod stops;
pub(crate) mod takeover;
pub(crate) mod touched;
pub(crate) mod turn_ends;
pub(crate) mod turns;
