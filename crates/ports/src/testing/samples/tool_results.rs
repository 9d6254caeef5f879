//! Sample results of tools.

use tokenrail_domain::{EventBody, ToolResult, UnifiedPatch};

use super::json;

/// A patch of two files, with every kind of line.
const PATCH: &str = "--- /project/größe.sql\n+++ /project/größe.sql\n@@ -3,2 +3,2 @@\n \n--- old\n+++ new\n\
    \\ No newline at end of file\n--- /dev/null\n+++ /project/b\n@@ -0,0 +1,1 @@\n+b\r\n";

/// A result that failed, and one of an edit.
pub(super) fn both() -> [EventBody; 2] {
    let failed = ToolResult {
        call: "call_1".into(),
        content: json(r#""caf\u00e9\n""#),
        is_error: true,
        parent_call: None,
        patch: None,
    };
    let edited = ToolResult {
        call: "call_2".into(),
        content: json(r#""The file was updated""#),
        is_error: false,
        parent_call: Some("call_0".into()),
        patch: UnifiedPatch::read(PATCH),
    };
    [failed, edited].map(|result| EventBody::ToolResult(Box::new(result)))
}
