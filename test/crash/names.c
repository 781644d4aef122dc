/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kills at each system call (killed_at.h) of what is done with names: files that are made anew, truncated by
 * their open, linked, renamed, renamed over others that are open or closed, removed while they are open, made
 * plain.
 */
#include "test/lib/killed_at.h"

#include <criterion/criterion.h>

static void add_file(int name, long len)
{
	add_named(CREATE, name, name);
	add(WRITE, 0, len);
	add(WRITE, len + 1000, 70000);
	add(CLOSE, 0, 0);
}

static void plan_names(void)
{
	add_file(F, 5000);
	add_named(OPEN_TRUNC, F, F);
	add(WRITE, 100, 300);
	add_named(LINK, F, H);
	add(WRITE, 200, 300);
	add_named(UNLINK, F, F); /* another name is left */
	add(APPEND, 0, 400);
	add(CLOSE, 0, 0);
	add_named(RENAME, H, F);
	add_named(OPEN_TRUNC, F, F);
	add(CLOSE, 0, 0);
	add_named(OPEN, F, F);
	add(WRITE, 0, 3000);
	add_named(UNLINK, F, F); /* no name is left, but it is open */
	add(WRITE, 3000, 100000);
	add(READ, 0, 0);
	add(CLOSE, 0, 0);
	add_file(F, 700);
	add_named(OPEN, G, G);
	add(WRITE, 1000, 100);
	add_named(RENAME, F, G); /* over one that is open */
	add(WRITE, 1100, 100);
	add(CLOSE, 0, 0);
	add_file(F, 800);
	add_named(RENAME, F, G); /* and over one that is not */
	add_named(UNLINK, G, G);
}

static void plan_flatten(void)
{
	add_file(F, 5000);
	add_named(FLATTEN, F, F);
	add_named(UNLINK, F, F);
	add_file(F, 900);
	add_named(OPEN, F, F);
	add(MOVE, 0, 0);
	add(WRITE, 100, 100);
	add(CLOSE, 0, 0);
	add_named(FLATTEN, F, F);
	add_named(RENAME, F, H);
	add_named(FLATTEN, G, G);
	add_named(RENAME, G, F);
}

Test(crash_names, every_name_leads_to_all_that_was_acknowledged, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan_names, .stride = 7 });
}

Test(crash_names, every_name_of_files_that_were_small_leads_to_all_that_was_acknowledged, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan_names, .stride = 7, .options = "" });
}

Test(crash_names, every_name_leads_to_all_that_was_acknowledged_whichever_write_was_torn, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan_names, .stride = 1, .torn = true });
}

Test(crash_names, a_file_that_is_made_plain_is_whole, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan_flatten, .stride = 5 });
}

Test(crash_names, a_file_that_was_small_and_is_made_plain_is_whole, .timeout = 300)
{
	kill_at_each((struct killing){ .plan = plan_flatten, .stride = 5, .options = "{small=1M}" });
}
