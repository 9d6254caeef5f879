use actix_web::dev::ServiceResponse;
use actix_web::http::{StatusCode, header};
use actix_web::{App, HttpRequest, test as harness, web};

use crate::{BasePath, PATHS, missing, open_paths, serve};

async fn get(path: &str, known: Option<&str>) -> ServiceResponse {
    let routes = |config: &mut web::ServiceConfig| {
        for path in PATHS {
            config.service(web::resource(path).to(serve));
        }
    };
    let server = harness::init_service(App::new().configure(routes)).await;
    let mut request = harness::TestRequest::with_uri(path);
    if let Some(known) = known {
        request = request.insert_header((header::IF_NONE_MATCH, known));
    }
    harness::call_service(&server, request.to_request()).await
}

fn header_of(answer: &ServiceResponse, name: header::HeaderName) -> &str {
    answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[actix_web::test]
async fn each_file_says_what_it_is_and_what_it_may_do() {
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/agents/0199", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/runtime.js", "text/javascript; charset=utf-8"),
        ("/dom.js", "text/javascript; charset=utf-8"),
        ("/view.js", "text/javascript; charset=utf-8"),
        ("/languages.js", "text/javascript; charset=utf-8"),
        ("/app.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/icon-waiting.svg", "image/svg+xml"),
    ] {
        let answer = get(path, None).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert_eq!(header_of(&answer, header::CONTENT_TYPE), kind, "{path}");
        assert_eq!(header_of(&answer, header::CACHE_CONTROL), "no-cache", "{path}");
        let policy = header_of(&answer, header::CONTENT_SECURITY_POLICY).to_owned();
        assert!(
            policy.contains("require-trusted-types-for 'script'; trusted-types 'none'"),
            "{path}: {policy}"
        );
        assert!(!harness::read_body(answer).await.is_empty(), "{path}");
    }
}

#[actix_web::test]
async fn a_browser_that_has_the_file_hears_so_and_no_more() {
    let tag = header_of(&get("/app.js", None).await, header::ETAG).to_owned();
    assert!(tag.starts_with('"') && tag.len() == 66, "{tag}");
    for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
        let answer = get("/app.js", Some(&known)).await;
        assert_eq!(answer.status(), StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(header_of(&answer, header::ETAG), tag, "{known}");
        assert!(harness::read_body(answer).await.is_empty(), "{known}");
    }
    for known in ["\"other\"", "nonsense"] {
        assert_eq!(get("/app.js", Some(known)).await.status(), StatusCode::OK, "{known}");
    }
    let other = header_of(&get("/app.css", None).await, header::ETAG).to_owned();
    assert_ne!(tag, other, "each file has its own");
}

#[test]
fn what_is_served_is_what_needs_no_token() {
    let open = open_paths();
    assert_eq!(open.len(), PATHS.len());
    assert_eq!(open.iter().filter(|path| path.contains(['*', '{'])).collect::<Vec<_>>(), ["/agents/*"]);
}

#[actix_web::test]
async fn a_path_that_does_not_exist_gets_the_page_with_its_policy() {
    let server = App::new().app_data(BasePath::new("/agents"));
    let server = server.default_service(web::to(async |request: HttpRequest| missing(&request)));
    let server = harness::init_service(server).await;
    let request = harness::TestRequest::with_uri("/nowhere").to_request();
    let answer = harness::call_service(&server, request).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert!(header_of(&answer, header::CONTENT_SECURITY_POLICY).contains("default-src 'none'"));
    assert_eq!(header_of(&answer, header::CONTENT_TYPE), "text/html; charset=utf-8");
    let page = harness::read_body(answer).await;
    assert!(String::from_utf8_lossy(&page).contains("src=\"/agents/app.js\""));
}

#[actix_web::test]
async fn below_a_path_the_page_names_its_files_there() {
    let routes = |config: &mut web::ServiceConfig| {
        config.app_data(BasePath::new("/agents"));
        config.service(web::resource("/").to(serve));
    };
    let server = harness::init_service(App::new().configure(routes)).await;
    let request = harness::TestRequest::with_uri("/").to_request();
    let answer = harness::call_service(&server, request).await;
    let (root, tag) = (get("/", None).await, header_of(&answer, header::ETAG).to_owned());
    assert_ne!(tag, header_of(&root, header::ETAG), "a browser must not keep the page of another path");
    let page = harness::read_body(answer).await;
    let page = String::from_utf8_lossy(&page);
    assert!(page.contains("src=\"/agents/app.js\"") && page.contains("href=\"/agents/app.css\""), "{page}");
    assert!(!page.contains("\"/app.") && !page.contains("\"/icon"), "{page}");
}
