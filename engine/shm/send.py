#!/usr/bin/env python3
"""Sends a b8 file of shots to an engine through shared memory and prints an answer a line.

    python3 send.py /dev/shm/pinwheel/input-NAME shots.b8

"index status observables" by index. Standard library alone; README.md says what Python can promise about ordering.
"""

import fcntl
import mmap
import os
import struct
import sys
import time

MAGIC = int.from_bytes(b"PWSHM001", "little")
STATE, GRANTED, SESSION, PID, HEARTBEAT = 144, 152, 256, 264, 272
IN_FLIGHT, ERROR = 0xEEEE_EEEE_EEEE_EEEE, 0xDEAD
WINDOW = 64


def main(path, shots_path):
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    region = mmap.mmap(file, os.fstat(file).st_size)
    # One element is one aligned eight-byte load or store.
    words = memoryview(region).cast("Q")
    get = lambda at: words[at // 8]

    def put(at, value):
        words[at // 8] = value

    if get(0) != MAGIC or get(8) != 1 or get(16) != len(region) or get(88) != 0:
        sys.exit("send.py: found a region of another version or encoding, expected version 1 and bits")
    slots, rx_at, tx_at, shots_at, shot_stride = (get(at) for at in (24, 32, 40, 48, 56))
    answers_at, answer_stride, bits, streams, observables = (get(at) for at in (64, 72, 80, 96, 104))
    size = (bits + 7) // 8
    with open(shots_path, "rb") as shots:
        data = shots.read()
    records = [data[at : at + size] for at in range(0, len(data), size)]

    session = time.time_ns()
    put(PID, os.getpid())
    put(SESSION, session)
    deadline = time.monotonic() + 10
    while get(GRANTED) != session or get(STATE) != 1:
        if time.monotonic() > deadline:
            sys.exit("send.py: found no engine within 10 s, expected one; see its console")
        time.sleep(0.001)

    answers, waiting, sent, beat = {}, {}, 0, 0
    deadline = time.monotonic() + 120
    while len(answers) < len(records):
        beat += 1
        put(HEARTBEAT, beat)
        slot = sent % slots
        if sent < len(records) and len(waiting) < WINDOW and get(rx_at + 8 * slot) == 0 and get(tx_at + 8 * slot) == 0:
            at = shots_at + slot * shot_stride
            record = struct.pack("<4Q", sent // streams, sent % streams, bits, 0) + records[sent]
            region[at : at + shot_stride] = record.ljust(shot_stride, b"\0")
            put(rx_at + 8 * slot, at)
            waiting[slot] = sent
            sent += 1
        for slot in list(waiting):
            word = get(tx_at + 8 * slot)
            if word in (0, IN_FLIGHT):
                continue
            at = answers_at + slot * answer_stride
            sequence, stream, _latency_ns, _observables = struct.unpack_from("<4Q", region, at)
            flips = get(at + 32) if observables else 0
            put(tx_at + 8 * slot, 0)
            del waiting[slot]
            answers[sequence * streams + stream] = (word & 0xFFFF if word >> 48 == ERROR else 0, flips)
        if time.monotonic() > deadline:
            sys.exit("send.py: found answers missing after 120 s, expected all")
    for index in range(len(records)):
        status, flips = answers[index]
        print(f"{index} {status} {flips:x}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("send.py: found other words, expected the region's path and a file of shots")
    main(sys.argv[1], sys.argv[2])
