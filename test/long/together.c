/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that do everything to the same few names at once: create, O_TRUNC, write, append, truncate,
 * rename over, link, unlink, flatten, fsync, read. A model in shared memory knows what must be there: what
 * names lead to which file, and what the bytes of each file are. Whoever changes a file, or compares it,
 * holds its lock in the model, and whoever changes names that of the names: so what one process has done must
 * be what the next one sees, through descriptors opened long ago and through new ones; and files are renamed,
 * linked and removed while others are at them. With "locks" they lock the file itself (fcntl) for each change
 * and comparison, as programs do that overwrite each other's bytes; with "trust" they do not; with "apart"
 * neither, but each overwrites its own part only.
 *
 *     together locks|trust|apart DIR SECONDS PROCESSES SEED [PLFS]     PLFS: the command, to flatten files
 *                                                                      with
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../lib/job.h"

enum { NR_NAMES = 6, NR_FILES = 64, FILE_LEN = 200 * 1024, NR_FDS = 6, NO_FILE = -1 };

struct file {
	pthread_mutex_t lock;
	int links, users; /* under the names' lock: 0 and 0: free */
	off_t size;
	unsigned char bytes[FILE_LEN];
};

struct model {
	pthread_mutex_t lock; /* of the names; a file's is taken inside it, never the other way */
	int name[NR_NAMES];   /* which file, or NO_FILE */
	volatile int failed;
	struct file file[NR_FILES];
	long nr_ops[32];
};

struct open_file {
	int fd, file;
	bool append, readable, writable;
};

static struct model *model;
static struct open_file opened[NR_FDS];
static const char *dir, *plfs;
static uint64_t state;
static int me, nr_processes;
static bool locks, apart;
static char what[200]; /* the present operation, for messages */

static uint64_t rnd(uint64_t below)
{
	state = mix64(state);
	return (state >> 8) % below;
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *fmt, ...)
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

#define DOING(...) snprintf(what, sizeof(what), __VA_ARGS__)

static const char *path_of(int name)
{
	static char path[2][4096];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/name%d", dir, name);
	return path[turn];
}

static void lock(pthread_mutex_t *m)
{
	if (pthread_mutex_lock(m))
		fail("lock");
}

static void unlock(pthread_mutex_t *m) { pthread_mutex_unlock(m); }

static void init_lock(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (pthread_mutex_init(m, &attr))
		die("pthread_mutex_init");
}

/* ---- bytes: the file's lock is held ---- */

static void compare_size(const struct file *f, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		fail("fstat");
	errno = 0;
	if (st.st_size != f->size)
		fail("size %lld, not %lld", (long long)st.st_size, (long long)f->size);
}

static void compare(const struct file *f, int fd)
{
	static unsigned char buf[FILE_LEN + 100];
	off_t off = rnd(2) ? 0 : (off_t)rnd((uint64_t)f->size + 1);
	size_t len = rnd(2) ? sizeof(buf) : 1 + rnd(5000);
	size_t want = (size_t)(f->size - off) < len ? (size_t)(f->size - off) : len,
	       n = read_all(fd, buf, len, off, what);

	errno = 0;
	if (n != want)
		fail("%zu bytes at %lld, not %zu (size %lld)", n, (long long)off, want, (long long)f->size);
	for (size_t i = 0; i < n; i++)
		if (buf[i] != f->bytes[off + (off_t)i])
			fail("byte %lld is %02x, not %02x (size %lld)", (long long)off + (long long)i, buf[i],
			     f->bytes[off + (off_t)i], (long long)f->size);
	compare_size(f, fd);
}

static size_t some_length(void)
{
	return rnd(8) ? 1 + rnd(3000) : 1 + rnd(90000);
}

static void change(struct file *f, const struct open_file *o)
{
	static unsigned char buf[FILE_LEN];
	size_t len = some_length();
	off_t off = o->append ? f->size : (off_t)rnd(rnd(3) ? (uint64_t)f->size + 1 : FILE_LEN);
	ssize_t n;

	if (apart && !o->append) {
		off_t part = FILE_LEN / nr_processes, mine = me * part;

		len = len < (size_t)part ? len : (size_t)part;
		off = mine + (off_t)rnd((uint64_t)part - len + 1);
	}
	if (off + (off_t)len > FILE_LEN)
		return;
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)(i % 8 ? buf[i - 1] + 1u : (unsigned)rnd(256));
	n = o->append ? write(o->fd, buf, len) : pwrite(o->fd, buf, len, off);
	if (n != (ssize_t)len)
		fail("%zd of %zu bytes at %lld", n, len, (long long)off);
	if (off > f->size)
		memset(f->bytes + f->size, 0, (size_t)(off - f->size));
	memcpy(f->bytes + off, buf, len);
	f->size = off + (off_t)len > f->size ? off + (off_t)len : f->size;
}

static void resize(struct file *f, int fd)
{
	off_t size = rnd(3) ? (off_t)rnd((uint64_t)f->size + 1) : rnd(2) ? 0 : (off_t)rnd(FILE_LEN);

	if (ftruncate(fd, size))
		fail("to %lld", (long long)size);
	if (size > f->size)
		memset(f->bytes + f->size, 0, (size_t)(size - f->size));
	f->size = size;
}

static void lock_bytes(const struct open_file *o, short type)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET };

	if (locks && fcntl(o->fd, F_SETLKW, &fl))
		fail("fcntl");
}

static void at_bytes(void)
{
	struct open_file *o = &opened[rnd(NR_FDS)];
	struct file *f;

	if (o->fd < 0)
		return;
	f = &model->file[o->file];
	lock(&f->lock);
	DOING("lock");
	lock_bytes(o, o->writable ? F_WRLCK : F_RDLCK);
	if (o->writable && rnd(2)) {
		DOING("%s", o->append ? "append" : "pwrite");
		change(f, o);
	} else if (o->writable && !rnd(12)) {
		DOING("ftruncate");
		resize(f, o->fd);
	} else if (!rnd(15)) {
		DOING("fsync");
		if (fsync(o->fd))
			fail("failed");
	} else if (o->readable) {
		DOING("read through an old descriptor");
		compare(f, o->fd);
	}
	lock_bytes(o, F_UNLCK);
	unlock(&f->lock);
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
	int mode = modes[rnd(4)], flags = 0, file = model->name[name];
	bool made = file == NO_FILE;

	flags |= made || rnd(2) ? O_CREAT : 0;
	flags |= mode != O_RDONLY && !rnd(5) ? O_TRUNC : 0;
	flags |= mode != O_RDONLY && !apart && !rnd(3) ? O_APPEND : 0;
	file = made ? free_file() : file;
	if (file == NO_FILE)
		return;
	DOING("open%s%s", made ? ", new" : "", flags & O_TRUNC ? ", O_TRUNC" : "");
	lock(&model->file[file].lock);
	o->fd = open(path_of(name), mode | flags, 0644);
	if (o->fd < 0)
		fail("%s", path_of(name));
	*o = (struct open_file){ o->fd, file, flags & O_APPEND, mode != O_WRONLY, mode != O_RDONLY };
	if (made) {
		model->file[file].links = 1;
		model->file[file].size = 0;
		model->name[name] = file;
	} else if (flags & O_TRUNC) {
		model->file[file].size = 0;
	}
	model->file[file].users++;
	if (o->readable)
		compare(&model->file[file], o->fd);
	unlock(&model->file[file].lock);
}

static void close_one(struct open_file *o)
{
	DOING("close");
	lock(&model->file[o->file].lock);
	if (close(o->fd))
		fail("failed");
	unlock(&model->file[o->file].lock);
	model->file[o->file].users--;
	o->fd = -1;
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

/* What cannot be flattened now, since somebody has it open or it has several names, stays as it is. */
static void flatten_one(int name)
{
	pid_t pid;

	if (!plfs || model->name[name] == NO_FILE)
		return;
	DOING("flatten");
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		dup2(null, 2);
		for (int i = 0; i < NR_FDS; i++)
			if (opened[i].fd >= 0)
				close(opened[i].fd);
		execl(plfs, plfs, "flatten", path_of(name), (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, NULL, 0) < 0)
		;
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
	switch (rnd(11)) {
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
	case 10:
		if (!rnd(8))
			flatten_one(a);
		break;
	}
	unlock(&model->lock);
}

static void live(double seconds)
{
	double end = now_s() + seconds;

	for (int i = 0; i < NR_FDS; i++)
		opened[i].fd = -1;
	for (long i = 0; !model->failed && (i % 64 || now_s() < end); i++, model->nr_ops[me]++)
		if (rnd(5))
			at_bytes();
		else
			at_names();
	lock(&model->lock);
	for (int i = 0; i < NR_FDS; i++)
		if (opened[i].fd >= 0)
			close_one(&opened[i]);
	unlock(&model->lock);
}

static void look_at_the_end(void)
{
	for (int i = 0; i < NR_NAMES; i++) {
		DOING("at the end");
		look_by_name(i);
		if (model->name[i] != NO_FILE) {
			int fd = open(path_of(i), O_RDONLY);

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
	plfs = argv[6];
	if (mkdir(dir, 0755))
		die("%s", dir);
	model = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (model == MAP_FAILED)
		die("mmap");
	init_lock(&model->lock);
	for (int i = 0; i < NR_FILES; i++)
		init_lock(&model->file[i].lock);
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
		int status;

		wait(&status);
		bad |= status;
		ops += model->nr_ops[i];
		if (status) {
			signal(SIGTERM, SIG_IGN);
			kill(0, SIGTERM);
		}
	}
	if (bad)
		return 1;
	look_at_the_end();
	if (rmdir(dir))
		die("%s", dir);
	printf("%ld operations by %d processes\n", ops, nr);
	return 0;
}
