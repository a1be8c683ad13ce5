/* Lists, texts and levels; buffers that are too small get what fits and learn what is needed. */
#include "check.h"

enum { COUNT = 50000 };

static float field[COUNT];
static double complex_field[2 * 100];

static void levels(sf_job *job, uint64_t version)
{
    int level = 0;
    OK(sf_poll(job, version, &level));
    CHECK(level == SF_LEVEL_LOCAL);
    OK(sf_poll(job, version, NULL));
    OK(sf_wait(job, version, SF_LEVEL_MEMORY));
    OK(sf_wait(job, version, SF_LEVEL_LOCAL));
    FAILS(sf_wait(job, version, SF_LEVEL_RING), SF_UNSUPPORTED, "level ring");
    FAILS(sf_wait(job, version, SF_LEVEL_GLOBAL), SF_UNSUPPORTED, "level global");
    CHECK(SF_LEVEL_MEMORY < SF_LEVEL_LOCAL && SF_LEVEL_RING < SF_LEVEL_GLOBAL);
}

/* The setting interval is off here: nothing is ever due. */
static void points(sf_job *job)
{
    int due = -1;
    uint64_t taken = 99;
    OK(sf_need_checkpoint(job, &due));
    CHECK(due == 0);
    OK(sf_point(job, &taken));
    CHECK(taken == 0);
    OK(sf_point(job, NULL));
    FAILS(sf_need_checkpoint(job, NULL), SF_INVALID, "due");
}

static void checkpoint_list(sf_job *job)
{
    sf_checkpoint_info list[4];
    size_t count = 0;
    OK(sf_list(job, NULL, 0, &count));
    CHECK(count == 3);
    memset(list, 0xee, sizeof list);
    FAILS(sf_list(job, list, 2, &count), SF_INVALID, "struct_bytes");
    list[0].struct_bytes = sizeof list[0];
    OK(sf_list(job, list, 2, &count));
    CHECK(count == 3 && list[0].version == 4 && list[1].version == 3);
    CHECK(list[2].version == 0xeeeeeeeeeeeeeeee);
    OK(sf_list(job, list, 4, &count));
    CHECK(count == 3 && list[2].version == 2);
    CHECK(list[3].version == 0xeeeeeeeeeeeeeeee);
    for (size_t i = 0; i < count; i++) {
        const sf_checkpoint_info *one = &list[i];
        CHECK(one->level == SF_LEVEL_LOCAL && one->ranks == 1);
        CHECK(one->captured_bytes == sizeof field + sizeof complex_field);
        CHECK(one->pages == one->zero_pages + one->duplicate_pages + one->old_pages +
                                one->new_pages);
        CHECK(one->stored_bytes > 0 && one->taken_ns > 1600000000000000000u);
        CHECK(one->total_ns >= one->blocked_ns && one->struct_bytes == sizeof *one);
        CHECK(i == 0 || list[i - 1].sequence > one->sequence);
    }
}

/* A program that was compiled with a later header, whose struct is longer. */
static void longer_structs(sf_job *job)
{
    struct {
        sf_checkpoint_info known;
        uint64_t later[2];
    } list[3];
    size_t count = 0;
    memset(list, 0xee, sizeof list);
    list[0].known.struct_bytes = sizeof list[0];
    OK(sf_list(job, (sf_checkpoint_info *)list, 3, &count));
    CHECK(count == 3 && list[0].known.version == 4 && list[2].known.version == 2);
    for (size_t i = 0; i < count; i++) {
        CHECK(list[i].known.struct_bytes == sizeof list[0]);
        CHECK(list[i].later[0] == 0 && list[i].later[1] == 0);
    }
    list[0].known.struct_bytes = sizeof list[0] + 1;
    FAILS(sf_list(job, (sf_checkpoint_info *)list, 3, &count), SF_INVALID, "struct_bytes");
    list[0].known.struct_bytes = SIZE_MAX / 8 * 8;
    FAILS(sf_list(job, (sf_checkpoint_info *)list, 3, &count), SF_INVALID, "capacity");
}

static void region_list(sf_job *job, const char *long_name)
{
    sf_region_info list[3];
    size_t count = 0;
    list[0].struct_bytes = sizeof list[0];
    OK(sf_regions(job, 4, NULL, 0, &count));
    CHECK(count == 2);
    OK(sf_regions(job, 4, list, 1, &count));
    CHECK(count == 2);
    OK(sf_regions(job, 4, list, 3, &count));
    CHECK(count == 2);
    CHECK(strcmp(list[0].name, long_name) == 0 && strlen(list[0].name) == SF_NAME_BYTES - 1);
    CHECK(list[0].bytes == sizeof field && list[0].elem == 4);
    CHECK(strcmp(list[1].name, "complex") == 0);
    CHECK(list[1].bytes == sizeof complex_field && list[1].elem == 8);
}

static void report(sf_job *job, uint64_t version)
{
    size_t needed = 0;
    OK(sf_report(job, version, NULL, 0, &needed));
    CHECK(needed > 100);
    char *text = (char *)malloc(needed);
    CHECK(text != NULL);
    OK(sf_report(job, version, text, needed, &needed));
    CHECK(strlen(text) + 1 == needed);
    CHECK(strstr(text, "captured") && strstr(text, "stored") && strstr(text, "survives"));
    char cut[10];
    memset(cut, 'x', sizeof cut);
    OK(sf_report(job, version, cut, sizeof cut, &needed));
    CHECK(strlen(cut) == 9 && memcmp(cut, text, 9) == 0 && needed == strlen(text) + 1);
    free(text);
}

static void restart_report(sf_job *job)
{
    char text[512];
    size_t needed = 0;
    OK(sf_unprotect(job, "complex"));
    OK(sf_restart(job, 3, NULL));
    OK(sf_restart_report(job, text, sizeof text, &needed));
    CHECK(strlen(text) + 1 == needed);
    CHECK(strstr(text, "restarted from checkpoint 3\n") == text);
    CHECK(strstr(text, "region \"complex\"") != NULL);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    char long_name[SF_NAME_BYTES];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    sf_job *job = open_job(argv[1], "keep=3");
    OK(sf_protect_typed(job, long_name, field, COUNT, SF_F32));
    OK(sf_protect_typed(job, "complex", complex_field, 100, SF_C64));
    for (int i = 0; i < 4; i++) {
        for (size_t at = 0; at < COUNT; at++)
            field[at] = (float)(at * (size_t)(i + 1));
        CHECK(take(job) == (uint64_t)i + 1);
    }
    levels(job, 4);
    points(job);
    checkpoint_list(job);
    longer_structs(job);
    region_list(job, long_name);
    report(job, 4);
    restart_report(job);
    OK(sf_finalize(job));

    /* Another run knows the reports of checkpoints that it did not take. */
    job = open_job(argv[1], "keep=3");
    levels(job, 4);
    checkpoint_list(job);
    report(job, 3);
    OK(sf_finalize(job));
    return 0;
}
