/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract of form.h: each operation of each form, called while the file is of that form and after
 * another process has changed it.
 */
#include "test/lib/scratch.h"

#include "core/file/bare.h"
#include "core/file/body.h"
#include "core/file/dispatch.h"
#include "core/file/file.h"

#include <criterion/criterion.h>

#define SUITE(name) TestSuite(name, .init = scratch_setup_small, .fini = scratch_remove, .timeout = 120)

SUITE(form);

#define SMALL (64 * 1024)
#define BEYOND (BARE_SHARED * SMALL) /* a write that ends behind this makes a log */
#define LEN 100

enum op { WRITE, READ, APPEND, TRUNCATE, FALLOCATE, SYNC, NR_OPS };
static const char *const OPS[] = { "write", "begin_read", "append", "truncate", "fallocate", "sync" };

static ssize_t finish_read(struct plfs_file *f, int fd, ssize_t n, char *buf, struct read_rest *rd)
{
	if (n < 0)
		return n;
	if (rd->in_body)
		return body_read(fd, buf, LEN, 0);
	if (rd->handle || rd->scatter) {
		cr_assert(read_rest_run(rd, f->ino->c.store));
		cr_assert(!read_rest_end(&f->ino->v.r, rd));
	}
	return n;
}

/* Whether the C library believes that there are others than this one, which there are. */
static void set_threads(bool others)
{
#ifndef __libc_single_threaded
	__libc_single_threaded = !others;
#else
	threads_seen = others ? 1 : -1;
#endif
}

/*
 * Do @op: LEN bytes of round 2 at 0, or behind the end; a size of 50, a hole at [0, 10), all bytes read.
 * @form NULL: by dispatch.
 */
static ssize_t run(struct lfile *l, const struct form_ops *form, enum op op, char *buf)
{
	struct inode *ino = l->f->ino;
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, fd = file_begin(l->f);
	struct iovec iov = { .iov_base = buf, .iov_len = LEN };
	struct read_rest rd;
	uint64_t end;
	ssize_t ret = -ENOSYS;

	if (op == WRITE || op == APPEND)
		pattern_fill(buf, LEN, op == WRITE ? 0 : LEN, 2);
	if (op == WRITE)
		ret = form ? form->write(ino, fd, buf, LEN, 0) : dispatch_write(ino, fd, &iov, 1, 0);
	if (op == READ)
		ret = finish_read(l->f, fd,
				  (form ? form->begin_read : dispatch_begin_read)(ino, fd, buf, LEN, 0, &rd),
				  buf, &rd);
	if (op == APPEND) {
		set_threads(false); /* with them no bare file is appended to */
		ret = (form ? form->append : dispatch_append)(ino, fd, &iov, 1, LEN, &end);
		set_threads(true);
	}
	if (op == APPEND && ret > 0)
		cr_assert_eq(end, 2 * LEN);
	if (op == TRUNCATE)
		ret = (form ? form->truncate : dispatch_truncate)(ino, fd, 50);
	if (op == FALLOCATE)
		ret = (form ? form->fallocate : dispatch_fallocate)(ino, fd, mode, 0, 10);
	if (op == SYNC)
		ret = (form ? form->sync : dispatch_sync)(ino, fd);
	file_end(l->f);
	return ret;
}

/* What @op was to do has been done, if @done; else the file is as before. @buf: what a read got. */
static void check(struct lfile *l, enum op op, bool done, ssize_t ret, const char *buf)
{
	cr_assert_eq(plfs_size(l->f),
		     !done || (op != APPEND && op != TRUNCATE) ? LEN :
		     op == APPEND			       ? 2 * LEN :
								 50,
		     "%s", OPS[op]);
	if (done && op == WRITE)
		cr_assert_eq(lcheck(l, 0, LEN, 2), 0);
	else if (done && op == FALLOCATE)
		cr_assert(lzeros(l, 0, 10) && !lcheck(l, 10, LEN - 10, 1));
	else
		cr_assert_eq(lcheck(l, 0, done && op == TRUNCATE ? 50 : LEN, 1), 0, "%s", OPS[op]);
	if (done && op == READ)
		cr_assert(ret == LEN && pattern_check(buf, LEN, 0, 1) == LEN);
	if (done && op == APPEND)
		cr_assert_eq(lcheck(l, LEN, LEN, 2), 0);
	if (done && (op == WRITE || op == APPEND))
		cr_assert_eq(ret, LEN, "%s: %zd", OPS[op], ret);
	if (done && (op == TRUNCATE || op == SYNC))
		cr_assert_eq(ret, 0, "%s: %zd", OPS[op], ret);
}

/* A file of LEN bytes of round 1, of this form here. */
static struct lfile file_of_form(const struct form_ops *form)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT | O_EXCL);

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	if (form == &form_logged) { /* too far for a bare file, and then as if it had not been */
		cr_assert_eq(lfill(&l, BEYOND, LEN, 1), LEN);
		cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
		cr_assert_eq(plfs_truncate(l.f, LEN), 0);
	}
	if (form == &form_body)
		cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	return l;
}

static void drop(struct lfile *l)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	lclose(l);
	cr_assert_eq(plfs_unlink(m, AT_FDCWD, path), 0);
}

Test(form, each_operation_of_each_form_does_what_the_table_says)
{
	const struct form_ops *const forms[] = { &form_bare, &form_logged, &form_body };

	for (int i = 0; i < 3; i++) {
		for (enum op op = 0; op < NR_OPS; op++) {
			struct lfile l = file_of_form(forms[i]);
			char buf[LEN];
			ssize_t ret = run(&l, forms[i], op, buf);

			/* the kernel may not punch holes here, but it must not fail otherwise */
			if (op == FALLOCATE)
				cr_assert(forms[i] == &form_logged ?
						  ret == 1 :
						  ret == 0 || ret == 1 || ret == -EOPNOTSUPP,
					  "%zd", ret);
			check(&l, op, op != FALLOCATE || !ret, ret, buf);
			cr_assert_eq(l.f->ino->v.stub.has_container, forms[i] == &form_logged);
			cr_assert_eq(l.f->ino->v.stub.in_body, forms[i] == &form_body);
			drop(&l);
		}
	}
}

/* Another process has the file logged, and as it was. */
static int claim(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	if (lfill(&l, BEYOND, LEN, 1) != LEN || plfs_truncate(l.f, LEN))
		return 1;
	return lclose(&l);
}

static int move(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_in_body(l.f, PLFS_MAP_WRITE) != 1 || lclose(&l);
}

static const struct {
	const struct form_ops *from;
	int (*change)(void *arg);
	bool in_body;
} CHANGES[] = { { &form_bare, claim, false }, { &form_bare, move, true }, { &form_logged, move, true } };

/* form_logged has nothing to do for fallocate(), and so nothing to look at. */
static bool looks(const struct form_ops *form, enum op op)
{
	return form != &form_logged || op != FALLOCATE;
}

Test(form, an_operation_of_a_form_that_another_process_has_changed_does_nothing_and_says_so)
{
	for (int i = 0; i < 3; i++) {
		for (enum op op = 0; op < NR_OPS; op++) {
			struct lfile l = file_of_form(CHANGES[i].from);
			struct inode *ino = l.f->ino;
			char buf[LEN];

			if (looks(CHANGES[i].from, op)) {
				cr_assert_eq(in_child(CHANGES[i].change, NULL), 0);
				cr_assert_eq(run(&l, CHANGES[i].from, op, buf), -EREMCHG, "%d: %s", i,
					     OPS[op]);
				/* An append of a bare file leaves it to the claim to find that. */
				if (op != APPEND || CHANGES[i].from != &form_bare) {
					cr_assert_eq(ino->v.stub.in_body, CHANGES[i].in_body, "%d: %s", i,
						     OPS[op]);
					cr_assert_eq(ino->v.stub.has_container, !CHANGES[i].in_body, "%d: %s",
						     i, OPS[op]);
				}
				check(&l, op, false, 0, buf);
			}
			drop(&l);
		}
	}
}

Test(form, what_is_dispatched_is_done_whatever_the_form_has_become)
{
	for (int i = 0; i < 3; i++) {
		for (enum op op = 0; op < NR_OPS; op++) {
			struct lfile l = file_of_form(CHANGES[i].from);
			char buf[LEN];
			ssize_t ret;

			cr_assert_eq(in_child(CHANGES[i].change, NULL), 0);
			ret = run(&l, NULL, op, buf);
			cr_assert_neq(ret, -EREMCHG, "%d: %s", i, OPS[op]);
			check(&l, op, op != FALLOCATE || !ret, ret, buf);
			drop(&l);
		}
	}
}

/* It is not written to the body even in part, and the caller has it claimed. */
Test(form, a_bare_file_refuses_what_would_make_it_large)
{
	struct lfile l = file_of_form(&form_bare);
	struct inode *ino = l.f->ino;
	char byte = 1, buf[LEN] = "";
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	int fd = file_begin(l.f);

	cr_assert_eq(form_bare.write(ino, fd, &byte, 1, BEYOND), -EREMCHG);
	cr_assert_eq(form_bare.append(ino, fd, &iov, 1, SMALL, &(uint64_t){ 0 }), -EREMCHG);
	cr_assert_eq(form_bare.fallocate(ino, fd, 0, SMALL, 1), 1);
	cr_assert(!ino->v.stub.has_container && !ino->v.stub.in_body);
	cr_assert_eq(dispatch_write(ino, fd, &iov, 1, BEYOND), 1);
	cr_assert(ino->v.stub.has_container);
	file_end(l.f);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(plfs_size(l.f), BEYOND + 1);
	cr_assert_eq(run(&l, &form_logged, READ, buf), LEN);
	cr_assert_eq(pattern_check(buf, LEN, 0, 1), LEN);
	drop(&l);
}
