// The page of `pinwheel serve`: a terminal, and a websocket to a console that runs on a terminal of
// its own. Binary messages are the terminal's bytes; an empty one says that the server is there. Text
// messages go to the server only: the first has the token and the size, each later one a new size.

import { FitAddon } from "./addon-fit.mjs";
import { Terminal } from "./xterm.mjs";

/** Seconds from a lost connection to the next attempt: the first and the longest. */
const WAIT_S = [1, 30];
/** Seconds without a message after which the connection counts as lost; the server sends one every 5 s. */
const SILENT_S = 15;
/** Most bytes of one message; the server takes 64 KiB. */
const PIECE_BYTES = 4096;
/** Close codes from here on are the server's decisions: the page does not come back by itself. */
const DECIDED = 4000;

// The page's policy forbids inline styles. xterm.js makes `style` elements and attributes for its
// colours. The same rules through the object model are allowed, since only own scripts reach that.
const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function (name, value) {
    if (name === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
};
Object.defineProperty(HTMLStyleElement.prototype, "textContent", {
    set(text) {
        if (!this.rules) {
            this.rules = new CSSStyleSheet();
            document.adoptedStyleSheets.push(this.rules);
        }
        this.rules.replaceSync(text);
    },
});

const notice = document.getElementById("notice");
const terminal = new Terminal({
    fontFamily: '"DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace',
    fontSize: 14,
    // At 1 the row below covers the underscores of common fonts.
    lineHeight: 1.1,
    scrollback: 0,
});
const fit = new FitAddon();
terminal.loadAddon(fit);
terminal.open(document.getElementById("console"));
fit.fit();
terminal.focus();

/** The websocket; null while there is none. */
let socket = null;
let waitS = WAIT_S[0];
let retry;
let silence;

function size() {
    return { columns: terminal.cols, rows: terminal.rows };
}

function isOpen() {
    return socket?.readyState === WebSocket.OPEN;
}

function disconnect() {
    const old = socket;
    socket = null;
    clearTimeout(retry);
    clearTimeout(silence);
    old?.close();
}

function lost() {
    disconnect();
    notice.textContent =
        `The connection was lost; the engine goes on. Connecting again in ${waitS} s. Press Enter to connect now.`;
    retry = setTimeout(connect, 1000 * waitS);
    waitS = Math.min(2 * waitS, WAIT_S[1]);
}

function expectMessage() {
    clearTimeout(silence);
    silence = setTimeout(lost, 1000 * SILENT_S);
}

function connect() {
    disconnect();
    // The token is in the fragment, which browsers send to no server and name in no Referer. It is read
    // anew each time, so that pasting a new address into this tab is enough.
    const token = location.hash.slice(1);
    const own = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
    let isFirst = true;
    socket = own;
    expectMessage();
    own.binaryType = "arraybuffer";
    own.onopen = () => own.send(JSON.stringify({ token, ...size() }));
    own.onmessage = (message) => {
        if (own !== socket) return;
        expectMessage();
        if (isFirst) {
            isFirst = false;
            waitS = WAIT_S[0];
            notice.textContent = "";
            terminal.reset();
        }
        terminal.write(new Uint8Array(message.data));
    };
    own.onclose = (close) => {
        if (own !== socket) return;
        if (close.code < DECIDED) return lost();
        disconnect();
        notice.textContent = `${close.reason} Press Enter to connect again.`;
    };
}

terminal.onData((text) => {
    if (isOpen()) {
        const bytes = new TextEncoder().encode(text);
        for (let at = 0; at < bytes.length; at += PIECE_BYTES) socket.send(bytes.slice(at, at + PIECE_BYTES));
    } else if (text === "\r" && !socket) {
        connect();
    }
});
terminal.onResize(() => {
    if (isOpen()) socket.send(JSON.stringify(size()));
});
addEventListener("resize", () => fit.fit());
addEventListener("hashchange", connect);
connect();
