#include "keeper/adopt.h"

#include "base/io.h"
#include "base/log.h"
#include "keeper/sandbox.h"

#include <inttypes.h>

int adopt_all(struct keeper *k, struct err *err)
{
    uint64_t begin = io_now_us();
    uint32_t running = 0, slots = journal_slots(&k->journal);

    sandbox_rows(k, slots < HOST_SLOTS ? slots : HOST_SLOTS);
    for (uint32_t slot = 0; slot < k->slot_count; slot++) {
        struct journal_record record;
        int there = journal_read(&k->journal, slot, &record, err);

        if (there < 0)
            return -1;
        if (there == 0)
            continue;
        sandbox_adopt(k, slot, &record, false);
        running += k->sandboxes[slot].info.life == LIFE_RUNNING ||
                   k->sandboxes[slot].info.life == LIFE_PAUSED;
    }
    host_clear_strays(k);
    k->sweep = true; /* by sandbox_tick */
    log_line(LOG_INFO, "adopted sandboxes=%u to_clear=%u us=%" PRIu64, running,
             k->sandbox_count - running, io_now_us() - begin);
    return 0;
}
