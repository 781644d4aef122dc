/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When gathering is attempted again, when the logs are asked, and when it ends.
 */
#include "core/gather/attempts.h"

#include "core/gather/gather.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(attempts, .timeout = 60);

static struct attempts a;

static bool unknown(const char *log)
{
	attempts_note(&a, GATHER_UNKNOWN_LOG, log);
	return attempts_go_on(&a);
}

static bool changed(void)
{
	attempts_note(&a, GATHER_CHANGED, "");
	return attempts_go_on(&a);
}

Test(attempts, logs_are_asked_once_a_log_is_unknown_for_the_third_time)
{
	cr_assert(unknown("hostdir.1/data.a"));
	cr_assert(unknown("hostdir.1/data.a"));
	cr_assert_eq(attempts_flags(&a), 0);
	cr_assert(unknown("hostdir.1/data.a"));
	cr_assert_eq(attempts_flags(&a), GATHER_LOGS);
	cr_assert_str_eq(a.missed, "hostdir.1/data.a");
}

Test(attempts, end_when_the_logs_were_asked_in_vain)
{
	for (int i = 0; i < 3; i++)
		cr_assert(unknown("hostdir.1/data.a"));
	cr_assert_not(unknown("hostdir.1/data.a"));
	cr_assert_eq(a.reason, GATHER_UNKNOWN_LOG);
	cr_assert_str_eq(a.unknown, "hostdir.1/data.a");
}

Test(attempts, logs_that_are_closed_one_after_another_are_not_missed)
{
	char log[64];

	for (int i = 0; i < 100; i++) {
		snprintf(log, sizeof(log), "hostdir.1/data.%d", i / 2);
		cr_assert(unknown(log));
	}
	cr_assert_eq(attempts_flags(&a), 0);
	cr_assert_str_empty(a.missed);
}

Test(attempts, changes_between_do_not_make_a_log_known)
{
	for (int i = 0; i < 3; i++) {
		cr_assert(unknown("hostdir.1/data.a"));
		cr_assert(changed());
	}
	cr_assert_eq(attempts_flags(&a), GATHER_LOGS);
	cr_assert_not(unknown("hostdir.1/data.a"));
}

Test(attempts, the_log_that_was_missed_first_stays_the_missed_one)
{
	for (int i = 0; i < 3; i++)
		cr_assert(unknown("hostdir.1/data.a"));
	for (int i = 0; i < 3; i++)
		cr_assert(unknown("hostdir.1/data.b"));
	cr_assert_str_eq(a.missed, "hostdir.1/data.a");
	cr_assert_not(unknown("hostdir.1/data.b"));
	cr_assert_str_eq(a.unknown, "hostdir.1/data.b");
}

Test(attempts, end_when_the_inputs_never_come_to_rest)
{
	int nr = 1;

	while (changed())
		nr++;
	cr_assert_eq(nr, 1000);
	cr_assert_eq(a.reason, GATHER_CHANGED);
}
