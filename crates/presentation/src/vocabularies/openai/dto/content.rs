//! The content of a message: a text, or a list of parts. The Responses API and Chat Completions have different names
//! for the same parts; both names are read everywhere.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_application::Prompt;
use tokenrail_domain::ImageFile;

use crate::json::readable::stumble;
use crate::vocabularies::prompts::prompt_images::ImageLimits;

/// What is wrong with a value: its place, and a sentence.
pub(super) type Wrong = (String, String);

pub(super) fn wrong(place: &str, detail: impl Into<String>) -> Wrong {
    (place.to_owned(), detail.into())
}

/// Why a value of a type cannot be read.
pub(super) fn unreadable(place: &str, value: &RawValue, expected: &str) -> Wrong {
    wrong(place, stumble(value.get()).map_or_else(|| expected.to_owned(), |stumble| stumble.to_string()))
}

/// The texts and images of one or more messages.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) texts: Vec<String>,
    images: Vec<ImageFile>,
    pub(super) limits: ImageLimits,
}

#[derive(Deserialize)]
struct ContentPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    image_url: Option<ImageUrl>,
}

/// The address of an image, bare in the Responses API, and in an object in Chat Completions.
#[derive(Deserialize)]
#[serde(untagged)]
enum ImageUrl {
    Bare(String),
    Object { url: String },
}

impl ImageUrl {
    fn url(&self) -> &str {
        match self {
            Self::Bare(url) | Self::Object { url } => url,
        }
    }
}

impl Content {
    pub(super) fn new(limits: ImageLimits) -> Self {
        Self { texts: Vec::new(), images: Vec::new(), limits }
    }

    /// Adds the content of a message.
    pub(super) fn add(&mut self, place: &str, content: &RawValue) -> Result<(), Wrong> {
        let expected = "must be a string or a list of parts with text and images";
        let unread = |_| unreadable(place, content, expected);
        if content.get().starts_with('"') {
            self.texts.push(serde_json::from_str(content.get()).map_err(unread)?);
            return Ok(());
        }
        let parts: Vec<ContentPart> = serde_json::from_str(content.get()).map_err(unread)?;
        for (index, part) in parts.into_iter().enumerate() {
            self.part(&format!("{place}/{index}"), part)?;
        }
        Ok(())
    }

    fn part(&mut self, place: &str, part: ContentPart) -> Result<(), Wrong> {
        let ContentPart { kind, text, image_url } = part;
        match (kind.as_str(), text, image_url) {
            ("input_text" | "output_text" | "text", Some(text), _) => self.texts.push(text),
            ("input_image" | "image_url", _, Some(url)) => {
                self.limits.check_count(self.images.len() + 1).map_err(|detail| wrong(place, detail))?;
                let place = format!("{place}/image_url");
                self.images.push(image(url.url(), self.limits).map_err(|detail| wrong(&place, detail))?);
            }
            ("input_image" | "image_url", ..) => {
                let place = format!("{place}/image_url");
                return Err(wrong(&place, "must be present: file_id is not supported"));
            }
            _ => return Err(wrong(place, "must be text or an image")),
        }
        Ok(())
    }

    /// Forgets what the agent knows already.
    pub(super) fn clear(&mut self) {
        self.texts.clear();
        self.images.clear();
    }

    /// The prompt that says it. Checks that there is something to say, and that the images keep their limits.
    pub(super) fn into_prompt(self, place: &str) -> Result<Prompt, Wrong> {
        if self.texts.iter().all(|text| text.trim().is_empty()) {
            return Err(wrong(place, "must contain text that was not sent to the agent before"));
        }
        self.limits.check_count(self.images.len()).map_err(|detail| wrong(place, detail))?;
        self.limits.check_sum(&self.images).map_err(|detail| wrong(place, detail))?;
        Ok(Prompt { text: self.text(), images: self.images })
    }

    /// The text of all messages.
    pub(super) fn text(&self) -> String {
        self.texts.join("\n\n")
    }
}

/// Reads an image in a `data:` URL. The server fetches nothing.
fn image(url: &str, limits: ImageLimits) -> Result<ImageFile, String> {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((_, data)) = data else { return Err("must be a data: URL with base64".to_owned()) };
    limits.image(data)
}

/// Reads the content of a message of the role `system` or `developer`, which has no images.
pub(super) fn instructions(
    place: &str,
    content: &RawValue,
    limits: ImageLimits,
) -> Result<Vec<String>, Wrong> {
    let mut read = Content::new(limits);
    read.add(place, content)?;
    if read.images.is_empty() { Ok(read.texts) } else { Err(wrong(place, "must not contain images")) }
}
