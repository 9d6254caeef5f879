//! The types of agents.

use serde::Serialize;
use tokenrail_application::{Abilities, Probe, TypeInfo};
use utoipa::ToSchema;

use crate::config::PresentationConfig;

/// A configured agent type and its current state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentType)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentType", optional_fields))]
pub(crate) struct AgentTypeDto<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    runner: &'a str,
    format: &'a str,
    can: AbilitiesDto,
    /// The limits for the images of a prompt. Absent if agents of this type accept none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    image_limits: Option<ImageLimitsDto>,
    /// Whether a launch that names no type uses this one.
    default: bool,
    /// Whether an agent of this type can be started now.
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    program: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version: Option<&'a str>,
    /// Why the type is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    problem: Option<&'a str>,
    /// Variables that can hold an API key for this type, if none of them is set: the program then needs a login of its
    /// own.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    #[schema(required = false)]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>", optional))]
    unset_keys: &'a [String],
}

/// What agents of a type can do in addition to what all agents can do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Abilities)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Abilities"))]
#[expect(clippy::struct_excessive_bools, reason = "each of them is there or not, whatever the others are")]
pub(crate) struct AbilitiesDto {
    /// They stream their text in pieces.
    deltas: bool,
    /// They remember earlier turns.
    resume: bool,
    /// When cancelled, they end their turn by themselves, with a result.
    interrupt: bool,
    /// They ask for permission before they do something that is not allowed yet, and wait for the answer.
    permissions: bool,
    /// They accept images with a prompt.
    images: bool,
}

/// The limits for the images of a prompt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImageLimits)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "ImageLimits"))]
pub(crate) struct ImageLimitsDto {
    /// How many images a prompt can have: `limits.prompt_images`.
    images: u32,
    /// How many bytes each file can have: `limits.image_bytes`.
    bytes: u32,
    /// How many bytes all files of a prompt can have together: `limits.prompt_image_bytes`.
    total_bytes: u32,
}

impl ImageLimitsDto {
    fn of(config: &PresentationConfig) -> Self {
        let PresentationConfig { prompt_images, image_bytes, prompt_image_bytes, .. } = *config;
        let number = |limit| u32::try_from(limit).unwrap_or(u32::MAX);
        let (images, bytes) = (number(prompt_images), number(image_bytes));
        Self { images, bytes, total_bytes: number(prompt_image_bytes) }
    }
}

impl<'a> AgentTypeDto<'a> {
    pub(crate) fn new(info: &'a TypeInfo, config: &PresentationConfig) -> Self {
        let TypeInfo { name, runner, format, abilities, default, probe } = info;
        let Abilities { deltas, resume, interrupt, permissions, images } = *abilities;
        let Probe { program, version, problem, unset_keys } = probe;
        Self {
            kind: name,
            runner,
            format,
            can: AbilitiesDto { deltas, resume, interrupt, permissions, images },
            image_limits: images.then(|| ImageLimitsDto::of(config)),
            default: *default,
            available: problem.is_none(),
            program: program.as_deref(),
            version: version.as_deref(),
            problem: problem.as_deref(),
            unset_keys,
        }
    }
}
