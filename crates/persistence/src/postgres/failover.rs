//! After a failover to a server that lacks the newest commits: what this node was told to be saved is saved again.
//!
//! A standby that is not synchronous may lack the last moments of its primary. Their numbers and ids were seen, so they
//! must not be given to anything else. Each node keeps what was acknowledged lately, and repeats all of it before it
//! writes anything else: what is there stays, and what was lost gets in again, with the same numbers, ids and bytes.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`kept`] | what was acknowledged lately |
//! | [`dropped`] | what is no longer kept, to count what of it is lost |
//! | this one | repeats it, when the first connection to the new server is opened |
//! | [`repeat`] | repeats one entry after the other |
//! | [`rounds`] | repeats later what builds on something that another node has not repeated yet |
//!
//! Nobody else can have written in the meantime: another node could only have taken an agent over, and then has an
//! epoch that no former server has given. See [`first_epoch`](crate::postgres::statements::ownership::first_epoch).
//! `statements/catch_up.rs` says what nodes leave alone until all have repeated everything.

mod dropped;
pub(crate) mod kept;
mod repeat;
mod rounds;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokenrail_domain::AgentId;
use tokenrail_ports::Failovers;
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::kept::{Kept, KeptEntry, KeptRoom, Superseded};
use self::rounds::{Awaited, Later};
use crate::postgres::command::{KeptBeat, KeptChange};
use crate::postgres::database::failures::{ChangeFailure, ConnectFailure};
use crate::postgres::database::known_server::UNKNOWN_TIMELINE;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::settings::Purpose;
use crate::postgres::figures::Figures;
use crate::postgres::membership::Membership;
use crate::postgres::statements::append::{self, PreparedAppend};
use crate::postgres::statements::catch_up;

/// Opens connections that show everything that was acknowledged to this node, also after a failover.
pub(crate) struct Healer {
    connector: Arc<Connector>,
    kept: Kept,
    /// The timeline on which everything was repeated.
    healed: AtomicU32,
    /// The timeline on which the join of the node was repeated.
    rejoined: AtomicU32,
    /// Held while it is repeated.
    progress: Mutex<Progress>,
    awaited: Awaited,
    membership: Arc<Membership>,
    /// Itself, for its rounds.
    me: Weak<Self>,
    repeated: AtomicU64,
    lost: AtomicU64,
}

/// How far this node has come with what it repeats.
#[derive(Default)]
struct Progress {
    timeline: u32,
    /// The newest entry that was looked at.
    number: u64,
    /// Those before it that are not done.
    later: Later,
    /// Nothing that is missing comes back any more, so that nothing waits for it: each entry is tried.
    is_last: bool,
}

/// What became of a change that was repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// The new server has it.
    There,
    Repeated,
    /// Something is missing on which it builds: something of these agents.
    Later(Vec<AgentId>),
    /// It cannot be repeated.
    Lost,
}

impl Healer {
    pub(crate) fn new(connector: Arc<Connector>, membership: Arc<Membership>) -> Arc<Self> {
        let limits = &connector.limits;
        let room = KeptRoom { bytes: limits.kept_bytes, import_bytes: limits.kept_import_bytes };
        let kept = Kept::new(Duration::from_millis(limits.kept_ms), room);
        Arc::new_cyclic(|me| Self {
            connector,
            kept,
            healed: AtomicU32::new(UNKNOWN_TIMELINE),
            rejoined: AtomicU32::new(UNKNOWN_TIMELINE),
            progress: Mutex::default(),
            awaited: Awaited::default(),
            membership,
            me: Weak::clone(me),
            repeated: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        })
    }

    /// What the writers have done with these connections.
    pub(crate) fn figures(&self) -> &Figures {
        &self.connector.figures
    }

    /// Opens a connection. After a failover, everything is repeated first. A beat waits only for the join of the node:
    /// it says that the node is alive, and not how far it is.
    pub(crate) async fn connect(
        &self,
        purpose: Purpose,
        statements: &[&str],
    ) -> Result<Link, ConnectFailure> {
        let link = self.connector.connect(purpose, statements).await?;
        self.count_dropped(&link).await.map_err(ConnectFailure::NotHealed)?;
        match purpose {
            Purpose::Writer | Purpose::Pool => self.heal(&link).await?,
            Purpose::WithoutStandby => self.rejoin(&link).await.map_err(ConnectFailure::NotHealed)?,
        }
        Ok(link)
    }

    /// Keeps an append that was saved on this timeline.
    ///
    /// # Errors
    /// [`Superseded`] if another server has taken over: then the append counts as not acknowledged.
    pub(crate) fn keep_append(&self, timeline: u32, append: PreparedAppend) -> Result<(), Superseded> {
        self.kept.keep(timeline, Instant::now(), KeptEntry::Append(Arc::new(append)))
    }

    /// Keeps a change of a command, like [`Healer::keep_append`].
    pub(crate) fn keep_change(&self, timeline: u32, change: Arc<dyn KeptChange>) -> Result<(), Superseded> {
        self.kept.keep(timeline, Instant::now(), KeptEntry::Change(change))
    }

    /// Drops what has been kept for long enough. This server has answered just now: a beat, or something else.
    pub(crate) fn age(&self, timeline: u32, beat: Option<KeptBeat>) {
        self.kept.age(timeline, Instant::now(), beat);
    }

    /// The number of the newest change that was kept.
    pub(crate) fn newest(&self) -> u64 {
        self.kept.newest()
    }

    pub(crate) fn failovers(&self) -> Failovers {
        let known = &self.connector.known;
        Failovers {
            timeline: known.timeline(),
            count: known.failovers(),
            repeated: self.repeated.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            since: known.since_failover(),
        }
    }

    /// Repeats the join of the node. Otherwise, its beat would find that another process had joined in its place.
    async fn rejoin(&self, link: &Link) -> Result<(), ChangeFailure> {
        let timeline = link.timeline();
        if timeline <= self.healed.load(Ordering::Acquire).max(self.rejoined.load(Ordering::Acquire)) {
            return Ok(());
        }
        for change in self.kept.of_the_node() {
            let wait = Duration::from_millis(self.connector.limits.answer_timeout_ms);
            link.change(wait, change.redo(link)).await?;
        }
        self.rejoined.store(timeline, Ordering::Release);
        Ok(())
    }

    /// After a failover, counts what was no longer kept and may be lost. This must come before the first beat of the
    /// node on the new server.
    async fn count_dropped(&self, link: &Link) -> Result<(), ChangeFailure> {
        let timeline = link.timeline();
        if !self.kept.has_dropped_before(timeline) {
            return Ok(());
        }
        let beat = match self.membership.joined() {
            Some(node) => self.read(link, catch_up::newest_beat(link, node)).await?,
            None => None,
        };
        let lost = self.kept.lose_dropped(timeline, beat);
        if 0 < lost {
            self.lost.fetch_add(lost, Ordering::Relaxed);
            tracing::error!(
                lost,
                "changes may be lost, and cannot be saved again, because they are no longer in memory: the new \
                 PostgreSQL server was behind for longer than cluster.failover_keep_s, or there were more changes than \
                 cluster.failover_keep_bytes has room for; use a synchronous standby, or raise these settings"
            );
        }
        Ok(())
    }

    /// Repeats what was acknowledged before the timeline of this connection, once.
    async fn heal(&self, first: &Link) -> Result<(), ConnectFailure> {
        let timeline = first.timeline();
        if timeline <= self.healed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut progress = self.progress.lock().await;
        if timeline <= self.healed.load(Ordering::Acquire) {
            return Ok(());
        }
        // From here on, no answer of a former server counts any more.
        self.kept.begin(timeline);
        if progress.timeline < timeline {
            *progress = Progress { timeline, ..Progress::default() };
        }
        let failed = ConnectFailure::NotHealed;
        let noted = first.save(catch_up::note_timeline(first)).await.map_err(failed)?;
        if let Some(ago) = noted {
            self.connector.known.note_failover(ago);
        }
        let entries = self.kept.after(progress.number);
        if !entries.is_empty() {
            let link = self.link(timeline).await?;
            self.repeat_all(&link, entries, &mut progress).await.map_err(failed)?;
        }
        self.awaited.set(&progress.later);
        if progress.later.is_empty() {
            self.note_healed(first).await.map_err(failed)?;
        } else {
            self.begin_rounds(timeline);
        }
        self.kept.renew(Instant::now());
        self.healed.store(timeline, Ordering::Release);
        Ok(())
    }

    /// A connection on which changes are repeated.
    async fn link(&self, timeline: u32) -> Result<Link, ConnectFailure> {
        let link = self.connector.connect(Purpose::Writer, &append::statements()).await?;
        if link.timeline() == timeline {
            return Ok(link);
        }
        Err(ConnectFailure::NotHealed(ChangeFailure::superseded()))
    }
}
