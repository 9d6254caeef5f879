//! Several servers on one PostgreSQL, and beside them one server on SQLite in the same run: `--cluster`.
//!
//! * [`site`]: a database and the servers that use it
//! * [`floods`]: several agents that print as fast as they can
//! * [`wal`]: what a token takes in the write-ahead log
//! * [`faults`]: how long readers and writers are held up by what fails
//! * [`sheet`]: the table

mod faults;
mod floods;
mod sheet;
mod site;
mod wal;

use tokenrail_test_postgres::{Database, Flush, Replication, Server as Postgres};

use self::sheet::{Line, Sheet, Storage};
use self::site::Site;
use crate::latency::delays_at;
use crate::report::{Report, progress};
use crate::{Failure, Scale};

/// The default of PostgreSQL. The private server of the tests has less.
const SETTINGS: [&str; 1] = ["shared_buffers=128MB"];
/// Eight seconds of deltas.
const PACED_DELTAS: u64 = 4000;
/// Ten seconds, in which the servers notice that no hint arrives.
const UNTOLD_DELTAS: u64 = 5000;
const NODES: usize = 3;
const MANY: u64 = 100;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> Result<(), Failure> {
    let mut sheet = Sheet::default();
    sqlite(scale, &mut sheet).await?;
    let postgres = Postgres::start_with(Flush::On, &SETTINGS);
    println!("PostgreSQL {}, fsync on, {}", postgres.sql("SHOW server_version"), SETTINGS.join(", "));
    let database = postgres.database();
    wal::measure(scale, &postgres, &mut sheet).await?;
    several(scale, Site::new(&database, database.url()), Storage::Postgres, &mut sheet).await?;
    drop(database);

    let standby = postgres.standby(Replication::Synchronous);
    let database = postgres.database();
    let url = both(&postgres, &standby, &database);
    let site = several(scale, Site::new(&database, url), Storage::Replicated, &mut sheet).await?;
    let held_up = faults::failover(&site, &postgres, &standby).await?;
    sheet.seconds(Line::Failover, Storage::Replicated, held_up);
    for missed in sheet.print() {
        report.fail(format!("the target is missed: {missed}"));
    }
    Ok(())
}

/// The address of a database on the primary and on its standby.
fn both(primary: &Postgres, standby: &Postgres, database: &Database) -> String {
    let (url, address) = (database.url(), primary.address());
    let addresses = format!("{address},{}", standby.address());
    format!("{}?target_session_attrs=read-write", url.replacen(&address, &addresses, 1))
}

async fn sqlite(scale: Scale, sheet: &mut Sheet) -> Result<(), Failure> {
    let site = Site::sqlite()?;
    sheet.rate(Line::FloodOne, Storage::Sqlite, floods::flood(&site, 1, scale).await?);
    paced(scale, &site, (0, Storage::Sqlite), sheet).await
}

/// Measures with one server, then with several. Returns the site with the first of its servers.
async fn several<'a>(
    scale: Scale,
    mut site: Site<'a>,
    storage: Storage,
    sheet: &mut Sheet,
) -> Result<Site<'a>, Failure> {
    site.add_node()?;
    sheet.rate(Line::FloodOne, storage, floods::flood(&site, 1, scale).await?);
    while site.nodes.len() < NODES {
        site.add_node()?;
    }
    paced(scale, &site, (0, storage), sheet).await?;
    paced(scale, &site, (1, storage), sheet).await?;
    sheet.rate(Line::FloodSeveral, storage, floods::flood(&site, NODES, scale).await?);
    sheet.late(Line::Untold, storage, &faults::without_hints(&site, scale.of(UNTOLD_DELTAS)).await?);
    sheet.seconds(Line::Killed, storage, faults::kills(&mut site).await?);
    Ok(site)
}

/// An agent at the pace of a fast model on the first server, with readers at the server of this number.
async fn paced(
    scale: Scale,
    site: &Site<'_>,
    (at, storage): (usize, Storage),
    sheet: &mut Sheet,
) -> Result<(), Failure> {
    for readers in [1, MANY] {
        let line = match (at, readers) {
            (0, 1) => Line::Owner,
            (0, _) => Line::ManyAtOwner,
            (_, 1) => Line::Other,
            (_, _) => Line::ManyAtOther,
        };
        progress(&format!("{}, {}", storage.as_str(), line.as_str()));
        let before = site.wal()?;
        let deltas = scale.of(PACED_DELTAS);
        let delays = delays_at(&site.nodes[0], &site.nodes[at].place, deltas, readers).await?;
        sheet.delays(line, storage, &delays);
        if let Some(bytes) = site.wal()?.zip(before).map(|(after, before)| after - before)
            && line == Line::Owner
        {
            sheet.bytes(Line::WalOfServer, storage, bytes as f64 / deltas as f64);
        }
        site.rest().await?;
    }
    Ok(())
}
