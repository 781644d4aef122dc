/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver's side of a history: servers are started once for each environment, and live until a history
 * ends or kills them; each history has files of its own. The driver ends and makes processes, and is woken
 * for nothing else.
 */
#define _GNU_SOURCE
#include "drive.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const struct variant variants[] = {
	{ .name = "plain" },
	{ .name = "small", .preload = true, .options = "{small=256}" },
	{ .name = "logs", .preload = true, .inplace = true, .options = "{small=0}" },
	{ .name = "posix", .preload = true, .posix = true, .options = "{small=0}" },
	{ .name = "default", .preload = true, .inplace = true, .options = "" },
	{ .name = "flat", .preload = true, .options = "{mode=flat}" },
	{ .name = "near", .preload = true, .options = "{small=0,near=$HISTORIES_NEAR}" }, /* and a helper */
	{ .name = "closed", .preload = true, .options = "{small=0,near=$HISTORIES_NEAR,drain=close}" },
	{ .name = "ended", .preload = true, .options = "{small=0,near=$HISTORIES_NEAR,log-max=1}" },
	{ .name = "spread", .preload = true, .several = true, .options = "{small=0,spread=process}" },
	{ .name = "mirror", .preload = true, .several = true, .options = "{small=0,mirror=2}" },
};
const int nr_variants = sizeof(variants) / sizeof(variants[0]);

enum { ENV_PLAIN, ENV_PRELOAD, ENV_POSIX, NR_ENVS, LOOK_MS = 200 };

static struct env envs[NR_ENVS];
static const char *base, *library;
static unsigned long nr_files;

const char *drive_dir(void) { return base; }

static int env_of(const struct variant *v)
{
	return !v->preload ? ENV_PLAIN : v->posix ? ENV_POSIX : ENV_PRELOAD;
}

/* Behind what is in @map. */
static void add_mapping(char *map, const struct variant *v)
{
	char *to = map + strlen(map);

	to += sprintf(to, "%s", map[0] ? ":" : "");
	if (!v->inplace)
		to += sprintf(to, "/plfs-%s=", v->name);
	to += sprintf(to, "%s/%s", base, v->name);
	if (v->several)
		to += sprintf(to, ",%s/%s.2", base, v->name);
	sprintf(to, "%s", v->options);
}

_Noreturn void drive_fail(const char *what)
{
	perror(what);
	exit(2);
}

static void be_zygote(int e, int board_fd)
{
	char map[4096] = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(board_fd, BOARD_FD) < 0 || dup2(envs[e].said_fd, STDERR_FILENO) < 0)
		drive_fail("dup2");
	for (int i = 1; i < nr_variants; i++)
		if (env_of(&variants[i]) == e)
			add_mapping(map, &variants[i]);
	if (e != ENV_PLAIN && *library) {
		char near[4096];

		snprintf(near, sizeof(near), "%s/places", base);
		setenv("HISTORIES_NEAR", near, 1);
		setenv("LD_PRELOAD", library, 1);
		setenv("PLFS_MAP", map, 1);
	}
	if (e == ENV_POSIX)
		setenv("PLFS_CONSISTENCY", "posix", 1);
	execl("/proc/self/exe", "histories", "--serve", "-1", "0", NULL);
	drive_fail("exec");
}

static int open_said(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/said.XXXXXX", base);
	fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	if (fd < 0)
		drive_fail(path);
	return fd;
}

struct env *env_get(const struct variant *v)
{
	struct env *env = &envs[env_of(v)];

	if (!env->board) {
		env->board_fd = memfd_create("board", MFD_CLOEXEC);
		if (env->board_fd < 0 || ftruncate(env->board_fd, sizeof(*env->board)))
			drive_fail("memfd_create");
		env->board =
			mmap(NULL, sizeof(*env->board), PROT_READ | PROT_WRITE, MAP_SHARED, env->board_fd, 0);
		if (env->board == MAP_FAILED)
			drive_fail("mmap");
		env->said_fd = open_said();
	}
	if (!env->zygote) {
		memset(env->board, 0, sizeof(*env->board));
		env->zygote = fork();
		if (!env->zygote)
			be_zygote(env_of(v), env->board_fd);
		env->board->zygote = env->zygote;
	}
	return env;
}

static void env_end(struct env *env)
{
	if (!env->zygote)
		return;
	kill(env->zygote, SIGKILL);
	waitpid(env->zygote, NULL, 0);
	env->zygote = 0;
	for (int s = 0; s < NR_SLOTS; s++)
		for (int d = env->board->parts[s].depth; d >= 0; d--)
			if (env->board->parts[s].stack[d].pid) {
				int fd = (int)syscall(SYS_pidfd_open, env->board->parts[s].stack[d].pid, 0);
				struct pollfd p = { .fd = fd, .events = POLLIN };

				if (fd < 0)
					continue;
				kill(env->board->parts[s].stack[d].pid, SIGKILL);
				poll(&p, 1, TIMEOUT_MS);
				close(fd);
			}
}

static void make_dir(const char *name, const char *end)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s%s", base, name, end);
	if (mkdir(path, 0755) && errno != EEXIST)
		drive_fail(path);
}

void drive_begin(const char *dir, const char *preload, int cpu)
{
	cpu_set_t cpus;

	base = dir;
	library = preload;
	CPU_ZERO(&cpus);
	CPU_SET((size_t)cpu, &cpus);
	/* a turn is passed on by a switch, without waking another core */
	sched_setaffinity(0, sizeof(cpus), &cpus);
	make_dir("places", "");
	for (int i = 0; i < nr_variants; i++) {
		make_dir(variants[i].name, "");
		if (variants[i].several)
			make_dir(variants[i].name, ".2");
	}
}

void drive_anew(void)
{
	for (int e = 0; e < NR_ENVS; e++)
		env_end(&envs[e]);
}

void drive_end(void)
{
	drive_anew();
}

bool drive_said(const struct variant *v, char *line, size_t size)
{
	struct env *env = &envs[env_of(v)];
	off_t end = lseek(env->said_fd, 0, SEEK_END);
	ssize_t n;

	if (end == env->said_len)
		return false;
	n = pread(env->said_fd, line, size - 1, env->said_len);
	env->said_len = end;
	line[n < 0 ? 0 : n] = 0;
	line[strcspn(line, "\n")] = 0;
	return true;
}

bool board_wait_for_turn(struct board *b)
{
	for (int ms = 0; ms < TIMEOUT_MS; ms += LOOK_MS) {
		struct part *part;

		if (word_wait_for(&b->driver_word, LOOK_MS))
			return true;
		part = &b->parts[b->steps[b->at].slot];
		if (b->at < b->nr_steps && part->stack[part->depth].pid &&
		    kill(part->stack[part->depth].pid, 0))
			return word_wait_for(&b->driver_word, LOOK_MS);
	}
	return false;
}

bool env_spawn(struct env *env, int slot)
{
	env->board->zygote_slot = slot;
	word_wake(&env->board->zygote_word);
	return word_wait_for(&env->board->driver_word, TIMEOUT_MS);
}

bool process_wait_for_end(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, TIMEOUT_MS) == 1;
}

void part_ended(struct part *part)
{
	memset(&part->stack[part->depth], 0, sizeof(part->stack[0]));
	if (part->depth)
		part->depth--;
}

static bool end_process(struct part *part, enum call call)
{
	struct process *p = &part->stack[part->depth];
	int pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	bool ok;

	if (pidfd < 0)
		return false;
	if (call == KILL)
		kill(p->pid, SIGKILL);
	else
		word_wake(&p->word);
	ok = process_wait_for_end(pidfd);
	close(pidfd);
	part_ended(part);
	return ok;
}

void board_begin(const struct variant *v, struct board *b, const struct history *h)
{
	char dir[1024];

	if (v->preload && !v->inplace && *library)
		snprintf(dir, sizeof(dir), "/plfs-%s", v->name);
	else
		snprintf(dir, sizeof(dir), "%s/%s", base, v->name);
	nr_files++;
	snprintf(b->f, sizeof(b->f), "%.200s/f%lu", dir, nr_files);
	snprintf(b->g, sizeof(b->g), "%.200s/g%lu", dir, nr_files);
	snprintf(b->h, sizeof(b->h), "%.200s/h%lu", dir, nr_files);
	memcpy(b->steps, h->steps, sizeof(h->steps));
	memset(b->outcomes, 0, sizeof(b->outcomes));
	b->nr_steps = h->nr;
	b->at = 0;
	b->driver_word = b->fork_word = 0;
	b->beside = false;
	memset(b->ended, 0, sizeof(b->ended));
	memset(b->begun, 0, sizeof(b->begun));
	memset(b->done, 0, sizeof(b->done));
}

bool env_go_on(struct env *env)
{
	struct board *b = env->board;
	struct step s = b->steps[b->at];
	struct part *part = &b->parts[s.slot];

	if (!part->stack[0].pid && !env_spawn(env, s.slot))
		return false;
	if (s.call == EXIT || s.call == KILL) {
		if (!end_process(part, s.call))
			return false;
		b->at++;
		return true;
	}
	if (s.call == BOTH && b->parts[R].stack[0].pid && !end_process(&b->parts[R], KILL))
		return false;
	word_wake(&part->stack[part->depth].word);
	return board_wait_for_turn(b);
}

/* All servers are as they were: children ended, descriptors closed, names removed. */
static bool clean_up(struct env *env)
{
	struct board *b = env->board;
	bool ok = true;
	int last = S;

	b->at = b->nr_steps = 0;
	for (int s = 0; s < NR_SLOTS && ok; s++) {
		struct part *part = &b->parts[s];

		for (b->steps[0] = (struct step){ (uint8_t)s, EXIT }; part->depth && ok;)
			ok = end_process(part, EXIT);
		if (!part->stack[0].pid)
			continue;
		last = s;
	}
	for (int s = 0; s < NR_SLOTS; s++)
		if (b->parts[s].stack[0].pid && (b->parts[s].stack[0].nr_fds || b->parts[s].stack[0].map))
			b->steps[b->nr_steps++] = (struct step){ (uint8_t)s, DONE };
	b->steps[b->nr_steps++] = (struct step){ (uint8_t)last, REMOVE };
	while (ok && b->at < b->nr_steps)
		ok = env_go_on(env);
	return ok;
}

bool env_finish(struct env *env, struct outcome *out, bool ok)
{
	struct board *b = env->board;

	if (!ok && env == &envs[ENV_PLAIN]) {
		struct history h = { .nr = b->nr_steps };
		char text[1024];

		memcpy(h.steps, b->steps, sizeof(h.steps));
		history_text(text, sizeof(text), &h);
		fprintf(stderr, "histories: no answer at step %d, without the library: %s\n", b->at, text);
	}
	if (!ok && b->at < STEPS_MAX) {
		b->outcomes[b->at].err = HANG;
		for (int i = b->at + 1; i < STEPS_MAX; i++)
			b->outcomes[i].err = GONE;
	}
	memcpy(out, b->outcomes, sizeof(b->outcomes));
	ok = ok && clean_up(env);
	if (!ok)
		env_end(env);
	return ok;
}

bool drive(const struct variant *v, const struct history *h, struct outcome *out)
{
	struct env *env = env_get(v);
	bool ok = true;

	board_begin(v, env->board, h);
	while (ok && env->board->at < h->nr)
		ok = env_go_on(env);
	return env_finish(env, out, ok);
}
