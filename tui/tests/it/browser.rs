//! The page of `pinwheel serve` in a real browser: headless Chromium, driven by its DevTools protocol over a websocket.
//!
//! `.ci/browser` runs it. Without Chromium it says so and checks nothing.

use crate::attach::Headless;
use crate::serve::Served;
use crate::world::{DEADLINE, World, engine, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tungstenite::{Error, Message, WebSocket};

/// Names of the program, besides `PINWHEEL_CHROMIUM`.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Where the picture of the page goes, if it is to be kept.
const SCREENSHOT: &str = "PINWHEEL_SCREENSHOT";
/// Keys of which the time is measured.
const MEASURED_KEYS: usize = 120;
/// Size of the window.
const WINDOW: (u32, u32) = (1280, 800);

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = NAMES.iter().flat_map(|name| std::env::split_paths(&path).map(move |dir| dir.join(name)));
    std::env::var_os("PINWHEEL_CHROMIUM").map(PathBuf::from).into_iter().chain(found).find(|path| path.is_file())
}

/// A browser with one page; killed when the test is over.
struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: Value,
    calls: u64,
    /// Messages of the page's console, and errors that it did not catch.
    complaints: Vec<String>,
}

impl Browser {
    fn start(world: &World, program: &PathBuf) -> Browser {
        let profile = world.path("chromium");
        fs::create_dir_all(&profile).unwrap();
        let child = Command::new(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-port=0", "--hide-scrollbars", "--force-device-scale-factor=1"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--window-size={},{}", WINDOW.0, WINDOW.1))
            .arg("about:blank")
            .env("HOME", &profile)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut place = String::new();
        until("the port of the browser", || {
            place = fs::read_to_string(profile.join("DevToolsActivePort")).unwrap_or_default();
            place.lines().count() == 2
        });
        let (port, path) = place.trim_end().split_once('\n').unwrap();
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let (socket, _) = tungstenite::client(format!("ws://127.0.0.1:{port}{path}"), stream).unwrap();
        let mut browser = Browser { child, socket, session: Value::Null, calls: 0, complaints: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].clone();
        let metrics = json!({ "width": WINDOW.0, "height": WINDOW.1, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", metrics);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    /// Calls a method of the protocol; its result.
    #[track_caller]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let text = match self.socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(_) => continue,
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => panic!("{method}: no answer"),
                Err(error) => panic!("{method}: {error}"),
            };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            let is_complaint = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
            if is_complaint.iter().any(|name| answer["method"] == *name) {
                self.complaints.push(answer["params"].to_string());
            }
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    fn open(&mut self, address: &str) {
        // A page that differs in its fragment alone would not be loaded anew.
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": address }));
    }

    /// Waits until an element has these words.
    #[track_caller]
    fn see(&mut self, element: &str, words: &[&str]) {
        let end = Instant::now() + DEADLINE;
        loop {
            let text = self.value(&format!("document.querySelector({element:?})?.innerText ?? ''"));
            // The browser's text has no-break spaces where the terminal has spaces.
            let text = text.as_str().unwrap_or_default().replace('\u{a0}', " ");
            if words.iter().all(|word| text.contains(word)) {
                return;
            }
            assert!(Instant::now() < end, "no {words:?} in {element}:\n{text}\n{:#?}", self.complaints);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn see_console(&mut self, words: &[&str]) {
        self.see(".xterm-rows", words);
    }

    fn key(&mut self, text: &str) {
        let code = if text == "\r" { 13 } else { u32::from(text.chars().next().unwrap().to_ascii_uppercase()) };
        let key = if text == "\r" { "Enter" } else { text };
        let down = json!({ "type": "keyDown", "text": text, "key": key, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code }));
    }

    /// Waits until the page has nothing to say: the picture is current.
    #[track_caller]
    fn see_no_notice(&mut self) {
        until("the end of the notice", || self.value("document.getElementById('notice').textContent") == "");
        assert_eq!(self.value("getComputedStyle(document.getElementById('console')).opacity"), "1");
    }

    /// A picture of the page as PNG.
    fn picture(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        base64(shot["data"].as_str().unwrap())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |letter: u8| DIGITS.iter().position(|known| *known == letter).unwrap() as u32;
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0, |bits, letter| bits << 6 | digit(*letter)) << (6 * (4 - four.len()));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// Processes of consoles that `served` has.
fn consoles(served: &Served) -> Vec<Pid> {
    let of = format!("/proc/{0}/task/{0}/children", served.child.id());
    let pids = fs::read_to_string(of).unwrap();
    pids.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

#[test]
#[ignore = "needs Chromium; .ci/browser runs it"]
fn chromium_shows_the_console_takes_keys_comes_back_and_says_what_is_refused() {
    let Some(program) = chromium() else {
        eprintln!("skipped: there is no {} in the PATH", NAMES.join(", "));
        return;
    };
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let mut served = Served::start(&world, "0 --control");
    let port = served.address.rsplit_once(':').unwrap().1.to_owned();
    let mut browser = Browser::start(&world, &program);
    browser.open(&format!("http://{}/#{}", served.address, served.token));
    browser.see_console(&["LIVE", "ATTACHED"]);
    browser.see_no_notice();
    let columns = browser.value("document.querySelector('.xterm-rows > div').innerText.length").as_u64().unwrap();
    assert!(columns > 140, "{columns} columns in {} pixels", WINDOW.0);
    // The page's policy lets the terminal have its colours.
    let colours =
        "new Set([...document.querySelectorAll('.xterm-rows span')].map(s => getComputedStyle(s).color)).size";
    assert!(browser.value(colours).as_u64().unwrap() > 3);
    if let Some(path) = std::env::var_os(SCREENSHOT) {
        let picture = browser.picture();
        assert!(picture.starts_with(b"\x89PNG"));
        fs::write(path, picture).unwrap();
    }
    browser.key("2");
    browser.see_console(&["threads: which is late"]);
    // A smaller window is a smaller terminal.
    let metrics = json!({ "width": 800, "height": 600, "deviceScaleFactor": 1, "mobile": false });
    browser.call("Emulation.setDeviceMetricsOverride", metrics);
    browser.see_console(&["threads: which is late"]);
    until("fewer columns", || {
        browser.value("document.querySelector('.xterm-rows > div').innerText.length").as_u64().unwrap() < 110
    });
    let took = keys(&mut browser);
    eprintln!(
        "{} keys to the page: p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        took.len(),
        took[took.len() / 2],
        took[took.len() * 99 / 100],
        took[took.len() - 1]
    );
    // A console that is killed is said; the page waits for the person.
    consoles(&served).into_iter().for_each(|pid| kill_process(pid, Signal::KILL).unwrap());
    browser.see("#notice", &["The console was killed. Press Enter to connect again."]);
    assert_eq!(browser.value("getComputedStyle(document.getElementById('console')).opacity"), "0.35");
    browser.key("\r");
    browser.see_no_notice();
    browser.see_console(&["LIVE"]);
    // The page comes back by itself, and to a new server in vain, which has a new token.
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    browser.see("#notice", &["The connection was lost; the engine goes on. Connecting again in"]);
    let again = Served::start(&world, &format!("{port} --control"));
    browser.see("#notice", &["The token is wrong; open the address that pinwheel serve printed last."]);
    // The new address in the same tab: the fragment alone differs.
    browser.call("Page.navigate", json!({ "url": format!("http://{}/#{}", again.address, again.token) }));
    browser.see_no_notice();
    browser.see_console(&["LIVE"]);
    // A server that is silent counts as lost; when it answers again the same page shows the console.
    kill_process(again.pid(), Signal::STOP).unwrap();
    browser.see("#notice", &["The connection was lost; the engine goes on."]);
    kill_process(again.pid(), Signal::CONT).unwrap();
    browser.see_no_notice();
    browser.see_console(&["LIVE"]);
    let refused: Vec<_> = browser.complaints.iter().filter(|said| said.contains("Content Security Policy")).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Milliseconds from a key to the page's change, sorted.
fn keys(browser: &mut Browser) -> Vec<f64> {
    browser.value(
        "addEventListener('keydown', () => { window.pressed = performance.now(); window.shown = null; }, true);
         const has = words => document.querySelector('.xterm-rows').textContent.replaceAll('\\u00a0', ' ').includes(words);
         new MutationObserver(() => { if (window.shown === null && has(window.wanted)) window.shown = performance.now(); })
             .observe(document.querySelector('.xterm-rows'), { childList: true, subtree: true, characterData: true }); true",
    );
    let mut took = Vec::new();
    for at in 0..MEASURED_KEYS {
        let (key, words) = if at % 2 == 0 { ("3", "slots: which waits") } else { ("2", "threads: which is late") };
        // The console draws at most thirty pictures a second: a key that follows one at once waits for the next.
        browser.value("new Promise(done => setTimeout(() => done(true), 100))");
        browser.value(&format!("window.wanted = {words:?}; window.shown = null; true"));
        browser.key(key);
        until("the view", || browser.value("window.shown !== null") == true);
        took.push(browser.value("window.shown - window.pressed").as_f64().unwrap());
    }
    took.sort_by(f64::total_cmp);
    took
}
