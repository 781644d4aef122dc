/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The confirmed map while others write: another process acts before one system call after another of an open
 * (turn.h), until there are no more of them; writers that die; and many at once.
 */
#include "test/lib/kept_map.h"
#include "test/lib/turn.h"

#include <sys/mman.h>

SUITE(confirmed_at_each_call);
SUITE(confirmed_hosts);

#define FEW 3 /* so many calls, of which one has its turn */

/* ---- another process, at each call ---- */

static struct {
	pid_t pid;
	int to, from;
} peer;

/* Everybody's content, told by how it was changed. */
static bool is_as(struct lfile *l, char action)
{
	char c;

	switch (action) {
	case 't': /* truncated, and written anew */
		return plfs_size(l->f) == 20 && !lcheck(l, 0, 20, 3);
	case 'z': /* emptied */
		return plfs_pread(l->f, &c, 1, 0) == 0;
	case 'n': /* shortened */
		return plfs_pread(l->f, &c, 1, 30) == 0 && plfs_size(l->f) == 30 && !lcheck(l, 0, 30, 1);
	case 'e': /* in two steps, see below */
		return !lcheck(l, 0, 50, 1) && !lcheck(l, 50, 10, 2) && !lcheck(l, 60, 10, 1) &&
		       !lcheck(l, 70, 10, 2);
	default:
		return plfs_size(l->f) == LEN && !lcheck(l, 0, 50, 1) && !lcheck(l, 50, 10, 2) &&
		       !lcheck(l, 60, LEN - 60, 1);
	}
}

/* So many records that some go to the node index while the log is open. */
static void spill(struct lfile *l)
{
	for (int i = 0; i < 700; i++)
		if (lfill(l, LEN + i * 7919 % 2000 * 20, 3 + (size_t)i * i % 7, 2) < 0)
			die("write");
}

/* Do what is asked for, keeping the file open until told to close it. */
static void change(struct lfile *l, char action)
{
	if (action == 'e') {
		if (lfill(l, 70, 10, 2) != 10)
			die("write");
		lclose(l);
		return;
	}
	*l = lopen(kept_name, action == 't' ? O_RDWR | O_TRUNC : O_RDWR);
	if ((action == 'n' || action == 'z') && plfs_truncate(l->f, action == 'n' ? 30 : 0))
		die("truncate");
	if (action == 't' && lfill(l, 0, 20, 3) != 20)
		die("write");
	if ((action == 'w' || action == 'W' || action == 's') && lfill(l, 50, 10, 2) != 10)
		die("write");
	if (action == 's')
		spill(l);
	if (action == 'W')
		lclose(l);
}

static void peer_loop(int in, int out)
{
	struct lfile l = { .fd = -1 };
	char cmd[2 + sizeof(kept_name)];

	while (read(in, cmd, sizeof(cmd)) == sizeof(cmd)) {
		char answer = 'y';

		memcpy(kept_name, cmd + 2, sizeof(kept_name));
		switch (cmd[0]) {
		case 'c':
			if (l.fd >= 0)
				lclose(&l);
			break;
		case 'o': /* open and read, whatever is there */
			l = lopen(kept_name, O_RDONLY);
			plfs_pread(l.f, &answer, 1, 0);
			break;
		case '?': /* what is open shows */
			answer = is_as(&l, cmd[1]) ? 'y' : 'n';
			break;
		default:
			change(&l, cmd[0]);
		}
		if (write(out, &answer, 1) != 1)
			break;
	}
	_exit(0);
}

/* A process of its own, on the host @host; NULL: on this one. */
static void start_peer(const char *host)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		die("pipe");
	peer.pid = fork_child();
	if (!peer.pid) {
		if (host)
			be_host(host);
		close(to[1]);
		peer_loop(to[0], from[1]);
	}
	peer.to = to[1];
	peer.from = from[0];
}

static bool ask(char what, char arg)
{
	char cmd[2 + sizeof(kept_name)] = { what, arg }, answer;

	memcpy(cmd + 2, kept_name, sizeof(kept_name));
	if (write(peer.to, cmd, sizeof(cmd)) != sizeof(cmd) || read(peer.from, &answer, 1) != 1)
		die("the other process has gone");
	return answer == 'y';
}

static int calls_between;
static char action_then, action_last;

static int act_at_last(enum call call)
{
	(void)call;
	if (--calls_left == 0)
		ask(action_then, 0);
	if (action_last && calls_left == -calls_between)
		ask(action_last, 0);
	return 0;
}

static int shows(void *arg)
{
	struct lfile l = lopen(kept_name, O_RDONLY);

	return !is_as(&l, *(char *)arg);
}

/* Of the change in two steps. */
static int check_at_least_begun(void *arg)
{
	struct lfile l = lopen(kept_name, O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, 50, 1) || lcheck(&l, 50, 10, 2) || lcheck(&l, 60, 10, 1);
}

enum kept { NONE, UNCONFIRMED, CONFIRMED };

static void prepare(enum kept kept, int no)
{
	snprintf(kept_name, sizeof(kept_name), "f%d", no);
	make_file(NULL);
	if (kept != NONE && in_child(check_as_made, NULL))
		die("cannot be read");
	if (kept == UNCONFIRMED)
		set_word(OFF_CONFIRMED, 0);
}

static void finish(char action)
{
	cr_assert_eq(in_child(shows, &action), 0);
	cr_assert_eq(in_child(shows, &action), 0);
	ask('c', 0);
	cr_assert_eq(in_child(shows, &action), 0, "after the close");
	cr_assert_eq(in_child(shows, &action), 0, "after the close");
	lunlink(kept_name);
}

/* We open and read; before each call of that in turn the other process writes. */
static void write_at_each_call_of_a_reader(enum kept kept, char action, const char *host)
{
	struct turn turn = turn_begin(FEW);

	start_peer(host);
	calls_intercept();
	for (int no = (int)turn.nr;; no += (int)turn.step) {
		struct lfile l;
		char c;

		prepare(kept, no);
		calls_left = no;
		action_then = action;
		on_call = act_at_last;
		l = lopen(kept_name, O_RDONLY);
		plfs_pread(l.f, &c, 1, 0);
		on_call = NULL;
		if (calls_left > 0)
			ask(action, 0);
		if (host)
			plfs_refresh(l.f);
		cr_assert(is_as(&l, action), "%c at call %d of a reader, map %d: it does not see that",
			  action, no, kept);
		lclose(&l);
		finish(action);
		if (calls_left > 0) {
			cr_assert_gt(no, 10);
			break;
		}
	}
	close(peer.to);
	wait_child(peer.pid);
}

/*
 * We write; before each call of that in turn the other process opens and reads, and keeps what it has open.
 */
static void read_at_each_call_of_a_writer(enum kept kept, char action, const char *host)
{
	struct turn turn = turn_begin(FEW);

	start_peer(host);
	for (int no = (int)turn.nr;; no += (int)turn.step) {
		struct lfile l;

		prepare(kept, no);
		calls_left = no;
		action_then = 'o';
		on_call = act_at_last;
		change(&l, action);
		on_call = NULL;
		if (calls_left > 0)
			ask('o', 0);
		if (!host)
			cr_assert(ask('?', action),
				  "opened at call %d of a writer (%c, map %d): it does not see that", no,
				  action, kept);
		cr_assert_eq(in_child(shows, &action), 0);
		if (action != 'W')
			lclose(&l);
		finish(action);
		if (calls_left > 0) {
			cr_assert_gt(no, 10);
			break;
		}
	}
	close(peer.to);
	wait_child(peer.pid);
}

#define AT_EACH_CALL(title, kept, action) \
	Test(confirmed_at_each_call, title##_while_it_is_opened) \
	{ \
		write_at_each_call_of_a_reader(kept, action, NULL); \
	} \
	Test(confirmed_at_each_call, title##_and_is_opened_meanwhile) \
	{ \
		calls_intercept(); \
		read_at_each_call_of_a_writer(kept, action, NULL); \
	} \
	Test(confirmed_hosts, title##_elsewhere_while_it_is_opened) \
	{ \
		write_at_each_call_of_a_reader(kept, action, "far"); \
	} \
	Test(confirmed_hosts, title##_here_and_is_opened_elsewhere) \
	{ \
		calls_intercept(); \
		read_at_each_call_of_a_writer(kept, action, "far"); \
	}

AT_EACH_CALL(a_file_without_a_map_is_written, NONE, 'w')
AT_EACH_CALL(a_file_without_a_map_is_written_and_closed, NONE, 'W')
AT_EACH_CALL(a_file_with_a_map_is_written, CONFIRMED, 'w')
AT_EACH_CALL(a_file_with_a_map_is_written_and_closed, CONFIRMED, 'W')
AT_EACH_CALL(a_file_with_an_unconfirmed_map_is_written, UNCONFIRMED, 'w')
AT_EACH_CALL(a_file_with_an_unconfirmed_map_is_written_and_closed, UNCONFIRMED, 'W')
AT_EACH_CALL(a_file_with_a_map_is_shortened, CONFIRMED, 'n')
AT_EACH_CALL(a_file_with_a_map_is_emptied, CONFIRMED, 'z')
AT_EACH_CALL(a_file_with_a_map_is_written_anew, CONFIRMED, 't')

/*
 * We open, which makes a map; meanwhile another process begins a log, of which some is in its node index
 * before we have read that, and ends it later: then the map knows of the log, but not of all of it.
 */
Test(confirmed_at_each_call, a_log_is_begun_and_then_closed)
{
	struct turn turn = turn_begin(FEW);
	bool more = true;

	start_peer(NULL);
	calls_intercept();
	for (int no = (int)turn.nr; more; no += (int)turn.step) {
		for (int later = 1; later <= 20 && more; later++) {
			struct lfile l;
			char c, all = 'e';

			calls_between = later < 20 ? later : 1000;
			prepare(NONE, no * 100 + later);
			calls_left = no;
			action_then = 's';
			action_last = 'e';
			on_call = act_at_last;
			l = lopen(kept_name, O_RDONLY);
			plfs_pread(l.f, &c, 1, 0);
			on_call = NULL;
			more = calls_left <= 0;
			if (!more)
				ask('s', 0);
			cr_assert_eq(in_child(check_at_least_begun, NULL), 0, "call %d", no);
			if (!more || calls_left > -calls_between)
				ask('e', 0);
			cr_assert(is_as(&l, 'e'), "begun at call %d, ended %d later", no, calls_between);
			lclose(&l);
			cr_assert_eq(in_child(shows, &all), 0, "begun at call %d, ended %d later", no,
				     calls_between);
			cr_assert_eq(in_child(shows, &all), 0, "begun at call %d, ended %d later", no,
				     calls_between);
			lunlink(kept_name);
		}
	}
	close(peer.to);
	wait_child(peer.pid);
}

/* Of the two words that tell readers of this host there is but one then. */
Test(confirmed_at_each_call, a_file_is_opened_while_it_is_written_by_a_process_that_cannot_change_its_map)
{
	calls_intercept();
	sys.openat2 = some_openat2;
	open_fails = true;
	read_at_each_call_of_a_writer(CONFIRMED, 'w', NULL);
}

/* ---- a writer that dies ---- */

static bool *returned;

static int write_and_die(void *arg)
{
	struct lfile l;

	(void)arg;
	on_call = die_at_last;
	l = lopen(kept_name, O_RDWR);
	if (lfill(&l, 50, 10, 2) != 10)
		return 1;
	*returned = true;
	return lclose(&l);
}

/* What was written is there if the write has returned; whoever goes on writing is seen in any case. */
Test(confirmed_at_each_call, a_writer_is_killed)
{
	struct turn turn = turn_begin(FEW);
	int code = 256 + SIGKILL;

	returned = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	calls_intercept();
	for (int no = (int)turn.nr; code == 256 + SIGKILL; no += (int)turn.step) {
		prepare(CONFIRMED, no);
		*returned = false;
		calls_left = no;
		code = in_child(write_and_die, NULL);
		if (*returned)
			cr_assert_eq(in_child(check_written, NULL), 0, "killed at call %d", no);
		else
			cr_assert(!in_child(check_as_made, NULL) || !in_child(check_written, NULL),
				  "killed at call %d", no);
		cr_assert_eq(in_child(write_some, NULL), 0);
		cr_assert_eq(in_child(check_written, NULL), 0, "after call %d", no);
		lunlink(kept_name);
	}
	cr_assert_eq(code, 0);
}

/* ---- many at once ---- */

#define NR_PROCESSES 4
#define ROUNDS 150

/* What each has written, and closed, so far. */
static uint64_t *closed;

/*
 * Write the next number to a place of one's own and close; then all places have what was closed before the
 * open, or more.
 */
static int write_and_read(void *arg)
{
	int no = *(int *)arg;
	uint64_t before[NR_PROCESSES], now[NR_PROCESSES];

	if (no % 2)
		be_host("far");
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		struct lfile l;

		if (round % 3 == (uint64_t)no % 3) {
			l = lopen(kept_name, O_WRONLY);
			if (plfs_pwrite(l.f, &round, sizeof(round), no * (off_t)sizeof(round)) !=
			    sizeof(round))
				return 1;
			lclose(&l);
			__atomic_store_n(&closed[no], round, __ATOMIC_SEQ_CST);
		}
		for (int i = 0; i < NR_PROCESSES; i++)
			before[i] = __atomic_load_n(&closed[i], __ATOMIC_SEQ_CST);
		l = lopen(kept_name, O_RDONLY);
		if (plfs_pread(l.f, now, sizeof(now), 0) != sizeof(now))
			return 2;
		lclose(&l);
		for (int i = 0; i < NR_PROCESSES; i++)
			if (now[i] < before[i]) {
				fprintf(stderr,
					"process %d in round %d: %d had closed round %d, and %d is read\n",
					no, (int)round, i, (int)before[i], (int)now[i]);
				return 3;
			}
	}
	return 0;
}

static int make_zeros(void *arg)
{
	char zeros[LEN] = "";
	struct lfile l = lopen(kept_name, O_RDWR | O_CREAT);

	(void)arg;
	return plfs_pwrite(l.f, zeros, LEN, 0) != LEN || lclose(&l);
}

Test(confirmed_hosts, see_all_that_was_closed_while_everybody_writes_and_reads)
{
	pid_t pid[NR_PROCESSES];

	closed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_eq(in_child(make_zeros, NULL), 0);
	for (int i = 0; i < NR_PROCESSES; i++)
		pid[i] = start_child(write_and_read, &i);
	for (int i = 0; i < NR_PROCESSES; i++)
		cr_assert_eq(wait_child(pid[i]), 0);
}
