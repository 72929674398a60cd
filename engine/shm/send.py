#!/usr/bin/env python3
"""Sends a b8 file of shots to an engine through shared memory and prints an answer a line.

    python3 send.py /dev/shm/pinwheel/input-NAME shots.b8 [soft.b8]

"index status observables" by index; observables are hexadecimal, the first one the lowest bit. Standard library
alone; README.md says what Python can promise about ordering.
"""

import fcntl
import mmap
import os
import struct
import sys
import time

MAGIC = int.from_bytes(b"PWSHM001", "little")
STATE, GRANTED, SESSION, PID, HEARTBEAT = 144, 152, 256, 264, 272
HEADER_BYTES = 4096
VERSION, LOW = 2, 0xFFFF_FFFF
# The layout of a region whose shots may have soft bytes, and the bit that says that a shot has.
VERSION_SOFT, SOFT = 3, 1 << 63
# Shots on their way at most.
WINDOW = 64


def main(path, shots_path, soft_path=None):
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError as error:
        sys.exit(f"send.py: found no region there ({error}), expected one; start: pinwheel run --input shm:NAME")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("send.py: found another client, expected none; end it")
    if os.fstat(file).st_size < HEADER_BYTES:
        sys.exit("send.py: found no whole region")
    region = mmap.mmap(file, os.fstat(file).st_size)
    # One element is one aligned eight-byte load or store.
    words = memoryview(region).cast("Q")
    get = lambda at: words[at // 8]

    def put(at, value):
        words[at // 8] = value

    if get(0) != MAGIC or get(16) != len(region):
        sys.exit("send.py: found no whole region")
    if get(8) not in (VERSION, VERSION_SOFT):
        sys.exit(
            f"send.py: found a region of layout {get(8)}, expected layout {VERSION} or {VERSION_SOFT}; use the client of "
            "the engine's release"
        )
    slots, shots_at, shot_stride, answers_at, answer_stride = (get(at) for at in (24, 32, 40, 48, 56))
    bits, encoding, streams, observables, soft_size = (get(at) for at in (64, 72, 80, 88, 96))
    if encoding != 0:
        sys.exit("send.py: found a region of 32-bit words, expected bits")
    size = (bits + 7) // 8
    with open(shots_path, "rb") as shots:
        data = shots.read()
    if len(data) % size:
        sys.exit(
            f"send.py: found {len(data) % size} bytes after the last whole shot, expected shots of {size} bytes; "
            "get the whole file, or check that it is of the engine's model"
        )
    records = [data[at : at + size] for at in range(0, len(data), size)]
    soft = None
    if soft_path is not None:
        with open(soft_path, "rb") as file_of_soft:
            data = file_of_soft.read()
        if soft_size == 0:
            sys.exit("send.py: found soft bytes, expected none: the engine has no map of them")
        if len(data) != soft_size * len(records):
            sys.exit("send.py: found another number of soft bytes than the shots have")
        soft = [data[at : at + soft_size] for at in range(0, len(data), soft_size)]

    session = time.time_ns()
    put(PID, os.getpid())
    put(SESSION, session)
    deadline = time.monotonic() + 10
    while get(GRANTED) != session or get(STATE) != 1:
        if time.monotonic() > deadline:
            sys.exit("send.py: found no engine within 10 s, expected one; see its console")
        time.sleep(0.001)

    answers, waiting, sent, beat = {}, [], 0, 0
    deadline = time.monotonic() + 120
    while len(answers) < len(records):
        beat += 1
        put(HEARTBEAT, beat)
        is_live = get(STATE) == 1
        # An engine that drains answers the shots that it has taken, and no others; then it removes the file.
        has_ended = not is_live and os.fstat(file).st_nlink == 0
        # A slot is free once the answer of its last shot was read; the oldest that waits comes first.
        is_vacant = not waiting or sent - waiting[0] < slots
        if is_live and sent < len(records) and len(waiting) < WINDOW and is_vacant:
            at = shots_at + sent % slots * shot_stride
            record = struct.pack("<Q", sent // streams) + records[sent]
            if soft is not None:
                # They begin a word.
                record = record.ljust(8 + (size + 7) // 8 * 8, b"\0") + soft[sent]
            region[at + 8 : at + shot_stride] = record.ljust(shot_stride - 8, b"\0")
            # The head last: stream, and the turn that tells the engine.
            put(at, (sent % streams) << 32 | (sent + 1) & LOW | (SOFT if soft is not None else 0))
            waiting.append(sent)
            sent += 1
        for position in list(waiting):
            at = answers_at + position % slots * answer_stride
            head = get(at)
            if head & LOW != (position + 1) & LOW:
                continue
            sequence, stream = get(at + 8), get(at + 16)
            flips = sum(get(at + 32 + word * 8) << 64 * word for word in range((observables + 63) // 64))
            waiting.remove(position)
            answers[sequence * streams + stream] = (head >> 32, flips)
            deadline = time.monotonic() + 120
        if has_ended and len(answers) < len(records):
            sys.exit("send.py: found the engine's end, expected an answer to each shot; send them to another one")
        if time.monotonic() > deadline:
            sys.exit("send.py: found no answer for 120 s, expected one for each shot; see the engine's console")
    for index in range(len(records)):
        status, flips = answers[index]
        print(f"{index} {status} {flips:x}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("send.py: found other words, expected the region's path, a file of shots and, if wanted, one of soft bytes")
    main(*sys.argv[1:])
