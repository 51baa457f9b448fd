/* archive_fuzz.c - archives of images: what is listed is found, links between files end, and content is only ever read from the archive. */
#include "importer/source.h"
#include "oci/document.h"
#include "tar_sum.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1), hex[SHA256_HEX];
    int fd = memfd_create("archive", MFD_CLOEXEC);
    struct source source;
    struct blob blob;
    struct err err;
    size_t len;

    memcpy(copy, data, size);
    for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK)
        if (memcmp(copy + at + 257, "ustar", 5) == 0)
            fix_sum(copy + at);
    must(write(fd, copy, size) == (ssize_t) size);
    if (source_list(&source, fd, &err) == 0)
        for (size_t i = 0; i < source.count; i++) {
            char *text;

            if (source_find(&source, source.files[i].name, &blob, &err) < 0)
                continue;
            must(blob.fd == fd && !blob.own);
            text = blob_text(&blob, 4096, &len, hex, &err);
            must(!text || (len == blob.size && blob.at + len <= size));
            free(text);
        }
    must(source.count <= SOURCE_FILES_MAX);
    source_close(&source);
    free(copy);
    return 0;
}
