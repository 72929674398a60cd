/* Sends a b8 file of shots to an engine through shared memory and prints an answer a line:
 *
 *     cc -std=c11 -O2 -o send send.c && ./send /dev/shm/pinwheel/input-NAME shots.b8 [soft.b8]
 *
 * "index status observables" by index; status 0 is answered, anything else the error code; observables are hexadecimal,
 * the first one the lowest bit. */
#include "pinwheel_shm.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *said) {
    fprintf(stderr, "send: %s\n", said);
    return 2;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count != 3 && count != 4)
        return fail("found other words, expected the region's path, a file of shots and, if wanted, one of soft bytes");
    int file = open(words[1], O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return fail("found no region there, expected one; start: pinwheel run --input shm:NAME");
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(file, F_SETLK, &whole) < 0) return fail("found another client, expected none; end it");
    struct stat stat;
    if (fstat(file, &stat) < 0 || stat.st_size < PW_HEADER_BYTES) return fail("found no whole region");
    pw_header *region = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (region == MAP_FAILED) return fail("found the region not to be mapped");
    if (region->magic != PW_MAGIC || region->region_bytes != (uint64_t)stat.st_size)
        return fail("found no whole region");
    if (region->version != PW_VERSION && region->version != PW_VERSION_SOFT) {
        fprintf(stderr, "send: found a region of layout %llu, expected layout %d or %d; use the header of the engine's release\n",
            (unsigned long long)region->version, PW_VERSION, PW_VERSION_SOFT);
        return 2;
    }
    if (region->encoding != 0) return fail("found a region of 32-bit words, expected bits");

    size_t bytes = (size_t)((region->bits + 7) / 8);
    FILE *shots = fopen(words[2], "rb");
    if (!shots) return fail("found no file of shots, expected one");
    fseek(shots, 0, SEEK_END);
    uint64_t size = (uint64_t)ftell(shots), total = size / bytes;
    if (size % bytes != 0) {
        fprintf(stderr, "send: found %llu bytes after the last whole shot, expected shots of %llu bytes; "
            "get the whole file, or check that it is of the engine's model\n", (unsigned long long)(size % bytes), (unsigned long long)bytes);
        return 2;
    }
    rewind(shots);
    size_t soft_bytes = (size_t)region->soft_bytes;
    FILE *soft = count == 4 ? fopen(words[3], "rb") : NULL;
    if (count == 4) {
        if (!soft) return fail("found no file of soft bytes, expected one");
        if (soft_bytes == 0) return fail("found soft bytes, expected none: the engine has no map of them");
        fseek(soft, 0, SEEK_END);
        if ((uint64_t)ftell(soft) != total * soft_bytes)
            return fail("found another number of soft bytes than the shots have");
        rewind(soft);
    }
    /* The status of each answer, then its observables. */
    size_t flip_words = (size_t)((region->observables + 63) / 64), row = 1 + (flip_words ? flip_words : 1);
    uint64_t *answers = calloc((size_t)total + 1, row * sizeof *answers);
    uint64_t slots = region->slots, streams = region->streams;
    char *waiting = calloc((size_t)slots, 1);
    if (!answers || !waiting) return fail("found no memory");

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t session = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    region->client_pid = (uint64_t)getpid();
    region->session = session;
    double from = seconds();
    while (atomic_load_explicit(&region->granted, memory_order_acquire) != session || region->state != PW_STATE_LIVE)
        if (seconds() - from > 10) return fail("found no engine within 10 s, expected one; see its console");

    uint64_t sent = 0, heard = 0, oldest = 0;
    from = seconds();
    while (heard < total) {
        atomic_fetch_add_explicit(&region->client_heartbeat, 1, memory_order_relaxed);
        int is_live = region->state == PW_STATE_LIVE;
        /* An engine that drains answers the shots that it has taken, and no others; then it removes the file. */
        int has_ended = !is_live && fstat(file, &stat) == 0 && stat.st_nlink == 0;
        if (is_live && sent < total && !waiting[sent % slots]) {
            pw_shot *shot = pw_shot_of(region, sent);
            shot->sequence = sent / streams;
            char *record = (char *)(shot + 1);
            memset(record, 0, (bytes + 7) / 8 * 8);
            if (fread(record, 1, bytes, shots) != bytes) return fail("found the file cut short");
            uint32_t flag = 0;
            if (soft) {
                unsigned char *bytes_of_it = pw_soft_of(region, sent);
                memset(bytes_of_it, 0, (soft_bytes + 7) / 8 * 8);
                if (fread(bytes_of_it, 1, soft_bytes, soft) != soft_bytes) return fail("found the file cut short");
                flag = PW_SOFT;
            }
            pw_publish(region, sent, (uint32_t)(sent % streams) | flag);
            waiting[sent % slots] = 1;
            sent++;
        }
        for (uint64_t at = oldest; at < sent; at++) {
            uint32_t status;
            if (!waiting[at % slots] || !pw_answered(region, at, &status)) continue;
            pw_answer *answer = pw_answer_of(region, at);
            uint64_t index = answer->sequence * streams + answer->stream;
            if (index >= total) return fail("found an answer to no shot of ours");
            answers[row * index] = status;
            memcpy(&answers[row * index + 1], answer + 1, 8 * flip_words);
            waiting[at % slots] = 0;
            heard++;
            from = seconds();
        }
        while (oldest < sent && !waiting[oldest % slots]) oldest++;
        if (has_ended && heard < total)
            return fail("found the engine's end, expected an answer to each shot; send them to another one");
        if (seconds() - from > 60)
            return fail("found no answer for 60 s, expected one for each shot; see the engine's console");
    }
    for (uint64_t index = 0; index < total; index++) {
        const uint64_t *answer = answers + row * index;
        size_t top = row - 1;
        while (top > 1 && !answer[top]) top--;
        printf("%llu %llu ", (unsigned long long)index, (unsigned long long)answer[0]);
        printf("%llx", (unsigned long long)answer[top]);
        while (--top > 0) printf("%016llx", (unsigned long long)answer[top]);
        putchar('\n');
    }
    return 0;
}
