//! What a browser may ask for: the files of the page, and the websocket.
//!
//! Every file is a part of the program. Every answer has the headers of [`POLICY`]: the page loads nothing from
//! elsewhere, runs no script but its own, and is shown in no frame.

use super::access::Transport;
use super::viewer::{Arrival, MESSAGE_BYTES_MAX, Viewers};
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Extension, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;

/// Address, type and content of each file.
const FILES: [(&str, &str, &[u8]); 6] = [
    ("/", "text/html; charset=utf-8", include_bytes!("../../../web/page.html")),
    ("/page.js", "text/javascript; charset=utf-8", include_bytes!("../../../web/page.js")),
    ("/page.css", "text/css; charset=utf-8", include_bytes!("../../../web/page.css")),
    ("/xterm.mjs", "text/javascript; charset=utf-8", include_bytes!("../../../web/xterm.mjs")),
    ("/xterm.css", "text/css; charset=utf-8", include_bytes!("../../../web/xterm.css")),
    ("/addon-fit.mjs", "text/javascript; charset=utf-8", include_bytes!("../../../web/addon-fit.mjs")),
];

/// Headers of every answer.
const POLICY: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        // The sum is that of an empty style element, which xterm.js puts into the page; page.js keeps it empty.
        "default-src 'none'; script-src 'self'; \
         style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// What the answers depend on.
#[derive(Clone)]
struct Site {
    viewers: Arc<Viewers>,
    transport: Transport,
}

/// All that is served.
pub fn router(viewers: Arc<Viewers>, transport: Transport) -> Router {
    let site = Site { viewers, transport };
    let mut router = Router::new().route("/socket", get(socket));
    for (path, kind, content) in FILES {
        router = router.route(path, get(move || async move { ([(header::CONTENT_TYPE, kind)], content) }));
    }
    router
        .fallback(|| async { (StatusCode::NOT_FOUND, "There is no such page; the console is at /.\n") })
        .layer(from_fn_with_state(site.clone(), own_host))
        .layer(map_response(with_policy))
        .with_state(site)
}

async fn with_policy(mut response: Response) -> Response {
    for (name, value) in POLICY {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The name under which the browser asks: of the request's address if that has one, as HTTP prescribes, else Host.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a str {
    uri.authority().map_or_else(|| text(headers, header::HOST), |authority| authority.as_str())
}

/// Refuses requests that are meant for another name.
async fn own_host(
    State(site): State<Site>,
    Extension(arrival): Extension<Arrival>,
    request: Request,
    next: Next,
) -> Response {
    let name = host(request.uri(), request.headers());
    if site.transport.is_own_host(name) {
        return next.run(request).await;
    }
    site.viewers.refusals.log(arrival.peer, format_args!("a request for host {name:?}, expected one of loopback"));
    (StatusCode::FORBIDDEN, "This is no address of this server; open the one that pinwheel serve printed.\n")
        .into_response()
}

/// Begins a viewer's websocket, for our own page only.
async fn socket(
    State(site): State<Site>,
    Extension(arrival): Extension<Arrival>,
    uri: Uri,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let origin = text(&headers, header::ORIGIN);
    if !site.transport.is_own_origin(origin, host(&uri, &headers)) {
        site.viewers
            .refusals
            .log(arrival.peer, format_args!("a websocket of origin {origin:?}, expected our own page"));
        return (StatusCode::FORBIDDEN, "Only this server's own page may connect.\n").into_response();
    }
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    upgrade.on_upgrade(move |socket| async move { site.viewers.view(socket, arrival).await })
}
