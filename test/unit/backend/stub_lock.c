/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done to a stub under its lock: claims by many at once, moves.
 */
#include "test/lib/scratch.h"

#include "core/backend/stub.h"
#include "core/backend/stub_lock.h"

#include <criterion/criterion.h>

static char path[100];

static void setup(void)
{
	scratch_dir();
	snprintf(path, sizeof(path), "%s/stub", scratch);
	close(open(path, O_RDWR | O_CREAT | O_EXCL, 0644));
}

TestSuite(stub_lock, .init = setup, .fini = scratch_remove);

static int no_make(void *arg, struct stub *stub)
{
	(void)stub;
	return arg ? *(int *)arg : 0;
}

Test(stub_lock, a_claim_writes_header_and_sentence_and_keeps_the_body)
{
	struct stub stub = { 0 }, again;
	int fd = open(path, O_RDWR);
	char buf[PLFS_BODY_OFF + 5];

	cr_assert_eq(pwrite(fd, "body", 5, PLFS_BODY_OFF), 5);
	cr_assert_eq(stub_claim(fd, &stub, 77, 7, no_make, NULL), 0);
	cr_assert(stub.has_container);
	cr_assert_eq(stub.created_ns, 77);
	cr_assert_eq(pread(fd, buf, sizeof(buf), 0), (ssize_t)sizeof(buf));
	cr_assert_not_null(strstr(buf + STUB_HEADER_LEN, "plfs flatten"));
	cr_assert_str_eq(buf + PLFS_BODY_OFF, "body");
	cr_assert_eq(stub_read(fd, &again), 0);
	cr_assert_arr_eq(stub.id, again.id, STUB_ID_LEN);
	cr_assert_eq(stub_claim(fd, &again, 78, 7, no_make, NULL), 0);
	cr_assert_arr_eq(stub.id, again.id, STUB_ID_LEN);
	cr_assert_eq(again.created_ns, 77);
	close(fd);
}

Test(stub_lock, a_claim_that_cannot_make_the_container_writes_nothing)
{
	int fd = open(path, O_RDWR), ret = -ENOSPC;
	struct stub stub = { 0 };
	struct stat st;

	cr_assert_eq(stub_claim(fd, &stub, 77, 7, no_make, &ret), -ENOSPC);
	cr_assert_not(stub.has_container);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_assert_eq(st.st_size, 0);
	close(fd);
}

Test(stub_lock, of_many_claims_at_once_one_id_comes_out)
{
	enum { N = 8 };

	for (int round = 0; round < 20; round++) {
		uint8_t ids[N][STUB_ID_LEN];
		int out[2];
		pid_t pid[N];

		cr_assert_eq(truncate(path, 0), 0);
		cr_assert_eq(pipe(out), 0);
		for (int i = 0; i < N; i++) {
			pid[i] = fork_child();
			if (!pid[i]) {
				int fd = open(path, O_RDWR);
				struct stub stub = { 0 };

				if (stub_claim(fd, &stub, 1, 7, no_make, NULL) ||
				    write(out[1], stub.id, STUB_ID_LEN) != STUB_ID_LEN)
					_exit(1);
				_exit(0);
			}
		}
		for (int i = 0; i < N; i++)
			cr_assert_eq(wait_child(pid[i]), 0);
		for (int i = 0; i < N; i++) {
			cr_assert_eq(read(out[0], ids[i], STUB_ID_LEN), STUB_ID_LEN);
			cr_assert_arr_eq(ids[i], ids[0], STUB_ID_LEN);
		}
		close(out[0]);
		close(out[1]);
	}
}

/* Else all ranks that begin a file together have the lock in turn. */
Test(stub_lock, who_waits_for_the_header_goes_on_when_it_has_been_claimed)
{
	struct flock lk = { .l_type = F_WRLCK, .l_start = STUB_LOCK_HEADER, .l_len = 1 };
	int fd = open(path, O_RDWR), ready[2];
	struct stub stub = { 0 };
	pid_t pid;
	char c;

	cr_assert_eq(pipe(ready), 0);
	pid = fork_child();
	if (!pid) {
		if (stub_claim(fd, &stub, 5, 7, no_make, NULL) || fcntl(fd, F_SETLK, &lk) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	cr_assert_eq(stub_claim(fd, &stub, 6, 7, no_make, NULL), 0);
	cr_assert(stub.has_container);
	cr_assert_eq(stub.created_ns, 5);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	close(ready[0]);
	close(ready[1]);
}

Test(stub_lock, a_generation_only_goes_up)
{
	int fd = open(path, O_RDWR);
	struct stub stub = { 0 };

	cr_assert_eq(stub_claim(fd, &stub, 1, 7, no_make, NULL), 0);
	cr_assert_eq(stub_set_generation(fd, &stub, 100), 0);
	cr_assert_eq(stub.generation_ns, 100);
	cr_assert_eq(stub_set_generation(fd, &stub, 50), 0);
	cr_assert_eq(stub.generation_ns, 100);
	cr_assert_eq(stub_read(fd, &stub), 0);
	cr_assert_eq(stub.generation_ns, 100);
	close(fd);
}

Test(stub_lock, garbage_is_never_claimed)
{
	int fd = open(path, O_RDWR);
	struct stub stub = { 0 };
	char buf[STUB_HEADER_LEN];

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (char)(i * 7 + 1);
	cr_assert_eq(pwrite(fd, buf, sizeof(buf), 0), (ssize_t)sizeof(buf));
	cr_assert_eq(stub_claim(fd, &stub, 1, 7, no_make, NULL), -EIO);
	cr_assert_eq(stub_set_generation(fd, &stub, 1), -EIO);
	cr_assert_eq(stub_read(fd, &stub), -EIO);
	cr_assert_not(stub.has_container);
	close(fd);
}

/* Another process takes @move_us to move the file @fd into its body. */
static void read_while_moved(int fd, int reader, useconds_t move_us)
{
	struct stub now = { 0 };
	int ends[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(ends), 0);
	pid = fork_child();
	if (!pid) {
		stub_begin_move(fd, &now, false);
		if (write(ends[1], "", 1) != 1)
			_exit(1);
		usleep(move_us);
		_exit(stub_end_move(fd, &now, true));
	}
	cr_assert_eq(read(ends[0], &c, 1), 1);
	cr_assert_eq(stub_settle_bare(reader, &now), 0);
	cr_assert(now.in_body);
	cr_assert_eq(wait_child(pid), 0);
	close(ends[0]);
	close(ends[1]);
}

/* Also through a descriptor that is read-only, which can neither lock exclusively nor write. */
Test(stub_lock, a_reader_waits_for_the_move_and_notices_a_killed_mover)
{
	int fd = open(path, O_RDWR), reader = open(path, O_RDONLY);
	struct stub now = { 0 };
	pid_t pid;

	read_while_moved(fd, reader, 20000);
	cr_assert_eq(ftruncate(fd, 0), 0);
	pid = fork_child();
	if (!pid)
		_exit(stub_begin_move(fd, &now, false));
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(stub_settle_bare(reader, &now), 0);
	cr_assert_not(now.moving);
	cr_assert_eq(stub_settle_bare(fd, &now), 0);
	cr_assert_not(now.moving);
	cr_assert_eq(stub_read(reader, &now), 0);
	cr_assert_not(now.moving || now.in_body);
	close(reader);
	close(fd);
}

Test(stub_lock, who_moves_his_own_file_for_long_is_waited_for)
{
	int fd = open(path, O_RDWR), reader = open(path, O_RDONLY);

	read_while_moved(fd, reader, 1500000);
	close(reader);
	close(fd);
}

static int claims_in_between(void *arg)
{
	int fd = open(path, O_RDWR);
	struct stub stub = { 0 };

	(void)arg;
	return stub_claim(fd, &stub, 2, 7, no_make, NULL) || stub.created_ns != 2;
}

/* As another thread does: the process's locks of the file go with that. */
static int make_while_another_descriptor_is_closed(void *arg, struct stub *stub)
{
	(void)arg;
	(void)stub;
	close(open(path, O_RDONLY));
	return in_child(claims_in_between, NULL);
}

Test(stub_lock, a_claim_gives_way_if_it_has_lost_its_lock)
{
	int fd = open(path, O_RDWR);
	struct stub stub = { 0 };

	cr_assert_eq(stub_claim(fd, &stub, 1, 7, make_while_another_descriptor_is_closed, NULL), 0);
	cr_assert_eq(stub.created_ns, 2);
	close(fd);
}

static int settles(void *arg)
{
	struct stub now;

	(void)arg;
	return stub_clear_moving(open(path, O_RDWR), &now) || now.moving || now.in_body;
}

Test(stub_lock, a_move_that_has_lost_its_lock_is_none)
{
	int fd = open(path, O_RDWR);
	struct stub stub = { 0 }, now;

	cr_assert_eq(stub_claim(fd, &stub, 1, 7, no_make, NULL), 0);
	cr_assert_eq(stub_begin_move(fd, &stub, true), 0);
	close(open(path, O_RDONLY));
	cr_assert_eq(in_child(settles, NULL), 0);
	cr_assert_eq(stub_end_move(fd, &stub, true), -EAGAIN);
	cr_assert_eq(stub_read(fd, &now), 0);
	cr_assert_not(now.in_body);
	cr_assert(now.has_container);
	close(fd);
}

/* The program's own locks are elsewhere, and closing our descriptors must not be needed to claim. */
Test(stub_lock, a_claim_leaves_the_programs_locks_alone)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = PLFS_BODY_OFF, .l_len = 100 };
	int fd = open(path, O_RDWR);
	struct stub stub = { 0 };
	pid_t pid;

	cr_assert_eq(fcntl(fd, F_SETLK, &lk), 0);
	cr_assert_eq(stub_claim(fd, &stub, 1, 7, no_make, NULL), 0);
	pid = fork_child();
	if (!pid)
		_exit(fcntl(fd, F_GETLK, &lk) == 0 && lk.l_type == F_WRLCK && lk.l_start == PLFS_BODY_OFF ?
			      0 :
			      1);
	cr_assert_eq(wait_child(pid), 0);
	close(fd);
}
