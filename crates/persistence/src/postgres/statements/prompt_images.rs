//! The table `prompt_images`.

use tokenrail_domain::{ImageFile, PromptImage, TurnId, TurnNumber};
use tokenrail_ports::StoreError;
use tokio_postgres::Row;

use crate::format::images::{self, ImagePlace};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{checksum_of, column, int, unknown_word};

const ADD: &str = "
    INSERT INTO prompt_images (agent, turn, position, media_type, data, checksum)
    VALUES ($1, $2, $3, $4, $5, $6)";

const ONE: &str = "
    SELECT prompt_images.media_type, prompt_images.data, prompt_images.checksum
    FROM prompt_images
    JOIN agents ON agents.key = prompt_images.agent
    WHERE agents.id = $1 AND prompt_images.turn = $2 AND prompt_images.position = $3";

/// Adds the images of a new turn, with their positions.
pub(crate) async fn add(
    db: &Link,
    agent: i64,
    turn: TurnNumber,
    images: impl Iterator<Item = (u32, &ImageFile)> + Send,
) -> Result<(), QueryFailure> {
    for (position, image) in images {
        let media_type = image.media_type().as_str();
        let checksum = ImagePlace { turn, position }.checksum(media_type, image.data()).sum();
        db.run(
            ADD,
            &[&agent, &int(turn.0), &int(position), &media_type, &&image.data()[..], &i64::from(checksum)],
        )
        .await?;
    }
    Ok(())
}

/// One image of a turn. `None` if there is no such image.
pub(crate) async fn one(db: &Link, turn: TurnId, position: u32) -> Result<Option<ImageFile>, QueryFailure> {
    let found = db.row(ONE, &[&turn.agent.as_uuid(), &int(turn.number.0), &int(position)]).await?;
    let Some(row) = found else { return Ok(None) };
    let media_type: &str = column(&row, 0)?;
    let image = ImagePlace { turn: turn.number, position }.open(
        media_type,
        column(&row, 1)?,
        checksum_of(&row, 2)?,
    )?;
    Ok(Some(image))
}

/// The column `images` of `turns`.
pub(crate) fn summaries(row: &Row, at: usize) -> Result<Vec<PromptImage>, StoreError> {
    match column::<Option<&str>>(row, at)? {
        None => Ok(Vec::new()),
        Some(listed) => images::summaries(listed).map_err(unknown_word),
    }
}
