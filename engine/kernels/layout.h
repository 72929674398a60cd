// What host and kernels share: the arguments of a silo's kernel and the seat of each worker.
//
// engine/src/device/cuda/layout.rs has the same structures; both sides assert the sizes. Addresses are the device's
// unless they say otherwise.
#ifndef PINWHEEL_LAYOUT_H
#define PINWHEEL_LAYOUT_H

#include "seam.h"

// One worker: its words in the host's memory, and how far it got.
struct Seat {
    u64 *address;   // mailbox: the host's address of the payload
    u64 *job;       // mailbox: number of the job buffer
    u64 *doorbell;  // mailbox: generation, stored last (S3)
    u64 *ready;     // generation << 2 | 1, stored last (S4)
    u64 *report;    // four words: time of the last graph in ns; detection events removed, ever; when it began and ended
    u64 seen;       // generation last taken
    u64 removed;    // detection events removed, ever
};

// One silo: frozen into its graphs.
struct Silo {
    u64 payload;         // payload memory
    u64 payload_host;    // the same, by the host's address: what mailboxes hold
    u64 payload_words;   // its words
    u64 *residuals_out;  // job buffers: residual detectors
    u64 *flips_out;      // job buffers: observables that the predecoder flipped
    u64 *syndromes;      // a worker's copy of its shot
    u64 *residuals;      // what the predecoder leaves of it
    u64 *flips;          // observables that the predecoder flips
    struct Seat *seats;
    const u32 *near_from;    // by detector: where its neighbourhood begins, one more at the end
    const u32 *near_word;    // word of the syndrome
    const u64 *near_mask;    // bits there
    const u32 *way_from;     // by detector: where its resolutions begin, one more at the end
    const u32 *way_partner;  // the partner, or BOUNDARY
    const u64 *way_flips;    // observable_words each
    u32 words;
    u32 observable_words;
    u32 detectors;  // 0: everything is handed on
    u32 jobs;
};

#define BOUNDARY 0xffffffffu
#define READY 1ull

#ifdef __cplusplus
static_assert(sizeof(struct Seat) == 56 && sizeof(struct Silo) == 136, "as layout.rs has them");
#else
_Static_assert(sizeof(struct Seat) == 56 && sizeof(struct Silo) == 136, "as layout.rs has them");
#endif
#endif
