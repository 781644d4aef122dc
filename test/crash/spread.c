/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kills at each system call (killed_at.h) of what is done with files whose logs are in several backends
 * (spread=), and of what is done with their names. When all names are gone nothing is left in any backend.
 */
#include "test/lib/killed_at.h"
#include "test/lib/near.h"

#include <criterion/criterion.h>

static void plan(void)
{
	add(CREATE, 0, 0);
	add(WRITE, 0, 100);
	add(WRITE, 5000, 100000);
	add(SYNC, 0, 0);
	add(WRITE, 2000, 3000);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(WRITE, 100, 70000);
	add(TRUNCATE, 0, 50000);
	add(APPEND, 0, 500);
	add(SYNC, 0, 0);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(TRUNCATE, 0, 0);
	add(WRITE, 10, 100);
	add(COMMIT, 0, 0);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(WRITE, 0, 90000);
	add(MOVE, 0, 0);
	add(WRITE, 2500, 1000);
	add(CLOSE, 0, 0);
	add_named(RENAME, F, G);
	add_named(UNLINK, G, G);
}

static void plan_names(void)
{
	add(CREATE, 0, 0);
	add(WRITE, 0, 70000);
	add(CLOSE, 0, 0);
	add_named(RENAME, F, H);
	add(CREATE, 0, 0);
	add(WRITE, 0, 300);
	add(CLOSE, 0, 0);
	add_named(RENAME, F, H);
	add_named(FLATTEN, H, H);
	add(CREATE, 0, 0);
	add(WRITE, 0, 5000);
	add(CLOSE, 0, 0);
	add_named(UNLINK, F, F);
}

static void kill_each(const char *rule, void (*what)(void), int stride, bool torn)
{
	static char options[200];

	scratch_in_memory = true;
	near_backends(rule, options, sizeof(options));
	/* From the same write on: a spread.N file of which half was written makes each read an error. */
	kill_at_each((struct killing){
		.plan = what, .from = torn, .stride = stride, .torn = torn, .options = options });
	near_lose();
}

Test(crash_spread, every_acknowledged_byte_is_there_whichever_call_was_the_last, .timeout = 300)
{
	kill_each("process", plan, 19, false);
}

Test(crash_spread, every_acknowledged_byte_is_there_whichever_write_was_torn, .timeout = 300)
{
	kill_each("process", plan, 3, true);
}

Test(crash_spread, every_acknowledged_byte_is_there_with_a_backend_for_each_file, .timeout = 300)
{
	kill_each("file", plan, 37, false);
}

Test(crash_spread, every_name_is_there_or_gone_with_its_logs, .timeout = 300)
{
	kill_each("process", plan_names, 13, false);
}
