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

static void near_alone(void (*story)(void))
{
	power_with_near(",drain=none,sync=near");
	story();
}

static void strided_near(void) { near_alone(strided); }
static void by_another_near(void) { near_alone(by_another); }
static void cut_and_compacted_near(void) { near_alone(cut_and_compacted); }

static void by_another_home(void)
{
	power_with_near(",drain=none");
	by_another();
}

Test(power_near, strided_writes_and_syncs, .timeout = 900) { fail_anywhere_in(strided_near); }
Test(power_near, a_sync_by_another_process, .timeout = 900) { fail_anywhere_in(by_another_near); }
Test(power_near, truncations_and_a_compaction, .timeout = 900) { fail_anywhere_in(cut_and_compacted_near); }
Test(power_near, a_sync_home_by_another_process, .timeout = 900) { fail_anywhere_in(by_another_home); }
