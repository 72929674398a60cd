/* A region of shared memory between an engine and a client that sends it shots: C11, little-endian hosts.
 * README.md beside this file says what each word means; the engine's own offsets are in feed/shm/layout.rs, and a test
 * compares the two. */
#ifndef PINWHEEL_SHM_H
#define PINWHEEL_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PW_MAGIC UINT64_C(0x3130304d48535750) /* "PWSHM001" */
#define PW_VERSION 1
#define PW_HEADER_BYTES 4096
#define PW_STATE_LIVE 1
#define PW_STATE_CLOSED 2
#define PW_IN_FLIGHT UINT64_C(0xEEEEEEEEEEEEEEEE)
#define PW_ERROR_PREFIX UINT64_C(0xDEAD) /* of an answer word's upper 16 bits; the code is in its lower 16 */
#define PW_SHOT_HEAD_WORDS 4
#define PW_ANSWER_HEAD_WORDS 4

typedef _Atomic uint64_t pw_word;

/* The first PW_HEADER_BYTES of a region. */
typedef struct {
    pw_word magic;
    pw_word version;
    pw_word region_bytes;
    pw_word slots;
    pw_word rx_at;
    pw_word tx_at;
    pw_word shots_at;
    pw_word shot_stride;
    pw_word answers_at;
    pw_word answer_stride;
    pw_word bits;
    pw_word encoding;
    pw_word streams;
    pw_word observables;
    pw_word reserved_0[2];
    /* written by the engine */
    pw_word epoch;
    pw_word engine_heartbeat;
    pw_word state;
    pw_word granted;
    pw_word reserved_1[12];
    /* written by the client */
    pw_word session;
    pw_word client_pid;
    pw_word client_heartbeat;
    pw_word reserved_2[477];
} pw_header;

_Static_assert(sizeof(pw_header) == PW_HEADER_BYTES, "the header is one page");
_Static_assert(sizeof(pw_word) == 8, "a word is eight bytes");

typedef struct {
    uint64_t sequence, stream, bits, flags; /* flags: 0 */
    /* then the bits */
} pw_shot;

typedef struct {
    uint64_t sequence, stream, latency_ns, observables;
    /* then the observables, as bits */
} pw_answer;

static inline pw_word *pw_rx(pw_header *region, uint64_t slot) {
    return (pw_word *)((char *)region + region->rx_at) + slot;
}

static inline pw_word *pw_tx(pw_header *region, uint64_t slot) {
    return (pw_word *)((char *)region + region->tx_at) + slot;
}

static inline uint64_t pw_shot_at(pw_header *region, uint64_t slot) {
    return region->shots_at + slot * region->shot_stride;
}

static inline void *pw_answer_of(pw_header *region, uint64_t slot) {
    return (char *)region + region->answers_at + slot * region->answer_stride;
}

/* Whether the slot may be written: rx first, then tx (the other order loses a shot). */
static inline int pw_is_vacant(pw_header *region, uint64_t slot) {
    return atomic_load_explicit(pw_rx(region, slot), memory_order_acquire) == 0
        && atomic_load_explicit(pw_tx(region, slot), memory_order_acquire) == 0;
}

/* Hands the engine the shot that has been written at pw_shot_at(region, slot). */
static inline void pw_publish(pw_header *region, uint64_t slot) {
    atomic_store_explicit(pw_rx(region, slot), pw_shot_at(region, slot), memory_order_release);
}

/* The answer word of the slot, or 0 while there is none. */
static inline uint64_t pw_answered(pw_header *region, uint64_t slot) {
    uint64_t word = atomic_load_explicit(pw_tx(region, slot), memory_order_acquire);
    return word == PW_IN_FLIGHT ? 0 : word;
}

/* Gives the slot back once its answer has been read. */
static inline void pw_collected(pw_header *region, uint64_t slot) {
    atomic_store_explicit(pw_tx(region, slot), 0, memory_order_release);
}

#endif
