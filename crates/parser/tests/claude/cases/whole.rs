//! Complete messages, tool results, and what the agent writes in the user's name.

use super::{Rendering, activity, assistant, check, event, notice, parse, result, start, stop, text, whole};

#[test]
fn without_deltas_each_line_is_a_message() {
    let both = r#"{"type":"thinking","thinking":"Hm","signature":"x"},{"type":"text","text":"Hi"}"#;
    let call = r#"{"type":"tool_use","id":"c1","name":"Bash","input":{"a":1}}"#;
    check(
        &[assistant("m", both, ""), assistant("m", call, "")],
        &[
            r#"0 message complete + thinks "Hm" + text "Hi""#,
            r#"1 message complete + use c1 Bash {"a":1}"#,
            r#"call c1 Bash {"a":1}"#,
        ],
    );
    check(&[assistant("m", "", ""), whole("m", "")], &[]);
}

#[test]
fn a_malformed_tool_call_is_kept_as_given() {
    let call =
        r#"{"type":"tool_use","id":"c1","name":"Bash","input":{"__unparsedToolInput":{"raw":"{","len":1}}}"#;
    let input = r#"{"__unparsedToolInput":{"raw":"{","len":1}}"#;
    check(
        &[assistant("m", call, "")],
        &[&format!("0 message complete + use c1 Bash {input}"), &format!("call c1 Bash {input}")],
    );
}

#[test]
fn a_sub_agent_speaks_in_its_call() {
    let of = r#","parent_tool_use_id":"c0""#;
    let call = r#"{"type":"tool_use","id":"c1","name":"Read","input":{}}"#;
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]},"parent_tool_use_id":"c0"}"#;
    check(
        &[start("m"), text(0, "Wait"), assistant("s", call, of), result.to_owned(), stop()],
        &[
            r#"0.0 text "Wait""#,
            "1 message complete + use c1 Read {} in c0",
            "call c1 Read {} in c0",
            r#"result c1 "x" in c0"#,
            "0 end complete",
        ],
    );
}

#[test]
fn the_old_format_is_read() {
    check(
        &[
            r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}]}"#,
            r#"{"type":"message","content":"plain"}"#,
            r#"{"type":"message","message":{"role":"assistant","content":"nested"}}"#,
            r#"{"type":"message","role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[]}]}"#,
            r#"{"type":"result","result":"Hello"}"#,
        ],
        &[
            r#"0 message complete + text "Hello""#,
            r#"1 message complete + text "plain""#,
            r#"2 message complete + text "nested""#,
            "result c []",
            r#"close "Hello""#,
        ],
    );
}

#[test]
fn an_edit_has_its_patch_if_the_line_has_one_result_that_did_not_fail() {
    let hunk = r#"{"oldStart":7,"oldLines":1,"newStart":7,"newLines":1,"lines":["-a","+b"]}"#;
    let change = format!(r#"{{"filePath":"/p/a","structuredPatch":[{hunk}]}}"#);
    let line = |blocks: &[&str], name: &str| {
        let blocks = blocks.join(",");
        format!(r#"{{"type":"user","message":{{"role":"user","content":[{blocks}]}},"{name}":{change}}}"#)
    };
    let one = r#"{"tool_use_id":"a","type":"tool_result","content":"ok"}"#;
    let failed = r#"{"tool_use_id":"b","type":"tool_result","content":"no","is_error":true}"#;
    let result = r#"result a "ok""#;
    let with_patch = format!(r#"{result} patch "--- /p/a\n+++ /p/a\n@@ -7,1 +7,1 @@\n-a\n+b\n""#);
    check(
        &[
            line(&[one], "tool_use_result"),
            line(&[one], "toolUseResult"),
            line(&[one, failed], "tool_use_result"),
            line(&[failed], "tool_use_result"),
        ],
        &[&with_patch, &with_patch, result, r#"result b failed "no""#, r#"result b failed "no""#],
    );
}

#[test]
fn tool_results_are_carried_as_given() {
    let line = |block: &str| format!(r#"{{"type":"user","message":{{"role":"user","content":[{block}]}}}}"#);
    let one = r#"{"tool_use_id":"a","type":"tool_result","content":"\ud83d x","is_error":true}"#;
    let two = r#"{"tool_use_id":"b","type":"tool_result","content":[{"type":"text","text":"y"}]}"#;
    check(
        &[line(&format!("{one},{two}")), line(r#"{"type":"tool_result"}"#)],
        &[r#"result a failed "\ud83d x""#, r#"result b [{"type":"text","text":"y"}]"#, r#"result  """#],
    );
}

#[test]
fn what_the_agent_writes_in_the_users_name_is_a_notice() {
    let line = |text: &str, more: &str| {
        format!(r#"{{"type":"user","message":{{"content":[{{"type":"text","text":"{text}"}}]}}{more}}}"#)
    };
    check(
        &[
            line("Go on", r#","isSynthetic":true"#),
            line("[Request interrupted by user for tool use]", ""),
            line("Look", r#","parent_tool_use_id":"c""#),
            line("Hello", ""),
            line("Hello", r#","isReplay":true"#),
        ],
        &["notice synthetic_prompt", "notice interrupt_note", "notice subagent_prompt", "notice user_echo"],
    );
    let given = notice(r#"{"type":"user","message":{"role":"user","content":"Hi"}}"#);
    assert_eq!(given.data.as_str(), r#"{"role":"user","content":"Hi"}"#);
}

#[test]
fn a_null_character_stays() {
    check(&[whole("m", r"a\u0000b")], &[r#"0 message complete + text "a\0b""#]);
    check(
        &[event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\u0000"}}"#)],
        &[r#"0.0 text "\0""#],
    );
}

#[test]
fn a_whole_text_of_a_version_that_does_not_mark_what_it_cuts_ends_with_the_next_line() {
    let init =
        |version: &str| format!(r#"{{"type":"system","subtype":"init","claude_code_version":"{version}"}}"#);
    let note =
        r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
    let answered = r#"{"type":"control_response","response":{"subtype":"success"}}"#;
    let tokens = r#"{"type":"system","subtype":"thinking_tokens"}"#;
    let call = r#"{"type":"tool_use","id":"c1","name":"Bash","input":{}}"#;
    let ended = [
        (note, "0 end cancelled"),
        (&assistant("m", call, ""), "0 end complete"),
        (&result(""), "0 end complete"),
    ];
    for (next, end) in ended {
        for version in ["2.1.197", "2.1.329", "2.1", "2.0.56"] {
            let lines = [&init(version), &whole("m", "Hel"), answered, tokens, next].map(str::to_owned);
            let told = Rendering { text_max: 1000 }.each(&parse(lines.iter().map(String::as_bytes)));
            assert_eq!(told[1..3], [r#"0.0 text "Hel""#, end], "{version}: {next}");
        }
        for version in ["1.0.30", "2.0.55", "2.1.330", "3.0.0", "", "odd"] {
            let lines = [&init(version), &whole("m", "Hel"), next].map(str::to_owned);
            let told = Rendering { text_max: 1000 }.each(&parse(lines.iter().map(String::as_bytes)));
            assert_eq!(told[1], r#"0 message complete + text "Hel""#, "{version}: {next}");
        }
    }
    // These lines come at any time, also before the note.
    let of = r#","parent_tool_use_id":"c0""#;
    let in_call = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c9","content":"x"}]},"parent_tool_use_id":"c0"}"#;
    for between in [
        in_call,
        &assistant("s", call, of),
        r#"{"type":"system","subtype":"task_notification","task_id":"b","status":"completed"}"#,
        r#"{"type":"system","subtype":"hook_response"}"#,
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#,
    ] {
        let lines = [&init("2.1.197"), &whole("m", "Hel"), between, note].map(str::to_owned);
        let told = Rendering { text_max: 1000 }.each(&parse(lines.iter().map(String::as_bytes)));
        assert!(told.contains(&"0 end cancelled".to_owned()), "{between}: {told:?}");
    }
    // These lines already mean that the response broke off.
    for broken in [
        r#"{"type":"system","subtype":"api_retry","attempt":1}"#,
        r#"{"type":"error","error":{"message":"m"}}"#,
        r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error: m"}]},"isApiErrorMessage":true,"error":"unknown"}"#,
    ] {
        let lines = [&init("2.1.197"), &whole("m", "Hel"), broken].map(str::to_owned);
        let told = Rendering { text_max: 1000 }.each(&parse(lines.iter().map(String::as_bytes)));
        assert_eq!(told[2], "0 end failed", "{broken}");
    }
    // If the process is killed here, the end of the turn ends the message.
    let lines = [init("2.1.197"), whole("m", "Hel")];
    assert!(activity(&lines).message_whole);
    let known = assistant("m", r#"{"type":"text","text":"Hel"}],"stop_reason":"end_turn","x":["#, "");
    check(&[init("2.1.197"), known], &["notice init", r#"0 message complete + text "Hel""#]);
}
