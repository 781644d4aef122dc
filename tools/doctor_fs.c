/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the file system of a backend can: tried with a file that has no name, so nothing is left of it, and
 * read from the table of mounts.
 */
#include "doctor.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>

#define PAGE 4096
#define HOLE_LEN (1 << 20)
#define SKEW_NS 20000000LL /* writes of two hosts that are closer have no order (libplfs.7) */

/* ---- the file ---- */

/* A name that plfs gc takes away should this process be killed before it does. */
static int make_file(int dir, bool in_plfs, char *name, size_t len)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -1;
	snprintf(name, len, "%s.tmp.%016llx", in_plfs ? "gc" : ".plfs-doctor", (unsigned long long)random);
	return openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/*
 * Two files by name for a moment, while no signal comes, for the exchange of names too. *@exchanged: 0; or
 * the errno.
 */
static int make_scratch(struct doctor *d, int *exchanged)
{
	int dir = d->plfs >= 0 ? d->plfs : d->dir, fd, other;
	char name[64], second[64];
	sigset_t all, old;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	fd = make_file(dir, d->plfs >= 0, name, sizeof(name));
	other = fd < 0 ? -1 : make_file(dir, d->plfs >= 0, second, sizeof(second));
	*exchanged = other < 0 ? 0 :
		     syscall(SYS_renameat2, dir, name, dir, second, 2 /* RENAME_EXCHANGE */) ? errno : 0;
	if (fd >= 0)
		unlinkat(dir, name, 0);
	if (other >= 0)
		unlinkat(dir, second, 0);
	if (other >= 0)
		close(other);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return fd;
}

bool doctor_begin(struct doctor *d)
{
	int exchanged;

	d->fd = make_scratch(d, &exchanged);
	if (d->fd < 0) {
		doctor_says(d, ILL, "writing",
			    errno == ENOSPC || errno == EDQUOT ? "remove files, or ask for more space" : "",
			    "no file can be made in %s%s: %s; so nothing can be tried, and jobs of this user cannot write",
			    d->backend, d->plfs >= 0 ? "/" PLFS_DIR_NAME : "", strerror(errno));
		return false;
	}
	if (exchanged == EINVAL || exchanged == ENOSYS)
		doctor_says(d, REMARK, "names", "",
			    "two names cannot be exchanged: plfs flatten replaces a file in two steps, which a "
			    "rename of the file by others at that moment can come between");
	return true;
}

/* ---- the mount ---- */

/* The number of the mount that @fd is on, as the kernel's tables have it. */
static int mount_id(int fd)
{
	char path[64], line[128];
	int id = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "mnt_id: %d", &id) == 1)
			break;
	if (f)
		fclose(f);
	return id;
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" */
static void look_at_mount(struct doctor *d)
{
	char *line = NULL, *rest, *save, *options;
	int id = mount_id(d->dir);
	FILE *f = fopen("/proc/self/mountinfo", "r");
	size_t len = 0;

	while (f && id >= 0 && getline(&line, &len, f) > 0) {
		if (atoi(line) != id)
			continue;
		rest = strstr(line, " - ");
		if (!rest)
			break;
		*rest = '\0';
		options = strtok_r(line, " ", &save);
		for (int field = 1; field < 6 && options; field++)
			options = strtok_r(NULL, " ", &save);
		snprintf(d->options, sizeof(d->options), "%s,", options ? options : "");
		options = strtok_r(rest + 3, " \n", &save);
		snprintf(d->type, sizeof(d->type), "%s", options ? options : "");
		strtok_r(NULL, " \n", &save); /* what is mounted */
		options = strtok_r(NULL, " \n", &save);
		len = strlen(d->options);
		snprintf(d->options + len, sizeof(d->options) - len, "%s", options ? options : "");
		break;
	}
	if (f)
		fclose(f);
	free(line);
	if (!*d->type)
		strcpy(d->type, "unknown file system");
}

/* Whether the mount has one of the options, up to a NULL. Returns it. */
static const char *has_option(const struct doctor *d, const char *const *wanted)
{
	for (; *wanted; wanted++) {
		size_t len = strlen(*wanted);

		for (const char *p = d->options; (p = strstr(p, *wanted)); p += len)
			if ((p == d->options || p[-1] == ',') && (!p[len] || p[len] == ','))
				return *wanted;
	}
	return NULL;
}

/* ---- locks ---- */

/* Whether a lock through one description keeps another out. @why: the errno, 0: it did not. */
static bool locks_exclude(int fd, int other, bool whole, int *why)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 }, second = lk;
	struct flock off = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1 };
	bool excludes;

	*why = 0;
	if (whole ? flock(fd, LOCK_EX | LOCK_NB) : fcntl(fd, F_OFD_SETLK, &lk)) {
		*why = errno;
		return false;
	}
	excludes = whole ? flock(other, LOCK_EX | LOCK_NB) : fcntl(other, F_OFD_SETLK, &second);
	whole ? flock(fd, LOCK_UN) : fcntl(fd, F_OFD_SETLK, &off);
	whole ? flock(other, LOCK_UN) : fcntl(other, F_OFD_SETLK, &off);
	return excludes;
}

static void look_between_hosts(struct doctor *d)
{
	static const char *const nfs[] = { "nolock", "local_lock=all", "local_lock=posix", "local_lock=flock",
					   NULL };
	static const char *const lustre[] = { "localflock", "noflock", NULL };
	bool is_nfs = !strncmp(d->type, "nfs", 3), is_lustre = !strcmp(d->type, "lustre");
	const char *local = is_nfs ? has_option(d, nfs) : is_lustre ? has_option(d, lustre) : NULL;

	if (local)
		doctor_says(d, ILL, "locks", is_lustre ? "mount it with flock" : "mount it without that option",
			    "they work, but count on this host only (%s, mounted with %s): several hosts that "
			    "write one file can lose bytes, and so can a gc beside jobs of other hosts",
			    d->type, local);
	else if (!strcmp(d->type, "beegfs"))
		doctor_says(d, REMARK, "locks",
			    "set tuneUseGlobalFileLocks and tuneUseGlobalAppendLocks to true in beegfs-client.conf",
			    "they work on this host; on several hosts they do not count unless its clients have "
			    "tuneUseGlobalFileLocks = true, which is not the default: then several hosts that write "
			    "one file can lose bytes");
	else if (plfs_is_remote(d->m))
		doctor_says(d, REMARK, "locks", "",
			    "they work on this host; whether they count on all hosts that mount this %s cannot be "
			    "tried from one: several hosts that write one file need that", d->type);
	else
		doctor_says(d, WELL, "locks", "", "they work, and %s has no other hosts", d->type);
}

static void look_at_locks(struct doctor *d)
{
	char name[64];
	int other, why;
	bool records, whole;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", d->fd);
	other = open(name, O_RDWR | O_CLOEXEC);
	if (other < 0) {
		doctor_says(d, REMARK, "locks", "", "could not be tried: %s", strerror(errno));
		return;
	}
	records = locks_exclude(d->fd, other, false, &why);
	if (records) {
		whole = locks_exclude(d->fd, other, true, &why);
		look_between_hosts(d);
		if (!whole)
			doctor_says(d, REMARK, "flock", "", "flock(2) does not work: %s",
				    why ? strerror(why) : "two processes got the same lock");
	} else {
		doctor_says(d, ILL, "locks", "mount it with locks",
			    "record locks do not work (%s): two processes that append can overwrite each other, "
			    "small files take a log each, and flatten and repair cannot see who uses a file",
			    why ? strerror(why) : "two processes got the same lock");
	}
	close(other);
}

/* ---- files ---- */

static void look_at_mark(struct doctor *d)
{
	struct stat st;

	if (!fchmod(d->fd, 01600) && !fstat(d->fd, &st) && st.st_mode & S_ISVTX)
		doctor_says(d, WELL, "sticky bit", "", "a file keeps it, so stubs are known by it");
	else
		doctor_says(d, ILL, "sticky bit", "choose a directory on another file system",
			    "a file does not keep it: this %s cannot have a backend", d->type);
	fchmod(d->fd, 0600);
}

static void look_at_maps(struct doctor *d)
{
	char byte = 0, *map = MAP_FAILED;

	if (!ftruncate(d->fd, PAGE))
		map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
	if (map != MAP_FAILED && pwrite(d->fd, "x", 1, 7) == 1 && map[7] == 'x') {
		map[8] = 'y';
		if (pread(d->fd, &byte, 1, 8) != 1)
			byte = 0;
	}
	if (byte == 'y')
		doctor_says(d, WELL, "shared maps", "", "they work: a killed process loses nothing");
	else
		doctor_says(d, ILL, "shared maps", "choose a directory on another file system",
			    "they do not work: a killed process loses what it has not released by close, fsync or unlock");
	if (map != MAP_FAILED)
		munmap(map, PAGE);
}

static void look_at_holes(struct doctor *d)
{
	struct stat st;
	off_t hole;

	if (ftruncate(d->fd, 0) || ftruncate(d->fd, HOLE_LEN) || pwrite(d->fd, "x", 1, 0) != 1 ||
	    fsync(d->fd) || fstat(d->fd, &st)) {
		doctor_says(d, ILL, "holes", "", "a file of 1 MiB could not be made: %s", strerror(errno));
		return;
	}
	hole = lseek(d->fd, 0, SEEK_HOLE);
	if (st.st_blocks * 512 >= HOLE_LEN)
		doctor_says(d, REMARK, "holes", "",
			    "%s keeps none: each file takes its size in its stub too, twice in all", d->type);
	else if (hole < 0 || hole >= HOLE_LEN)
		doctor_says(d, REMARK, "holes", "",
			    "a file has them, but they cannot be asked for: copies and flatten read zeros instead");
	else
		doctor_says(d, WELL, "holes", "", "a stub takes no space for its length");
}

static void look_at_lists(struct doctor *d)
{
	char value[64];

	if (fgetxattr(d->fd, "system.posix_acl_access", value, sizeof(value)) < 0 &&
	    (errno == EOPNOTSUPP || errno == ENOSYS))
		doctor_says(d, WELL, "access lists", "",
			    "this %s has no POSIX access control lists, and none are needed", d->type);
	else
		doctor_says(d, WELL, "access lists", "", "logs get those of their files");
}

static long long ns_between(const struct timespec *from, const struct timespec *to)
{
	return (to->tv_sec - from->tv_sec) * 1000000000LL + to->tv_nsec - from->tv_nsec;
}

static void look_at_clock(struct doctor *d)
{
	struct timespec before, after;
	struct stat st;
	long long ahead, behind;

	if (clock_gettime(CLOCK_REALTIME, &before) || pwrite(d->fd, "x", 1, 0) != 1 || fsync(d->fd) ||
	    fstat(d->fd, &st) || clock_gettime(CLOCK_REALTIME, &after)) {
		doctor_says(d, ILL, "clock", "", "a time could not be compared: %s", strerror(errno));
		return;
	}
	/* It was written between the two, which a busy machine parts; a coarse clock is some ms behind. */
	ahead = ns_between(&after, &st.st_mtim);
	behind = ns_between(&before, &st.st_mtim);
	ahead = ahead > 0 ? ahead : behind < 0 ? behind : 0;
	if (ahead > -SKEW_NS && ahead < SKEW_NS)
		doctor_says(d, WELL, "clock", "", "the file system's agrees with this host's");
	else if (!st.st_mtim.tv_nsec && ahead > -2100000000LL && ahead <= 0)
		doctor_says(d, REMARK, "clock", "", "%s has times of whole seconds: gc waits longer to be sure",
			    d->type);
	else
		doctor_says(d, plfs_is_remote(d->m) ? ILL : REMARK, "clock",
			    "set the clocks of all hosts by one server (chronyc tracking)",
			    "the file system's is %lld ms %s this host's: of writes by two hosts to the same "
			    "bytes without a close or lock between them the earlier can win",
			    (ahead < 0 ? -ahead : ahead) / 1000000, ahead < 0 ? "behind" : "ahead of");
}

/* ---- the file system as a whole ---- */

static void look_at_space(struct doctor *d)
{
	char size[TOOL_SIZE_LEN];
	struct statvfs vfs;
	uint64_t avail, total;

	if (fstatvfs(d->dir, &vfs)) {
		doctor_says(d, ILL, "space", "", "%s", strerror(errno));
		return;
	}
	avail = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	total = (uint64_t)vfs.f_blocks * vfs.f_frsize;
	tool_size(avail, size);
	if (total && (avail < 64 << 20 || avail < total / 100))
		doctor_says(d, ILL, "space", "plfs gc; plfs df; remove files",
			    "%s are free, and a full disk ends jobs (ENOSPC)", size);
	else
		doctor_says(d, total && avail < total / 20 ? REMARK : WELL, "space", "", "%s are free", size);
	if (vfs.f_files && (vfs.f_favail < 1000 || vfs.f_favail < vfs.f_files / 100))
		doctor_says(d, ILL, "inodes", "plfs gc; remove files",
			    "%llu more files can be made, and each process takes one or two for each file that it writes",
			    (unsigned long long)vfs.f_favail);
}

/* A copy of the kernel's structure, whose header not all have. */
struct quota {
	uint64_t block_hard, block_soft, space, inode_hard, inode_soft, inodes, block_time, inode_time;
	uint32_t valid;
};

/* Where the kernel tells it: not on network file systems. */
static void look_at_quota(struct doctor *d)
{
#ifdef SYS_quotactl_fd
	struct quota q = { 0 };
	char used[TOOL_SIZE_LEN], limit[TOOL_SIZE_LEN];
	int cmd = (int)(0x800007U << 8); /* Q_GETQUOTA, of a user */
	uint64_t most;

	if (syscall(SYS_quotactl_fd, d->dir, cmd, geteuid(), &q))
		return;
	most = (q.block_hard ? q.block_hard : q.block_soft) * 1024;
	if (!most)
		return;
	doctor_says(d, q.space > most - most / 10 ? ILL : WELL, "quota",
		    q.space > most - most / 10 ? "plfs gc; plfs df; remove files" : "",
		    "this user has %s of %s", tool_size(q.space, used), tool_size(most, limit));
#else
	(void)d;
#endif
}

static void look_at_access_times(struct doctor *d)
{
	static const char *const none[] = { "noatime", NULL };

	if (has_option(d, none))
		doctor_says(d, REMARK, "access times", "",
			    "mounted with noatime: a site's purge by time of access takes files that are read, and "
			    "parts of them; before a long break: find %s -type f -exec touch -a {} +",
			    d->backend);
	else
		doctor_says(d, WELL, "access times", "", "who reads a file keeps its logs from a purge");
}

static void look_at_kernel(struct doctor *d)
{
	struct { uint64_t flags, mode, resolve; } how = { O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0 };
	long fd = syscall(SYS_openat2, d->dir, ".", &how, sizeof(how));

	if (fd >= 0)
		close((int)fd);
	else if (errno == ENOSYS || errno == EPERM)
		doctor_says(d, REMARK, "kernel", "",
			    "it has no openat2(2): paths are opened step by step, which takes longer");
}

void doctor_file_system(struct doctor *d)
{
	look_at_mount(d);
	look_at_kernel(d);
	look_at_space(d);
	look_at_quota(d);
	if (!doctor_begin(d))
		return;
	look_at_mark(d);
	look_at_locks(d);
	look_at_maps(d);
	look_at_holes(d);
	look_at_lists(d);
	look_at_clock(d);
	look_at_access_times(d);
	close(d->fd);
	d->fd = -1;
}
