use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Telegram<'a> {
    pub(super) text: &'a str,
}

#[derive(Serialize)]
pub(super) struct Stop {
    pub(super) letters: usize,
}
