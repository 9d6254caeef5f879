use actix_web::web;

use super::handlers;
use crate::resource::resource;

pub(in crate::vocabularies) fn routes(config: &mut web::ServiceConfig) {
    config.service(resource("/telegraph/{id}", "GET", [web::get().to(handlers::telegrams)]));
}
