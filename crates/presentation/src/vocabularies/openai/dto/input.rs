//! The input of a response: a text, or a list of items. Clients that do not use `previous_response_id` repeat the whole
//! conversation. The ids of its items say which conversation it is, so only what follows them is new.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::ImageFile;

use crate::json::readable::stumble;
use crate::prompt_images::ImageLimits;
use crate::vocabularies::openai::response_id::ResponseId;

/// What the user says, and the response that it follows, if its items name one.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) text: String,
    pub(super) images: Vec<ImageFile>,
    pub(super) previous: Option<ResponseId>,
}

/// What is wrong with an input: the place, and a sentence.
pub(super) type Wrong = (String, String);

#[derive(Deserialize)]
struct Item<'a> {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ContentPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    image_url: Option<String>,
}

fn wrong(place: &str, detail: impl Into<String>) -> Wrong {
    (place.to_owned(), detail.into())
}

/// Why a value of a type cannot be read.
fn unreadable(place: &str, value: &RawValue, expected: &str) -> Wrong {
    wrong(place, stumble(value.get()).map_or_else(|| expected.to_owned(), |stumble| stumble.to_string()))
}

impl Input {
    pub(super) fn read(input: &RawValue, limits: ImageLimits) -> Result<Self, Wrong> {
        let expected = "must be a string or a list of items";
        let mut read = Self::default();
        if input.get().starts_with('"') {
            read.text =
                serde_json::from_str(input.get()).map_err(|_| unreadable("input", input, expected))?;
        } else {
            let items: Vec<&RawValue> =
                serde_json::from_str(input.get()).map_err(|_| unreadable("input", input, expected))?;
            let mut texts = Vec::new();
            for (index, item) in items.into_iter().enumerate() {
                read.item(&format!("input/{index}"), item, &mut texts, limits)?;
            }
            read.text = texts.join("\n\n");
        }
        if read.text.trim().is_empty() {
            return Err(wrong("input", "must contain text that the agent does not have yet"));
        }
        limits.check_count(read.images.len()).map_err(|detail| wrong("input", detail))?;
        limits.check_sum(&read.images).map_err(|detail| wrong("input", detail))?;
        Ok(read)
    }

    fn item(
        &mut self,
        place: &str,
        raw: &RawValue,
        texts: &mut Vec<String>,
        limits: ImageLimits,
    ) -> Result<(), Wrong> {
        let item: Item = serde_json::from_str(raw.get())
            .map_err(|_| unreadable(place, raw, "must be an item with a type or a role"))?;
        if let Some(known) = item.id.as_deref().and_then(ResponseId::of_item) {
            // The agent has said this, so it knows everything before it.
            self.previous = Some(known);
            self.images.clear();
            texts.clear();
            return Ok(());
        }
        match (item.kind.as_deref(), item.role.as_deref()) {
            (None | Some("message"), Some("user")) => {}
            (None | Some("message"), Some("assistant")) => {
                return Err(wrong(
                    place,
                    "an answer must have the id that it had in its response; or send previous_response_id and only \
                     the new input",
                ));
            }
            (None | Some("message"), _) => {
                return Err(wrong(
                    &format!("{place}/role"),
                    "must be user: agents of this server have instructions of their own",
                ));
            }
            (Some(_), _) => {
                return Err(wrong(
                    &format!("{place}/type"),
                    "must be message, or an item of an earlier response with its id: agents of this server call \
                     their own tools",
                ));
            }
        }
        let place = format!("{place}/content");
        let Some(content) = item.content else { return Err(wrong(&place, "must be present")) };
        self.content(&place, content, texts, limits)
    }

    fn content(
        &mut self,
        place: &str,
        content: &RawValue,
        texts: &mut Vec<String>,
        limits: ImageLimits,
    ) -> Result<(), Wrong> {
        let expected = "must be a string or a list of parts of the types input_text and input_image";
        let unread = |_| unreadable(place, content, expected);
        if content.get().starts_with('"') {
            texts.push(serde_json::from_str(content.get()).map_err(unread)?);
            return Ok(());
        }
        let parts: Vec<ContentPart> = serde_json::from_str(content.get()).map_err(unread)?;
        for (index, ContentPart { kind, text, image_url }) in parts.into_iter().enumerate() {
            let place = format!("{place}/{index}");
            match (kind.as_str(), text, image_url) {
                ("input_text" | "text", Some(text), _) => texts.push(text),
                ("input_image", _, Some(url)) => {
                    limits.check_count(self.images.len() + 1).map_err(|detail| wrong("input", detail))?;
                    let place = format!("{place}/image_url");
                    let image = image(&url, limits).map_err(|detail| wrong(&place, detail))?;
                    self.images.push(image);
                }
                ("input_image", ..) => {
                    return Err(wrong(
                        &format!("{place}/image_url"),
                        "must be present: there are no uploaded files",
                    ));
                }
                _ => return Err(wrong(&place, "must be of the type input_text or input_image")),
            }
        }
        Ok(())
    }
}

/// Reads an image in a `data:` URL. The server fetches nothing.
fn image(url: &str, limits: ImageLimits) -> Result<ImageFile, String> {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((_, data)) = data else { return Err("must be a data: URL with base64".to_owned()) };
    limits.image(data)
}
