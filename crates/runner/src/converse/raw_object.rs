//! Objects of a program's messages, of which only a few fields are used.

/// Declares objects whose fields are all optional and kept as raw JSON. Each field is parsed only when it is used, so
/// that a malformed field affects only itself.
macro_rules! raw_objects {
    ($(
        $(#[$object:meta])*
        $seen:vis struct $name:ident<$life:lifetime> {
            $($(#[$attribute:meta])* $visible:vis $field:ident),+ $(,)?
        }
    )+) => {$(
        #[derive(Debug, Default, serde::Deserialize)]
        $(#[$object])*
        $seen struct $name<$life> {
            $(
                #[serde(borrow)]
                $(#[$attribute])*
                $visible $field: Option<&$life serde_json::value::RawValue>,
            )+
        }
    )+};
}

pub(super) use raw_objects;
