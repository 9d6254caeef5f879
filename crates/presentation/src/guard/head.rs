//! The size limits of a request's head.

use actix_web::dev::ServiceRequest;

use crate::config::PresentationConfig;
use crate::error::{Code, Problem};

/// Checks the size of a request's head. actix's own limits are fixed and higher than the defaults: 128 KiB and 96
/// headers.
pub(crate) fn check_size(config: &PresentationConfig, request: &ServiceRequest) -> Result<(), Problem> {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let bytes = target + lines.sum::<usize>();
    if request.headers().len() <= config.headers && bytes <= config.header_bytes {
        return Ok(());
    }
    let (headers, bytes) = (config.headers, config.header_bytes);
    Err(Problem::new(
        Code::HeadersTooLarge,
        format!(
            "the request may have at most {headers} header fields, and its target and header fields together at most \
             {bytes} bytes"
        ),
    ))
}
