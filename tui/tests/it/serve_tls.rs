//! `pinwheel serve` by TLS, in builds with the feature `tls`. The program `openssl` makes the certificate and is the
//! client's part of TLS.

use crate::attach::Headless;
use crate::serve::{Served, Viewer};
use crate::world::{World, engine, until};
use std::fs;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use tungstenite::http::StatusCode;

/// A connection by TLS through the program `openssl`.
struct Tls {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Read for Tls {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.from.read(into)
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn with_a_certificate_the_console_comes_by_tls_alone() {
    let _one = engine();
    let world = World::new();
    let openssl = |words: &str| {
        let mut command = Command::new("openssl");
        command.args(words.split_whitespace()).current_dir(world.path("")).stderr(Stdio::null());
        command
    };
    let make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 \
                -subj /CN=localhost -addext subjectAltName=DNS:localhost";
    if !openssl(make).status().as_ref().is_ok_and(ExitStatus::success) {
        eprintln!("skipped: there is no program openssl that makes a certificate");
        return;
    }
    for words in
        ["genpkey -algorithm ed25519 -out other.pem", "pkcs8 -topk8 -in key.pem -out locked.pem -passout pass:word"]
    {
        assert!(openssl(words).status().unwrap().success(), "{words}");
    }
    for (key, expected) in [
        ("other.pem", "a key of another certificate"),
        ("locked.pem", "openssl pkey -in KEY"),
        ("cert.pem", "found no private key"),
    ] {
        let said = world.run(&format!("serve 0 --cert cert.pem --key {key}")).exits(2).err;
        assert!(said.contains(expected) && said.lines().count() == 1, "{key}: {said}");
    }
    let _engine = Headless::start(&world);
    let served = Served::start(&world, "0 --cert cert.pem --key key.pem");
    assert_eq!(served.scheme, "https");
    let client = |words: &str| {
        let words = format!(
            "s_client -quiet -verify_return_error -CAfile cert.pem -servername localhost -connect {} {words}",
            served.address
        );
        let mut child = openssl(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Tls { child, to, from }
    };
    // By TLS the browser compares the name, which may be any that the certificate has.
    let mut viewer = Viewer::over(client(""), "lab2.example:7777", "https://lab2.example:7777", (100, 30)).unwrap();
    viewer.hello(&served.token);
    viewer.see_words(&["LIVE", "READ-ONLY"]);
    assert_eq!(Viewer::over(client(""), "lab2", "http://lab2", (100, 30)).map(drop), Err(StatusCode::FORBIDDEN));
    // Neither without it nor by an older version.
    let mut answer = Vec::new();
    let mut plain = served.connect();
    plain.write_all(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", served.address).as_bytes()).unwrap();
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP"), "{answer:?}");
    let mut old = client("-tls1_2");
    answer.clear();
    let _ = old.read_to_end(&mut answer);
    assert!(answer.is_empty() && !old.child.wait().unwrap().success());
    until("the refusals", || {
        fs::read_to_string(world.path("serve.err")).unwrap().matches("no TLS connection").count() >= 2
    });
}
