//! The table `prompt_images`.

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use tokenrail_domain::{ImageFile, PromptImage, TurnId, TurnNumber};
use tokenrail_ports::StoreError;

use crate::format::images::{self, ImagePlace};
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
            ":checksum": ImagePlace { turn, position }.checksum(media_type, image.data()).sum(),
        })?;
    }
    Ok(())
}

/// One image of a turn. `None` if there is no such image.
pub(crate) fn one(db: &Connection, turn: TurnId, position: u32) -> Result<Option<ImageFile>, StoreError> {
    let mut statement = db.prepare_cached(ONE).map_err(store_error)?;
    let values =
        named_params! { ":id": turn.agent.to_string(), ":turn": turn.number.0, ":position": position };
    let found = statement
        .query_row(values, |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?)))
        .optional()
        .map_err(store_error)?;
    let Some((media_type, data, checksum)) = found else { return Ok(None) };
    ImagePlace { turn: turn.number, position }.open(&media_type, data, checksum).map(Some)
}

/// The column `images` of `turns`.
pub(crate) fn summaries(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<PromptImage>> {
    let Some(text) = row.get_ref(at)?.as_str_or_null()? else { return Ok(Vec::new()) };
    images::summaries(text).map_err(|part| unknown_word(at, part))
}
