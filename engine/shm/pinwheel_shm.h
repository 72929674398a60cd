/* A region of shared memory between an engine and a client that sends it shots: C11, little-endian
 * hosts. Layout 2; layout 3 where shots may have soft bytes. README.md beside this file says what each
 * word means; the engine's own offsets are in feed/shm/layout.rs, and a test compares the two. */
#ifndef PINWHEEL_SHM_H
#define PINWHEEL_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PW_MAGIC UINT64_C(0x3130304d48535750) /* "PWSHM001", in every layout */
#define PW_VERSION 2
#define PW_VERSION_SOFT 3 /* of a region whose shots may have soft bytes */
#define PW_SOFT UINT32_C(0x80000000) /* beside the stream, in layout 3: the shot has soft bytes */
#define PW_HEADER_BYTES 4096
#define PW_STATE_LIVE 1
#define PW_STATE_CLOSED 2

typedef _Atomic uint64_t pw_word;

/* The first PW_HEADER_BYTES of a region. */
typedef struct {
    pw_word magic;
    pw_word version;
    pw_word region_bytes;
    pw_word slots;
    pw_word shots_at;
    pw_word shot_stride;
    pw_word answers_at;
    pw_word answer_stride;
    pw_word bits;
    pw_word encoding;
    pw_word streams;
    pw_word observables;
    pw_word soft_bytes; /* of a shot; 0 in layout 2 */
    pw_word reserved_0[3];
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

/* Turn in the lower half of a head: one more than the shot's position, which counts from 0 in each session. */
typedef struct {
    pw_word head; /* turn, stream << 32, with PW_SOFT if it has soft bytes */
    uint64_t sequence;
    /* then the bits, and in layout 3 the soft bytes, from the next word on; the rest of the last word of each is 0 */
} pw_shot;

typedef struct {
    pw_word head; /* turn, status << 32: 0 answered, 260 answered but not to be trusted, else the error code */
    uint64_t sequence, stream, latency_ns;
    /* then the observables, as bits */
} pw_answer;

/* The record of the shot at a position, and of its answer: slots are used in turn. */
static inline pw_shot *pw_shot_of(pw_header *region, uint64_t position) {
    return (pw_shot *)((char *)region + region->shots_at + (position & (region->slots - 1)) * region->shot_stride);
}

static inline pw_answer *pw_answer_of(pw_header *region, uint64_t position) {
    return (pw_answer *)((char *)region + region->answers_at + (position & (region->slots - 1)) * region->answer_stride);
}

/* Where the soft bytes of the shot at a position are, in a region of layout 3. */
static inline unsigned char *pw_soft_of(pw_header *region, uint64_t position) {
    uint64_t bytes = region->encoding ? region->bits * 4 : (region->bits + 7) / 8;
    return (unsigned char *)(pw_shot_of(region, position) + 1) + (bytes + 7) / 8 * 8;
}

/* Hands the engine the shot that has been written at the position. The answer of the shot that had its slot before must
 * have been read. */
static inline void pw_publish(pw_header *region, uint64_t position, uint32_t stream) {
    uint64_t head = (uint64_t)stream << 32 | (uint32_t)(position + 1);
    atomic_store_explicit(&pw_shot_of(region, position)->head, head, memory_order_release);
}

/* Whether the answer to the shot at the position is there; its status. Ask only until it was. */
static inline int pw_answered(pw_header *region, uint64_t position, uint32_t *status) {
    uint64_t head = atomic_load_explicit(&pw_answer_of(region, position)->head, memory_order_acquire);
    *status = (uint32_t)(head >> 32);
    return (uint32_t)head == (uint32_t)(position + 1);
}

#endif
