/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that do everything to the same few names at once: create, O_TRUNC, write, append, truncate,
 * rename over, link, unlink, fsync, read, and the verbs of the command. Each has a child now and then, with
 * the descriptors that are open then; it ends in one way or another, or is killed. A model in shared memory
 * knows what must be there: what names lead to which file, and what the bytes of each file are. Whoever
 * changes a file, or compares it, holds its lock in the model, and whoever changes names that of the names:
 * so what one process has done must be what the next one sees, through descriptors opened long ago and
 * through new ones; and files are renamed, linked and removed while others are at them. With "locks" they
 * lock the file itself (fcntl) for each change and comparison, as programs do that overwrite each other's
 * bytes; with "trust" they do not; with "apart" neither, but each overwrites its own part only.
 *
 *     together locks|trust|apart DIR SECONDS PROCESSES SEED [PLFS]     PLFS: the command
 *
 * With an odd SEED files are also mapped shared and flattened. From then on they are as plain ones, and a
 * truncation may be found half done. The calls on bytes are in together_bytes.c.
 */
#define _GNU_SOURCE
#include "together.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct model *model;
struct open_file *opened;
int me, nr_processes;
bool locks, apart, plain, becomes_plain;
char what[200];

static const char *dir, *plfs;
static uint64_t state;
static pid_t child; /* of this process, with descriptors that it got from it */

uint64_t rnd(uint64_t below)
{
	state = mix64(state);
	return (state >> 8) % below;
}

__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *fmt, ...)
{
	char line[400];
	va_list ap;
	int err = errno;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	model->failed = 1;
	errno = err;
	die("process %d, %s: %s", me, what, line);
}

static const char *path_of(int name)
{
	static char path[2][4096];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/name%d", dir, name);
	return path[turn];
}

/* Who was killed with the lock left a change in the model; who waited may have taken a wake-up along. */
void lock(pthread_mutex_t *m)
{
	int ret;

	do
		ret = pthread_mutex_timedlock(m, &(struct timespec){ .tv_sec = time(NULL) + 1 });
	while (ret == ETIMEDOUT);
	if (ret == EOWNERDEAD)
		ret = pthread_mutex_consistent(m);
	if (ret)
		fail("lock: %s", strerror(ret));
}

void unlock(pthread_mutex_t *m) { pthread_mutex_unlock(m); }

static void init_lock(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (pthread_mutex_init(m, &attr))
		die("pthread_mutex_init");
}

/* ---- names: their lock is held ---- */

static int free_file(void)
{
	for (int i = 0; i < NR_FILES; i++)
		if (!model->file[i].links && !model->file[i].users)
			return i;
	return NO_FILE;
}

static void drop_name(int name)
{
	if (model->name[name] != NO_FILE)
		model->file[model->name[name]].links--;
	model->name[name] = NO_FILE;
}

static void open_one(struct open_file *o, int name)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR };
	int mode = modes[rnd(4)], flags = 0, no = model->name[name], fd;
	bool made = no == NO_FILE;
	struct file *f;

	no = made ? free_file() : no;
	if (no == NO_FILE)
		return;
	f = &model->file[no];
	lock(&f->lock);
	flags |= made || rnd(2) ? O_CREAT : 0;
	flags |= mode != O_RDONLY && !rnd(5) && f->changing < 0 ? O_TRUNC : 0;
	flags |= mode != O_RDONLY && !apart && !rnd(3) ? O_APPEND : 0;
	DOING("open%s%s", made ? ", new" : "", flags & O_TRUNC ? ", O_TRUNC" : "");
	fd = open(path_of(name), mode | flags, 0644);
	if (fd < 0)
		fail("%s", path_of(name));
	*o = (struct open_file){ fd, no, flags & O_APPEND, mode != O_WRONLY, mode != O_RDONLY };
	if (made) {
		f->links = 1;
		f->mode = 0644;
		model->name[name] = no;
	}
	if (made || flags & O_TRUNC) {
		f->size = 0;
		memset(f->bytes, 0, FILE_LEN);
		f->changing = NOBODY;
	}
	f->users++;
	if (o->readable)
		compare(f, o->fd);
	unlock(&f->lock);
}

static void close_one(struct open_file *o)
{
	struct file *f = &model->file[o->file];

	DOING("close");
	lock(&f->lock);
	if (close(o->fd))
		fail("failed");
	unlock(&f->lock);
	f->users--;
	o->fd = -1;
}

static void dup_one(const struct open_file *from, struct open_file *to)
{
	if (from->fd < 0 || to->fd >= 0)
		return;
	DOING("dup");
	*to = *from;
	to->fd = dup(from->fd);
	if (to->fd < 0)
		fail("failed");
	model->file[to->file].users++;
}

static void exchange(int a, int b)
{
	int other = model->name[b];

	if (model->name[a] == NO_FILE || other == NO_FILE)
		return;
	DOING("renameat2, RENAME_EXCHANGE");
	if (renameat2(AT_FDCWD, path_of(a), AT_FDCWD, path_of(b), RENAME_EXCHANGE))
		fail("%s and %s", path_of(a), path_of(b));
	model->name[b] = model->name[a];
	model->name[a] = other;
}

static void cut_one(int name)
{
	struct file *f;

	if (model->name[name] == NO_FILE)
		return;
	f = &model->file[model->name[name]];
	lock(&f->lock);
	cut_by_name(f, path_of(name));
	unlock(&f->lock);
}

static void rename_one(int from, int to)
{
	if (model->name[from] == NO_FILE)
		return;
	DOING("rename");
	if (rename(path_of(from), path_of(to)))
		fail("%s to %s", path_of(from), path_of(to));
	if (model->name[from] == model->name[to]) /* then nothing happens */
		return;
	drop_name(to);
	model->name[to] = model->name[from];
	model->name[from] = NO_FILE;
}

static void link_one(int from, int to)
{
	int ret;

	if (model->name[from] == NO_FILE)
		return;
	DOING("link");
	ret = link(path_of(from), path_of(to));
	if (model->name[to] != NO_FILE ? !ret || errno != EEXIST : ret != 0)
		fail("%s to %s", path_of(from), path_of(to));
	if (model->name[to] == NO_FILE) {
		model->name[to] = model->name[from];
		model->file[model->name[from]].links++;
	}
}

static void unlink_one(int name)
{
	DOING("unlink");
	if (unlink(path_of(name)) ? model->name[name] != NO_FILE || errno != ENOENT :
				    model->name[name] == NO_FILE)
		fail("%s", path_of(name));
	drop_name(name);
}

/* ---- the command: with the names' lock or without ---- */

static void tell(int fd)
{
	char text[2000];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	errno = 0;
	fail("%s", text);
}

/* What it refuses, as of a file that is open or has several names, stays as it is. Nothing is damaged. */
static void run_verb(int name)
{
	static const char *const verbs[] = { "compact", "drain", "stage", "check",
					     "repair",	"gc",	 "flatten" };
	int verb = (int)rnd(becomes_plain ? 7 : 6), out = memfd_create("output", MFD_CLOEXEC), status;
	bool looks = !strcmp(verbs[verb], "check") || !strcmp(verbs[verb], "repair");
	pid_t pid;

	DOING("plfs %s %s", verbs[verb], path_of(name));
	pid = fork();
	if (pid == 0) {
		dup2(out, 1);
		dup2(out, 2);
		for (int i = 0; i < NR_FDS; i++)
			if (opened[i].fd >= 0)
				close(opened[i].fd);
		if (!strcmp(verbs[verb], "gc"))
			execl(plfs, plfs, "gc", "-a", "0", dir, (char *)NULL);
		execl(plfs, plfs, verbs[verb], path_of(name), (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	if (!WIFEXITED(status) || (looks && WEXITSTATUS(status) == 1))
		tell(out);
	close(out);
}

static void look_by_name(int name)
{
	int file = model->name[name];
	struct stat st;

	DOING("stat");
	if (stat(path_of(name), &st)) {
		if (file != NO_FILE || errno != ENOENT)
			fail("%s", path_of(name));
		return;
	}
	errno = 0;
	if (file == NO_FILE)
		fail("%s is there", path_of(name));
	if ((int)st.st_nlink != model->file[file].links)
		fail("%s: %d links, not %d", path_of(name), (int)st.st_nlink, model->file[file].links);
}

static void at_names(void)
{
	struct open_file *o = &opened[rnd(NR_FDS)];
	int a = (int)rnd(NR_NAMES), b = (int)rnd(NR_NAMES);

	lock(&model->lock);
	switch (rnd(15)) {
	case 0: case 1: case 2: case 3:
		if (o->fd >= 0)
			close_one(o);
		open_one(o, a);
		break;
	case 4: case 5:
		if (o->fd >= 0)
			close_one(o);
		break;
	case 6: rename_one(a, b); break;
	case 7: link_one(a, b); break;
	case 8: unlink_one(a); break;
	case 9: look_by_name(a); break;
	case 10: dup_one(&opened[rnd(NR_FDS)], o); break;
	case 11: exchange(a, b); break;
	case 12: cut_one(a); break;
	case 13: case 14:
		if (!plfs || me >= nr_processes || rnd(8))
			break;
		if (rnd(2))
			run_verb(a);
		unlock(&model->lock);
		run_verb(b);
		return;
	}
	unlock(&model->lock);
}

/* ---- processes ---- */

static void close_all(void)
{
	lock(&model->lock);
	for (int i = 0; i < NR_FDS; i++)
		if (opened[i].fd >= 0)
			close_one(&opened[i]);
	unlock(&model->lock);
}

__attribute__((noreturn)) static void live_as_child(void)
{
	me += nr_processes;
	opened = model->opened[me];
	child = 0;
	alarm(120);
	for (long i = (long)rnd(500); !model->failed && i > 0; i--, model->nr_ops[me]++)
		if (rnd(5))
			at_bytes();
		else
			at_names();
	if (rnd(2))
		close_all();
	else if (rnd(2))
		execl("/bin/true", "true", (char *)NULL); /* it inherits them */
	_exit(0);
}

static void begin_child(void)
{
	struct open_file *its = model->opened[me + nr_processes];

	DOING("fork");
	lock(&model->lock);
	memcpy(its, opened, NR_FDS * sizeof(*opened));
	for (int i = 0; i < NR_FDS; i++)
		if (opened[i].fd >= 0)
			model->file[opened[i].file].users++;
	state = mix64(state);
	child = fork();
	if (child < 0)
		fail("failed");
	if (child == 0) {
		state = mix64(state + 1);
		live_as_child();
	}
	unlock(&model->lock);
}

/* At a name it is not killed, for the model would not know what became of that. */
static void end_child(bool kills)
{
	struct open_file *its = model->opened[me + nr_processes];
	int status;

	DOING("%s a child", kills ? "kill" : "wait for");
	if (kills) {
		lock(&model->lock);
		kill(child, SIGKILL);
	}
	while (waitpid(child, &status, 0) < 0)
		;
	if (!kills)
		lock(&model->lock);
	for (int i = 0; i < NR_FDS; i++)
		if (its[i].fd >= 0)
			model->file[its[i].file].users--;
	for (int i = 0; i < NR_FILES; i++)
		if (model->file[i].changing == me + nr_processes)
			model->file[i].changing = DEAD;
	unlock(&model->lock);
	child = 0;
	errno = 0;
	if (status && !(kills && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		fail("status %x", status);
}

static void live(double seconds)
{
	double end = now_s() + seconds;

	opened = model->opened[me];
	for (int i = 0; i < NR_FDS; i++)
		opened[i].fd = -1;
	for (long i = 0; !model->failed && (i % 64 || now_s() < end); i++, model->nr_ops[me]++)
		if (!child && !rnd(300))
			begin_child();
		else if (child && !rnd(100))
			end_child(rnd(2));
		else if (rnd(5))
			at_bytes();
		else
			at_names();
	if (child)
		end_child(false);
	close_all();
}

static void look_at_the_end(void)
{
	for (int i = 0; i < NR_NAMES; i++) {
		DOING("at the end");
		look_by_name(i);
		if (model->name[i] != NO_FILE) {
			int fd = open(path_of(i), O_RDONLY);

			if (fd < 0)
				fail("%s", path_of(i));
			compare(&model->file[model->name[i]], fd);
			close(fd);
		}
		unlink_one(i);
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 5 ? atof(argv[3]) : 0;
	int nr = argc > 5 ? atoi(argv[4]) : 0, bad = 0;
	long ops = 0;

	if (nr < 1 || nr > 32)
		die("together locks|trust|apart DIR SECONDS PROCESSES SEED [PLFS]");
	locks = !strcmp(argv[1], "locks");
	apart = !strcmp(argv[1], "apart");
	nr_processes = nr;
	dir = argv[2];
	plain = getenv("PLFS_TEST_PLAIN");
	becomes_plain = plain || atoi(argv[5]) % 2;
	plfs = plain ? NULL : argv[6];
	if (mkdir(dir, 0755))
		die("%s", dir);
	model = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (model == MAP_FAILED)
		die("mmap");
	init_lock(&model->lock);
	for (int i = 0; i < NR_FILES; i++) {
		init_lock(&model->file[i].lock);
		model->file[i].changing = NOBODY;
	}
	for (int i = 0; i < NR_NAMES; i++)
		model->name[i] = NO_FILE;
	for (me = 0; me < nr; me++) {
		state = mix64((uint64_t)atoll(argv[5]) * 1000 + (uint64_t)me);
		if (fork() == 0) {
			alarm((unsigned)seconds + 120); /* one that dies with a lock held stops the others */
			live(seconds);
			exit(0);
		}
	}
	for (int i = 0; i < nr; i++) {
		int status, bad_before = bad;

		wait(&status);
		bad |= status;
		ops += model->nr_ops[i] + model->nr_ops[i + nr];
		if (WIFSIGNALED(status) && !bad_before)
			fprintf(stderr, "a process was ended by signal %d\n", WTERMSIG(status));
		if (status) {
			signal(SIGTERM, SIG_IGN);
			kill(0, SIGTERM);
		}
	}
	if (bad || model->failed)
		return 1;
	look_at_the_end();
	if (rmdir(dir))
		die("%s", dir);
	printf("%ld operations by %d processes\n", ops, nr);
	return 0;
}
