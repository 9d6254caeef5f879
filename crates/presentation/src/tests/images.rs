//! Images of prompts, as clients send and read them.

use actix_web::test::TestRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokenrail_domain::{ImageFile, ImageType, TurnNumber};
use tokenrail_ports::testing::samples::image;

use super::harness::{Answer, HOST, Harness, TOKEN};

fn gif(mark: &str) -> ImageFile {
    image(ImageType::Gif, mark)
}

fn base64(file: &[u8]) -> Value {
    json!({ "data": STANDARD.encode(file) })
}

fn sent(image: &ImageFile) -> Value {
    base64(image.data())
}

async fn launch(harness: &Harness, images: &[Value]) -> Answer {
    let body = json!({ "type": "script", "prompt": "say a", "images": images });
    harness.post("/api/agents", &body.to_string()).await
}

async fn launched(harness: &Harness, images: &[Value]) -> String {
    let answer = launch(harness, images).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    harness.ended(&id).await;
    id
}

/// The pointers and details of a refusal.
fn faults(answer: &Answer) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let errors = answer.json()["errors"].as_array().cloned().unwrap_or_default();
    errors.iter().map(|error| (text(&error["pointer"]), text(&error["detail"]))).collect()
}

#[actix_web::test]
async fn images_come_back_with_the_message_and_the_turn() {
    let harness = Harness::new();
    let (one, two) = (gif("one"), image(ImageType::Webp, "two!"));
    let id = launched(
        &harness,
        &[sent(&one), json!({ "mediaType": "image/x", "data": STANDARD.encode(two.data()) })],
    )
    .await;
    let summaries =
        json!([{ "mediaType": "image/gif", "bytes": 9 }, { "mediaType": "image/webp", "bytes": 16 }]);
    let messages = harness.get(&format!("/api/agents/{id}/messages")).await.json();
    assert_eq!(messages[0]["metadata"]["images"], summaries);
    assert_eq!(messages[0]["content"], "say a");
    assert!(messages[1]["metadata"].get("images").is_none(), "only of user messages");
    let turns = harness.get(&format!("/api/agents/{id}/turns")).await.json();
    assert_eq!(turns[0]["images"], summaries);

    let more = json!({ "content": "say b", "images": [sent(&two)] });
    assert_eq!(harness.post(&format!("/api/agents/{id}/messages"), &more.to_string()).await.status, 202);
    harness.ended(&id).await;
    for (place, image) in [("1/images/0", &one), ("1/images/1", &two), ("2/images/0", &two)] {
        let answer = harness.get(&format!("/api/agents/{id}/turns/{place}")).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_bytes()), (200, &image.data()[..]), "{place}");
        assert_eq!(answer.header("content-type"), image.media_type().as_str());
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("content-disposition"), "inline");
        assert_eq!(answer.header("cache-control"), "private, no-cache", "not shown to the next user");
    }
    for place in ["1/images/2", "2/images/1", "3/images/0", "0/images/0", "1/images/x", "x/images/0"] {
        let answer = harness.get(&format!("/api/agents/{id}/turns/{place}")).await;
        assert_eq!(answer.problem(), "not_found", "{place}");
    }
}

#[actix_web::test]
async fn what_is_no_image_is_refused_whatever_the_client_calls_it() {
    let harness = Harness::new();
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    let svg = json!({ "mediaType": "image/png", "data": STANDARD.encode(svg) });
    let refused =
        launch(&harness, &[sent(&gif("good")), svg, json!({ "data": "%%%" }), json!({}), json!("x")]).await;
    assert_eq!(refused.problem(), "validation_failed");
    let types = "must be a file of one of these types: image/png, image/jpeg, image/gif, image/webp";
    let expected = [
        ("/images/1/data", types),
        ("/images/2/data", "must be base64, with padding"),
        ("/images/3/data", "must be present"),
        ("/images/4", "must be an object"),
    ];
    assert_eq!(faults(&refused), expected.map(|(place, detail)| (place.to_owned(), detail.to_owned())));
    for (images, place) in
        [(json!("x"), "/images"), (json!(null), "/images"), (json!([{"data": 1}]), "/images/0/data")]
    {
        let body = json!({ "type": "script", "prompt": "say a", "images": images });
        let refused = harness.post("/api/agents", &body.to_string()).await;
        assert_eq!((refused.problem().as_str(), &*faults(&refused)[0].0), ("validation_failed", place));
    }
    assert_eq!(harness.get("/api/agents").await.json(), json!([]), "nothing was launched");
}

#[actix_web::test]
async fn images_have_limits() {
    let harness = Harness::with(|config, _| {
        (config.prompt_images, config.image_bytes, config.request_bytes) = (2, 3000, 1000);
        config.prompt_image_bytes = 6000;
    });
    let large = gif(&"x".repeat(3000 - 6));
    let id = launched(&harness, &[sent(&large), sent(&large)]).await;
    assert!(harness.get(&format!("/api/agents/{id}/turns/1/images/1")).await.text.ends_with('x'));
    let three = vec![sent(&gif("a")); 3];
    let refused = launch(&harness, &three).await;
    assert_eq!(refused.problem(), "validation_failed");
    assert_eq!(faults(&refused)[0].1, "must contain at most 2 images (limits.prompt_images)");
    let refused = launch(&harness, &[sent(&gif(&"x".repeat(3000 - 5)))]).await;
    assert_eq!(
        faults(&refused),
        [("/images/0/data".to_owned(), "must be at most 3000 bytes (limits.image_bytes)".to_owned())]
    );
    let text = json!({ "type": "script", "prompt": format!("say {}", "a".repeat(1000)) }).to_string();
    assert_eq!(
        harness.post("/api/agents", &text).await.problem(),
        "payload_too_large",
        "the text has its own limit"
    );
    let huge = launch(&harness, &[sent(&gif(&"x".repeat(9000)))]).await;
    assert_eq!(huge.problem(), "payload_too_large");
}

#[actix_web::test]
async fn the_images_of_a_message_have_a_limit_together() {
    let harness = Harness::with(|config, _| {
        (config.image_bytes, config.prompt_image_bytes, config.request_bytes) = (3000, 5000, 1000);
    });
    let of = |bytes: usize| sent(&gif(&"x".repeat(bytes - 6)));
    launched(&harness, &[of(3000), of(2000)]).await;
    // One image more is accepted if the sum stays the same.
    launched(&harness, &[of(1667), of(1667), of(1666)]).await;
    let refused = launch(&harness, &[of(3000), of(2001)]).await;
    assert_eq!(refused.problem(), "validation_failed");
    let why = "must have at most 5000 bytes in total (limits.prompt_image_bytes)";
    assert_eq!(faults(&refused), [("/images".to_owned(), why.to_owned())]);
}

#[actix_web::test]
async fn only_some_types_of_agents_accept_images() {
    let harness = Harness::blind();
    let refused = launch(&harness, &[sent(&gif("a"))]).await;
    assert_eq!(refused.problem(), "images_not_accepted");
    let why = "agents of this type accept no images; these types do: seeing";
    assert_eq!(refused.json()["detail"], why);
    let id = launched(&harness, &[]).await;
    let body = json!({ "content": "say b", "images": [sent(&gif("a"))] }).to_string();
    let refused = harness.post(&format!("/api/agents/{id}/messages"), &body).await;
    assert_eq!(refused.problem(), "images_not_accepted");
    let types = harness.get("/api/agent-types").await.json();
    let can: Vec<_> =
        types.as_array().unwrap().iter().map(|it| (&it["type"], &it["can"]["images"])).collect();
    assert_eq!(can, [(&json!("script"), &json!(false)), (&json!("seeing"), &json!(true))]);
    assert_eq!(types[0].get("imageLimits"), None);
    assert_eq!(types[1]["imageLimits"], json!({ "images": 8, "bytes": 3_932_160, "totalBytes": 20_971_520 }));
}

#[actix_web::test]
async fn a_repeated_message_has_the_same_images() {
    let harness = Harness::new();
    let post = async |mark: &str| {
        let body = json!({ "type": "script", "prompt": "say a", "images": [sent(&gif(mark))] });
        let request = TestRequest::post().uri("/api/agents").insert_header(("host", HOST));
        let request = request.insert_header(("authorization", format!("Bearer {TOKEN}")));
        let request = request.insert_header(("content-type", "application/json"));
        harness.call_raw(request.insert_header(("idempotency-key", "k")).set_payload(body.to_string())).await
    };
    let first = post("one").await;
    let again = post("one").await;
    assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (201, "true"));
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(post("two").await.problem(), "idempotency_mismatch");
}

#[actix_web::test]
async fn images_survive_an_export_and_an_import_and_are_shown_by_a_replay() {
    let harness = Harness::new();
    let one = gif("one");
    let id = launched(&harness, &[sent(&one), sent(&gif("two"))]).await;
    let export = harness.get(&format!("/api/agents/{id}/export")).await;
    let imported = harness.post("/api/agents/import", &export.text).await;
    assert_eq!(imported.status, 201, "{imported:?}");
    let copy = imported.json()["id"].as_str().unwrap().to_owned();
    let replay = harness.post(&format!("/api/agents/{id}/replay"), r#"{"speed":0}"#).await.json();
    let replay = replay["id"].as_str().unwrap();
    harness.ended(replay).await;
    for id in [&copy, replay] {
        let image = harness.get(&format!("/api/agents/{id}/turns/1/images/0")).await;
        assert_eq!((image.status.as_u16(), image.text.as_bytes()), (200, &one.data()[..]));
        let messages = harness.get(&format!("/api/agents/{id}/messages")).await.json();
        assert_eq!(messages[0]["metadata"]["images"][1]["bytes"], 9);
    }
    let again = harness.get(&format!("/api/agents/{copy}/export")).await;
    assert_eq!(again.text, export.text.replace(&id, &copy));
    let broken = export.text.replace(&STANDARD.encode(one.data()), &STANDARD.encode("<svg/>"));
    assert_eq!(harness.post("/api/agents/import", &broken).await.problem(), "validation_failed");
}

#[actix_web::test]
async fn an_agent_that_has_lost_an_image_is_exported_and_imported_without_it() {
    let harness = Harness::new();
    let (one, two) = (gif("one"), gif("second"));
    let id = launched(&harness, &[sent(&one), sent(&two)]).await;
    harness.store.lose_image(id.parse().unwrap(), TurnNumber(1), 0);
    let export = harness.get(&format!("/api/agents/{id}/export")).await;
    assert_eq!(export.status, 200, "{export:?}");
    assert!(
        export.text.contains(r#"[{"mediaType":"image/gif","lostBytes":9},{"mediaType":"image/gif","data":"#)
    );
    let imported = harness.post("/api/agents/import", &export.text).await;
    assert_eq!(imported.status, 201, "{imported:?}");
    let copy = imported.json()["id"].as_str().unwrap().to_owned();
    let image = harness.get(&format!("/api/agents/{copy}/turns/1/images/1")).await;
    assert_eq!(image.text.as_bytes(), &two.data()[..], "at its place");
    assert_eq!(harness.get(&format!("/api/agents/{copy}/turns/1/images/0")).await.problem(), "not_found");
    let again = harness.get(&format!("/api/agents/{copy}/export")).await;
    assert_eq!(again.text, export.text.replace(&id, &copy));

    let with = |image: &str| export.text.replace(r#"{"mediaType":"image/gif","lostBytes":9}"#, image);
    for wrong in [
        r#"{"mediaType":"image/gif"}"#,
        r#"{"mediaType":"image/gif","lostBytes":8}"#,
        r#"{"mediaType":"image/svg+xml","lostBytes":9}"#,
        r#"{"mediaType":"image/gif","lostBytes":9,"data":"R0lGODlh"}"#,
    ] {
        assert_eq!(
            harness.post("/api/agents/import", &with(wrong)).await.problem(),
            "validation_failed",
            "{wrong}"
        );
    }
}

#[actix_web::test]
async fn the_images_of_a_purged_agent_are_gone() {
    let harness = Harness::new();
    let id = launched(&harness, &[sent(&gif("one"))]).await;
    let purge = TestRequest::delete().uri(&format!("/api/agents/{id}?purge=true"));
    assert_eq!(harness.call(purge).await.status, 204);
    let image = harness.get(&format!("/api/agents/{id}/turns/1/images/0")).await;
    assert_eq!(image.problem(), "not_found");
}

#[actix_web::test]
async fn a_client_that_has_an_image_does_not_get_it_again() {
    let harness = Harness::new();
    let id = launched(&harness, &[sent(&gif("one")), sent(&gif("two"))]).await;
    let image = |position: u8| TestRequest::get().uri(&format!("/api/agents/{id}/turns/1/images/{position}"));
    let tag = harness.call(image(0)).await.header("etag").to_owned();
    for known in [&*tag, &format!("W/{tag}"), &format!("\"x\", {tag}"), "*"] {
        let answer = harness.call(image(0).insert_header(("if-none-match", known))).await;
        assert_eq!((answer.status.as_u16(), &*answer.text), (304, ""), "{known}");
        assert_eq!((answer.header("etag"), answer.header("cache-control")), (&*tag, "private, no-cache"));
    }
    let other = harness.call(image(1).insert_header(("if-none-match", &*tag))).await;
    assert_eq!(other.status, 200);
}

#[actix_web::test]
async fn a_replay_is_exported_with_the_images_of_its_original() {
    let harness = Harness::new();
    let id = launched(&harness, &[sent(&gif("one"))]).await;
    let mut replay = id.clone();
    for _ in 0..2 {
        let made = harness.post(&format!("/api/agents/{replay}/replay"), r#"{"speed":0}"#).await.json();
        replay = made["id"].as_str().unwrap().to_owned();
        harness.ended(&replay).await;
    }
    let turns = harness.get(&format!("/api/agents/{replay}/turns")).await.json();
    assert_eq!(turns[0]["images"], json!([{ "mediaType": "image/gif", "bytes": 9 }]));
    let copy = async || {
        let export = harness.get(&format!("/api/agents/{replay}/export")).await;
        let imported = harness.post("/api/agents/import", &export.text).await;
        assert_eq!(imported.status, 201, "{imported:?}");
        let copy = imported.json()["id"].as_str().unwrap().to_owned();
        harness.get(&format!("/api/agents/{copy}/turns/1/images/0")).await
    };
    assert_eq!(copy().await.text.as_bytes(), &gif("one").data()[..]);
    harness.call(TestRequest::delete().uri(&format!("/api/agents/{id}?purge=true"))).await;
    assert_eq!(copy().await.problem(), "not_found", "the image is gone, and the export still works");
}

#[actix_web::test]
async fn an_imported_agent_has_the_images_that_its_turns_have() {
    let harness = Harness::with(|config, _| (config.prompt_images, config.image_bytes) = (2, 10));
    let id = launched(&harness, &[sent(&gif("one"))]).await;
    let export = harness.get(&format!("/api/agents/{id}/export")).await.text;
    let data = STANDARD.encode(gif("one").data());
    let archived = format!(r#"{{"mediaType":"image/gif","data":"{data}"}}"#);
    let summary = r#"{"mediaType":"image/gif","bytes":9}"#;
    assert!(export.contains(&archived) && export.contains(summary), "{export}");
    let three = |one: &str| [one; 3].join(",");
    let large = format!(r#"{{"mediaType":"image/gif","data":"{}"}}"#, STANDARD.encode(gif("large").data()));
    for (file, detail) in [
        (export.replace(summary, &[summary; 2].join(",")), "the images differ from those of the turn"),
        (export.replace(summary, &three(summary)), "at most 2 images (limits.prompt_images)"),
        (export.replace(&archived, &three(&archived)), "at most 2 images (limits.prompt_images)"),
        (export.replace(&archived, &large), "at most 10 bytes (limits.image_bytes)"),
    ] {
        let refused = harness.post("/api/agents/import", &file).await;
        assert_eq!(refused.problem(), "validation_failed", "{detail}");
        assert!(faults(&refused)[0].1.contains(detail), "{detail}: {refused:?}");
    }
}

#[actix_web::test]
async fn a_message_that_has_room_only_alone_is_accepted_again_and_a_larger_one_is_too_large() {
    let harness = Harness::with(|config, _| {
        (config.prompt_images, config.image_bytes) = (2, 9000);
        (config.request_bytes, config.chats_bytes) = (1000, 16 << 10);
    });
    let large = gif(&"x".repeat(8000));
    for _ in 0..3 {
        launched(&harness, &[sent(&large)]).await;
    }
    let refused = launch(&harness, &[sent(&large), sent(&large)]).await;
    assert_eq!(refused.problem(), "payload_too_large", "it would never have room");
}

#[actix_web::test]
async fn an_image_that_is_not_saved_yet_keeps_the_room_of_its_message() {
    let harness = Harness::with(|config, _| config.chats_bytes = 16 << 10);
    let all = || harness.api.large_request_permit(16 << 10);
    let held = gif("one").holding(all().unwrap());
    let data = held.data().clone();
    drop(held);
    assert!(all().is_err());
    drop(data);
    assert!(all().is_ok());
}
