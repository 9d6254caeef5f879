//! The JSON names of AG-UI.

mod capabilities;
mod content;
mod customs;
mod events;
mod interrupts;
mod plan;
mod requests;

pub(crate) use capabilities::{CAPABILITIES, CapabilitiesDto};
pub(crate) use customs::{AbandonedPartsDto, CustomDto, ForeignValue, LooseResultDto, NoticeValueDto};
pub(crate) use events::{
    AgUiEvent, Assistant, EventDto, InputDto, OutcomeDto, PlaceDto, Plan, ProtocolVersion, Reasoning,
    RunResultDto, RunUsageDto, SubAgentOutcomeDto, Tool,
};
pub(crate) use interrupts::InterruptDto;
pub(crate) use plan::PlanDto;
pub(crate) use requests::{Answer, Choice, RunInputBody, RunRequest, Wish, run_request};
