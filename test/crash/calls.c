/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kills at each system call (killed_at.h) of what is done with the bytes of a file: writes of all sizes,
 * appends, truncations, syncs, spills of a full live index, closes, and the move of a file into its body.
 */
#include "test/lib/killed_at.h"

#include <criterion/criterion.h>

static void add_irregular(int nr, long base)
{
	for (int i = 0; i < nr; i++) {
		add(WRITE, base + i * 60 + i * i % 17, 20 + i % 3);
		if (i % 25 == 0)
			add(COMMIT, 0, 0);
	}
}

static void plan(void)
{
	add(CREATE, 0, 0);
	for (int i = 0; i < 5; i++)
		add(WRITE, i * 1000, 100);
	add(WRITE, 5000, 100000);
	add(WRITE, 2000, 3000);
	add(READ, 0, 0);
	add(WRITE, 5000, 10);
	add(SYNC, 0, 0);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(WRITE, 100, 70000);
	add(TRUNCATE, 0, 50000);
	add(WRITE, 60000, 1000);
	add(READ, 0, 0);
	add(TRUNCATE, 0, 90000);
	add(APPEND, 0, 500);
	add(APPEND, 0, 70000);
	add(TRUNCATE, 0, 0);
	add(WRITE, 10, 100);
	add(APPEND, 0, 10);
	add_irregular(600, 100);
	add(COMMIT, 0, 0);
	for (int i = 0; i < 3; i++) {
		add(WRITE, i * 2000, 500);
		add(READ, 0, 0);
	}
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(TRUNCATE, 0, 0);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(WRITE, 0, 3000);
	add(WRITE, 5000, 70000);
	add(MOVE, 0, 0);
	add(WRITE, 2500, 1000);
	add(APPEND, 0, 300);
	add(TRUNCATE, 0, 60000);
	add(TRUNCATE, 0, 62000);
	add(READ, 0, 0);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(WRITE, 2600, 10);
	add(SYNC, 0, 0);
	add(CLOSE, 0, 0);
	add_named(RENAME, F, G);
	add_named(UNLINK, G, G);
}

/*
 * A process whose live file is a copy in memory saves it at reads, truncations and releases; between them the
 * stage is flushed, the last record grows, and the live index is full.
 */
static void plan_saved(void)
{
	add(CREATE, 0, 0);
	add(WRITE, 0, 1000);
	add(READ, 0, 0);
	add(WRITE, 1000, 500);
	add(WRITE, 2000, 100000);
	add(WRITE, 300, 1200);
	add(TRUNCATE, 0, 90000);
	add(WRITE, 95000, 80000);
	add(WRITE, 100, 50);
	add(TRUNCATE, 0, 160000);
	add(COMMIT, 0, 0);
	for (int i = 0; i < 500; i++)
		add(WRITE, 1000 + i * 60 + i * i % 17, 20 + i % 3);
	add(COMMIT, 0, 0);
	for (int i = 0; i < 450; i++)
		add(WRITE, 5000 + i * 70 + i * i % 19, 20 + i % 4);
	add(READ, 0, 0);
	add(TRUNCATE, 0, 150000);
	add(WRITE, 140000, 3000);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(APPEND, 0, 700);
	add(APPEND, 0, 200);
	add(TRUNCATE, 0, 0);
	add(WRITE, 10, 2000);
	add(CLOSE, 0, 0);
}

/* With another process that has the file open. */
static void plan_beside(void)
{
	add(OPEN, 0, 0);
	add(WRITE, 0, 1000);
	add(WRITE, BESIDE_OFF + 1000, 500); /* over its bytes, after it */
	add(READ, 0, 0);
	add(APPEND, 0, 700);
	add(WRITE, 5000, 90000);
	add(TRUNCATE, 0, BESIDE_OFF + 2000);
	add(APPEND, 0, 300);
	add(SYNC, 0, 0);
	add(TRUNCATE, 0, 350000);
	add_irregular(20, 100000);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(TRUNCATE, 0, 0);
	add(WRITE, 100, 200);
	add(APPEND, 0, 200);
	add(READ, 0, 0);
	add(CLOSE, 0, 0);
}

Test(crash_calls, every_acknowledged_byte_is_there_whichever_call_was_the_last, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan, .stride = 31 });
}

Test(crash_calls, every_acknowledged_byte_is_there_whichever_write_was_torn, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan, .stride = 2, .torn = true });
}

Test(crash_calls, every_released_byte_is_there_where_nothing_can_be_mapped, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan, .stride = 61, .unshared = true });
}

Test(crash_calls, every_released_byte_is_there_where_nothing_can_be_mapped_and_a_write_was_torn,
     .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan, .stride = 7, .torn = true, .unshared = true });
}

/* What has been saved of the stage and of the records goes on to change: they are used again. */
Test(crash_calls, what_can_be_read_of_a_copy_of_a_live_file_is_true_whichever_call_was_the_last,
     .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan_saved, .stride = 97, .unshared = true });
}

Test(crash_calls, what_can_be_read_of_a_copy_of_a_live_file_is_true_whichever_write_was_torn, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan_saved, .stride = 3, .torn = true, .unshared = true });
}

Test(crash_calls, every_acknowledged_byte_of_a_file_that_was_small_is_there_whichever_call_was_the_last,
     .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan, .stride = 37, .options = "" });
}

Test(crash_calls, every_acknowledged_byte_of_a_small_file_is_there_whichever_write_was_torn, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan, .stride = 7, .torn = true, .options = "{small=1M}" });
}

Test(crash_calls, every_acknowledged_byte_is_there_beside_another_process, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan_beside, .stride = 7, .beside = true });
}
