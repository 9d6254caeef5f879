//! S04, S07: which host a request names, and which page sends it.

use crate::harness::{TestServer, fake_config};
use crate::raw::{self, HANDSHAKE};
use crate::routes;

/// A request for the list of agents, with these header lines instead of `Host`.
async fn get(server: &TestServer, target: &str, version: &str, lines: &[String]) -> (u16, String) {
    let lines: String = lines.iter().flat_map(|line| [line.as_str(), "\r\n"]).collect();
    let text = format!("GET {target} HTTP/{version}\r\n{lines}{}\r\n\r\n", raw::bearer(server));
    let answer = raw::send(server, text).await;
    answer.map_or((0, String::new()), |answer| (answer.status, answer.code()))
}

fn host(name: &str) -> Vec<String> {
    vec![format!("Host: {name}")]
}

#[tokio::test]
async fn s04_only_the_servers_own_names_are_answered() {
    let server = TestServer::start();
    let port = server.authority().rsplit(':').next().unwrap().to_owned();
    for good in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
        let found = get(&server, "/api/agents", "1.1", &host(&format!("{good}:{port}"))).await;
        assert_eq!(found.0, 200, "{good}");
    }
    let bad = [
        format!("evil.test:{port}"),
        "evil.test".to_owned(),
        "127.0.0.1:1".to_owned(),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1.evil.test:{port}"),
        format!("localhost.:{port}"),
        format!("localhost.evil.test:{port}"),
        format!("xlocalhost:{port}"),
        String::new(),
        format!(":{port}"),
        format!("evil.test@127.0.0.1:{port}"),
        format!("127.0.0.1:{port}@evil.test"),
        format!("127.0.0.1:{port}, evil.test"),
        format!("127.0.0.1:{port}/"),
        format!("127.0.0.1:{port}#"),
        format!("2130706433:{port}"),
        format!("0x7f.0.0.1:{port}"),
        format!("127.1:{port}"),
        format!("0.0.0.0:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[::]:{port}"),
        format!("127.0.0.1:0{port}"),
        format!("127.0.0.1 :{port}"),
    ];
    for bad in bad {
        let (status, code) = get(&server, "/api/agents", "1.1", &host(&bad)).await;
        assert!(matches!(status, 400 | 421), "Host: {bad}: {status} {code}");
        assert!(status == 400 || code == "host_not_allowed", "Host: {bad}: {status} {code}");
    }
}

#[tokio::test]
async fn s04_a_host_that_is_missing_doubled_or_contradicted_is_refused() {
    let server = TestServer::start();
    let own = server.authority();
    let good = format!("Host: {own}");
    let evil = "Host: evil.test".to_owned();
    let spoofed = [
        "X-Forwarded-Host: OWN",
        "Forwarded: host=OWN",
        "X-Host: OWN",
        "X-Original-Host: OWN",
        "X-Forwarded-Server: OWN",
    ]
    .map(|line| line.replace("OWN", &own));
    let absolute = |name: &str| format!("http://{name}/api/agents");
    let cases = [
        ("no host", "/api/agents".to_owned(), "1.1", vec![]),
        ("no host, HTTP/1.0", "/api/agents".to_owned(), "1.0", vec![]),
        ("two hosts", "/api/agents".to_owned(), "1.1", vec![good.clone(), evil.clone()]),
        ("two hosts, the good one last", "/api/agents".to_owned(), "1.1", vec![evil.clone(), good.clone()]),
        ("the same host twice", "/api/agents".to_owned(), "1.1", vec![good.clone(), good.clone()]),
        ("an evil target", absolute("evil.test"), "1.1", vec![good.clone()]),
        ("a target with user information", absolute(&format!("evil.test@{own}")), "1.1", vec![good.clone()]),
        ("an evil host and a good target", absolute(&own), "1.1", vec![evil.clone()]),
    ];
    for (what, target, version, lines) in cases {
        let (status, code) = get(&server, &target, version, &lines).await;
        assert!(
            matches!((status, code.as_str()), (421, "host_not_allowed") | (400, _)),
            "{what}: {status} {code}"
        );
    }
    for line in spoofed {
        let (status, code) = get(&server, "/api/agents", "1.1", &[evil.clone(), line.clone()]).await;
        assert_eq!((status, code.as_str()), (421, "host_not_allowed"), "{line}");
    }
    for line in ["X-Forwarded-Host: evil.test", "Forwarded: host=evil.test;for=10.0.0.1"] {
        let (status, _) = get(&server, "/api/agents", "1.1", &[good.clone(), line.to_owned()]).await;
        assert_eq!(status, 200, "{line} means nothing");
    }
    assert_eq!(
        get(&server, &absolute(&own), "1.1", std::slice::from_ref(&good)).await.0,
        200,
        "its own name in the target"
    );
}

#[tokio::test]
async fn s04_the_host_is_looked_at_before_everything_else() {
    let server = TestServer::start();
    let mut asked = routes::all(&server).await;
    asked.extend(["/", "/app.js", "/nowhere"].map(|path| ("GET".to_owned(), path.to_owned())));
    for method in ["OPTIONS", "PUT", "PATCH", "TRACE", "BREW"] {
        asked.push((method.to_owned(), "/api/agents".to_owned()));
    }
    for (method, path) in asked {
        // This applies without a token too: a request with the wrong host does not even learn that a token is needed.
        let text = format!("{method} {path} HTTP/1.1\r\nHost: evil.test\r\n\r\n");
        let answer = raw::send(&server, text).await.unwrap();
        // Engine.IO's errors have numbers.
        let code = if path.starts_with("/socket.io") { "4" } else { "host_not_allowed" };
        assert_eq!((answer.status, answer.code().as_str()), (421, code), "{method} {path}");
    }
}

#[tokio::test]
async fn s07_pages_of_other_origins_are_refused_with_the_right_token_too() {
    let server = TestServer::start();
    let own = server.authority();
    let port = own.rsplit(':').next().unwrap();
    let bad = [
        "Origin: null".to_owned(),
        "Origin: ".to_owned(),
        "Origin: http://evil.test".to_owned(),
        format!("Origin: http://evil.test:{port}"),
        format!("Origin: http://{own}.evil.test"),
        format!("Origin: http://evil.test/{own}"),
        format!("Origin: http://evil.test#http://{own}"),
        format!("Origin: http://{own}@evil.test"),
        format!("Origin: http://{own}/"),
        format!("Origin: http://{own} http://evil.test"),
        "Origin: http://127.0.0.1".to_owned(),
        "Origin: http://127.0.0.1:1".to_owned(),
        format!("Origin: http://127.0.0.2:{port}"),
        format!("Origin: ftp://{own}"),
        "Origin: file://".to_owned(),
        "Origin: chrome-extension://abcdefghijklmnopabcdefghijklmnop".to_owned(),
        format!("Origin: http://{own}\r\nOrigin: http://evil.test"),
        "Sec-Fetch-Site: cross-site".to_owned(),
        "Sec-Fetch-Site: same-site".to_owned(),
        "Sec-Fetch-Site: nonsense".to_owned(),
    ];
    for line in &bad {
        for (method, path) in
            [("GET", "/api/agents"), ("POST", "/api/tickets"), ("GET", "/"), ("GET", "/healthz")]
        {
            let answer = raw::send(&server, raw::request(&server, method, path, &[line])).await.unwrap();
            let found = (answer.status, answer.code());
            assert_eq!(found, (403, "origin_not_allowed".to_owned()), "{line} at {method} {path}");
        }
        let lines: Vec<&str> = HANDSHAKE.iter().copied().chain([line.as_str()]).collect();
        let answer = raw::send(&server, raw::request(&server, "GET", "/ws", &lines)).await.unwrap();
        assert_eq!(answer.status, 403, "{line} at the WebSocket");
    }
    let good = [
        format!("Origin: http://{own}"),
        format!("Origin: http://localhost:{port}"),
        "Sec-Fetch-Site: none".to_owned(),
    ];
    for line in &good {
        let answer = raw::send(&server, raw::request(&server, "GET", "/api/agents", &[line])).await.unwrap();
        assert_eq!(answer.status, 200, "{line}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "it is not listed");
    }
}

/// The only allowed origin of these servers.
const LISTED: &str = "https://app.example";

fn listing_server() -> TestServer {
    TestServer::start_with(&format!(
        "[server]\nallowed_origins = [\"{LISTED}\"]\n[limits]\nbody_timeout_s = 1\n{}",
        fake_config()
    ))
}

fn preflight(server: &TestServer, host: &str, origin: &str) -> String {
    let lines =
        "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type";
    let host = if host.is_empty() { server.authority() } else { host.to_owned() };
    format!("OPTIONS /api/agents HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n{lines}\r\n\r\n")
}

fn assert_no_cors(answer: &raw::Answer, what: &str) {
    let head = answer.head.to_ascii_lowercase();
    assert!(!head.contains("access-control"), "{what}: {head}");
}

#[tokio::test]
async fn s07_a_preflight_is_allowed_to_listed_origins_only() {
    for (server, lists) in [(TestServer::start(), false), (listing_server(), true)] {
        let own = format!("http://{}", server.authority());
        for origin in
            [own.as_str(), "http://evil.test", "null", "https://APP.example", "https://app.example:443"]
        {
            for token in ["", &format!("{}\r\n", raw::bearer(&server))] {
                let text =
                    preflight(&server, "", origin).replace("\r\nOrigin", &format!("\r\n{token}Origin"));
                let answer = raw::send(&server, text).await.unwrap();
                assert!(matches!(answer.status, 401 | 403 | 405), "{origin}: {}", answer.head);
                assert_no_cors(&answer, origin);
            }
        }
        let listed = raw::send(&server, preflight(&server, "", LISTED)).await.unwrap();
        assert_eq!(listed.status == 204, lists, "{}", listed.head);
        if !lists {
            assert_no_cors(&listed, "nobody is listed");
            continue;
        }
        assert_eq!(listed.header("access-control-allow-origin"), Some(LISTED));
        assert_eq!(listed.header("access-control-allow-credentials"), None);
        assert!(!listed.head.contains('*'), "{}", listed.head);
        let elsewhere = raw::send(&server, preflight(&server, "evil.test", LISTED)).await.unwrap();
        assert_eq!((elsewhere.status, elsewhere.code().as_str()), (421, "host_not_allowed"));
        let twice = preflight(&server, "", &format!("{LISTED}\r\nOrigin: http://evil.test"));
        let twice = raw::send(&server, twice).await.unwrap();
        assert_eq!(twice.status, 403);
        assert_no_cors(&twice, "two origins");
    }
}

#[tokio::test]
async fn s07_a_page_of_a_listed_origin_may_read_why_it_is_refused() {
    let server = listing_server();
    let token = raw::bearer(&server);
    let json = "Content-Type: application/json\r\nContent-Length: 2";
    for (method, path, lines, status) in [
        ("GET", "/api/agents", "", 401),
        ("GET", "/ws?ticket=x", "", 401),
        ("GET", "/nowhere", token.as_str(), 404),
        ("PUT", "/api/agents", token.as_str(), 405),
        (
            "POST",
            "/api/agents",
            &format!("{token}\r\nContent-Type: application/json\r\nContent-Length: 99999999"),
            413,
        ),
        ("POST", "/api/agents", &format!("{token}\r\n{json}"), 408),
    ] {
        let separator = if lines.is_empty() { "" } else { "\r\n" };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", server.authority());
        let answer =
            raw::send(&server, format!("{head}Origin: {LISTED}\r\n{lines}{separator}\r\n")).await.unwrap();
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.head);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some(LISTED),
            "{method} {path}: {}",
            answer.head
        );
        assert!(answer.header("access-control-expose-headers").is_some_and(|it| it.contains("Retry-After")));
    }
    let elsewhere = format!("GET /api/agents HTTP/1.1\r\nHost: evil.test\r\nOrigin: {LISTED}\r\n\r\n");
    let elsewhere = raw::send(&server, elsewhere).await.unwrap();
    assert_eq!((elsewhere.status, elsewhere.header("access-control-allow-origin")), (421, Some(LISTED)));
    let long = "x".repeat(70_000);
    let long = format!("GET /{long} HTTP/1.1\r\nHost: {}\r\nOrigin: {LISTED}\r\n\r\n", server.authority());
    let unread = raw::send(&server, long).await.unwrap();
    assert_eq!(
        (unread.status, unread.header("access-control-allow-origin")),
        (400, None),
        "it cannot be read"
    );
    let routes = routes::all(&server).await;
    assert!(40 < routes.len());
    for (method, path) in routes {
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nOrigin: {LISTED}\r\nContent-Length: 0\r\n\r\n",
            server.authority()
        );
        let answer = raw::send(&server, text).await.unwrap();
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some(LISTED),
            "{method} {path}: {}",
            answer.head
        );
    }
}
