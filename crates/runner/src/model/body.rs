//! The request in the format of each API.

use serde_json::{Map, Value, json};

use super::ModelApi;
use super::order::{Message, ModelOrder, Role};

/// Anthropic's API requires a maximum. This one is enough for nearly all answers, and no model rejects it.
const MAX_TOKENS: u32 = 8192;

/// The URL of the request.
pub(super) fn url(api: ModelApi, base_url: &str) -> String {
    let base = base_url.trim_end_matches('/');
    let path = match api {
        // Users write the base URL with and without `/v1`.
        ModelApi::Anthropic if base.ends_with("/v1") => "/messages",
        ModelApi::Anthropic => "/v1/messages",
        ModelApi::OpenAiChat => "/chat/completions",
        ModelApi::OpenAiResponses => "/responses",
    };
    format!("{base}{path}")
}

/// The body of the request. Configured parameters override its fields, except the model, the messages and `stream`.
pub(super) fn body(api: ModelApi, order: &ModelOrder) -> Value {
    let mut body = match api {
        ModelApi::Anthropic => anthropic(order),
        ModelApi::OpenAiChat => openai_chat(order),
        ModelApi::OpenAiResponses => openai_responses(order),
    };
    let asked = ["model", "messages", "input", "stream"];
    let parameters = order.parameters.iter().filter(|(name, _)| !asked.contains(&name.as_str()));
    body.extend(parameters.map(|(name, value)| (name.clone(), value.clone())));
    body.insert("model".to_owned(), order.model.as_str().into());
    body.insert("stream".to_owned(), true.into());
    Value::Object(body)
}

fn anthropic(order: &ModelOrder) -> Map<String, Value> {
    let mut body = fields([
        ("messages", json!(order.conversation())),
        ("max_tokens", order.max_tokens.unwrap_or(MAX_TOKENS).into()),
    ]);
    body.extend(order.system.iter().map(|system| ("system".to_owned(), system.as_str().into())));
    body
}

fn openai_chat(order: &ModelOrder) -> Map<String, Value> {
    let system = order.system.iter().map(|system| Message { role: Role::System, content: system.clone() });
    let messages: Vec<Message> = system.chain(order.conversation()).collect();
    // Without this option, the API does not report the usage of tokens.
    let mut body =
        fields([("messages", json!(messages)), ("stream_options", json!({ "include_usage": true }))]);
    body.extend(order.max_tokens.iter().map(|most| ("max_tokens".to_owned(), (*most).into())));
    body
}

fn openai_responses(order: &ModelOrder) -> Map<String, Value> {
    // Each request contains the history, so the API need not store anything.
    let mut body = fields([("input", json!(order.conversation())), ("store", false.into())]);
    body.extend(order.system.iter().map(|system| ("instructions".to_owned(), system.as_str().into())));
    body.extend(order.max_tokens.iter().map(|most| ("max_output_tokens".to_owned(), (*most).into())));
    body
}

fn fields<const COUNT: usize>(fields: [(&str, Value); COUNT]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::order::Past;
    use super::*;

    fn order(history: &[(&str, &str)]) -> ModelOrder {
        let history = history
            .iter()
            .map(|(user, assistant)| Past { user: (*user).to_owned(), assistant: (*assistant).to_owned() });
        ModelOrder {
            base_url: "http://127.0.0.1".to_owned(),
            api_key_env: None,
            model: "m".to_owned(),
            system: Some("Be short".to_owned()),
            history: history.collect(),
            prompt: "now".to_owned(),
            max_tokens: None,
            parameters: Map::new(),
            limits: super::super::ModelLimits::default(),
        }
    }

    #[test]
    fn each_api_is_asked_in_its_own_words() {
        let order = order(&[("a", "b")]);
        let said = json!([
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": "b" },
            { "role": "user", "content": "now" },
        ]);
        let asked = body(ModelApi::Anthropic, &order);
        let expected = json!({
            "model": "m", "stream": true, "max_tokens": 8192, "system": "Be short", "messages": said,
        });
        assert_eq!(asked, expected);
        let asked = body(ModelApi::OpenAiResponses, &order);
        let expected = json!({
            "model": "m", "stream": true, "store": false, "instructions": "Be short", "input": said,
        });
        assert_eq!(asked, expected);
        let asked = body(ModelApi::OpenAiChat, &order);
        assert_eq!(asked["messages"][0], json!({ "role": "system", "content": "Be short" }));
        assert_eq!(asked["messages"].as_array().unwrap()[1..], said.as_array().unwrap()[..]);
        assert_eq!(asked["stream_options"], json!({ "include_usage": true }));
    }

    #[test]
    fn a_turn_without_an_answer_is_joined_with_the_next() {
        let order = order(&[("a", ""), ("b", "c"), ("d", "")]);
        let said: Vec<_> = order.conversation().into_iter().map(|said| (said.role, said.content)).collect();
        let expected = [(Role::User, "a\n\nb"), (Role::Assistant, "c"), (Role::User, "d\n\nnow")];
        assert_eq!(said, expected.map(|(role, text)| (role, text.to_owned())));
    }

    #[test]
    fn parameters_change_how_it_is_asked_and_not_what() {
        let mut order = order(&[]);
        let parameters = json!({
            "temperature": 0.5, "max_tokens": 7, "stream": false, "model": "other", "messages": [], "input": [],
        });
        parameters.as_object().unwrap().clone_into(&mut order.parameters);
        for api in ModelApi::ALL {
            let asked = body(api, &order);
            assert_eq!((&asked["temperature"], &asked["max_tokens"]), (&json!(0.5), &json!(7)));
            assert_eq!((&asked["stream"], &asked["model"]), (&json!(true), &json!("m")));
            assert!(asked["messages"] != json!([]) && asked["input"] != json!([]), "{asked}");
        }
    }

    #[test]
    fn addresses_may_end_as_people_write_them() {
        let cases = [
            (ModelApi::Anthropic, "https://x", "https://x/v1/messages"),
            (ModelApi::Anthropic, "https://x/v1/", "https://x/v1/messages"),
            (ModelApi::OpenAiChat, "http://x:1/v1/", "http://x:1/v1/chat/completions"),
            (ModelApi::OpenAiResponses, "http://x:1/v1", "http://x:1/v1/responses"),
        ];
        for (api, base, expected) in cases {
            assert_eq!(url(api, base), expected);
        }
    }
}
