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

/* First logs of containers, of which most are in other backends (spread=file). */
static void plan_first(void)
{
	for (int i = 0; i < 6; i++) {
		add(CREATE, 0, 0);
		add(WRITE, 0, 70000);
		add(CLOSE, 0, 0);
		add_named(RENAME, F, H);
	}
}

static void kill_each(const char *rule, void (*what)(void), int stride, bool torn)
{
	static char options[200];

	scratch_in_memory = true;
	near_backends(rule, options, sizeof(options));
	kill_at_each((struct killing){ .plan = what, .stride = stride, .torn = torn, .options = options });
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

Test(crash_spread, what_leads_to_another_backend_hides_nothing_whichever_write_was_torn, .timeout = 300)
{
	kill_each("file", plan_first, 1, true);
}

Test(crash_spread, what_leads_to_another_backend_hides_nothing_whichever_call_was_the_last, .timeout = 300)
{
	kill_each("file", plan_first, 23, false);
}

/* ---- near.HOST, of the same bytes ---- */

static void kill_each_near(int stride, bool torn)
{
	static char options[200];

	scratch_in_memory = true;
	near_backends("process", options, sizeof(options));
	snprintf(options, sizeof(options), "{small=0,near=%s/2}", near_dir);
	kill_at_each((struct killing){ .plan = plan, .stride = stride, .torn = torn, .options = options });
	near_lose();
}

Test(crash_spread, every_acknowledged_byte_is_there_with_a_place_whichever_write_was_torn, .timeout = 300)
{
	kill_each_near(3, true);
}

Test(crash_spread, every_acknowledged_byte_is_there_with_a_place, .timeout = 300)
{
	kill_each_near(23, false);
}
