/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writers that are killed, and the reader that holds them to what they were told (records.h). All writers
 * share one file; small and large records are mixed. "write" forks the writers and sends SIGKILL to one or
 * all of them at a random moment; "finish" goes on from the progress file and ends normally; "check", a
 * process that has seen nothing of all this, reads every acknowledged record back.
 *
 *     writers write|join|finish|check strided|append FILE PROGRESS SEED [FIRST END]
 *
 * Where two hosts have the file and the progress file, one runs "write" for the writers FIRST to END - 1 and
 * kills some of them, the other "join" for its own, which go on until the first says that it is over.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "records.h"

enum { FINISH_RECORDS = 40 };

/* ---- writing ---- */

static void write_records(bool append, int writer, bool finish)
{
	int fd = open(shared_path, O_WRONLY | O_CREAT | (append ? O_APPEND : 0), 0644);
	struct life *life = this_life(writer);
	char *buf = malloc(LARGE_LEN);

	if (fd < 0 || !buf)
		die("%s: open", shared_path);
	atomic_fetch_add(&progress->ready, 1);
	for (long k = life->first; k < life->first + (finish ? FINISH_RECORDS : LIFE_RECORDS); k++) {
		size_t len = record_len(k);
		ssize_t n;

		if (append) {
			append_fill(buf, writer, k);
			n = write(fd, buf, len);
		} else {
			strided_fill(buf, writer, k);
			n = pwrite(fd, buf, len, record_off(writer, k));
		}
		if (n != (ssize_t)len)
			die("%s: record %ld of writer %d: %zd bytes of %zu written", shared_path, k, writer,
			    n, len);
		atomic_store(&life->acked, k + 1);
		if (atomic_load(&progress->stop))
			break;
	}
	if (close(fd))
		die("%s: close", shared_path);
	exit(0);
}

/*
 * SIGKILL to one or all, from the very first moment (nobody has opened the file yet) to well inside the
 * writes.
 */
static void kill_some(const pid_t *pid, int nr)
{
	bool early = mix64(seed + 3) % 8 == 0;
	uint64_t us = mix64(seed + 2) % (early ? 2000 : 40000);
	int victim = (int)(mix64(seed + 1) % (2 * (uint64_t)nr));

	for (int i = 0; !early && i < 50000 && atomic_load(&progress->ready) < nr_writers; i++)
		sleep_us(100);
	sleep_us(us);
	for (int w = 0; w < nr; w++)
		if (victim >= nr || victim == w)
			kill(pid[w], SIGKILL);
	/* The others go on for a while, then end as programs do. */
	sleep_us(us / 2);
	atomic_store(&progress->stop, 1);
}

enum how { WRITE, JOIN, FINISH };

/* Writers @first to @first + @nr - 1. The progress file of WRITE and JOIN is a new one. */
static int run_writers(bool append, enum how how, int first, int nr)
{
	int nr_killed = 0, rc = 0;
	pid_t pid[MAX_WRITERS];

	if (how == FINISH)
		progress_begin_life(false);
	else /* the first, as a progress file of zeros has it: another host may be at it already */
		atomic_store(&progress->nr_lives, 1);
	for (int w = 0; w < nr; w++) {
		pid[w] = fork();
		if (pid[w] < 0)
			die("fork");
		if (!pid[w])
			write_records(append, first + w, how == FINISH);
	}
	if (how == WRITE)
		kill_some(pid, nr);
	for (int w = 0; w < nr; w++) {
		int status;

		if (waitpid(pid[w], &status, 0) != pid[w])
			die("waitpid");
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && how == WRITE)
			nr_killed++;
		else if (status)
			rc = 1;
	}
	printf("killed %d of %d\n", nr_killed, nr);
	return rc;
}

int main(int argc, char **argv)
{
	int first = 0, end;
	bool append;

	if (argc != 6 && argc != 8) {
		fprintf(stderr,
			"usage: writers write|join|finish|check strided|append FILE PROGRESS SEED [FIRST END]\n");
		return 2;
	}
	append = !strcmp(argv[2], "append");
	shared_path = argv[3];
	seed = strtoull(argv[5], NULL, 0);
	nr_writers = argc == 8 ? MAX_WRITERS : 1 + (int)(mix64(seed) % MAX_WRITERS);
	end = nr_writers;
	if (argc == 8) {
		first = atoi(argv[6]);
		end = atoi(argv[7]);
	}
	rows_init();
	progress_open(argv[4]);
	if (!strcmp(argv[1], "check"))
		return check_records(append);
	return run_writers(append,
			   !strcmp(argv[1], "finish") ? FINISH :
			   !strcmp(argv[1], "join")   ? JOIN :
							WRITE,
			   first, end - first);
}
