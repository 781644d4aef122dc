/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of failures, and the line that a wrong tree is reported with.
 */
#include "test/lib/power_try.h"

#include "test/lib/power_model.h"

#include <criterion/criterion.h>

static uint64_t next_random(uint64_t *seed)
{
	return *seed = mix64(*seed);
}

static void try_one(const struct failure *f, uint64_t seed)
{
	char tree[sizeof(scratch)], line[4096] = "";
	FILE *err = tmpfile();
	int code;

	if (!err)
		die("tmpfile");
	new_dir(tree, sizeof(tree));
	power_fail(f, tree);
	power_lead_near(tree);
	code = power_look_after(f, tree, f->salt % 2, err);
	snprintf(scratch, sizeof(scratch), "%s", tree);
	if (code) {
		const struct op *op = &power->ops[f->only >= 0 ? f->only : f->cut];
		off_t end = lseek(fileno(err), 0, SEEK_END), last_lines = end > 1000 ? end - 1000 : 0;
		ssize_t n = pread(fileno(err), line, sizeof(line) - 1, last_lines);

		line[n > 0 ? n : 0] = '\0';
		if (getenv("PLFS_TEST_KEEP"))
			*scratch = '\0';
		fprintf(stderr, "cut %d of %d, keep %u, only %d (kind %d, %s, page %d), ", f->cut,
			power->nr_ops, f->keep, f->only, op->kind, op->name, op->no);
		fprintf(stderr, "salt %llx, %s, seed %llu, tree %s\n", (unsigned long long)f->salt,
			f->ordered ? "ordered" : "unordered", (unsigned long long)seed, tree);
		for (int i = 0; i < nr_power_steps; i++)
			if (power_spans[i].begin < f->cut &&
			    (i + 1 == nr_power_steps || power_spans[i + 1].begin >= f->cut))
				fprintf(stderr, "in or after step %d (action %d)\n", i,
					power_steps[i].action);
	}
	scratch_remove();
	fclose(err);
	cr_assert_eq(code, 0, "%s", line);
}

static bool has_effect(int op)
{
	return power->ops[op].kind != OP_EVENT && power->ops[op].kind != OP_SYNC;
}

/* Of a name, the last of those that go or change at once. */
static bool is_removal(int op)
{
	const struct op *o = &power->ops[op];

	return o->kind == OP_NAME && o->node < 0 && (o[1].kind != OP_NAME || o[1].no != o->no);
}

static bool is_after_sync(int op)
{
	const struct op *o = &power->ops[op];

	return o->kind == OP_EVENT && o->no % 2 && power_steps[o->no / 2].action == SYNC;
}

static void try_many(bool ordered)
{
	const char *trees = getenv("PLFS_TEST_TREES"), *given = getenv("PLFS_TEST_SEED");
	int nr = trees ? atoi(trees) : 120, nr_cuts = 0;
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1 + (uint64_t)time(NULL), random = seed;
	int *cuts = calloc(POWER_OPS, sizeof(*cuts));
	struct failure f = { .ordered = ordered };

	power_find_spans();
	for (int i = 1; i <= power->nr_ops; i++)
		cuts[nr_cuts++] = i;
	fprintf(stderr, "%s: %d operations, seed %llu\n", ordered ? "ordered" : "unordered", power->nr_ops,
		(unsigned long long)seed);
	for (int i = 0; i < nr; i++) {
		f.cut = cuts[next_random(&random) % (unsigned)nr_cuts];
		f.only = -1;
		f.salt = next_random(&random);
		f.keep = i % 6 == 0 || i % 6 == 1 ? 0 : i % 6 == 2 || i % 6 == 3 ? 16 :
			1 + (unsigned)(next_random(&random) % 15);
		/* One operation alone, mostly of the latest. A name stands for its group. */
		if (i % 6 == 1 || i % 6 == 3) {
			int back = 1 + (int)(next_random(&random) % 60);

			f.only = f.cut - back;
			if (f.only < 0 || !has_effect(f.only))
				f.only = -1;
			else if (power->ops[f.only].kind == OP_NAME)
				f.only = -2 - power->ops[f.only].no;
		}
		try_one(&f, seed);
	}
	/*
	 * After each sync, with nothing else left. After each removal, first with the removal alone on disk
	 * of all that was not synced, then with names alone.
	 */
	for (int i = 1; i < power->nr_ops; i++) {
		bool removal = is_removal(i) && !ordered;

		f = (struct failure){ .cut = i + 1, .ordered = ordered, .only = -1, .salt = (uint64_t)i };
		if (removal)
			f.only = -2 - power->ops[i].no;
		if (removal || is_after_sync(i))
			try_one(&f, seed);
		f.only = -1;
		f.names = true;
		f.salt++;
		if (removal)
			try_one(&f, seed);
	}
	free(cuts);
}

void fail_anywhere_in(void (*story)(void))
{
	scratch_in_memory = true;
	story();
	for (int ordered = 0; ordered < 2; ordered++) {
		pid_t pid;

		power_new();
		pid = fork_child();
		if (!pid)
			power_live_through(ordered);
		cr_assert_eq(wait_child(pid), 0);
		try_many(ordered);
	}
	power_lead_near(NULL);
}
