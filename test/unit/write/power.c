/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The power fails: at any call of processes that write and sync, with any part of what was not synced lost
 * (power.h). A process of another boot must find every synced byte. A byte that was written since then is as
 * it was, as it was to be, zero, or cannot be read; and the file goes on working. Here are the stories, in
 * the words of power_steps.h; power_try.h has how much of each is tried.
 */
#include "core/file/logged.h"
#include "core/file/sweep.h"
#include "test/lib/power_try.h"

#include <criterion/criterion.h>

static void strided(void)
{
	add_steps("open dir each 6 0 131072 262144 sync");
	add_steps("each 6 131072 131072 262144 write 4096 4096 write 64 192 sync write 131072 70016 close");
}

static void staged(void)
{
	add_steps(
		"open dir each 8 0 640 640 sync each 8 1280 640 1280 sync each 100 0 6400 6400 write 0 64 close");
	add_steps("open write 64 640 sync close");
}

/* More records than the live file has room for, twice, and what was synced among them. */
static void spilled(void)
{
	add_steps(
		"open dir irregular 300 0 sync irregular 600 64 irregular 600 0 sync irregular 300 64 close");
}

/* One syncs what the other has written: staged, spilled, and closed. */
static void by_another(void)
{
	add_steps(
		"A: open dir write 0 3200 write 6400 640 B: open sync A: write 64 640 write 12800 128000 B: write 200000 640 sync");
	add_steps("A: irregular 600 1280 B: sync A: write 64 64 close B: sync");
	add_steps("A: open write 640 64000 B: write 640 640 A: close B: close open sync close");
}

/* A reader keeps a map of what is there, and is told when there is more. */
static void mapped(void)
{
	add_steps("open dir close");
	for (int i = 0; i < 10; i++)
		add_steps("open write %d 6400 %s close", i * 6400, i == 4 ? "sync" : "");
	add_steps("B: open read A: open write 1280 6400 sync close B: read close");
}

/* The way to write a checkpoint: another file, synced, takes the name. */
static void renamed(void)
{
	add_steps("open dir write 0 64000 write 128000 6400 sync close");
	add_steps("t: open write 0 64000 write 64000 128000 sync close f: rename dir");
}

static void truncated(void)
{
	add_steps(
		"open dir write 0 128000 sync truncate 64000 write 96000 6400 sync truncate 32000 truncate 128000 sync");
	add_steps("truncate 0 write 640 6400 sync close");
}

static void rewritten(void)
{
	add_steps("open dir write 0 128000 sync close rewrite write 0 96000 sync close");
	add_steps("B: open write 640 640 A: rewrite write 0 6400 close B: close");
}

static void flattened(void)
{
	add_steps("open dir write 0 128000 sync close flatten");
}

static void moved(void)
{
	add_steps("A: open dir write 640 128000 B: open write 200000 6400 A: sync B: write 0 1280");
	add_steps("A: move B: write 6400 1280 A: write 12800 64000 sync write 12800 640 B: close A: close");
}

static void bare(void)
{
	power_options = "";
	add_steps("open dir write 0 6400 sync write 640 640 append 6400 1280 sync truncate 1280 sync close");
}

static void no_longer_bare(void)
{
	power_options = "";
	add_steps("A: open dir write 0 6400 sync write 640 640 write 12800 256000 write 64 640 sync");
	add_steps("B: open write 6400 640 A: close B: close");
}

/* Nothing is synced but by the way: whoever comes after must be able to go on. */
static void never_synced(void)
{
	add_steps(
		"A: open dir write 0 128000 B: open write 128000 6400 A: write 64000 1280 B: close A: close");
	add_steps("B: open write 0 64000 close A: unlink");
}

static void overwritten(void)
{
	add_steps("A: open dir write 0 64000 sync close B: open write 0 6400 each 20 1280 640 1920 sync close");
	add_steps("B: compact");
	add_steps("A: open write 6400 1280 truncate 32000 write 51200 6400 sync close compact");
}

static void overwritten_as_a_whole(void)
{
	add_steps("A: open dir write 0 64000 sync close B: open write 0 64000 sync close compact");
	add_steps("A: open write 0 64000 close compact");
}

/* The first 640 bytes keep a log from going, and are copied. The second process sweeps as well. */
static void swept(void)
{
	logged_least_len = 16384;
	add_steps("A: open dir write 0 96000 sync close B: open write 640 95360 close A: open write 640 95360 close");
	add_steps("B: open write 640 95360 sync close A: open write 640 95360 close open write 0 96000 close");
}

/* Each close but the first makes one of two logs. */
static void swept_little(void)
{
	sweep_little_at = 2;
	add_steps("A: open dir write 0 6400 sync close B: open write 6400 6400 sync close");
	add_steps("A: open write 12800 640 close B: open write 640 640 sync truncate 9600 close");
	add_steps("A: open write 3200 1280 sync write 9600 640 close");
}

Test(power, strided_writes_and_syncs, .timeout = 900) { fail_anywhere_in(strided); }
Test(power, small_writes_that_are_staged, .timeout = 900) { fail_anywhere_in(staged); }
Test(power, more_records_than_the_live_file_holds, .timeout = 900) { fail_anywhere_in(spilled); }
Test(power, a_sync_by_another_process, .timeout = 900) { fail_anywhere_in(by_another); }
Test(power, a_map_that_a_reader_keeps, .timeout = 900) { fail_anywhere_in(mapped); }
Test(power, a_synced_file_renamed_over_another, .timeout = 900) { fail_anywhere_in(renamed); }
Test(power, truncations, .timeout = 900) { fail_anywhere_in(truncated); }
Test(power, a_file_that_is_written_anew, .timeout = 900) { fail_anywhere_in(rewritten); }
Test(power, a_file_that_becomes_a_plain_one, .timeout = 900) { fail_anywhere_in(flattened); }
Test(power, a_file_that_is_moved_into_its_body, .timeout = 900) { fail_anywhere_in(moved); }
Test(power, a_file_that_is_compacted, .timeout = 900) { fail_anywhere_in(overwritten); }
Test(power, a_file_that_is_compacted_without_a_copy, .timeout = 900)
{
	fail_anywhere_in(overwritten_as_a_whole);
}
Test(power, a_file_that_is_swept, .timeout = 900) { fail_anywhere_in(swept); }
Test(power, a_file_of_whose_logs_one_is_made, .timeout = 900) { fail_anywhere_in(swept_little); }
Test(power, a_small_file, .timeout = 900) { fail_anywhere_in(bare); }
Test(power, a_small_file_that_grows, .timeout = 900) { fail_anywhere_in(no_longer_bare); }
Test(power, a_file_that_is_never_synced, .timeout = 900) { fail_anywhere_in(never_synced); }
