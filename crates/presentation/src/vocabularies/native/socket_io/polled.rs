//! The task of a session whose client polls. It lives on the web worker that has opened it, and answers requests that
//! arrive on any worker.

use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::stream::{StreamExt as _, unfold};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::engine::{NOOP, PACKETS_MAX, PING};
use super::heart::Heart;
use super::session::{Session, SessionOutput};
use crate::frames::{self, CHUNK_BYTES};
use crate::polled_sessions::{Listed, Output, PolledRequest, Upgrading};
use crate::vocabularies::native::transport::comes_before_its_number;
use crate::waits::passed;
use crate::websocket::close_code;

/// The request that waits for output.
enum Waiting {
    Poll(oneshot::Sender<Output>),
    Page(oneshot::Sender<Output>),
}

/// The output of a session on its way to requests.
struct Desk {
    waiting: Option<Waiting>,
    /// Frames that the session has given and no request has taken: at most a page of events.
    rest: Bytes,
    /// What comes after them: the end.
    close: Option<(u16, &'static str)>,
    /// If a WebSocket is about to take over, polls end at once.
    upgrading: Upgrading,
    /// When the session ends unless a request comes.
    idle_due: Instant,
    heart: Rc<Heart>,
    over: bool,
}

/// Runs a session until it is over, or no request comes for as long as a client may be silent.
pub(super) async fn serve(
    session: Session,
    (mut asked, upgrading): (mpsc::Receiver<PolledRequest>, Upgrading),
    listed: Listed,
    closing: CancellationToken,
) {
    let (connected, connect_due, heart) = (session.connected(), session.connect_due(), session.heart());
    // The stream may be left at any point and taken up again, which `Session::next` alone may not.
    let mut given = pin!(unfold(session, |mut session| async move {
        let given = session.next().await?;
        Some((given, session))
    }));
    let mut desk = Desk::new(heart, upgrading);
    while !desk.over {
        let idle_due = desk.waiting.is_none().then_some(desk.idle_due);
        let wants = desk.waiting.is_some() && desk.rest.is_empty();
        tokio::select! {
            biased;
            asked = asked.recv() => match asked {
                Some(asked) => desk.asked(asked),
                None => desk.over = true,
            },
            () = passed(idle_due) => desk.over = true,
            // If a request waits, the session itself answers it in both cases.
            () = passed(connect_due), if !connected.get() && desk.waiting.is_none() => desk.over = true,
            () = closing.cancelled(), if desk.waiting.is_none() => desk.over = true,
            () = left(&mut desk.waiting) => desk.waiting = None,
            given = given.next(), if wants => match given {
                Some(SessionOutput::Frames(frames)) => desk.rest = frames,
                Some(SessionOutput::Close(code, reason)) => desk.close = Some((code, reason)),
                None => desk.over = true,
            },
        }
        desk.answer();
    }
    drop(listed);
}

impl Desk {
    fn new(heart: Rc<Heart>, upgrading: Upgrading) -> Self {
        Self {
            waiting: None,
            rest: Bytes::new(),
            close: None,
            upgrading,
            idle_due: Instant::now() + heart.silence(),
            heart,
            over: false,
        }
    }

    fn asked(&mut self, asked: PolledRequest) {
        match asked {
            PolledRequest::Poll(reply) => self.waiting = Some(Waiting::Poll(reply)),
            PolledRequest::Page(reply) => self.waiting = Some(Waiting::Page(reply)),
            // Alone, it does not show that the client reads.
            PolledRequest::Pong => return self.heart.heard(),
            PolledRequest::Probe | PolledRequest::Alive => {}
            PolledRequest::Leave => {
                if let Some(Waiting::Poll(reply) | Waiting::Page(reply)) = self.waiting.take() {
                    let close = Some((close_code::NORMAL, ""));
                    let _ = reply.send(Output { close, ..Output::default() });
                }
                self.over = true;
            }
            PolledRequest::End => self.over = true,
        }
        self.put_off();
    }

    /// Answers the waiting request, if there is something to say.
    fn answer(&mut self) {
        let is_ready = !self.rest.is_empty() || self.close.is_some();
        let (reply, output) = match self.waiting.take() {
            Some(Waiting::Poll(reply)) if self.upgrading.is_on() => {
                // It takes nothing, so that the client gets the rest by the WebSocket.
                let _ = reply.send(Output { frames: frames::text(NOOP), close: None });
                return self.put_off();
            }
            // The session would send it only after the rest.
            Some(Waiting::Poll(reply) | Waiting::Page(reply))
                if !self.rest.is_empty() && self.heart.is_due() =>
            {
                // Otherwise the client has gone meanwhile, and its next request gets the ping.
                if reply.send(Output { frames: frames::text(PING), close: None }).is_ok() {
                    self.heart.pinged();
                }
                return self.put_off();
            }
            Some(Waiting::Poll(reply)) if is_ready => {
                (reply, Output { frames: self.rest.slice(..portion(&self.rest)), close: None })
            }
            Some(Waiting::Page(reply)) if is_ready => {
                let part = frames::length_within(&self.rest, CHUNK_BYTES);
                (reply, Output { frames: self.rest.slice(..part), close: None })
            }
            waiting => return self.waiting = waiting,
        };
        let taken = output.frames.len();
        let close = self.close.filter(|_| taken == self.rest.len());
        // If the request has gone in the meantime, the next one gets the same.
        if reply.send(Output { close, ..output }).is_ok() {
            self.rest = self.rest.split_off(taken);
            self.over |= close.is_some();
            self.heart.taken();
        }
        self.put_off();
    }

    /// Gives the client its whole time again.
    fn put_off(&mut self) {
        self.idle_due = Instant::now() + self.heart.silence();
    }
}

/// How many bytes a response to a poll takes: as many packets as clients accept, no event in part, and not so many
/// bytes that a slow client would not get its pings in time. A client gets a response whole or not at all, so a client
/// that resumes gets no packet twice.
fn portion(rest: &[u8]) -> usize {
    let packets = frames::payloads(rest).take(PACKETS_MAX).enumerate();
    let ends = packets.filter(|(_, packet)| !comes_before_its_number(packet));
    let mut lengths = ends.map(|(at, _)| frames::length_of(rest, at + 1));
    let first = lengths.next().unwrap_or_else(|| frames::length_of(rest, PACKETS_MAX));
    lengths.take_while(|length| *length <= CHUNK_BYTES).last().unwrap_or(first)
}

/// Waits until the client of the waiting request has gone.
async fn left(waiting: &mut Option<Waiting>) {
    match waiting {
        Some(Waiting::Poll(reply) | Waiting::Page(reply)) => reply.closed().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A desk whose client gets pings in this period.
    fn desk(ping: Duration) -> Desk {
        Desk::new(Rc::new(Heart::new(ping, Duration::from_secs(1))), Upgrading::default())
    }

    fn frames_of(count: usize) -> Bytes {
        let all: Vec<u8> = (0..count).flat_map(|at| frames::text(format!("4{at}").as_bytes())).collect();
        all.into()
    }

    fn packets(output: &Output) -> Vec<String> {
        frames::payloads(&output.frames).map(|packet| String::from_utf8_lossy(packet).into_owned()).collect()
    }

    fn ask(desk: &mut Desk, asked: fn(oneshot::Sender<Output>) -> PolledRequest) -> Option<Output> {
        let (reply, mut output) = oneshot::channel();
        desk.asked(asked(reply));
        desk.answer();
        output.try_recv().ok()
    }

    #[tokio::test]
    async fn a_poll_takes_no_more_packets_than_clients_accept_and_the_next_one_the_rest() {
        let mut desk = desk(Duration::from_secs(1));
        desk.rest = frames_of(PACKETS_MAX + 3);
        desk.close = Some((1000, ""));
        let first = ask(&mut desk, PolledRequest::Poll).unwrap();
        let rest = ask(&mut desk, PolledRequest::Poll).unwrap();
        assert_eq!((packets(&first).len(), first.close), (PACKETS_MAX, None));
        assert_eq!(packets(&rest), ["416", "417", "418"]);
        assert_eq!((rest.close, desk.over), (Some((1000, "")), true), "the end comes after everything");
    }

    #[tokio::test]
    async fn a_poll_takes_no_event_in_part() {
        let mut desk = desk(Duration::from_secs(1));
        let mut rest = frames_of(PACKETS_MAX - 1).to_vec();
        for packet in ["agent:status", "agent:complete", "agent:message"] {
            rest.extend_from_slice(&frames::text(format!("42[\"{packet}\",{{}}]").as_bytes()));
        }
        desk.rest = rest.into();
        let first = ask(&mut desk, PolledRequest::Poll).unwrap();
        assert_eq!(packets(&first).len(), PACKETS_MAX - 1);
        let rest = ask(&mut desk, PolledRequest::Poll).unwrap();
        assert_eq!(packets(&rest).len(), 3);
    }

    #[tokio::test]
    async fn what_a_request_has_not_taken_is_for_the_next_one() {
        let mut desk = desk(Duration::from_secs(1));
        desk.rest = frames_of(2);
        let (reply, output) = oneshot::channel();
        drop(output);
        desk.asked(PolledRequest::Poll(reply));
        desk.answer();
        assert_eq!(packets(&ask(&mut desk, PolledRequest::Page).unwrap()), ["40", "41"]);
        assert!(desk.rest.is_empty() && !desk.over);
    }

    #[tokio::test]
    async fn polls_end_while_a_socket_takes_over_and_take_nothing() {
        let mut desk = desk(Duration::from_secs(1));
        let (reply, mut output) = oneshot::channel();
        desk.asked(PolledRequest::Poll(reply));
        desk.answer();
        assert!(output.try_recv().is_err(), "nothing is there");
        assert!(desk.upgrading.begin());
        desk.asked(PolledRequest::Probe);
        desk.rest = frames_of(1);
        desk.answer();
        assert_eq!(packets(&output.try_recv().unwrap()), ["6"]);
        assert_eq!(packets(&ask(&mut desk, PolledRequest::Poll).unwrap()), ["6"]);
        assert_eq!(packets(&ask(&mut desk, PolledRequest::Page).unwrap()), ["40"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_ping_comes_between_two_parts_of_what_is_there() {
        for asked in [PolledRequest::Poll, PolledRequest::Page] {
            let mut desk = desk(Duration::from_secs(1));
            desk.rest = [frames_of(2), frames::text(&vec![b'4'; CHUNK_BYTES]), frames_of(1)].concat().into();
            let mut given = Vec::new();
            while !desk.rest.is_empty() {
                let part = packets(&ask(&mut desk, asked).unwrap());
                if part != ["2"] {
                    tokio::time::advance(Duration::from_secs(1)).await;
                }
                given.push(part.iter().map(String::len).collect::<Vec<_>>());
            }
            let expected = [vec![2, 2], vec![1], vec![CHUNK_BYTES], vec![1], vec![2]];
            assert_eq!(given, expected, "a part has few bytes, and no packet in part");
            assert!(desk.heart.pong_due().is_some());
            tokio::time::advance(Duration::from_secs(1)).await;
            desk.rest = frames_of(1);
            let (reply, gone) = oneshot::channel();
            drop(gone);
            desk.asked(asked(reply));
            desk.answer();
            assert_eq!(
                packets(&ask(&mut desk, asked).unwrap()),
                ["2"],
                "a ping that nobody got is sent again"
            );
            desk.asked(PolledRequest::Pong);
            assert_eq!(desk.heart.pong_due(), None, "the answer waits for nothing");
        }
    }
}
