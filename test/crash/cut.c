/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes in several steps of a file that was small once (test/lib/cut.h): truncations above all, a claim, a
 * move into the body. At system calls of the change (turn.h) its process is killed, or stands still, and
 * others look: processes that have the file open, one that opens it, and stat(). Afterwards the change is
 * finished, and the file goes on working.
 */
#include "test/lib/calls.h"
#include "test/lib/cut.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

TestSuite(crash_cut, .timeout = 300);

/* The next to have it open for writing puts it right: then the stub says it all. */
static int finish(void *arg)
{
	if (cut_look_newly((void *)"w"))
		return 1;
	if (cut_word_is_set()) {
		fprintf(stderr, "the truncation is not over\n");
		return 1;
	}
	if (!arg && !cut_found("finished", "what the stub says", cut_version_of_size(cut_stub_size()),
			       cut_stub_size()))
		return 1;
	return cut_look_newly(NULL);
}

/* What is found then stays: it is what appends go behind. */
static int go_on(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);
	off_t size = plfs_size(l.f), end = 0;
	unsigned char *buf = calloc(1, FILE_MAX);
	ssize_t n = plfs_pread(l.f, buf, FILE_MAX, 0);
	bool same;

	(void)arg;
	if (n != size || lappend(&l, "end", 3, &end) != 3 || end != size + 3 || plfs_size(l.f) != end)
		return 1;
	lclose(&l);
	if (stat_size("f") != end)
		return 1;
	l = lopen("f", O_RDONLY);
	memcpy(cut_image[OLD], buf, (size_t)n);
	same = plfs_pread(l.f, buf, FILE_MAX, 0) == n + 3 && !memcmp(buf, cut_image[OLD], (size_t)n) &&
	       !memcmp(buf + n, "end", 3);
	lclose(&l);
	free(buf);
	return !same;
}

/* Returns whether the truncation has come to its end. */
static bool one(const struct cut_plan *p, long nr)
{
	bool writes = strchr(p->kind, 'w');
	struct looker lookers[] = { { .flags = O_RDONLY },
				    { .flags = O_RDWR },
				    { .flags = O_RDWR, .writes = true } };
	int nr_lookers = writes ? 3 : 2, status;
	bool over;
	pid_t pid;

	cut_know_file(p->kind, p->to);
	cr_assert_eq(in_child(cut_make_file, (void *)p->kind), 0);
	*cut_seen = OLD;
	for (int i = nr_lookers; i-- > 0;)
		start_looker(&lookers[i]);
	calls_left = nr;
	pid = start_child(cut_change_file, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	over = WIFEXITED(status);
	cr_assert(over ? !WEXITSTATUS(status) : p->stops ? WIFSTOPPED(status) : WIFSIGNALED(status));
	for (int i = 0; i < nr_lookers; i++)
		cr_assert(ask(&lookers[i]), "call %ld", nr);
	cr_assert_eq(in_child(cut_look_newly, NULL), 0, "call %ld", nr);
	for (int i = 0; i < nr_lookers; i++)
		cr_assert(ask(&lookers[i]), "call %ld, after who has opened it", nr);
	if (p->stops && !over) {
		kill(pid, SIGCONT);
		cr_assert_eq(wait_child(pid), 0);
		cr_assert_eq(in_child(cut_look_newly, NULL), 0, "call %ld, gone on with", nr);
		for (int i = 0; i < nr_lookers; i++)
			cr_assert(ask(&lookers[i]), "call %ld, gone on with", nr);
	}
	cr_assert_eq(in_child(finish, writes ? (void *)"w" : NULL), 0, "call %ld", nr);
	for (int i = 0; i < nr_lookers; i++)
		cr_assert(ask(&lookers[i]), "call %ld, finished", nr);
	if (!writes)
		cr_assert_eq(in_child(go_on, NULL), 0, "call %ld", nr);
	for (int i = 0; i < nr_lookers; i++)
		end_looker(&lookers[i]);
	cr_assert_eq(in_child(cut_remove_file, NULL), 0);
	return over;
}

static void at_each_call(struct cut_plan p)
{
	struct turn turn = turn_begin(3);

	cut_begin(p);
	while (!one(&p, turn.nr))
		turn.nr += turn.step;
	cr_assert_gt(turn.nr, 10);
	cr_log_info("%ld calls\n", turn.nr);
	scratch_remove();
}

/* ---- at each call ---- */

#define CHANGE(name, ...) \
	Test(crash_cut, name##_is_there_or_not_whichever_call_was_the_last) \
	{ \
		at_each_call((struct cut_plan){ __VA_ARGS__, false }); \
	} \
	Test(crash_cut, name##_is_seen_or_not_at_each_call) \
	{ \
		at_each_call((struct cut_plan){ __VA_ARGS__, true }); \
	}

CHANGE(to_nothing, "", "", 0, CUT)
CHANGE(to_nothing_by_open, "", "", 0, OPEN)
CHANGE(below_what_is_in_the_stub, "", "", 700, CUT)
CHANGE(behind_what_is_in_the_stub, "", "", 3500, CUT)
CHANGE(into_a_hole, "", "", 9000, CUT)
CHANGE(that_makes_it_longer, "", "", 150000, CUT)
CHANGE(after_another, "", "c", 2300, CUT)
CHANGE(to_nothing_after_another, "", "c", 0, CUT)
CHANGE(without_bytes_in_the_stub, "{small=0}", "", 700, CUT)
CHANGE(to_nothing_without_bytes_in_the_stub, "{small=0}", "", 0, CUT)
CHANGE(beside_a_writer, "", "w", 700, CUT)
CHANGE(to_nothing_beside_a_writer, "", "w", 0, CUT)
CHANGE(that_makes_it_longer_beside_a_writer, "", "w", 150000, CUT)
CHANGE(a_write_that_claims_it, "{small=3000}", "", 0, CLAIM)

/* Whoever reads waits for a mover who lives. */
Test(crash_cut, a_move_into_its_body_changes_nothing_whichever_call_was_the_last)
{
	at_each_call((struct cut_plan){ .options = "", .kind = "", .change = MOVE });
}

Test(crash_cut, a_move_into_its_body_after_a_truncation_changes_nothing_whichever_call_was_the_last)
{
	at_each_call((struct cut_plan){ .options = "", .kind = "c", .change = MOVE });
}
