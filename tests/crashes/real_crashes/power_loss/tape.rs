//! The calls of a server to its disk and its clients, in order, parsed from the output of `strace`.

use std::collections::HashMap;

/// Options of `strace`: it writes every string in full, as hexadecimal, and the path of each descriptor.
pub(super) const OPTIONS: [&str; 12] = [
    "-f",
    "-D",
    "-b",
    "execve",
    "-qq",
    "-xx",
    "-y",
    "-s",
    "1048576",
    "-e",
    "signal=none",
    "--trace=openat,pwrite64,fsync,fdatasync,ftruncate,unlink,unlinkat,writev,sendto",
];

/// A system call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    Open { path: String, creates: bool },
    Write { path: String, at: usize, bytes: Vec<u8> },
    Truncate { path: String, length: usize },
    Flush { path: String },
    Unlink { path: String },
    Send { bytes: Vec<u8> },
}

/// A successful call, and the lines of the recording at which it began and returned. Other calls may be between them.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) call: Call,
    pub(super) begun: usize,
    pub(super) done: usize,
}

/// The relevant calls, ordered by their beginning.
pub(super) fn read(tape: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    // The unfinished call of each thread.
    let mut begun: HashMap<&str, Option<Step>> = HashMap::new();
    for (line, text) in tape.lines().enumerate() {
        let (thread, text) = text.split_once(' ').expect("a thread, a call");
        let text = text.trim_start();
        if text.starts_with("<... ") {
            let step = begun.remove(thread).expect("a call that was begun");
            steps.extend(step.and_then(|step| finished(step, line, text)));
        } else if let Some(text) = text.strip_suffix("<unfinished ...>") {
            begun.insert(thread, call(text).map(|call| Step { call, begun: line, done: line }));
        } else {
            let step = call(text).map(|call| Step { call, begun: line, done: line });
            steps.extend(step.and_then(|step| finished(step, line, text)));
        }
    }
    steps.sort_by_key(|step| step.begun);
    steps
}

/// `None` if the call failed. For a partial write or send, only the bytes that it reported count.
fn finished(mut step: Step, line: usize, text: &str) -> Option<Step> {
    let (_, result) = text.rsplit_once(" = ").expect("a result");
    let number = result.split(|c: char| c != '-' && !c.is_ascii_digit()).next()?;
    let result: i64 = number.parse().expect("a number");
    step.done = line;
    if let Call::Write { bytes, .. } | Call::Send { bytes } = &mut step.call {
        bytes.truncate(usize::try_from(result).unwrap_or(0));
    }
    (0 <= result).then_some(step)
}

fn call(text: &str) -> Option<Call> {
    let (name, arguments) = text.split_once('(').expect("a call");
    // Texts and paths are hexadecimal, so they contain no comma.
    let mut arguments = arguments.split(", ");
    let mut next = || arguments.next().map(|argument| argument.trim_end().trim_end_matches(')'));
    Some(match name {
        "openat" => {
            let (_folder, path, flags) = (next()?, next()?, next()?);
            Call::Open { path: text_of(path), creates: flags.contains("O_CREAT") }
        }
        "pwrite64" => {
            let (file, bytes, _length, at) = (next()?, next()?, next()?, next()?);
            let at = at.split(')').next()?.parse().expect("an offset");
            Call::Write { path: path_of(file), at, bytes: unescaped(bytes) }
        }
        "ftruncate" => {
            let (file, length) = (next()?, next()?);
            let length = length.split(')').next()?.parse().expect("a length");
            Call::Truncate { path: path_of(file), length }
        }
        "fsync" | "fdatasync" => Call::Flush { path: path_of(next()?) },
        "unlink" => Call::Unlink { path: text_of(next()?) },
        "unlinkat" => Call::Unlink { path: text_of(arguments.nth(1)?) },
        "sendto" => Call::Send { bytes: unescaped(arguments.nth(1)?) },
        "writev" => Call::Send { bytes: text.split("iov_base=").skip(1).flat_map(unescaped).collect() },
        _ => panic!("it was not asked for: {name}"),
    })
}

/// The path next to a descriptor: `7</a/b>`.
fn path_of(file: &str) -> String {
    let path = file.split_once('<').and_then(|(_, path)| path.split_once('>')).map_or("", |(path, _)| path);
    String::from_utf8(hexadecimal(path)).expect("UTF-8")
}

fn text_of(quoted: &str) -> String {
    String::from_utf8(unescaped(quoted)).expect("UTF-8")
}

/// The text between the first two quotation marks.
fn unescaped(quoted: &str) -> Vec<u8> {
    hexadecimal(quoted.split('"').nth(1).expect("a text"))
}

fn hexadecimal(text: &str) -> Vec<u8> {
    let byte = |hex: &str| u8::from_str_radix(hex, 16).expect("two digits");
    text.split("\\x").skip(1).map(byte).collect()
}

#[test]
fn a_tape_is_read_in_the_order_in_which_calls_began() {
    let tape = r#"7 openat(AT_FDCWD<\x2f>, "\x2f\x61", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 5<\x2f\x61>
7 pwrite64(5<\x2f\x61>, "\x01\x02"..., 2, 4096 <unfinished ...>
8 fsync(5<\x2f\x61>)        = 0
7 <... pwrite64 resumed>)   = 1
8 fsync(5<\x2f\x61>)        = -1 EIO (Input/output error)
8 ftruncate(5<\x2f\x61>, 3) = 0
8 unlink("\x2f\x61")        = 0
8 sendto(9<\x73>, "\x68\x69", 2, MSG_NOSIGNAL, NULL, 0) = 2
8 writev(9<\x73>, [{iov_base="\x68", iov_len=1}, {iov_base="\x69", iov_len=1}], 2) = 2
"#;
    let path = || "/a".to_owned();
    let steps: Vec<_> = read(tape).into_iter().map(|step| (step.begun, step.done, step.call)).collect();
    let expected = [
        (0, 0, Call::Open { path: path(), creates: true }),
        (1, 3, Call::Write { path: path(), at: 4096, bytes: vec![1] }),
        (2, 2, Call::Flush { path: path() }),
        (5, 5, Call::Truncate { path: path(), length: 3 }),
        (6, 6, Call::Unlink { path: path() }),
        (7, 7, Call::Send { bytes: b"hi".to_vec() }),
        (8, 8, Call::Send { bytes: b"hi".to_vec() }),
    ];
    assert_eq!(steps, expected);
}
