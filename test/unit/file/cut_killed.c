/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process is killed at each call of a truncation, while others have the file open. What the first of them
 * finds then is what all have from then on, with what they write behind it.
 */
#include "test/lib/told.h"

#include <criterion/criterion.h>

TestSuite(cut_killed, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

/* LOOKS is of another host. */
enum { WROTE_FIRST, KILLED, LOOKS, WRITES = 4, LEN = 600 };
static const int all[] = { WROTE_FIRST, KILLED, LOOKS, WRITES };

static long act(int who, enum told_act what) { return tell(who, (struct told_order){ .act = what })->ret; }

/* On the host of the one that was killed, stat() does not believe the stub. */
static struct told_answer read_by(int who)
{
	long size;

	act(who, REFRESH);
	size = act(who, SIZE);
	cr_assert_eq(act(who, READ), size);
	cr_assert(who == LOOKS || act(who, STAT) == size);
	return *tell(who, (struct told_order){ .act = READ });
}

static void assert_read(int who, const struct told_answer *want, int call)
{
	struct told_answer a = read_by(who);

	cr_assert(a.ret == want->ret && !memcmp(a.bytes, want->bytes, TOLD_LEN),
		  "killed at call %d, process %d: %ld bytes, not %ld", call, who, a.ret, want->ret);
}

static void write_behind(struct told_answer *want, off_t off, unsigned char byte)
{
	const struct told_order o = { .act = WRITE, .off = off, .len = 100, .byte = byte };

	cr_assert_eq(tell(WRITES, o)->ret, 100);
	cr_assert_eq(act(WRITES, COMMIT), 0);
	memset(want->bytes + off, byte, 100);
	want->ret = want->ret > off + 100 ? want->ret : off + 100;
}

/* False: it was not killed, for it makes fewer calls. */
static bool cut_at(int call, off_t size)
{
	struct told_answer a, want;
	bool killed;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		cr_assert_eq(act(all[i], OPEN), 0);
	tell(WROTE_FIRST, (struct told_order){ .act = WRITE, .len = LEN, .byte = 1 });
	act(WROTE_FIRST, COMMIT);
	read_by(WRITES);
	killed = told_begin(KILLED, (struct told_order){ .act = CUT, .off = size }, call, &a);
	act(KILLED, KILL);
	want = read_by(WRITES);
	cr_assert(want.ret == LEN || want.ret == size);
	for (int i = 0; i < 3; i++) {
		write_behind(&want, 700 + 300 * i, (unsigned char)(2 + i));
		assert_read(WRITES, &want, call);
		assert_read(i % 2 ? LOOKS : WROTE_FIRST, &want, call);
	}
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		act(all[i], all[i] == KILLED ? OPEN : CLOSE);
	assert_read(KILLED, &want, call);
	act(KILLED, CLOSE);
	cr_assert_eq(act(KILLED, UNLINK), 0);
	return killed;
}

static void cut_at_each(off_t size)
{
	int call = 1;

	told_start();
	while (cut_at(call, size))
		call++;
	told_end();
	cr_assert_gt(call, 10);
}

Test(cut_killed, to_nothing_on_a_local_file_system)
{
	told_local = true;
	cut_at_each(0);
}

Test(cut_killed, to_a_length_on_a_local_file_system)
{
	told_local = true;
	cut_at_each(300);
}

Test(cut_killed, to_nothing_where_hosts_share_it) { cut_at_each(0); }
Test(cut_killed, to_a_length_where_hosts_share_it) { cut_at_each(300); }
