//! The table `prompt_images`.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use tokenrail_domain::{AgentId, ImageFile, ImageType, PromptImage, TurnNumber};
use tokenrail_ports::{NewTurn, StoreError};

use crate::format::checksum::Checksum;
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::unknown_word;

const ADD: &str = "
    INSERT INTO prompt_images (agent, turn, position, media_type, data, checksum)
    VALUES (:agent, :turn, :position, :media_type, :data, :checksum)";

const ONE: &str = "
    SELECT prompt_images.media_type, prompt_images.data, prompt_images.checksum
    FROM prompt_images
    JOIN agents ON agents.key = prompt_images.agent
    WHERE agents.id = :id AND prompt_images.turn = :turn AND prompt_images.position = :position";

/// Adds the images of a new turn, with their positions.
pub(crate) fn add<'a>(
    db: &Connection,
    agent: i64,
    turn: TurnNumber,
    images: impl Iterator<Item = (u32, &'a ImageFile)>,
) -> rusqlite::Result<()> {
    let mut add = db.prepare_cached(ADD)?;
    for (position, image) in images {
        let media_type = image.media_type().as_str();
        add.execute(named_params! {
            ":agent": agent,
            ":turn": turn.0,
            ":position": position,
            ":media_type": media_type,
            ":data": &image.data()[..],
            ":checksum": checksum_of(turn, position, media_type, image.data()).sum(),
        })?;
    }
    Ok(())
}

/// One image of a turn. `None` if there is no such image.
pub(crate) fn one(
    db: &Connection,
    id: AgentId,
    turn: TurnNumber,
    position: u32,
) -> Result<Option<ImageFile>, StoreError> {
    let mut statement = db.prepare_cached(ONE).map_err(store_error)?;
    let values = named_params! { ":id": id.to_string(), ":turn": turn.0, ":position": position };
    let found = statement
        .query_row(values, |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?)))
        .optional()
        .map_err(store_error)?;
    let Some((media_type, data, checksum)) = found else { return Ok(None) };
    let what = || format!("image {position} of turn {turn}");
    checksum_of(turn, position, &media_type, &data).check(Some(checksum), what)?;
    match ImageFile::new(data.into()) {
        Some(image) if image.media_type().as_str() == media_type => Ok(Some(image)),
        _ => Err(StoreError::Corrupt(format!("{}: not an image of the type {media_type}", what()))),
    }
}

fn checksum_of(turn: TurnNumber, position: u32, media_type: &str, data: &[u8]) -> Checksum {
    let numbers = Checksum::new().number(turn.0.into()).number(position.into());
    numbers.bytes(media_type.as_bytes()).bytes(data)
}

/// Marks an image that had been lost before its agent was imported, so that a later loss is noticed.
const LOST: &str = " lost";

/// The column `images` of `turns`.
pub(crate) fn listed(images: &[PromptImage]) -> Option<String> {
    joined(images.iter().map(in_list))
}

/// The same for an imported turn, of which images may be lost.
pub(crate) fn listed_of_import(turn: &NewTurn) -> Option<String> {
    let lost: BTreeSet<u32> = turn.lost_images().collect();
    joined((0..).zip(&turn.turn().images).map(|(position, image)| {
        let mark = if lost.contains(&position) { LOST } else { "" };
        in_list(image) + mark
    }))
}

fn in_list(PromptImage { media_type, bytes }: &PromptImage) -> String {
    format!("{} {bytes}", media_type.as_str())
}

fn joined(images: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = images.collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// The inverse of [`listed`], and of [`listed_of_import`].
pub(crate) fn summaries(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<PromptImage>> {
    let Some(text) = row.get_ref(at)?.as_str_or_null()? else { return Ok(Vec::new()) };
    let summary = |part: &str| {
        let (media_type, bytes) = part.strip_suffix(LOST).unwrap_or(part).split_once(' ')?;
        Some(PromptImage { media_type: ImageType::from_name(media_type)?, bytes: bytes.parse().ok()? })
    };
    text.split(',').map(|part| summary(part).ok_or_else(|| unknown_word(at, part))).collect()
}
