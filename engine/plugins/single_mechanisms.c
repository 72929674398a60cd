/*
 * A decoder plugin in C: explains a shot by single mechanisms, the largest first.
 *
 * Exact for shots of one mechanism, and for mechanisms that share no detector. It chooses, again and again,
 * a mechanism all of whose detectors are still to explain, with the most detectors and then the highest
 * probability. Where none is left over but a detector is, it reports an error.
 *
 *     cc -std=c11 -O2 -shared -fPIC -o single_mechanisms.so engine/plugins/single_mechanisms.c
 *     pinwheel run --decoder plugin:./single_mechanisms.so
 *
 * The interface is that of the crate deq-decoder-abi, version 1; its header deq_decoder.h declares it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_OK = 0, STATUS_TOO_SMALL = 1, STATUS_ERROR = -1, STATUS_INVALID = -2 };

typedef struct {
    uint64_t detectors, mechanisms;
    /* Of mechanism m: the detectors from offsets[m] to offsets[m + 1]. */
    uint64_t *offsets, *members;
    /* The mechanisms in the order in which they are tried. */
    uint64_t *order;
    /* A byte for each detector that is still to explain. */
    uint8_t *left;
} decoder;

static _Thread_local char said[160];

/* qsort has no room for a context; create is one thread's at a time. */
static _Thread_local const double *sort_probabilities;
static _Thread_local const uint64_t *sort_offsets;

static int larger_first(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    uint64_t of_x = sort_offsets[x + 1] - sort_offsets[x], of_y = sort_offsets[y + 1] - sort_offsets[y];
    if (of_x != of_y) return of_x > of_y ? -1 : 1;
    if (sort_probabilities[x] != sort_probabilities[y]) return sort_probabilities[x] > sort_probabilities[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

uint32_t deq_decoder_abi_version(void) { return 1; }

const char *deq_decoder_last_error(void) { return said[0] ? said : NULL; }

void deq_decoder_destroy(void *handle) {
    decoder *d = handle;
    if (!d) return;
    free(d->offsets);
    free(d->members);
    free(d->order);
    free(d->left);
    free(d);
}

int32_t deq_decoder_create(uint64_t vertex_num, uint64_t edge_num, const double *edge_probs,
                           const uint64_t *edge_offsets, const uint64_t *edge_vertices, size_t edge_vertices_len,
                           const char *config_json, void **out_handle) {
    if (config_json && config_json[0]) {
        snprintf(said, sizeof said, "it takes no configuration");
        return STATUS_INVALID;
    }
    decoder *d = calloc(1, sizeof *d);
    if (!d) return STATUS_ERROR;
    d->detectors = vertex_num;
    d->mechanisms = edge_num;
    d->offsets = malloc((edge_num + 1) * sizeof *d->offsets);
    d->members = malloc((edge_vertices_len + 1) * sizeof *d->members);
    d->order = malloc((edge_num + 1) * sizeof *d->order);
    d->left = malloc(vertex_num + 1);
    if (!d->offsets || !d->members || !d->order || !d->left) {
        deq_decoder_destroy(d);
        snprintf(said, sizeof said, "there is no memory for the model");
        return STATUS_ERROR;
    }
    memcpy(d->offsets, edge_offsets, (edge_num + 1) * sizeof *d->offsets);
    if (edge_vertices_len) memcpy(d->members, edge_vertices, edge_vertices_len * sizeof *d->members);
    for (uint64_t m = 0; m < edge_num; m++) d->order[m] = m;
    sort_probabilities = edge_probs;
    sort_offsets = d->offsets;
    qsort(d->order, edge_num, sizeof *d->order, larger_first);
    *out_handle = d;
    return STATUS_OK;
}

int32_t deq_decoder_decode(void *handle, uint64_t syndrome_size, const uint8_t *syndrome, size_t syndrome_len,
                           uint64_t *out, size_t out_cap, size_t *out_len) {
    decoder *d = handle;
    uint64_t left = 0;
    if (syndrome_size != d->detectors || syndrome_len != (syndrome_size + 7) / 8) return STATUS_INVALID;
    /* The first detector is the most significant bit of the first byte. */
    for (uint64_t i = 0; i < syndrome_size; i++) left += d->left[i] = syndrome[i / 8] >> (7 - i % 8) & 1;
    *out_len = 0;
    for (uint64_t at = 0; at < d->mechanisms && left; at++) {
        uint64_t m = d->order[at], first = d->offsets[m], end = d->offsets[m + 1], i = first;
        while (i < end && d->left[d->members[i]]) i++;
        if (i < end) continue;
        for (i = first; i < end; i++) d->left[d->members[i]] = 0;
        left -= end - first;
        if (*out_len < out_cap) out[*out_len] = m;
        ++*out_len;
    }
    if (left) {
        snprintf(said, sizeof said, "%llu detectors are left without a mechanism", (unsigned long long)left);
        return STATUS_ERROR;
    }
    return *out_len > out_cap ? STATUS_TOO_SMALL : STATUS_OK;
}
