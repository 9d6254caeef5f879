//! A reader of server-sent events that has the whole stream. It follows the HTML standard paragraph by paragraph.

/// One event: its name, its data, and the last id of the stream so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
    pub(crate) id: Option<String>,
}

/// The content of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) events: Vec<Event>,
    pub(crate) last_id: Option<String>,
    pub(crate) retry_ms: Option<u64>,
}

pub(crate) fn read(stream: &[u8]) -> Stream {
    let mut read = Stream::default();
    let (mut name, mut data, mut id) = (String::new(), None::<Vec<Vec<u8>>>, None);
    for line in lines(stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream)) {
        if line.is_empty() {
            read.last_id.clone_from(&id);
            let name = std::mem::take(&mut name);
            if let Some(lines) = data.take() {
                read.events.push(Event { name, data: lines.join(&b'\n'), id: id.clone() });
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match &line[..colon] {
            b"event" => name = text(),
            b"data" => data.get_or_insert_default().push(value.to_vec()),
            b"id" if !value.contains(&0) => id = Some(text()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                // The standard has no limit. A number that does not fit into the type is ignored.
                read.retry_ms = text().parse().ok().or(read.retry_ms);
            }
            _ => {}
        }
    }
    read
}

/// The lines with an end: LF, CR LF or CR.
fn lines(stream: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while at < stream.len() {
        let end = at;
        at += 1;
        match stream[end] {
            b'\r' if stream.get(at) == Some(&b'\n') => at += 1,
            b'\r' | b'\n' => {}
            _ => continue,
        }
        lines.push(&stream[begin..end]);
        begin = at;
    }
    lines
}
