#include "cli/listing.h"

void listing_init(struct listing *listing, enum listing_form form, size_t columns,
                  const char *const *headings)
{
    listing->form = form;
    table_init(&listing->table, columns, headings);
    json_out_init(&listing->json, stdout);
    if (form == LISTING_JSON)
        json_out_array(&listing->json, NULL);
}

int listing_end(struct listing *listing, int result)
{
    if (listing->form == LISTING_JSON) {
        json_out_end(&listing->json);
        (void) json_out_finish(&listing->json);
    } else if (listing->form == LISTING_TABLE && result == 0) {
        (void) table_print(&listing->table, stdout);
    }
    table_done(&listing->table);
    return result;
}
