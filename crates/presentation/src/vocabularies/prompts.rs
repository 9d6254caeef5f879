//! How vocabularies receive a prompt: parts that several of them use.
//!
//! | module | what it is for |
//! | --- | --- |
//! | `large_body` | bodies that may be larger than `limits.request_bytes` |
//! | `conversation_limits` | the limits of a request that may repeat a whole conversation |
//! | `prompt_images` | the limits of the images of a prompt |

pub(crate) mod conversation_limits;
pub(crate) mod large_body;
pub(crate) mod prompt_images;
