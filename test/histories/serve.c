/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that carries out steps when it is its turn, and passes the turn on itself where it can: only what
 * ends or makes a process goes by way of the driver. Its descriptors are in shared memory, so that an image
 * that was exec'ed goes on with them. It runs under the library or without.
 */
#define _GNU_SOURCE
#include "histories.h"

#include <fcntl.h>
#include <ftw.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ALONE_MS = 5000 };

static struct board *b;
static struct process *me;
static int my_slot, my_depth;
static bool resumed; /* this process forked, its child has ended, and the turn is its own again */
static char buf[65536];
static sigjmp_buf bus_jump;

void word_wait(uint32_t *word)
{
	while (!__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL))
		syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

bool word_wait_for(uint32_t *word, int timeout_ms)
{
	struct timespec t = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L };

	while (!__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL))
		if (syscall(SYS_futex, word, FUTEX_WAIT, 0, &t, NULL, 0) && errno == ETIMEDOUT)
			return __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);
	return true;
}

void word_wake(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- steps ---- */

static void keep_bytes(struct outcome *o, const char *bytes, ssize_t n)
{
	for (ssize_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && bytes[j] == bytes[i]; j++)
			;
		if (o->nr_runs < RUNS_MAX)
			o->runs[o->nr_runs] = (struct byte_run){ (uint32_t)(j - i), (uint8_t)bytes[i] };
		o->nr_runs++;
	}
}

static void keep(struct outcome *o, int64_t ret)
{
	o->ret = ret;
	o->err = ret < 0 ? errno : 0;
}

static void keep_stat(struct outcome *o, int ret, const struct stat *st)
{
	keep(o, ret ? ret : st->st_size);
	o->extra = ret ? 0 : (uint32_t)(st->st_mode | st->st_nlink << 20);
}

static void keep_fd(struct outcome *o, int fd)
{
	if (fd >= 0 && me->nr_fds < FDS_MAX)
		me->fds[me->nr_fds++] = fd;
	keep(o, fd < 0 ? fd : 0);
}

static const char *filled(int i, size_t len)
{
	return memset(buf, 'A' + i % 58, len);
}

static void look(struct outcome *o, const char *name)
{
	int fd = open(name, O_RDONLY);
	ssize_t n;

	keep(o, fd);
	if (fd < 0)
		return;
	keep(o, n = pread(fd, buf, sizeof(buf), 0));
	keep_bytes(o, buf, n);
	close(fd);
}

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(bus_jump, 1);
}

static void store(struct outcome *o, int i)
{
	if (!me->map) {
		void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
				 me->nr_fds ? me->fds[me->nr_fds - 1] : -1, 0);

		if (map == MAP_FAILED) {
			keep(o, -1);
			return;
		}
		me->map = map;
	}
	if (sigsetjmp(bus_jump, 1))
		o->err = BUS;
	else
		memset(me->map + 20, 'A' + i % 58, 10);
}

static void load(struct outcome *o)
{
	if (!me->map) {
		o->err = NO_MAP;
	} else if (sigsetjmp(bus_jump, 1)) {
		o->err = BUS;
	} else {
		memcpy(buf, me->map, 100);
		keep_bytes(o, buf, 100);
	}
}

static void replace(struct outcome *o, int i)
{
	int fd = open(b->h, O_RDWR | O_CREAT | O_EXCL, 0644);

	keep(o, fd);
	if (fd < 0)
		return;
	keep(o, write(fd, filled(i, 40), 40));
	if (close(fd) || rename(b->h, b->f))
		keep(o, -1);
}

/* The child goes on as this part when the parent has returned from its fork() too. */
static void do_fork(struct outcome *o)
{
	struct part *part = &b->parts[my_slot];
	pid_t pid;

	if (my_depth == DEPTH_MAX) {
		o->err = NO_ROOM;
		return;
	}
	part->stack[my_depth + 1] = *me;
	part->stack[my_depth + 1].word = 0;
	pid = fork();
	if (pid < 0) {
		keep(o, -1);
	} else if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		me = &part->stack[++my_depth];
		me->pid = (pid_t)syscall(SYS_getpid);
		part->depth = my_depth;
		word_wait(&b->fork_word);
	} else {
		word_wake(&b->fork_word);
		word_wait(&me->word);
		resumed = true;
	}
}

static _Noreturn void take_turns(void);

/* The child goes on as R, and the parent as what it was. */
static void do_both(struct outcome *o)
{
	struct process *child = &b->parts[R].stack[0];
	pid_t pid;

	*child = *me;
	child->word = 0;
	pid = fork();
	if (pid < 0)
		keep(o, -1);
	if (pid) {
		word_wait(&b->fork_word);
		return;
	}
	prctl(PR_SET_PDEATHSIG, 0);
	me = child;
	my_slot = R;
	my_depth = b->parts[R].depth = 0;
	me->pid = (pid_t)syscall(SYS_getpid);
	word_wake(&b->fork_word);
	take_turns();
}

static void do_exec(struct outcome *o)
{
	char slot[12], depth[12];

	snprintf(slot, sizeof(slot), "%d", my_slot);
	snprintf(depth, sizeof(depth), "%d", my_depth);
	execl("/proc/self/exe", "histories", "--serve", slot, depth, NULL);
	keep(o, -1);
}

/* In the text of PLFS_MAP, of which it is cut out, the mapping that has f; NULL: there is none. */
static char *mapping_of_f(char *map)
{
	char *next;

	for (; map; map = next) {
		size_t len = strcspn(map, "=,{:");

		next = strchr(map, ':');
		if (next)
			*next++ = 0;
		if (!strncmp(b->f, map, len) && b->f[len] == '/')
			return map;
	}
	return NULL;
}

/* What it says is for its user: it may refuse. */
static void command(struct outcome *o, const char *const *args)
{
	const char *library = getenv("LD_PRELOAD"), *argv[10] = { "plfs" };
	char plfs[4096], map[4096], dir[sizeof(b->f)];
	int status = 0;
	pid_t pid;

	if (!library)
		return;
	snprintf(plfs, sizeof(plfs), "%s", library);
	strcpy(strrchr(plfs, '/'), "/plfs");
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(b->f, '/') - b->f), b->f);
	for (int i = 0; args[i]; i++)
		argv[i + 1] = !strcmp(args[i], "f") ? b->f : !strcmp(args[i], ".") ? dir : args[i];
	snprintf(map, sizeof(map), "%s", getenv("PLFS_MAP"));
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		unsetenv("LD_PRELOAD");
		setenv("PLFS_MAP", mapping_of_f(map), 1);
		execv(plfs, (char **)argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) ? WEXITSTATUS(status) > 100 : WTERMSIG(status) != SIGKILL)
		o->err = status; /* it could not be run, or crashed */
}

/* Of logs of little that were closed, in the notice of each container (core/dropping/lease.h). */
static int count_more(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	static const uint64_t closed = 1000;
	int fd;

	(void)st;
	if (type != FTW_F || strncmp(path + ftw->base, "notice.", 7))
		return 0;
	fd = open(path, O_WRONLY);
	if (fd < 0 || pwrite(fd, &closed, sizeof(closed), 4096 + 56) != sizeof(closed))
		return 1;
	return close(fd);
}

int count_more_in(const char *dir)
{
	return nftw(dir, count_more, 8, FTW_PHYS);
}

/* The backend of f is in the mapping; a process without the library sees it. */
static void many(struct outcome *o)
{
	char map[4096], *entry, *dir;
	int status = 0;

	if (!getenv("LD_PRELOAD"))
		return;
	snprintf(map, sizeof(map), "%s", getenv("PLFS_MAP"));
	entry = mapping_of_f(map);
	entry[strcspn(entry, "{,")] = 0;
	dir = strchr(entry, '=');
	if (!fork()) {
		unsetenv("LD_PRELOAD");
		execl("/proc/self/exe", "histories", "--many", dir ? dir + 1 : entry, NULL);
		_exit(127);
	}
	wait(&status);
	o->err = status;
}

static void close_all(void)
{
	if (me->map)
		munmap(me->map, 4096);
	me->map = NULL;
	while (me->nr_fds)
		close(me->fds[--me->nr_fds]);
}

static bool needs_fd(enum call call)
{
	switch (call) {
	case PREAD:
	case W0:
	case W50:
	case WFAR:
	case READ:
	case WRITE:
	case FCUT30:
	case FCUT200:
	case FSTAT:
	case END:
	case FSYNC:
	case LOCK: case UNLOCK: case DUP: case SWAP: case CLOSE: case PUNCH: case ALLOC: case COPY:
		return true;
	default:
		return false;
	}
}

static void on_name(struct outcome *o, enum call call, int i)
{
	struct stat st;

	switch (call) {
	case OPEN:
		return keep_fd(o, open(b->f, O_RDWR | O_CREAT, 0644));
	case RDONLY:
		return keep_fd(o, open(b->f, O_RDONLY));
	case APPEND:
		return keep_fd(o, open(b->f, O_RDWR | O_APPEND | O_CREAT, 0644));
	case TRUNC:
		return keep_fd(o, open(b->f, O_RDWR | O_TRUNC | O_CREAT, 0644));
	case EXCL:
		return keep_fd(o, open(b->f, O_RDWR | O_CREAT | O_EXCL, 0644));
	case CUT0:
		return keep(o, truncate(b->f, 0));
	case CUT70:
		return keep(o, truncate(b->f, 70));
	case STAT:
		return keep_stat(o, stat(b->f, &st), &st);
	case STAT_G:
		return keep_stat(o, stat(b->g, &st), &st);
	case LOOK:
		return look(o, b->f);
	case LOOK_G:
		return look(o, b->g);
	case UNLINK:
		return keep(o, unlink(b->f));
	case OVER:
		return replace(o, i);
	case AWAY:
		return keep(o, rename(b->f, b->g));
	case LINK:
		return keep(o, link(b->f, b->g));
	case STORE:
		return store(o, i);
	case LOAD:
		return load(o);
	case MSYNC:
		return me->map ? keep(o, msync(me->map, 4096, MS_SYNC)) : (void)(o->err = NO_MAP);
	case FORK:
		return do_fork(o);
	case EXEC:
		return do_exec(o);
	case BOTH:
		return do_both(o);
	case FLATTEN: case COMPACT: case REPAIR: case DRAIN: case COLLECT:
		return command(o, call_command(call));
	case MANY:
		return many(o);
	case DONE:
		return close_all();
	default: /* REMOVE */
		unlink(b->f);
		unlink(b->g);
	}
}

static void on_fd(struct outcome *o, enum call call, int i, int fd)
{
	struct stat st;
	ssize_t n;

	switch (call) {
	case PREAD:
		keep(o, n = pread(fd, buf, sizeof(buf), 0));
		return keep_bytes(o, buf, n);
	case READ:
		keep(o, n = read(fd, buf, 60));
		return keep_bytes(o, buf, n);
	case W0:
		return keep(o, pwrite(fd, filled(i, 100), 100, 0));
	case W50:
		return keep(o, pwrite(fd, filled(i, 100), 100, 50));
	case WFAR:
		return keep(o, pwrite(fd, filled(i, 100), 100, 300));
	case WRITE:
		return keep(o, write(fd, filled(i, 60), 60));
	case FCUT30:
		return keep(o, ftruncate(fd, 30));
	case FCUT200:
		return keep(o, ftruncate(fd, 200));
	case FSTAT:
		return keep_stat(o, fstat(fd, &st), &st);
	case PUNCH:
		return keep(o, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20, 60));
	case ALLOC:
		return keep(o, fallocate(fd, 0, 80, 200));
	case COPY:
		return keep(o, copy_file_range(fd, (off_t[]){ 0 }, fd, (off_t[]){ 120 }, 60, 0));
	case END:
		return keep(o, lseek(fd, 0, SEEK_END));
	case FSYNC:
		return keep(o, fsync(fd));
	case LOCK:
		return keep(o, flock(fd, LOCK_EX | LOCK_NB));
	case UNLOCK:
		return keep(o, flock(fd, LOCK_UN));
	case DUP:
		return me->nr_fds < FDS_MAX ? keep_fd(o, dup(fd)) : (void)(o->err = NO_ROOM);
	case SWAP:
		if (me->nr_fds > 1) {
			me->fds[me->nr_fds - 1] = me->fds[me->nr_fds - 2];
			me->fds[me->nr_fds - 2] = fd;
		}
		return;
	default: /* CLOSE */
		me->nr_fds--;
		return keep(o, close(fd));
	}
}

static void perform(int i)
{
	enum call call = b->steps[i].call;
	struct outcome *o = &b->outcomes[i];

	memset(o, 0, sizeof(*o));
	me->step = i;
	b->begun[i] = true;
	if (call == EXIT)
		exit(0);
	if (needs_fd(call) && !me->nr_fds)
		o->err = NO_FD;
	else if (call <= EXCL && me->nr_fds == FDS_MAX)
		o->err = NO_ROOM;
	else if (needs_fd(call))
		on_fd(o, call, i, me->fds[me->nr_fds - 1]);
	else
		on_name(o, call, i);
	b->done[i] = true;
}

/* ---- turns ---- */

/* The driver has a part in it. */
static bool is_drivers(enum call call)
{
	return call == EXIT || call == KILL || call == BOTH;
}

static void pass_turn(void)
{
	struct step *s = &b->steps[b->at];
	struct part *part = &b->parts[s->slot];

	if (b->at == b->nr_steps || is_drivers(s->call) || !part->stack[0].pid)
		word_wake(&b->driver_word);
	else
		word_wake(&part->stack[part->depth].word);
}

static bool is_my_turn(void)
{
	struct step *s = &b->steps[b->at];

	return b->at < b->nr_steps && s->slot == my_slot && !is_drivers(s->call);
}

static void end_beside(void)
{
	__atomic_store_n(&b->ended[me->step], true, __ATOMIC_RELEASE);
	word_wake(&b->driver_word);
}

/* Whose parent may have gone looks for the end of all by itself. */
static void wait_for_turn(void)
{
	while (!word_wait_for(&me->word, ALONE_MS))
		if (kill(b->zygote, 0))
			_exit(1);
}

static _Noreturn void take_turns(void)
{
	for (;;) {
		wait_for_turn();
		if (b->beside) {
			perform(b->at);
			end_beside();
			continue;
		}
		do {
			resumed = false;
			perform(b->at);
			if (!resumed) /* else the child has gone on from there */
				b->at++;
		} while (resumed || is_my_turn());
		pass_turn();
	}
}

static void be_server(int slot)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	my_slot = slot;
	my_depth = 0;
	me = &b->parts[slot].stack[0];
	memset(me, 0, sizeof(*me));
	b->parts[slot].depth = 0;
	me->pid = (pid_t)syscall(SYS_getpid);
	word_wake(&b->driver_word);
	take_turns();
}

void serve(struct board *board, int slot, int depth)
{
	struct sigaction bus = { .sa_handler = on_bus, .sa_flags = SA_NODEFER };

	b = board;
	sigaction(SIGBUS, &bus, NULL);
	if (slot >= 0) {
		my_slot = slot;
		my_depth = depth;
		me = &b->parts[slot].stack[depth];
		me->map = NULL;
		b->done[me->step] = true;
		if (b->beside) {
			end_beside();
			take_turns();
		}
		word_wake(&me->word); /* the step is done: its outcome is there, all zeros */
		b->at++;
		if (!is_my_turn()) {
			word_wait(&me->word);
			pass_turn();
		}
		take_turns();
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for servers */
	for (;;) {
		word_wait(&b->zygote_word);
		if (!fork())
			be_server(b->zygote_slot);
	}
}
