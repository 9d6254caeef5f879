//! The table `credentials`: tickets and login codes that any node accepts. Its times are those of the database alone.

use std::time::Duration;

use tokenrail_ports::{
    Credential, CredentialDigest, CredentialKind, CredentialRoom, CredentialScope, ValidCredential, WhenFull,
};
use tokio_postgres::Row;

use crate::planted::{PostgresBug, is_planted};
use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{column, maybe_text};

/// Rows that another transaction is using up are left out, so that two nodes never wait for each other.
const FORGET: &str = "
    DELETE FROM credentials
    WHERE kind = $1 AND digest IN (
        SELECT digest
        FROM credentials
        WHERE kind = $1 AND expires_at <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint
        FOR UPDATE SKIP LOCKED
    )";

/// Removes those that expire first, but for `$2`.
const MAKE_ROOM: &str = "
    DELETE FROM credentials
    WHERE kind = $1 AND digest IN (
        SELECT digest
        FROM credentials
        WHERE kind = $1
        ORDER BY expires_at DESC, digest
        OFFSET $2
    )";

const ADD: &str = "
    INSERT INTO credentials (kind, digest, path, origin, expires_at)
    SELECT $1, $2, $3, $4, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $5
    WHERE (SELECT count(*) FROM credentials WHERE kind = $1) < $6
    ON CONFLICT (kind, digest) DO NOTHING";

const REDEEM: &str = "
    DELETE FROM credentials
    WHERE kind = $1 AND digest = $2
    RETURNING path, origin, expires_at - (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const FIND: &str = "
    SELECT path, origin, expires_at - (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    FROM credentials
    WHERE kind = $1 AND digest = $2";

/// Adds a credential, if there is room, and removes those that have expired.
pub(crate) struct AddCredentialCommand(pub(crate) Credential, pub(crate) CredentialRoom);

impl ChangeCommand for AddCredentialCommand {
    type Answer = bool;

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        let Self(Credential { kind, digest, scope, life }, CredentialRoom { max, when_full }) = self;
        let CredentialScope { path, origin } = scope;
        let kind = kind.as_str();
        let max = i64::try_from(*max).unwrap_or(i64::MAX);
        db.run(FORGET, &[&kind]).await?;
        if *when_full == WhenFull::ReplaceOldest {
            db.run(MAKE_ROOM, &[&kind, &(max - 1).max(0)]).await?;
        }
        let (path, origin) = (path.as_ref().map(String::as_bytes), origin.as_ref().map(String::as_bytes));
        let life = i64::try_from(life.as_millis()).unwrap_or(i64::MAX >> 1);
        let added = db.run(ADD, &[&kind, &&digest.0[..], &path, &origin, &life, &max]).await?;
        Ok(added == 1)
    }

    /// It is not added again if it is there.
    async fn run_again(&self, db: &Link, _first: &bool) -> Result<bool, QueryFailure> {
        let Credential { kind, digest, .. } = &self.0;
        Ok(self.run(db).await? || db.row(FIND, &[&kind.as_str(), &&digest.0[..]]).await?.is_some())
    }
}

/// Uses a credential up.
pub(crate) struct RedeemCommand(pub(crate) CredentialKind, pub(crate) CredentialDigest);

impl ChangeCommand for RedeemCommand {
    type Answer = Option<ValidCredential>;

    async fn run(&self, db: &Link) -> Result<Option<ValidCredential>, QueryFailure> {
        let redeem = if is_planted(PostgresBug::TicketTwice) { FIND } else { REDEEM };
        let row = db.row(redeem, &[&self.0.as_str(), &&self.1.0[..]]).await?;
        valid(row.as_ref())
    }
}

pub(crate) async fn find(
    db: &Link,
    kind: CredentialKind,
    digest: CredentialDigest,
) -> Result<Option<ValidCredential>, QueryFailure> {
    let row = db.row(FIND, &[&kind.as_str(), &&digest.0[..]]).await?;
    valid(row.as_ref())
}

/// `None` if the credential has expired.
fn valid(row: Option<&Row>) -> Result<Option<ValidCredential>, QueryFailure> {
    let Some(row) = row else { return Ok(None) };
    let left = u64::try_from(column::<i64>(row, 2)?).unwrap_or(0);
    let scope = CredentialScope { path: maybe_text(row, 0)?, origin: maybe_text(row, 1)? };
    Ok((0 < left).then(|| ValidCredential { scope, left: Duration::from_millis(left) }))
}
