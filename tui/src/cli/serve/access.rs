//! Who may look: the token of an address, and the names under which a browser may ask.
//!
//! Pure, except that a token is drawn from the system. Nothing here is stored or logged.
//!
//! # Why the token is in the fragment of the address
//! A browser sends the part after `#` to no server, and names it in no Referer; so it is in no log of a proxy and in
//! no list of requests. The page sends it as its first message. As a query it would be in the request's head, and as
//! a subprotocol the browser could not tell the person why it was refused: a handshake's status is hidden from pages.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt::Write as _;
use std::hint::black_box;
use std::io;
use std::net::IpAddr;

/// Bytes of a token: 128 bits.
const TOKEN_BYTES: usize = 16;

/// What an address has to end with.
pub struct Token(String);

impl Token {
    /// A new one from the system's random numbers.
    ///
    /// # Errors
    /// If the system has none.
    pub fn draw() -> io::Result<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        // The system cuts no request of up to 256 bytes short.
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        let mut text = String::with_capacity(2 * TOKEN_BYTES);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Token(text))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether `said` is this token. The time that this takes does not depend on where they differ.
    pub fn is(&self, said: &str) -> bool {
        let pairs = self.0.bytes().zip(said.bytes());
        let difference = pairs.fold(0, |difference, (own, said)| black_box(difference | (own ^ said)));
        difference == 0 && said.len() == self.0.len()
    }
}

/// How bytes reach the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// On loopback only.
    Plain,
    Tls,
}

impl Transport {
    pub fn scheme(self) -> &'static str {
        match self {
            Transport::Plain => "http",
            Transport::Tls => "https",
        }
    }

    /// Whether a request for `host`, a name with or without a port, is meant for this server: a page of another name
    /// that leads here (DNS rebinding) is not. The port may be another's: one that is forwarded. By TLS the browser has
    /// compared the name with the certificate.
    pub fn is_own_host(self, host: &str) -> bool {
        self == Transport::Tls || is_loopback(host)
    }

    /// Whether `origin` is that of our own page, which was asked for under the same `host`.
    pub fn is_own_origin(self, origin: &str, host: &str) -> bool {
        let rest = origin.strip_prefix(self.scheme()).and_then(|rest| rest.strip_prefix("://"));
        rest.is_some_and(|name| name.eq_ignore_ascii_case(host))
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(inner) => inner.split_once(']').map_or("", |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Token, Transport};

    #[test]
    fn a_token_has_128_bits_and_only_itself_is_it() {
        let (token, other) = (Token::draw().unwrap(), Token::draw().unwrap());
        let text = token.text();
        assert!(text.len() == 32 && text.chars().all(|digit| digit.is_ascii_hexdigit()), "{text}");
        assert!(token.is(text));
        for wrong in ["", &text[1..], &format!("{text}0"), other.text()] {
            assert!(!token.is(wrong), "{wrong}");
        }
        for at in 0..text.len() {
            let mut wrong = text.as_bytes().to_owned();
            wrong[at] ^= 1;
            assert!(!token.is(str::from_utf8(&wrong).unwrap()), "{at}");
        }
    }

    #[test]
    fn a_name_that_is_not_of_loopback_is_refused_without_tls() {
        for own in ["127.0.0.1:7777", "localhost:8080", "LOCALHOST", "[::1]:7777", "127.1.2.3"] {
            assert!(Transport::Plain.is_own_host(own), "{own}");
        }
        for other in
            ["", "lab2:7777", "127.0.0.1.example.org", "10.0.0.5:7777", "localhost.example.org:80", "[::1", "0.0.0.0"]
        {
            assert!(!Transport::Plain.is_own_host(other), "{other}");
        }
    }

    #[test]
    fn only_the_page_of_the_same_name_and_port_has_our_origin() {
        let is_own = |transport: Transport, origin| transport.is_own_origin(origin, "localhost:7777");
        assert!(is_own(Transport::Plain, "http://localhost:7777") && is_own(Transport::Tls, "https://localhost:7777"));
        for other in
            ["null", "", "http://localhost:3000", "http://localhost", "https://localhost:7777", "http://a.b:7777"]
        {
            assert!(!is_own(Transport::Plain, other), "{other}");
        }
    }
}
