/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The power fails on a node whose disk has the logs of files (near=): power.c's test, with sync=home, where
 * what was synced is at home as well, and with sync=near, where it is near alone.
 */
#include "test/lib/power_try.h"

#include <criterion/criterion.h>

static void strided(void)
{
	add_steps("open dir each 6 0 131072 262144 sync");
	add_steps("each 6 131072 131072 262144 write 4096 4096 write 64 192 sync write 131072 70016 close");
	add_steps("open write 0 640 sync close");
}

static void by_another(void)
{
	add_steps("A: open dir write 0 3200 write 6400 640 B: open sync A: write 64 640 write 12800 128000 B: sync");
	add_steps("A: irregular 600 1280 B: sync write 640 64000 A: write 64 64 close B: sync close");
}

static void cut_and_compacted(void)
{
	add_steps("A: open dir write 0 64000 sync close B: open write 0 6400 each 20 1280 640 1920 sync close");
	add_steps("A: open write 6400 1280 truncate 32000 write 51200 6400 sync close compact");
	add_steps("rewrite write 640 6400 sync close");
}

static void drained(void)
{
	add_steps("open dir write 0 64000 sync close drain open write 6400 6400 write 64000 6400 sync close drain");
	add_steps("open write 640 64 close drain open truncate 32000 write 38400 640 sync close drain");
	add_steps("rewrite write 0 640 sync close drain");
}

/* One log is open, and has its beginning at home, while others go home. */
static void drained_beside(void)
{
	add_steps("A: open dir write 0 64000 sync B: open write 64000 64000 sync close drain A: write 640 64000");
	add_steps("B: open write 192000 640 close drain A: sync close drain");
}

static void near_alone(void (*story)(void))
{
	power_with_near(",drain=none,sync=near");
	story();
}

static void strided_near(void) { near_alone(strided); }
static void by_another_near(void) { near_alone(by_another); }
static void cut_and_compacted_near(void) { near_alone(cut_and_compacted); }

static void drained_near(void) { near_alone(drained); }
static void drained_beside_near(void) { near_alone(drained_beside); }

static void drained_home(void)
{
	power_with_near(",drain=none");
	drained();
}

static void drained_beside_home(void)
{
	power_with_near(",drain=none");
	drained_beside();
}

static void by_another_home(void)
{
	power_with_near(",drain=none");
	by_another();
}

Test(power_near, strided_writes_and_syncs, .timeout = 900) { fail_anywhere_in(strided_near); }
Test(power_near, a_sync_by_another_process, .timeout = 900) { fail_anywhere_in(by_another_near); }
Test(power_near, truncations_and_a_compaction, .timeout = 900) { fail_anywhere_in(cut_and_compacted_near); }
Test(power_near, a_sync_home_by_another_process, .timeout = 900) { fail_anywhere_in(by_another_home); }
Test(power_near, drains, .timeout = 900) { fail_anywhere_in(drained_near); }
Test(power_near, drains_beside_a_log_that_is_open, .timeout = 900) { fail_anywhere_in(drained_beside_near); }
Test(power_near, drains_of_what_was_synced_home, .timeout = 900) { fail_anywhere_in(drained_home); }
Test(power_near, drains_beside_a_log_that_was_synced_home, .timeout = 900)
{
	fail_anywhere_in(drained_beside_home);
}
