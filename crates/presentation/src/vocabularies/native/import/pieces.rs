//! Splits the file into pieces while reading it. The whole file is never in memory.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufReader, Read};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tokenrail_application::{Imported, NewTurn};
use tokenrail_domain::Event;

use crate::vocabularies::native::dto::archive::{ArchivedEvent, ArchivedTurn, ReadAgent, VERSION};
use crate::vocabularies::prompts::prompt_images::ImageLimits;

/// The fields of a file, in order.
const FIELDS: [&str; 4] = ["tokenrail", "agent", "turns", "events"];
/// Maximum number of additional fields, which later versions may add.
const MORE_FIELDS: usize = 64;
/// Maximum number of turns or events in one piece.
const ITEMS: usize = 512;
/// A piece is full when it contains this many bytes of the file.
const PIECE_BYTES: usize = 1 << 20;

/// A piece of a file.
pub(super) enum Piece {
    Agent(Box<Imported>),
    Turns(Vec<NewTurn>),
    Events(Vec<Event>),
}

/// What is wrong with a file, and where.
#[derive(Debug)]
pub(super) struct Malformed {
    pub(super) place: String,
    pub(super) detail: String,
}

/// Reads a file and passes its pieces to `take`, which returns false to stop. One item may have `most` bytes, and a
/// prompt images within `limits`.
pub(super) fn read_pieces(
    body: impl Read,
    most: usize,
    limits: ImageLimits,
    take: impl FnMut(Piece) -> bool,
) -> Result<(), Malformed> {
    let budget = Budget { left: Cell::new(most), most };
    let sink = Sink { take: RefCell::new(take), place: RefCell::new(String::new()), budget: &budget, limits };
    let mut deserializer =
        serde_json::Deserializer::from_reader(BufReader::new(Counted { body, budget: &budget }));
    let read = deserializer.deserialize_map(File(&sink)).and_then(|()| {
        budget.begin();
        deserializer.end()
    });
    read.map_err(|error| Malformed { place: sink.place.take(), detail: error.to_string() })
}

/// How many more bytes the current item may have.
struct Budget {
    left: Cell<usize>,
    most: usize,
}

impl Budget {
    fn begin(&self) {
        self.left.set(self.most);
    }

    fn used(&self) -> usize {
        self.most - self.left.get()
    }
}

struct Counted<'a, R> {
    body: R,
    budget: &'a Budget,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.body.read(into)?;
        let left = self.budget.left.get().checked_sub(read);
        self.budget.left.set(left.ok_or_else(|| {
            let most = self.budget.most;
            io::Error::other(format!(
                "this event or turn is larger than limits.import_event_bytes ({most} bytes)"
            ))
        })?);
        Ok(read)
    }
}

struct Sink<'a, F> {
    take: RefCell<F>,
    /// The reader's position, as a JSON pointer.
    place: RefCell<String>,
    budget: &'a Budget,
    limits: ImageLimits,
}

impl<F: FnMut(Piece) -> bool> Sink<'_, F> {
    fn give<E: serde::de::Error>(&self, piece: Piece) -> Result<(), E> {
        if (self.take.borrow_mut())(piece) { Ok(()) } else { Err(E::custom("the import was stopped")) }
    }
}

struct File<'a, 'b, F>(&'a Sink<'b, F>);

impl<'de, F: FnMut(Piece) -> bool> Visitor<'de> for File<'_, '_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exported agent")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(sink) = self;
        for expected in FIELDS {
            sink.place.replace(String::new());
            if map.next_key::<String>()?.as_deref() != Some(expected) {
                let order =
                    "the file must have the fields `tokenrail`, `agent`, `turns` and `events`, in this order";
                return Err(A::Error::custom(format_args!("{order}; {expected} is missing or misplaced")));
            }
            sink.place.replace(format!("/{expected}"));
            match expected {
                "tokenrail" => version(map.next_value()?)?,
                "agent" => {
                    let agent = map.next_value::<ReadAgent>()?.into_imported().map_err(A::Error::custom)?;
                    sink.give(Piece::Agent(Box::new(agent)))?;
                }
                "turns" => map.next_value_seed(List {
                    sink,
                    name: expected,
                    read: ArchivedTurn::into_turn,
                    piece: Piece::Turns,
                })?,
                _ => map.next_value_seed(List {
                    sink,
                    name: expected,
                    read: ArchivedEvent::into_event,
                    piece: Piece::Events,
                })?,
            }
        }
        sink.place.replace(String::new());
        let mut seen = BTreeSet::from(FIELDS.map(str::to_owned));
        while let Some(name) = map.next_key::<String>()? {
            if FIELDS.len() + MORE_FIELDS <= seen.len() {
                return Err(A::Error::custom("the file has too many fields"));
            }
            // Ignore the fields of later versions. Reject duplicates, because parsers disagree about which one counts.
            if !seen.insert(name.clone()) {
                sink.place.replace(pointer(&name));
                return Err(A::Error::custom("duplicate field"));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// A field of the file, as a JSON pointer.
fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn version<E: serde::de::Error>(version: u64) -> Result<(), E> {
    if version == VERSION {
        return Ok(());
    }
    Err(E::custom(format_args!("unsupported file version {version}; only {VERSION} is supported")))
}

/// A list in the file. It reads the items, and passes on each full piece.
struct List<'a, 'b, F, R, T> {
    sink: &'a Sink<'b, F>,
    name: &'static str,
    read: fn(R, ImageLimits) -> Result<T, String>,
    piece: fn(Vec<T>) -> Piece,
}

impl<'de, F: FnMut(Piece) -> bool, R: Deserialize<'de>, T> DeserializeSeed<'de> for List<'_, '_, F, R, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Piece) -> bool, R: Deserialize<'de>, T> Visitor<'de> for List<'_, '_, F, R, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { sink, name, read, piece } = self;
        let (mut full, mut bytes) = (Vec::new(), 0);
        for index in 0_u64.. {
            sink.place.replace(format!("/{name}/{index}"));
            sink.budget.begin();
            let Some(item) = items.next_element::<R>()? else { break };
            full.push(read(item, sink.limits).map_err(A::Error::custom)?);
            bytes += sink.budget.used();
            if ITEMS <= full.len() || PIECE_BYTES <= bytes {
                sink.give(piece(std::mem::take(&mut full)))?;
                bytes = 0;
            }
        }
        sink.give(piece(full))
    }
}
