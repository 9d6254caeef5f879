//! What many handlers receive: a request about one agent, chat or run.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{Error, FromRequest, HttpRequest, web};

use crate::api::Api;

/// A request whose path has one parameter: the id. A handler that reads the body also takes the payload.
pub(crate) struct ById {
    pub(crate) api: web::Data<Api>,
    pub(crate) id: String,
    pub(crate) request: HttpRequest,
}

impl FromRequest for ById {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let api = web::Data::from_request(request, payload).into_inner();
        let id = web::Path::<String>::from_request(request, payload).into_inner();
        ready(api.and_then(|api| Ok(Self { api, id: id?.into_inner(), request: request.clone() })))
    }
}
