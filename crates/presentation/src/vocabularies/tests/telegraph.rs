//! Telegrams: what an agent has said, message by message, in capitals.

mod dto;
pub(super) mod fold;
mod handlers;
mod openapi;
mod routes;

use crate::json::ItemList;

pub(in crate::vocabularies) use openapi::document;
pub(in crate::vocabularies) use routes::routes;

pub(in crate::vocabularies) const RECORD: ItemList =
    ItemList { name: "telegrams", items: |_, _| Box::new(fold::TelegraphFold::default()) };
