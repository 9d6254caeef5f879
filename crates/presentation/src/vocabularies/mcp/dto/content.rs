//! Content: what tools return, what resources contain, and what prompts say.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;

/// One block of content.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ContentDto {
    Text { text: String },
    Image(Media),
    Audio(Media),
    Resource { resource: ResourceContents },
}

/// A file inside a block.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Media {
    data: String,
    mime_type: &'static str,
}

impl Media {
    pub(crate) fn new(mime_type: &'static str, file: &[u8]) -> Self {
        Self { data: STANDARD.encode(file), mime_type }
    }
}

/// The contents of a resource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceContents {
    uri: String,
    mime_type: &'static str,
    #[serde(flatten)]
    held: Held,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Held {
    Text(String),
    Blob(String),
}

impl ResourceContents {
    pub(crate) fn text(uri: String, mime_type: &'static str, text: String) -> Self {
        Self { uri, mime_type, held: Held::Text(text) }
    }

    pub(crate) fn file(uri: String, mime_type: &'static str, file: &[u8]) -> Self {
        Self { uri, mime_type, held: Held::Blob(STANDARD.encode(file)) }
    }
}

/// The result of a tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallToolResult {
    content: Vec<ContentDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Box<RawValue>>,
    is_error: bool,
}

impl CallToolResult {
    /// A structured result. Its text is the same JSON, for clients that show only text to their model.
    pub(crate) fn of<T: Serialize>(result: &T) -> Self {
        // Not expected to fail: all results can be serialized.
        let json = serde_json::to_string(result).unwrap_or_else(|_| "{}".to_owned());
        let structured_content = RawValue::from_string(json.clone()).ok();
        Self { structured_content, ..Self::of_text(json) }
    }

    pub(crate) fn of_text(text: String) -> Self {
        Self::of_content(vec![ContentDto::Text { text }])
    }

    pub(crate) fn of_content(content: Vec<ContentDto>) -> Self {
        Self { content, structured_content: None, is_error: false }
    }

    /// An error that the client's model can read and mend.
    pub(crate) fn failed(text: String) -> Self {
        Self { is_error: true, ..Self::of_text(text) }
    }
}
