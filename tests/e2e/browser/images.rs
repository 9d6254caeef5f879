//! Images from agents are drawn, and the policy of the page stays strict.

use serde_json::json;

use super::{Browser, ended, tab_on};
use crate::harness::TestServer;

/// A PNG image of 4 by 3 pixels in one colour.
const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA7ljmRAAAAEElEQVR4nGM4IScHRww4OQD1xwwxB+utmQAAAABJRU5ErkJggg==";
const COLOR: [u8; 4] = [200, 30, 30, 255];

const PIXEL: &str = "(() => {
  const canvas = document.querySelector('#events .picture canvas');
  return canvas ? [...canvas.getContext('2d').getImageData(2, 1, 1, 1).data].join() : '';
})()";

#[tokio::test]
async fn an_image_is_drawn_and_a_broken_one_is_one_line() {
    let mut server = TestServer::start();
    let image = |data: &str| {
        let source = json!({ "type": "base64", "media_type": "image/png", "data": data });
        json!({ "type": "image", "source": source })
    };
    // The header of this image is right, and the rest is missing.
    let content = json!([image(IMAGE), image(&IMAGE[..60])]);
    super::recording::add(&mut server, &super::recording::with_tool_output(&content));
    let id = server.launch_as("long", "Draw it").await;
    server.wait_for_status(&id, "completed").await;
    let browser = Browser::start();
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&ended(1)).await;
    let color = COLOR.map(|part| part.to_string()).join(",");
    tab.until(&format!("{PIXEL} === '{color}'")).await;
    tab.until_there("#events [data-testid=no-picture]").await;
    assert!(tab.text("#events .picture figcaption").await.starts_with("PNG, 4 × 3, "));
    assert!(!tab.text("#events").await.contains(&IMAGE[..20]), "no base64");
    assert_eq!(tab.faults().await, [""; 0]);
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]));
}
