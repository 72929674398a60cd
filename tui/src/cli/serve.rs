//! `pinwheel serve`: the console in a browser.
//!
//! A cold process of its own: one thread drives all sockets. It starts no engine, and has no board open while it
//! serves. Each viewer gets a terminal with `pinwheel attach` on it, and that terminal's bytes cross a websocket:
//! there is no second way of drawing, and no state of the engine here.
//!
//! ```text
//! connection ─▶ TLS, if given ─▶ Host? ─▶ a file of the page
//!                                   └───▶ Origin? ─▶ websocket ─▶ token? ─▶ one of eight? ─▶ terminal ◀─▶ attach
//! ```
//!
//! Bounds: [`CONNECTIONS_MAX`] connections, [`viewer::VIEWERS_MAX`] of them viewers;
//! [`HANDSHAKE_TIME`] for TLS and for the head of a request, [`STILL_TIME`] without a byte and
//! [`PAGE_TIME`] in all for a connection that stays no viewer, [`END_TIME`] for the end. A viewer
//! that stops reading stops its own console alone: [`viewer`]. A signal ends the viewers' consoles,
//! then this process.

mod access;
mod pages;
mod progress;
mod refusals;
mod terminal;
#[cfg(feature = "tls")]
mod tls;
mod viewer;
#[cfg(not(feature = "tls"))]
mod without_tls;

use super::attach;
use super::engines;
use super::metrics::address;
use super::refusal::Refusal;
use super::say;
use access::{Token, Transport};
use axum::Router;
use clap::Args as ClapArgs;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pinwheel_engine::files;
use progress::{Counted, Passed};
use refusals::{Refusals, Said};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::time::{interval, sleep, timeout};
use viewer::{Arrival, Console, Viewers};
#[cfg(not(feature = "tls"))]
use without_tls as tls;

/// Where it listens if the command line does not say.
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7777);
const CONNECTIONS_MAX: u32 = 64;
/// Most bytes that the system keeps of what one browser has not read.
const UNREAD_BYTES_MAX: u32 = 64 << 10;
/// For a client's part of TLS, and for the head of a request.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// Longest time without a byte for a connection that asks for files of the page.
const STILL_TIME: Duration = Duration::from_secs(30);
/// Longest time of such a connection. The page has 400 kB.
const PAGE_TIME: Duration = Duration::from_secs(600);
/// After a failed accept: the system has no descriptor or memory for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Longest wait for the viewers' consoles at the end. Each has less: [`terminal`].
const END_TIME: Duration = Duration::from_secs(5);
/// In which the number of lines about refusals is limited.
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// Where to listen: a port of this machine alone, or an address with a port; 0 chooses a free port
    /// [default: 127.0.0.1:7777]
    #[arg(value_name = "ADDR", value_parser = address)]
    pub address: Option<SocketAddr>,
    /// The engine's process, or its run: a name or a directory [default: the only running engine, whenever a browser
    /// connects]
    #[arg(long, value_name = "PID|RUN")]
    pub run: Option<String>,
    /// Allow commands, through the engine's control socket and as its user
    #[arg(long)]
    pub control: bool,
    /// Certificate chain in PEM: serve by TLS, which an address that other machines reach requires; for builds with
    /// feature tls
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

pub fn serve(args: &ServeArgs) -> Result<u8, Refusal> {
    let address = args.address.unwrap_or(DEFAULT);
    let acceptor =
        args.cert.as_deref().zip(args.key.as_deref()).map(|(cert, key)| tls::acceptor(cert, key)).transpose()?;
    if acceptor.is_none() && !address.ip().is_loopback() {
        let remedy = "name both, or listen on 127.0.0.1 and forward the port (ssh -L 7777:127.0.0.1:7777 HOST)";
        let expected = "--cert and --key, without which others on the way read the token";
        return Err(Refusal::unusable(
            format!("serve {address}"),
            "an address that other machines reach",
            expected,
            remedy,
        ));
    }
    let found = engines::find(args.run.as_deref())?;
    if args.control {
        attach::reach(&found).map_err(Refusal::Usage)?;
    }
    let pid = found.pid;
    drop(found);
    let trouble = |error: io::Error| {
        Refusal::unusable(
            "serve",
            error.to_string(),
            "sockets, signals and random numbers",
            "raise the limits (ulimit -a)",
        )
    };
    let token = Token::draw().map_err(trouble)?;
    let console = Console { run: args.run.clone(), control: args.control };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(trouble)?;
    runtime.block_on(async {
        let listener = listen(address).map_err(|error| {
            let found = format!("an address that cannot be bound ({error})");
            let remedy = "name another port; 0 chooses a free one";
            Refusal::unusable(format!("serve {address}"), found, "a free port of this machine", remedy)
        })?;
        let transport = if acceptor.is_some() { Transport::Tls } else { Transport::Plain };
        let bound = listener.local_addr().map_err(trouble)?;
        let line = format!("{}://{}/#{}\n", transport.scheme(), authority(bound), token.text());
        let status = say::written(say::text(&mut io::stdout().lock(), &line), 0);
        if status != 0 {
            return Ok(status);
        }
        let kind = if args.control { "with commands" } else { "read-only" };
        let most = viewer::VIEWERS_MAX;
        let mut said = Said::start().map_err(trouble)?;
        said.line(format!("pinwheel: shows process {pid} in at most {most} browsers, {kind}; Ctrl-C ends"));
        run(listener, acceptor, token, console, transport, said).await.map_err(trouble)
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Connections have it from their listener.
    socket.set_send_buffer_size(UNREAD_BYTES_MAX)?;
    socket.bind(address)?;
    socket.listen(CONNECTIONS_MAX)
}

/// What a browser needs to reach `bound`: all addresses of this machine have its name.
fn authority(bound: SocketAddr) -> String {
    let name = files::read_lossy("/proc/sys/kernel/hostname").ok().filter(|_| bound.ip().is_unspecified());
    name.map_or_else(|| bound.to_string(), |name| format!("{}:{}", name.trim(), bound.port()))
}

/// Serves until a signal, and ends all consoles; the exit status.
async fn run(
    listener: TcpListener,
    acceptor: Option<tls::Acceptor>,
    token: Token,
    console: Console,
    transport: Transport,
    mut said: Said,
) -> io::Result<u8> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (end, ending) = watch::channel(false);
    let (refusals, mut refused) = Refusals::channel();
    let viewers = Arc::new(Viewers::new(token, console, ending, refusals.clone()));
    let server =
        Arc::new(Server { router: pages::router(viewers, transport), acceptor, refusals, ending: end.subscribe() });
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
    let mut minute = interval(MINUTE);
    // The first tick comes at once.
    minute.tick().await;
    let signal = loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => match Arc::clone(&connections).try_acquire_owned() {
                    Ok(permit) => {
                        let arrival = Arrival::new(peer, permit);
                        tokio::spawn(Arc::clone(&server).connection(stream, arrival));
                    }
                    Err(_) => server.refusals.log(peer, format_args!("{CONNECTIONS_MAX} connections are open")),
                },
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(line) = refused.recv() => said.line(line),
            _ = minute.tick() => said.minute(),
            _ = interrupt.recv() => break SIGINT,
            _ = terminate.recv() => break SIGTERM,
        }
    };
    drop(listener);
    end.send_replace(true);
    // Each connection holds one until its console has ended.
    let _ = timeout(END_TIME, connections.acquire_many(CONNECTIONS_MAX)).await;
    while let Ok(line) = refused.try_recv() {
        said.line(line);
    }
    said.end().await;
    Ok(u8::try_from(128 + signal).unwrap_or(1))
}

/// What all connections share.
struct Server {
    router: Router,
    acceptor: Option<tls::Acceptor>,
    refusals: Refusals,
    ending: watch::Receiver<bool>,
}

impl Server {
    /// A connection until it ends, or has become a viewer's websocket.
    async fn connection(self: Arc<Server>, stream: TcpStream, arrival: Arrival) {
        // A key's answer is a small packet, which must not wait for others.
        let _ = stream.set_nodelay(true);
        let passed = Passed::default();
        let stream = Counted::new(stream, passed.clone());
        match &self.acceptor {
            None => self.requests(stream, &passed, arrival).await,
            Some(acceptor) => match timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => self.requests(stream, &passed, arrival).await,
                Ok(Err(error)) => self.refusals.log(arrival.peer, format_args!("no TLS connection ({error})")),
                Err(_) => self.refusals.log(arrival.peer, format_args!("no TLS connection within 5 s")),
            },
        }
    }

    async fn requests(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        passed: &Passed,
        arrival: Arrival,
    ) {
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(arrival.clone());
            router.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // A client that has sent all its requests may say so, and still reads.
            .half_close(true)
            .header_read_timeout(HANDSHAKE_TIME)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut ending = self.ending.clone();
        tokio::select! {
            // An error of a client that is gone needs no report.
            () = passed.bound(connection, STILL_TIME, PAGE_TIME) => {}
            _ = ending.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_is_a_port_of_this_machine_or_has_a_port() {
        for (text, expected) in [
            ("7777", Some("127.0.0.1:7777")),
            ("0", Some("127.0.0.1:0")),
            ("[::1]:80", Some("[::1]:80")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("127.0.0.1", None),
            ("lab2:80", None),
            ("70000", None),
            ("", None),
        ] {
            assert_eq!(address(text).ok().map(|address| address.to_string()).as_deref(), expected, "{text:?}");
        }
    }
}
