/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A counter that processes share, as ROMIO's shared file pointers are kept: each locks the file, reads 8
 * bytes, writes them with one added, and unlocks. The file is larger than what stays in a stub, and each
 * process has a log. Prints the processor time of a round, user and system, the time of a round, and whether
 * no round was lost.
 *
 *     bench_locks -p PROCESSES -n ROUNDS_OF_EACH [-r ROUND] DIR
 */
#include "bench.h"

#include <sys/resource.h>
#include <sys/wait.h>

enum { BLOCK_LEN = 1 << 20 };

static struct bench b;
static char path[4096], block[BLOCK_LEN];

static void lock(int fd, int type)
{
	struct flock fl = { .l_type = (short)type, .l_whence = SEEK_SET, .l_len = 8 };

	if (fcntl(fd, F_SETLKW, &fl))
		die("%s: a lock", path);
}

static void count(int fd)
{
	uint64_t counter;

	lock(fd, F_WRLCK);
	if (read_all(fd, &counter, sizeof(counter), 0, path) != sizeof(counter))
		die("%s: short", path);
	counter++;
	write_all(fd, &counter, sizeof(counter), 0, path);
	lock(fd, F_UNLCK);
}

static double cpu_s(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

/* Each has a log before the clock runs, and all begin together. */
static void work(int rank, int ready, int go, int out)
{
	int fd = bench_open(path, O_RDWR);
	double used[2];
	char byte = 0;

	write_all(fd, block, sizeof(block), (off_t)(rank + 1) * BLOCK_LEN, path);
	count(fd);
	if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 0)
		die("pipe");
	used[0] = cpu_s();
	used[1] = now_s();
	for (long i = 1; i < b.nr_blocks; i++)
		count(fd);
	used[0] = cpu_s() - used[0];
	used[1] = now_s() - used[1];
	if (write(out, used, sizeof(used)) != sizeof(used) || close(fd))
		die("%s: close", path);
	_exit(0);
}

static void wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die("%s: a process failed", path);
}

int main(int argc, char **argv)
{
	double used[2], cpu = 0, seconds = 0, rounds;
	int ready[2], go[2], out[2], fd;
	pid_t pids[MAX_RANKS];
	uint64_t counter = 0;
	char byte;

	bench_options(&b, argc, argv);
	bench_path(&b, 0, path, sizeof(path));
	bench_unlink(&b);
	fd = bench_open(path, O_RDWR | O_CREAT);
	write_all(fd, block, sizeof(block), 0, path);
	if (close(fd) || pipe(ready) || pipe(go) || pipe(out))
		die("%s: close, pipe", path);
	for (int i = 0; i < b.nr_ranks; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			close(go[1]);
			work(i, ready[1], go[0], out[1]);
		}
		if (pids[i] < 0)
			die("fork");
	}
	close(ready[1]);
	close(out[1]);
	for (int i = 0; i < b.nr_ranks; i++)
		if (read(ready[0], &byte, 1) != 1)
			die("%s: a process failed", path);
	close(go[1]);
	for (int i = 0; i < b.nr_ranks; i++) {
		if (read(out[0], used, sizeof(used)) != sizeof(used))
			die("%s: a process failed", path);
		cpu += used[0];
		seconds = used[1] > seconds ? used[1] : seconds;
	}
	for (int i = 0; i < b.nr_ranks; i++)
		wait_for(pids[i]);
	fd = bench_open(path, O_RDONLY);
	if (read_all(fd, &counter, sizeof(counter), 0, path) != sizeof(counter))
		die("%s: short", path);
	close(fd);
	bench_unlink(&b);
	rounds = (double)b.nr_ranks * (double)(b.nr_blocks - 1);
	printf("{\"cpu\": %.9f, \"seconds\": %.9f, \"good\": %s}\n", cpu / rounds, seconds / rounds,
	       counter == (uint64_t)b.nr_ranks * (uint64_t)b.nr_blocks ? "true" : "false");
	return 0;
}
