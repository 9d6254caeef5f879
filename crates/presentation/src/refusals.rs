//! The problems that routes can return, for the OpenAPI document.

use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, Schema};

use crate::error::Code;

/// The problems of every route, because the guard runs before all of them.
pub(crate) const EVERYWHERE: [Code; 7] = [
    Code::BadRequest,
    Code::Unauthenticated,
    Code::OriginNotAllowed,
    Code::HostNotAllowed,
    Code::ContentEncoding,
    Code::HeadersTooLarge,
    Code::RateLimited,
];

/// The problems of routes that use the store.
pub(crate) const STORE: [Code; 6] = [
    Code::StoreFailed,
    Code::StoreBusy,
    Code::StorageFull,
    Code::OutcomeUnknown,
    Code::ShuttingDown,
    Code::CapacityExhausted,
];

/// The problems of routes with a body.
pub(crate) const BODY: [Code; 5] = [
    Code::MalformedJson,
    Code::PayloadTooLarge,
    Code::UnsupportedMediaType,
    Code::ValidationFailed,
    Code::RequestTimeout,
];

/// Adds problems to the responses of each operation: those of its kind of route, and its own. `own` returns the latter
/// for a method and path.
pub(crate) fn add_problems(document: &mut utoipa::openapi::OpenApi, own: impl Fn(&str, &str) -> Vec<Code>) {
    for (method, path, operation) in operations(document) {
        unbind_numbers(operation);
        let mut codes = problems(path, method);
        codes.extend(own(method, path));
        add(operation, &codes);
    }
}

/// All operations of a document, with their methods and paths.
pub(crate) fn operations(
    document: &mut utoipa::openapi::OpenApi,
) -> impl Iterator<Item = (&'static str, &str, &mut Operation)> {
    document.paths.paths.iter_mut().flat_map(|(path, item)| {
        let operations = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        let given = |(method, operation)| Option::as_mut(operation).map(|it| (method, path.as_str(), it));
        operations.into_iter().filter_map(given)
    })
}

fn problems(path: &str, method: &str) -> Vec<Code> {
    let mut codes = EVERYWHERE.to_vec();
    if method == "patch" || method == "post" && !path.ends_with("/cancel") && !path.ends_with("/stop") {
        codes.extend(BODY);
    }
    if path.contains("{id}") || path.contains("{code}") {
        codes.push(Code::NotFound);
    }
    if path.starts_with("/api/") || path == "/readyz" {
        codes.extend(STORE);
    }
    codes
}

/// Removes the integer format of `limit`, `last`, `after`, `before` and `turn`, because the server accepts any whole
/// number. A larger `limit` than the server's means the server's, a `last` beyond the number of events means all of
/// them, and `after`, `before` and `turn` may name a turn that does not exist.
pub(crate) fn unbind_numbers(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && matches!(parameter.name.as_str(), "limit" | "last" | "after" | "before" | "turn")
            && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
        {
            schema.format = None;
        }
    }
}

pub(crate) fn add(operation: &mut Operation, codes: &[Code]) {
    for code in codes {
        let status = code.status().as_str().to_owned();
        let words = codes.iter().filter(|other| other.status() == code.status()).map(|code| code.as_str());
        let description = words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new()
            .description(description)
            .content("application/problem+json", content)
            .build();
        operation.responses.responses.insert(status, response.into());
    }
}

/// Adds an error in the format of a vocabulary whose clients expect 400 instead of 422. It stands next to the problem
/// document with the same status, which no path of the vocabulary returns.
pub(crate) fn add_foreign(operation: &mut Operation, code: Code, schema: &str) {
    let status = match code.status().as_u16() {
        422 => "400".to_owned(),
        status => status.to_string(),
    };
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    let mut response = ResponseBuilder::new().description("an error").build();
    if let Some(RefOr::T(known)) = operation.responses.responses.get(&status) {
        response = known.clone();
    }
    response.content.insert("application/json".to_owned(), content.into());
    operation.responses.responses.insert(status, response.into());
}
