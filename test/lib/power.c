/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The recording of changes, call by call, and the trees that are built from it.
 */
#include "test/lib/power.h"

#include <sched.h>
#include <sys/mman.h>

struct recording *power;
struct sys_table power_real;

/* ---- recording ---- */

static struct op *power_op(enum op_kind kind, int node)
{
	struct op *op = &power->ops[power->nr_ops];

	errno = 0;
	if (power->nr_ops + 1 == POWER_OPS)
		die("too much to record");
	*op = (struct op){ .kind = kind, .node = node };
	power->nr_ops++;
	return op;
}

static void power_lock(void)
{
	while (__atomic_exchange_n(&power->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void power_unlock(void)
{
	__atomic_store_n(&power->lock, 0, __ATOMIC_RELEASE);
}

static int power_node(const struct stat *st)
{
	struct node *n;

	for (int i = 0; i < power->nr_nodes; i++)
		if (power->nodes[i].ino == st->st_ino)
			return i;
	errno = 0;
	if (power->nr_nodes == POWER_NODES)
		die("too many files");
	n = &power->nodes[power->nr_nodes];
	n->ino = st->st_ino;
	n->mode = st->st_mode;
	return power->nr_nodes++;
}

static void power_name(int dir, const char *name, int node, int group)
{
	struct op *op = power_op(OP_NAME, node);

	op->dir = dir;
	op->no = group;
	snprintf(op->name, sizeof(op->name), "%s", name);
}

static struct entry *power_entry(int dir, const char *name)
{
	for (int i = 0; i < power->nr_entries; i++)
		if (power->entries[i].dir == dir && !strcmp(power->entries[i].name, name))
			return &power->entries[i];
	return NULL;
}

static void power_see_file(int dirfd, const char *name, int node, const struct stat *st)
{
	static unsigned char buf[POWER_PAGES * POWER_PAGE];
	struct node *n = &power->nodes[node];
	int fd = openat(dirfd, name, O_RDONLY);
	ssize_t len = fd < 0 ? -1 : pread(fd, buf, sizeof(buf), 0);
	struct op *op;

	if (len < 0 || st->st_size > (off_t)sizeof(buf))
		die("cannot record %s (%lld bytes)", name, (long long)st->st_size);
	close(fd);
	memset(buf + len, 0, (size_t)(round_up_u64((uint64_t)len, POWER_PAGE) - (uint64_t)len));
	n->mode = st->st_mode;
	if (st->st_size != n->size) {
		op = power_op(OP_SIZE, node);
		op->size = st->st_size;
		op->before = n->size;
		for (int i = (int)((st->st_size + POWER_PAGE - 1) / POWER_PAGE); i < POWER_PAGES; i++)
			n->image[i] = 0;
		n->size = st->st_size;
	}
	for (int i = 0; i * POWER_PAGE < len; i++) {
		if (!memcmp(buf + i * POWER_PAGE, power->images[n->image[i]], POWER_PAGE))
			continue;
		errno = 0;
		if (power->nr_images == POWER_IMAGES)
			die("too many pages");
		memcpy(power->images[power->nr_images], buf + i * POWER_PAGE, POWER_PAGE);
		n->image[i] = power->nr_images++;
		op = power_op(OP_PAGE, node);
		op->no = i;
		op->image = n->image[i];
	}
}

static void power_see_dir(int fd, int dir, int group)
{
	DIR *d = fdopendir(fd);

	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		struct entry *known;
		struct stat st;
		int node;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		node = power_node(&st);
		known = power_entry(dir, e->d_name);
		if (!known || known->node != node)
			power_name(dir, e->d_name, node, group);
		if (!known) {
			known = &power->entries[power->nr_entries++];
			*known = (struct entry){ .dir = dir };
			snprintf(known->name, sizeof(known->name), "%s", e->d_name);
		}
		known->node = node;
		known->seen = true;
		if (S_ISDIR(st.st_mode))
			power_see_dir(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY), node, group);
		else
			power_see_file(fd, e->d_name, node, &st);
	}
	closedir(d);
}

/* Record what is other than it was. */
static void power_look(void)
{
	int group = ++power->nr_groups, saved = errno;

	for (int i = 0; i < power->nr_entries; i++)
		power->entries[i].seen = false;
	power_see_dir(open(scratch, O_RDONLY | O_DIRECTORY), 0, group);
	for (int i = 0; i < power->nr_entries; i++)
		if (!power->entries[i].seen) {
			power_name(power->entries[i].dir, power->entries[i].name, -1, group);
			power->entries[i--] = power->entries[--power->nr_entries];
		}
	errno = saved;
}

void power_event(int no)
{
	power_lock();
	power_op(OP_EVENT, 0)->no = no;
	power_unlock();
}

#define POWER_DO(call)                              \
	({                                          \
		__typeof__(call) power_ret;         \
		power_lock();                       \
		power_look();                       \
		power_ret = call;                   \
		power_look();                       \
		power_unlock();                     \
		power_ret;                          \
	})

static int power_openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return flags & O_CREAT ? POWER_DO(power_real.openat(dirfd, path, flags, mode)) :
				 power_real.openat(dirfd, path, flags, mode);
}

static ssize_t power_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	return POWER_DO(power_real.pwrite(fd, buf, len, off));
}

static ssize_t power_pwritev(int fd, const struct iovec *iov, int cnt, off_t off)
{
	return POWER_DO(power_real.pwritev(fd, iov, cnt, off));
}

static ssize_t power_pwritev2(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	return POWER_DO(power_real.pwritev2(fd, iov, cnt, off, flags));
}

static int power_ftruncate(int fd, off_t len) { return POWER_DO(power_real.ftruncate(fd, len)); }

static int power_fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
	return POWER_DO(power_real.fchmodat(dirfd, path, mode, flags));
}

static int power_fchmod(int fd, mode_t mode) { return POWER_DO(power_real.fchmod(fd, mode)); }

static int power_fallocate(int fd, int mode, off_t off, off_t len)
{
	return POWER_DO(power_real.fallocate(fd, mode, off, len));
}

static int power_munmap(void *addr, size_t len) { return POWER_DO(power_real.munmap(addr, len)); }

static int power_unlinkat(int dirfd, const char *path, int flags)
{
	return POWER_DO(power_real.unlinkat(dirfd, path, flags));
}

static int power_mkdirat(int dirfd, const char *path, mode_t mode)
{
	return POWER_DO(power_real.mkdirat(dirfd, path, mode));
}

static int power_renameat(int fromfd, const char *from, int tofd, const char *to)
{
	return POWER_DO(power_real.renameat(fromfd, from, tofd, to));
}

static int power_renameat2(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	return POWER_DO(power_real.renameat2(fromfd, from, tofd, to, flags));
}

static int power_synced(int fd, int ret)
{
	struct stat st;

	if (!ret && !fstat(fd, &st))
		power_op(OP_SYNC, power_node(&st));
	return ret;
}

static int power_fsync(int fd) { return POWER_DO(power_synced(fd, power_real.fsync(fd))); }
static int power_fdatasync(int fd) { return POWER_DO(power_synced(fd, power_real.fdatasync(fd))); }

void power_record(void)
{
	struct stat st;

	if (stat(scratch, &st))
		die("stat %s", scratch);
	power_node(&st);
	power_real = sys;
	sys.openat = power_openat;
	sys.pwrite = power_pwrite;
	sys.pwritev = power_pwritev;
	sys.pwritev2 = power_pwritev2;
	sys.ftruncate = power_ftruncate;
	sys.fallocate = power_fallocate;
	sys.fchmodat = power_fchmodat;
	sys.fchmod = power_fchmod;
	sys.munmap = power_munmap;
	sys.unlinkat = power_unlinkat;
	sys.mkdirat = power_mkdirat;
	sys.renameat = power_renameat;
	sys.renameat2 = power_renameat2;
	sys.fsync = power_fsync;
	sys.fdatasync = power_fdatasync;
}

void power_new(void)
{
	if (!power)
		power = mmap(NULL, sizeof(*power), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (power == MAP_FAILED)
		die("mmap");
	power->lock = power->nr_ops = power->nr_nodes = power->nr_entries = power->nr_groups = 0;
	power->nr_images = 1;
	memset(power->nodes, 0, sizeof(power->nodes));
}

/* ---- what a failure leaves ---- */

static bool power_wants(const struct failure *f, int op, uint64_t what)
{
	bool wants = mix64(f->salt ^ mix64(what)) % 16 < f->keep;

	return wants != (f->only == op);
}

/* Names that changed at once do so for good together: those whose last change is in front of the cut. */
struct name_group {
	int last;
	bool synced;
};

static void power_find_groups(const struct failure *f, const int *file_synced, struct name_group *groups)
{
	for (int i = 0; i < power->nr_ops; i++) {
		const struct op *op = &power->ops[i];

		if (op->kind != OP_NAME)
			continue;
		groups[op->no].last = i;
		groups[op->no].synced |= i < f->cut && i < file_synced[op->dir];
	}
}

/* Which operations have an effect. */
static void power_choose(const struct failure *f, bool *keep)
{
	static int file_synced[POWER_NODES];
	static struct name_group groups[POWER_OPS];
	int name_synced = -1, names_end = f->cut;

	memset(keep, 0, POWER_OPS * sizeof(*keep));
	memset(groups, 0, sizeof(groups));
	for (int i = 0; i < POWER_NODES; i++)
		file_synced[i] = -1;
	for (int i = 0; i < f->cut; i++)
		if (power->ops[i].kind == OP_SYNC) {
			file_synced[power->ops[i].node] = i;
			name_synced = i;
		}
	power_find_groups(f, file_synced, groups);
	if (f->ordered && f->keep < 16)
		names_end = name_synced + 1 +
			    (int)(f->keep ? mix64(f->salt) % (unsigned)(f->cut - name_synced) : 0);
	for (int i = 0; i < f->cut; i++) {
		struct op *op = &power->ops[i];
		const struct name_group *group = op->kind == OP_NAME ? &groups[op->no] : NULL;

		if (group && f->ordered)
			keep[i] = group->last < names_end;
		else if (group)
			keep[i] = group->last < f->cut &&
				  (group->synced || f->names ||
				   power_wants(f, -2 - op->no, (uint64_t)op->no << 2 | 1));
		else if (op->kind == OP_PAGE || op->kind == OP_SIZE)
			keep[i] = i < file_synced[op->node] ||
				  (f->ordered && op->kind == OP_SIZE && op->size < op->before ?
					   i < names_end :
					   power_wants(f, i, (uint64_t)i << 2));
	}
}

static void power_make_file(const struct failure *f, const bool *keep, int dirfd, const char *name, int node)
{
	static int now[POWER_PAGES], was[POWER_PAGES];
	const struct node *n = &power->nodes[node];
	off_t size = 0;
	struct stat st;
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL, 0600);

	memset(now, 0, sizeof(now));
	memset(was, 0, sizeof(was));
	for (int i = 0; i < f->cut; i++) {
		const struct op *op = &power->ops[i];

		if (op->node != node || (op->kind != OP_PAGE && op->kind != OP_SIZE))
			continue;
		if (op->kind == OP_PAGE)
			was[op->no] = op->image;
		if (op->kind == OP_PAGE && keep[i])
			now[op->no] = op->image;
		if (op->kind != OP_SIZE || !keep[i])
			continue;
		size = op->size;
		for (int p = (int)((size + POWER_PAGE - 1) / POWER_PAGE); p < POWER_PAGES; p++)
			now[p] = was[p] = 0;
	}
	for (int p = 0; f->ordered && p * POWER_PAGE < size; p++) /* it does not grow over what it has not */
		if (was[p] && !now[p]) {
			size = p * POWER_PAGE;
			break;
		}
	for (int p = 0; p * POWER_PAGE < size; p++) {
		size_t len = (size_t)min_u64(POWER_PAGE, (uint64_t)(size - p * POWER_PAGE));

		if (now[p] && pwrite(fd, power->images[now[p]], len, p * POWER_PAGE) != (ssize_t)len)
			die("cannot build %s", name);
	}
	if (fd < 0 || ftruncate(fd, size) || fchmod(fd, n->mode & 07777) || fstat(fd, &st))
		die("cannot build %s", name);
	if (!strcmp(name, "index.global") && size >= 144) { /* it has its own inode's number */
		uint64_t confirmed = 0;

		if (pread(fd, &confirmed, 8, 128) == 8 && le64toh(confirmed) == n->ino) {
			confirmed = htole64(st.st_ino);
			if (pwrite(fd, &confirmed, 8, 128) != 8)
				die("cannot build %s", name);
		}
	}
	close(fd);
}

static void power_make_dir(const struct failure *f, const bool *keep, const struct entry *entries, int nr,
	int fd, int dir)
{
	for (int i = 0; i < nr; i++) {
		const struct entry *e = &entries[i];

		if (e->dir != dir || e->node < 0)
			continue;
		if (S_ISDIR(power->nodes[e->node].mode)) {
			int sub;

			if (mkdirat(fd, e->name, 0700))
				die("mkdir %s", e->name);
			sub = openat(fd, e->name, O_RDONLY | O_DIRECTORY);
			power_make_dir(f, keep, entries, nr, sub, e->node);
			fchmod(sub, power->nodes[e->node].mode & 07777);
			close(sub);
		} else {
			power_make_file(f, keep, fd, e->name, e->node);
		}
	}
}

void power_fail(const struct failure *f, const char *path)
{
	static struct entry entries[2000];
	static bool keep[POWER_OPS];
	int nr = 0, fd = open(path, O_RDONLY | O_DIRECTORY);

	power_choose(f, keep);
	for (int i = 0; i < f->cut; i++) {
		const struct op *op = &power->ops[i];
		int k = 0;

		if (op->kind != OP_NAME || !keep[i])
			continue;
		while (k < nr && (entries[k].dir != op->dir || strcmp(entries[k].name, op->name)))
			k++;
		nr += k == nr;
		entries[k].dir = op->dir;
		entries[k].node = op->node;
		memcpy(entries[k].name, op->name, sizeof(op->name));
	}
	if (fd < 0)
		die("open %s", path);
	power_make_dir(f, keep, entries, nr, fd, 0);
	close(fd);
}
