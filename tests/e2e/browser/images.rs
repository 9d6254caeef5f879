//! Images from agents and of messages are drawn, and the policy of the page stays strict.

use serde_json::json;

use super::{Browser, Look, Tab, address, ended, tab_on};
use crate::harness::TestServer;
use crate::images::{SMALL as IMAGE, with_idling_agents};

const COLOR: [u8; 4] = [200, 30, 30, 255];

/// An expression: the colour of a pixel of the first picture below this element.
fn pixel(place: &str) -> String {
    format!(
        "(() => {{
          const canvas = document.querySelector('{place} .picture canvas');
          return canvas ? [...canvas.getContext('2d').getImageData(2, 1, 1, 1).data].join() : '';
        }})()"
    )
}

async fn until_drawn(tab: &Tab, place: &str) {
    let color = COLOR.map(|part| part.to_string()).join(",");
    tab.until(&format!("{} === '{color}'", pixel(place))).await;
}

/// Pastes a file into a field, as a browser does it after a screenshot.
async fn paste(tab: &Tab, field: &str, name: &str, kind: &str, base64: &str) {
    let paste = format!(
        "(() => {{
          const bytes = Uint8Array.from(atob('{base64}'), (letter) => letter.charCodeAt(0));
          const clipboardData = new DataTransfer();
          clipboardData.items.add(new File([bytes], '{name}', {{ type: '{kind}' }}));
          const event = new ClipboardEvent('paste', {{ clipboardData, bubbles: true, cancelable: true }});
          document.querySelector('{field}').dispatchEvent(event);
          return true;
        }})()"
    );
    tab.evaluate(&paste).await;
}

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
    until_drawn(&tab, "#events").await;
    tab.until_there("#events [data-testid=no-picture]").await;
    assert!(tab.text("#events .picture figcaption").await.starts_with("PNG, 4 × 3, "));
    assert!(!tab.text("#events").await.contains(&IMAGE[..20]), "no base64");
    assert_eq!(tab.faults().await, [""; 0]);
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]));
}

#[tokio::test]
async fn an_image_opens_large_and_gives_the_focus_back() {
    let mut server = TestServer::start();
    let source = json!({ "type": "base64", "media_type": "image/png", "data": IMAGE });
    let content = json!([{ "type": "image", "source": source }]);
    super::recording::add(&mut server, &super::recording::with_tool_output(&content));
    let id = server.launch_as("long", "Draw it").await;
    server.wait_for_status(&id, "completed").await;
    let browser = Browser::start();
    for (name, look) in super::accessible::LOOKS {
        let tab = browser.tab(look).await;
        tab.visit(&address(&server, &format!("/agents/{id}"))).await;
        tab.until(&ended(1)).await;
        until_drawn(&tab, "#events").await;
        tab.evaluate("document.querySelector('#events .picture-button').focus()").await;
        tab.press("Enter").await;
        tab.until_there("[data-testid=lightbox][open] canvas").await;
        let color = COLOR.map(|part| part.to_string()).join(",");
        let large = "[...document.querySelector('[data-testid=lightbox] canvas').getContext('2d').getImageData(2, 1, 1, 1).data].join()";
        tab.until(&format!("{large} === '{color}'")).await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, an open image");
        tab.press("Escape").await;
        tab.until("document.querySelector('[data-testid=lightbox]') === null").await;
        tab.until("document.activeElement?.className === 'picture-button'").await;
        let heard = tab.heard().await;
        assert_eq!((heard.errors, heard.violations), (vec![], vec![]), "{name}");
    }
}

#[tokio::test]
async fn pasted_images_are_sent_and_shown_after_a_reload() {
    let server = with_idling_agents();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.until_there("[data-testid=launch-form] option[value=seeing]").await;
    tab.choose("[data-testid=launch-form] select", "seeing").await;
    let prompt = "[data-testid=launch-form] textarea";
    tab.fill(prompt, "What is this?").await;
    paste(&tab, prompt, "shot.png", "image/png", IMAGE).await;
    until_drawn(&tab, "[data-testid=thumbnails]").await;
    tab.click("[data-testid=launch-form] button[type=submit]").await;
    tab.until(&ended(1)).await;
    until_drawn(&tab, "#events [data-kind=prompt]").await;

    // A script in an image is never even sent.
    paste(&tab, "#composer-text", "evil.svg", "image/svg+xml", "PHN2Zy8+").await;
    tab.until_there("[data-testid=composer] [role=alert]").await;
    tab.until("document.querySelector('[data-testid=thumbnails]') === null").await;
    paste(&tab, "#composer-text", "shot.png", "image/png", IMAGE).await;
    until_drawn(&tab, "[data-testid=thumbnails]").await;
    tab.fill("#composer-text", "And this?").await;
    tab.click("[data-testid=send]").await;
    tab.until(&ended(2)).await;

    tab.reload().await;
    tab.until(&ended(2)).await;
    until_drawn(&tab, "#events [data-kind=prompt]").await;
    tab.until("document.querySelectorAll('#events [data-kind=prompt] .picture canvas').length === 2").await;
    tab.until("document.querySelector('[data-testid=thumbnails]') === null").await;
    assert_eq!(tab.faults().await, [""; 0]);
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]));
}
