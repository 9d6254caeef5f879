//! Reads the file of an exported agent while it arrives. A thread of its own reads it, and waits for the body and for
//! the store, so that only a few pieces are in memory.

mod pieces;

use std::future::Future;
use std::io::{self, Read};
use std::thread;
use std::time::Duration;

use actix_web::web;
use bytes::{Buf as _, Bytes};
use futures_util::StreamExt as _;
use tokenrail_application::{AgentService, Import, ImportError};
use tokenrail_domain::Agent;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use self::pieces::{Malformed, Piece, read_pieces};
use crate::api::Api;
use crate::config::PresentationConfig;
use crate::error::{Code, FieldProblem, Problem};
use crate::vocabularies::prompts::prompt_images::ImageLimits;

/// Maximum number of chunks of the body that wait for the reader.
const BODY_WAITS: usize = 4;
/// Maximum number of pieces of the file that wait for the store.
const PIECES_WAIT: usize = 2;
/// Bytes of the file that must arrive in each `limits.body_timeout_s`. A slow import keeps a place that others need.
const PACE_BYTES: u64 = 64 << 10;

/// Imports the file in the request's body.
pub(crate) async fn import(api: &Api, payload: web::Payload) -> Result<Agent, Problem> {
    let config = api.config();
    let place = api.import_place()?;
    let (body, waiting) = mpsc::channel(BODY_WAITS);
    let (pieces, mut coming) = mpsc::channel(PIECES_WAIT);
    let (read, reading) = oneshot::channel();
    let (most, limits) = (config.import_event_bytes, ImageLimits::from(config));
    // The reader waits for the client, so it must not occupy one of the few blocking threads that all requests share.
    let reader = thread::Builder::new().name("import".to_owned()).spawn(move || {
        let _place = place;
        let body = Body { waiting, chunk: Bytes::new() };
        // The receiver may be gone.
        let _gone = read.send(read_pieces(body, most, limits, |piece| pieces.blocking_send(piece).is_ok()));
    });
    reader.map_err(|_| Problem::new(Code::CapacityExhausted, "cannot start a thread to read the file"))?;
    let (fed, taken) = tokio::join!(feed(payload, body, config), take_in(api.service(), &mut coming));
    // This ends the reader in any case, because nothing receives its pieces any more.
    drop(coming);
    let read = reading.await.map_err(|_| Problem::new(Code::StoreFailed, "cannot read the file"))?;
    fed?;
    let import = taken?;
    read.map_err(|Malformed { place, detail }| invalid(&place, detail))?;
    match import {
        Some(import) => import.finish().await.map_err(Problem::from),
        None => Err(invalid("", "the file contains no agent".to_owned())),
    }
}

/// Passes the body to the reader. If the reader has ended, discards the rest, so that the client reads the response.
async fn feed(
    mut payload: web::Payload,
    body: mpsc::Sender<Bytes>,
    config: &PresentationConfig,
) -> Result<(), Problem> {
    let mut patience = Patience::new(config);
    loop {
        let chunk = match patience.wait(payload.next()).await? {
            None => return Ok(()),
            Some(Ok(chunk)) => chunk,
            Some(Err(_)) => return Err(Problem::new(Code::BadRequest, "cannot read the body")),
        };
        patience.came(chunk.len() as u64)?;
        let _gone = body.send(chunk).await;
    }
}

/// How long the server waits for a file. Only the client's own time counts, because the store may be slow too.
struct Patience<'a> {
    config: &'a PresentationConfig,
    came: u64,
    waited: Duration,
}

impl<'a> Patience<'a> {
    fn new(config: &'a PresentationConfig) -> Self {
        Self { config, came: 0, waited: Duration::ZERO }
    }

    async fn wait<T>(&mut self, chunk: impl Future<Output = T>) -> Result<T, Problem> {
        let PresentationConfig { body_timeout, import_timeout, .. } = *self.config;
        let steps = u32::try_from(1 + self.came / PACE_BYTES).unwrap_or(u32::MAX);
        let most = body_timeout.saturating_mul(steps).min(import_timeout);
        let begun = Instant::now();
        let come = timeout(body_timeout.min(most.saturating_sub(self.waited)), chunk).await;
        self.waited += begun.elapsed();
        come.map_err(|_| Problem::new(Code::RequestTimeout, "the file did not arrive in time"))
    }

    fn came(&mut self, bytes: u64) -> Result<(), Problem> {
        self.came = self.came.saturating_add(bytes);
        let most = self.config.import_bytes;
        if most < self.came {
            return Err(Problem::new(
                Code::PayloadTooLarge,
                format!("the file must be at most {most} bytes"),
            ));
        }
        Ok(())
    }
}

/// Passes the pieces to the application. The agent comes first.
async fn take_in(
    service: &AgentService,
    coming: &mut mpsc::Receiver<Piece>,
) -> Result<Option<Import>, Problem> {
    let mut import: Option<Import> = None;
    while let Some(piece) = coming.recv().await {
        let taken = take(service, &mut import, piece).await;
        if let Err(error) = taken {
            coming.close();
            return Err(error.into());
        }
    }
    Ok(import)
}

async fn take(service: &AgentService, import: &mut Option<Import>, piece: Piece) -> Result<(), ImportError> {
    match (piece, import) {
        (Piece::Agent(agent), import) => *import = Some(service.import(*agent).await?),
        (Piece::Turns(turns), Some(import)) => import.turns(turns).await?,
        (Piece::Events(events), Some(import)) => import.events(events).await?,
        // Not possible: the reader sends the agent first.
        (Piece::Turns(_) | Piece::Events(_), None) => {}
    }
    Ok(())
}

fn invalid(place: &str, detail: String) -> Problem {
    Problem::fields(vec![FieldProblem { pointer: Some(place.to_owned()), parameter: None, detail }])
}

impl From<ImportError> for Problem {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Invalid { place, detail } => invalid(&place, detail),
            ImportError::Refused(refusal) => refusal.into(),
        }
    }
}

/// The body, as a blocking reader.
struct Body {
    waiting: mpsc::Receiver<Bytes>,
    chunk: Bytes,
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.waiting.blocking_recv() {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(0),
            }
        }
        let length = self.chunk.len().min(into.len());
        self.chunk.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}
