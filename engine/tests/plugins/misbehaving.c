/*
 * A decoder plugin for tests. Mechanism i fires detector i alone, so a sound answer names the detectors that
 * fired. Where detector 0 fired it does what its configuration says. Configuration "child" starts a process, and
 * "wait PATH" waits until a process has the FIFO at PATH open to write.
 *
 * VERSION: its interface version. WITHOUT_DESTROY: it lacks a symbol.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION 1
#endif

typedef struct {
    char does[32];
    uint64_t mechanisms;
    int is_poisoned;
    /* It allocates on each shot. */
    void *allocated;
} decoder;

uint32_t deq_decoder_abi_version(void) { return VERSION; }

const char *deq_decoder_last_error(void) { return "as its configuration says"; }

#ifndef WITHOUT_DESTROY
void deq_decoder_destroy(void *handle) {
    decoder *d = handle;
    if (d) free(d->allocated);
    free(d);
}
#endif

int32_t deq_decoder_create(uint64_t vertex_num, uint64_t edge_num, const double *edge_probs,
                           const uint64_t *edge_offsets, const uint64_t *edge_vertices, size_t edge_vertices_len,
                           const char *config_json, void **out_handle) {
    (void)edge_probs;
    for (uint64_t i = 0; i < edge_num; i++)
        if (edge_offsets[i + 1] != i + 1 || edge_vertices[i] != i) return -2;
    if (edge_num != vertex_num || edge_vertices_len != edge_num) return -2;
    if (config_json && !strcmp(config_json, "refuse")) return -1;
    if (config_json && !strcmp(config_json, "crash early")) raise(SIGKILL);
    if (config_json && !strcmp(config_json, "child")) {
        /* A process that has this FIFO open for as long as it runs. */
        int fifo = open(getenv("PLUGIN_FIFO"), O_WRONLY);
        if (fifo < 0) return -1;
        if (!fork()) for (;;) pause();
        close(fifo);
    }
    if (config_json && !strncmp(config_json, "wait ", 5)) {
        int fifo = open(config_json + 5, O_RDONLY);
        if (fifo < 0) return -1;
        close(fifo);
    }
    decoder *d = calloc(1, sizeof *d);
    if (config_json) strncpy(d->does, config_json, sizeof d->does - 1);
    d->mechanisms = edge_num;
    *out_handle = d;
    return 0;
}

int32_t deq_decoder_decode(void *handle, uint64_t syndrome_size, const uint8_t *syndrome, size_t syndrome_len,
                           uint64_t *out, size_t out_cap, size_t *out_len) {
    decoder *d = handle;
    size_t count = 0;
    if (syndrome_len != (syndrome_size + 7) / 8) return -2;
    free(d->allocated);
    d->allocated = malloc(64);
    if (d->is_poisoned) return -4;
    for (uint64_t i = 0; i < syndrome_size; i++)
        if (syndrome[i / 8] >> (7 - i % 8) & 1) {
            if (count < out_cap) out[count] = i;
            count++;
        }
    *out_len = count;
    if (!(syndrome[0] & 0x80)) return 0;
    if (!strcmp(d->does, "fail")) return -1;
    if (!strcmp(d->does, "argument")) return -2;
    if (!strcmp(d->does, "panic")) { d->is_poisoned = 1; return -3; }
    if (!strcmp(d->does, "poisoned")) { d->is_poisoned = 1; return -4; }
    if (!strcmp(d->does, "odd status")) return 77;
    if (!strcmp(d->does, "no room")) return 1;
    if (!strcmp(d->does, "long")) *out_len = out_cap + 1;
    if (!strcmp(d->does, "longest")) *out_len = (size_t)-1;
    if (!strcmp(d->does, "write past")) out[out_cap] = 1;
    if (!strcmp(d->does, "no mechanism")) out[0] = d->mechanisms;
    if (!strcmp(d->does, "nothing")) *out_len = 0;
    if (!strcmp(d->does, "other")) out[0] = 1;
    if (!strcmp(d->does, "hang")) for (;;) pause();
    if (!strcmp(d->does, "crash")) raise(SIGKILL);
    if (!strcmp(d->does, "exit")) _exit(0);
    return 0;
}
