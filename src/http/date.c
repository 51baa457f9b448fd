#include "http/date.h"

#include "http/put.h"

#define DAY  86400
#define LAST 253402300799 /* 9999-12-31 23:59:59 */

static const char days[7][4] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };

struct date {
    unsigned year, month, day; /* month and day from 1 */
};

/* Days since 1970, by years that begin in March: the leap day is then the last one. */
static struct date date_of(unsigned days_since)
{
    unsigned n = days_since + 719468; /* days from 0000-03-01 to 1970-01-01 */
    unsigned era = n / 146097, in_era = n % 146097;
    unsigned year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    unsigned in_year = in_era - (365 * year + year / 4 - year / 100);
    unsigned from_march = (5 * in_year + 2) / 153;
    struct date date = {
        .year = year + era * 400 + (from_march >= 10),
        .month = from_march < 10 ? from_march + 3 : from_march - 9,
        .day = in_year - (153 * from_march + 2) / 5 + 1,
    };

    return date;
}

static unsigned days_to(const struct date *date)
{
    unsigned year = date->year - (date->month <= 2);
    unsigned from_march = date->month > 2 ? date->month - 3 : date->month + 9;
    unsigned in_year = (153 * from_march + 2) / 5 + date->day - 1;

    return year * 365 + year / 4 - year / 100 + year / 400 + in_year - 719468;
}

void date_put(char out[DATE_SIZE], int64_t seconds)
{
    struct put put = put_into(out, DATE_SIZE);
    uint64_t at = (uint64_t) (seconds < 0 ? 0 : seconds > LAST ? LAST : seconds);
    unsigned since = (unsigned) (at / DAY), rest = (unsigned) (at % DAY);
    struct date date = date_of(since);

    put_text(&put, days[since % 7]);
    put_text(&put, ", ");
    put_padded(&put, date.day, 2);
    put_char(&put, ' ');
    put_text(&put, months[date.month - 1]);
    put_char(&put, ' ');
    put_padded(&put, date.year, 4);
    put_char(&put, ' ');
    put_padded(&put, rest / 3600, 2);
    put_char(&put, ':');
    put_padded(&put, rest / 60 % 60, 2);
    put_char(&put, ':');
    put_padded(&put, rest % 60, 2);
    put_text(&put, " GMT");
    put_char(&put, '\0');
}

static bool number_at(struct slice text, size_t at, size_t len, unsigned *ret)
{
    uint64_t value;

    if (!slice_number((struct slice){ text.at + at, len }, &value))
        return false;
    *ret = (unsigned) value;
    return true;
}

static bool name_at(struct slice text, size_t at, const char (*names)[4], size_t count,
                    unsigned *ret)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(text.at + at, names[i], 3) == 0) {
            *ret = (unsigned) i;
            return true;
        }
    return false;
}

/* Sun, 06 Nov 1994 08:49:37 GMT
 * 0    5  8   12   17 20 23 25 */
bool date_parse(struct slice text, int64_t *ret_seconds)
{
    unsigned weekday, month, hour, minute, second;
    struct date date, same;

    if (text.len != DATE_SIZE - 1)
        return false;
    if (memcmp(text.at + 3, ", ", 2) != 0 || text.at[7] != ' ' || text.at[11] != ' ' ||
        text.at[16] != ' ' || text.at[19] != ':' || text.at[22] != ':' ||
        memcmp(text.at + 25, " GMT", 4) != 0)
        return false;
    if (!name_at(text, 0, days, 7, &weekday) || !name_at(text, 8, months, 12, &month) ||
        !number_at(text, 5, 2, &date.day) || !number_at(text, 12, 4, &date.year) ||
        !number_at(text, 17, 2, &hour) || !number_at(text, 20, 2, &minute) ||
        !number_at(text, 23, 2, &second))
        return false;
    date.month = month + 1;
    if (date.year < 1970 || date.day == 0 || hour > 23 || minute > 59 || second > 60)
        return false;
    same = date_of(days_to(&date));
    if (same.month != date.month) /* 31 April is 1 May */
        return false;
    *ret_seconds = (int64_t) days_to(&date) * DAY + hour * 3600 + minute * 60 + second;
    return true;
}
