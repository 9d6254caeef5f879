//! The content of a message of the user: a text, or a list of parts.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_application::Prompt;

use crate::error::Problem;
use crate::json::readable::stumble;
use crate::vocabularies::prompts::prompt_images::ImageLimits;

#[derive(Deserialize)]
struct ContentPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    source: Option<PartSource>,
}

#[derive(Deserialize)]
struct PartSource {
    #[serde(rename = "type")]
    kind: String,
    value: Option<String>,
}

/// Reads what is to be sent to the agent.
pub(super) fn prompt(content: &RawValue, place: &str, limits: ImageLimits) -> Result<Prompt, Problem> {
    let unread = |_| {
        let why = stumble(content.get()).map(|stumble| stumble.to_string());
        Problem::field(place, why.unwrap_or_else(|| "must be a string or a list of parts".to_owned()))
    };
    let prompt = if content.get().starts_with('"') {
        Prompt { text: serde_json::from_str(content.get()).map_err(unread)?, images: Vec::new() }
    } else {
        let parts: Vec<ContentPart> = serde_json::from_str(content.get()).map_err(unread)?;
        read(parts, place, limits)?
    };
    if prompt.text.trim().is_empty() {
        return Err(Problem::field(place, "must contain text"));
    }
    Ok(prompt)
}

fn read(parts: Vec<ContentPart>, place: &str, limits: ImageLimits) -> Result<Prompt, Problem> {
    let wrong = |detail| Problem::field(place, detail);
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for (index, ContentPart { kind, text, source }) in parts.into_iter().enumerate() {
        let place = format!("{place}/{index}");
        match (kind.as_str(), text, source) {
            ("text", Some(text), _) => texts.push(text),
            ("image", _, Some(PartSource { kind, value: Some(data) })) if kind == "data" => {
                limits.check_count(images.len() + 1).map_err(wrong)?;
                let image = limits.image(&data);
                let place = format!("{place}/source/value");
                images.push(image.map_err(|detail| Problem::field(&place, detail))?);
            }
            ("image", ..) => {
                let detail = "must be of the type data, with base64, because the server does not fetch URLs";
                return Err(Problem::field(&format!("{place}/source"), detail));
            }
            _ => return Err(Problem::field(&place, "must be of the type text or image")),
        }
    }
    limits.check_sum(&images).map_err(wrong)?;
    Ok(Prompt { text: texts.join("\n\n"), images })
}
