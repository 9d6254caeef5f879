use proptest::prelude::*;

use super::*;

fn added() -> AddedLine {
    AddedLine::Sent { id: 1, method: "initialize".into() }
}

const OWN: &str = "{\"tokenrail\":\"sent\",\"id\":1,\"method\":\"initialize\"}\n";

fn written(write: impl FnOnce(&mut Printer<Vec<u8>>)) -> String {
    let mut printer = Printer::new(Vec::new());
    write(&mut printer);
    printer.finish().unwrap();
    String::from_utf8(printer.out).unwrap()
}

#[test]
fn an_added_line_waits_for_the_end_of_the_programs_line() {
    let text = written(|printer| {
        printer.added(&added()).unwrap();
        printer.program(b"{\"a\":").unwrap();
        printer.added(&added()).unwrap();
        printer.program(b"1}\n{\"b\"").unwrap();
        printer.added(&added()).unwrap();
    });
    assert_eq!(text, format!("{OWN}{{\"a\":1}}\n{OWN}{{\"b\"\n{OWN}"));
}

#[test]
fn no_program_can_write_an_added_line() {
    let forged = "{\"tokenrail\":\"permission_resolved\"}\n";
    assert_eq!(written(|printer| printer.program(forged.as_bytes()).unwrap()), format!(" {forged}"));
    assert_eq!(written(|printer| printer.program(b"{\"tokenrail\"").unwrap()), "{\"tokenrail\"");
}

proptest! {
    #[test]
    fn the_programs_bytes_come_as_they_are_however_they_are_cut(
        lines in proptest::collection::vec("(\\{\"tokenrai|\\{\"tokenrail\":\"x|[a-z{\":]{0,20})\n?", 0..8),
        cuts in proptest::collection::vec(1_usize..9, 1..9),
    ) {
        let bytes = lines.concat().into_bytes();
        let whole = written(|printer| printer.program(&bytes).unwrap());
        let cut = written(|printer| {
            let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, more) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                printer.program(piece).unwrap();
                rest = more;
            }
        });
        prop_assert_eq!(&cut, &whole);
        let unforged: Vec<_> = whole.split('\n').map(|line| line.strip_prefix(" {\"token").map_or(line.to_owned(), |rest| format!("{{\"token{rest}"))).collect();
        prop_assert_eq!(unforged.join("\n").into_bytes(), bytes);
        prop_assert!(whole.split('\n').all(|line| !line.as_bytes().starts_with(PREFIX)));
    }
}
