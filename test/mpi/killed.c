/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI job that is killed while all its ranks write one file, started again on the same file, killed again,
 * ..., and who kills and checks it. What its ranks have been told is written they note outside, in the
 * progress file of records.h, when the call has returned; of a collective write when it has returned to all
 * of them, for until then another rank may be at it.
 *
 *     killed write posix|ind|coll|append FILE PROGRESS SEED HOW    the job; HOW is a seed as well: how it is
 *                                                                  killed, and when
 *     killed kill PROGRESS RANKS HOW LAUNCHER                      kills it, or waits till it has killed
 *                                                                  itself
 *     killed finish MODE FILE PROGRESS SEED                        a job that ends
 *     killed check MODE FILE PROGRESS SEED RANKS                   a process that has seen nothing of all
 *                                                                  this
 *
 * posix: strided pwrite(), now and then an fsync() or a close() and open(). ind and coll: the same by MPI-IO.
 * append: O_APPEND.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

#include "../crash/jobs/records.h"
#include "mpi_job.h"

enum { FINISH_RECORDS = 20 };

static uint64_t how;

/* How a job ends. */
enum way {
	ONE_KILLED,
	ALL_KILLED,
	LAUNCHER_TERMINATED,
	TERMINATED_THEN_KILLED,
	BY_ITSELF,
	ANY_MOMENT,
	NR_WAYS
};
static const char *const WAY_NAMES[] = {
	"one killed", "all killed",    "launcher terminated", "all terminated, then killed",
	"by itself",  "at any moment",
};

static enum way chosen_way(void) { return (enum way)(mix64(how + 1) % NR_WAYS); }

/* ---- the job ---- */

static int rank;

static void end_by_itself(void)
{
	static char *volatile nowhere;

	switch (mix64(how + 5) % 5) {
	case 0:
		abort();
	case 1:
		*nowhere = 1;
		break;
	case 2:
		MPI_Abort(MPI_COMM_WORLD, 3);
		break;
	case 3:
		raise(SIGTERM);
		break;
	default:
		_exit(3);
	}
}

/*
 * Ranks of several hosts number their processes each for itself. Whoever asks who holds a lock gets its
 * number in his own terms.
 */
static struct flock rank_lock(int of)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = of, .l_len = 1 };
}

/* Waits for the last one of this rank, which may still be at its end. */
static void let_find_me(void)
{
	struct flock mine = rank_lock(rank);

	if (fcntl(progress_fd, F_SETLKW, &mine))
		die("rank %d: lock", rank);
}

/* Who ends by itself, and before which record of this life. */
static long last_moment(void)
{
	bool mine = chosen_way() == BY_ITSELF && (int)(mix64(how + 2) % (uint64_t)nr_writers) == rank;

	return mine ? (long)(mix64(how + 3) % 200) : LIFE_RECORDS;
}

static int open_file(bool append)
{
	int fd = open(shared_path, O_RDWR | O_CREAT | (append ? O_APPEND : 0), 0644);

	if (fd < 0)
		die("%s: open", shared_path);
	return fd;
}

static void write_posix(int *fd, const char *buf, size_t len, long k, bool append)
{
	ssize_t n = append ? write(*fd, buf, len) : pwrite(*fd, buf, len, record_off(rank, k));

	if (n != (ssize_t)len)
		die("%s: record %ld of rank %d: %zd bytes of %zu written", shared_path, k, rank, n, len);
	switch (mix64(how + 7 * (uint64_t)k + (uint64_t)rank) % 64) {
	case 0:
		if (fsync(*fd))
			die("%s: fsync", shared_path);
		break;
	case 1:
		if (close(*fd))
			die("%s: close", shared_path);
		*fd = open_file(append);
		break;
	}
}

static void write_mpiio(MPI_File file, const char *buf, size_t len, long k, bool coll)
{
	MPI_Offset off = (MPI_Offset)record_off(rank, k);
	MPI_Status status;
	int n;

	if (coll)
		ok(MPI_File_write_at_all(file, off, buf, (int)len, MPI_BYTE, &status), "write_at_all",
		   shared_path);
	else
		ok(MPI_File_write_at(file, off, buf, (int)len, MPI_BYTE, &status), "write_at", shared_path);
	MPI_Get_count(&status, MPI_BYTE, &n);
	errno = 0;
	if (n != (int)len)
		die("%s: record %ld of rank %d: %d bytes of %zu written", shared_path, k, rank, n, len);
	if (coll)
		MPI_Barrier(MPI_COMM_WORLD);
}

static void write_records(const char *mode, bool finish)
{
	bool append = !strcmp(mode, "append"), posix = append || !strcmp(mode, "posix"),
	     coll = !strcmp(mode, "coll");
	long end, last = finish ? LIFE_RECORDS : last_moment();
	struct life *life = this_life(rank);
	char *buf = malloc(LARGE_LEN);
	MPI_File file;
	int fd = -1;

	if (posix)
		fd = open_file(append);
	else
		ok(MPI_File_open(MPI_COMM_WORLD, shared_path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
				 &file),
		   "open", shared_path);
	let_find_me();
	atomic_fetch_add(&progress->ready, 1);
	end = life->first + (finish ? FINISH_RECORDS : LIFE_RECORDS);
	for (long k = life->first; k < end; k++) {
		size_t len = record_len(k);

		if (k == life->first + last)
			end_by_itself();
		if (append)
			append_fill(buf, rank, k);
		else
			strided_fill(buf, rank, k);
		if (posix)
			write_posix(&fd, buf, len, k, append);
		else
			write_mpiio(file, buf, len, k, coll);
		atomic_store(&life->acked, k + 1);
		if (mix64(seed + (uint64_t)k) % 16 == 0 && !finish)
			sleep_us(200);
	}
	if (!posix)
		ok(MPI_File_close(&file), "close", shared_path);
	else if (close(fd))
		die("%s: close", shared_path);
	free(buf);
}

static int run_job(int argc, char **argv)
{
	bool finish = !strcmp(argv[1], "finish");

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nr_writers);
	if (nr_writers > MAX_WRITERS)
		die("at most %d ranks", MAX_WRITERS);
	rows_init();
	if (!rank)
		progress_begin_life(!strcmp(argv[2], "coll"));
	MPI_Barrier(MPI_COMM_WORLD);
	write_records(argv[2], finish);
	MPI_Finalize();
	return 0;
}

/* ---- who kills it ---- */

/*
 * Whether a process runs that was started with the name of the progress file, as the launcher and the ranks
 * are.
 */
static bool is_running(const char *name, int sig)
{
	DIR *dir = opendir("/proc");
	bool found = false;

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		char file[300], line[8192];
		ssize_t n;
		int fd, pid = atoi(e->d_name);

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(file, sizeof(file), "/proc/%d/cmdline", pid);
		fd = open(file, O_RDONLY);
		n = fd < 0 ? 0 : read(fd, line, sizeof(line));
		if (fd >= 0)
			close(fd);
		if (n <= 0 || !memmem(line, (size_t)n, name, strlen(name)))
			continue;
		found = true;
		if (sig)
			kill(pid, sig);
	}
	closedir(dir);
	return found;
}

static void signal_ranks(int sig, int only)
{
	for (int w = 0; w < nr_writers; w++) {
		struct flock its = rank_lock(w);

		if ((only < 0 || only == w) && !fcntl(progress_fd, F_GETLK, &its) && its.l_type != F_UNLCK &&
		    its.l_pid > 0)
			kill(its.l_pid, sig);
	}
}

static bool has_ended(int launcher, int timeout_ms)
{
	struct pollfd p = { .fd = launcher, .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}

/* KILL_SCALE: so many times slower than on a local file system. */
static uint64_t scale(void)
{
	const char *text = getenv("KILL_SCALE");

	return text ? strtoull(text, NULL, 0) : 1;
}

/* Mostly soon, sometimes late: what happens at the beginning is what there is most of. */
static uint64_t wait_us(void)
{
	static const uint64_t most_us[] = { 1000, 10000, 50000, 200000 };

	return mix64(how + 4) % (scale() * most_us[mix64(how + 6) % 4]);
}

static void kill_job(const char *name, int launcher, pid_t launcher_pid)
{
	enum way way = chosen_way();
	uint64_t us = wait_us();

	if (way == ANY_MOMENT)
		us = mix64(how + 4) % (scale() * 400000);
	for (int i = 0; way != ANY_MOMENT && i < 30000 && atomic_load(&progress->ready) < nr_writers &&
			!has_ended(launcher, 1);
	     i++)
		;
	if (way != BY_ITSELF)
		sleep_us(us);
	switch (way) {
	case ONE_KILLED:
		signal_ranks(SIGKILL, (int)(mix64(how + 2) % (uint64_t)nr_writers));
		break;
	case LAUNCHER_TERMINATED:
		kill(launcher_pid, SIGTERM);
		break;
	case TERMINATED_THEN_KILLED:
		signal_ranks(SIGTERM, -1);
		sleep_us(mix64(how + 8) % 2000);
		/* fall through */
	case ALL_KILLED:
		signal_ranks(SIGKILL, -1);
		break;
	case ANY_MOMENT:
		is_running(name, SIGKILL);
		break;
	default:
		break;
	}
}

static int run_killer(char **argv)
{
	pid_t launcher_pid = atoi(argv[5]);
	int launcher = (int)syscall(SYS_pidfd_open, launcher_pid, 0);
	double begin = now_s(), end;

	if (launcher >= 0)
		kill_job(argv[2], launcher, launcher_pid);
	end = now_s();
	if (launcher >= 0 && !has_ended(launcher, 20000))
		printf("the launcher did not end by itself\n");
	/* Ranks that a launcher leaves behind are no concern of ours. */
	for (int i = 0; is_running(argv[2], i < 2000 && has_ended(launcher, 0) ? 0 : SIGKILL); i++)
		sleep_us(1000);
	progress_end_life();
	printf("%s after %.0f ms, gone after %.0f ms\n", WAY_NAMES[chosen_way()], 1000 * (end - begin),
	       1000 * (now_s() - begin));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc >= 6 && argc <= 7 ? argv[1] : "";
	int bad;

	if (!strcmp(what, "kill")) {
		progress_open(argv[2]);
		nr_writers = atoi(argv[3]);
		how = strtoull(argv[4], NULL, 0);
		return run_killer(argv);
	}
	if (!*what) {
		fprintf(stderr, "usage: killed write|finish|kill|check ...\n");
		return 2;
	}
	shared_path = argv[3];
	progress_open(argv[4]);
	seed = strtoull(argv[5], NULL, 0);
	if (!strcmp(what, "write"))
		how = strtoull(argv[6], NULL, 0);
	if (strcmp(what, "check"))
		return run_job(argc, argv);
	nr_writers = atoi(argv[6]);
	rows_init();
	bad = check_records(!strcmp(argv[2], "append"));
	printf("acknowledged: %ld records, compared: %zu bytes\n", nr_acked(), nr_compared);
	return bad;
}
