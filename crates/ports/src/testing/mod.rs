//! Working fakes, and the contracts that fakes and real adapters pass.

pub mod contract;
mod hesitation;
mod memory_bus;
mod memory_store;
mod pretend_repository;
mod pretend_runs;
mod roaming_runner;
pub mod runner_contract;
pub mod samples;
mod scripted_runner;
mod stopped_clock;

pub use memory_bus::{BusFaults, HintFault, MemoryBus};
pub use memory_store::{AppendFault, LostTail, MemoryStore};
pub use pretend_repository::PretendRepository;
pub use pretend_runs::PretendRuns;
pub use roaming_runner::RoamingRunner;
pub use scripted_runner::{ScriptedRunner, Step};
pub use stopped_clock::{CountingRandom, NotedWorkspace, PretendWorkspace, StoppedClock};
