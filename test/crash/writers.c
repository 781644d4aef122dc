/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writers that are killed, and the reader that holds them to what they were told. All writers share one file;
 * each notes in a progress file, mapped shared and kept on a plain file system, how many of its records
 * have been written, after the call returned. Small and large records are mixed. "write" forks the writers and sends SIGKILL to one or all of
 * them at a random moment; "finish" goes on from the progress file and ends normally; "check", a process
 * that has seen nothing of all this, reads every acknowledged record back.
 *
 *     writers write|join|finish|check strided|append FILE PROGRESS SEED [FIRST END]
 *
 * Where two hosts have the file and the progress file, one runs "write" for the writers FIRST to END - 1 and kills some of them, the other
 * "join" for its own, which go on until the first says that it is over.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../job.h"

enum { MAX_WRITERS = 4, SMALL_LEN = 512, LARGE_LEN = 100 * 1024, MAX_RECORDS = 2000, FINISH_RECORDS = 40 };

struct progress {
	atomic_int stop;
	atomic_int ready;
	atomic_long acked[MAX_WRITERS];   /* records whose write has returned */
	atomic_long resumed[MAX_WRITERS]; /* where "finish" went on */
};

static const char *path;
static uint64_t seed;
static struct progress *progress;

static bool on_two_hosts; /* then there are always as many writers as can be */

static int nr_writers(void) { return on_two_hosts ? MAX_WRITERS : 1 + (int)(mix64(seed) % MAX_WRITERS); }

/* ---- strided: record k of all writers are neighbours, of one length, at places that only the seed decides ---- */

static size_t record_len(long k)
{
	return mix64(seed ^ (uint64_t)k << 20) % 8 ? SMALL_LEN : LARGE_LEN;
}

static off_t row_start[MAX_RECORDS + 1];

static void rows_init(void)
{
	for (long k = 0; k < MAX_RECORDS; k++)
		row_start[k + 1] = row_start[k] + (off_t)record_len(k) * nr_writers();
}

static off_t record_off(int writer, long k) { return row_start[k] + writer * (off_t)record_len(k); }

/* ---- append: a record says what it is; its bytes but for the mark have a clear high bit ---- */

struct record {
	unsigned char mark[8]; /* 0xff */
	char text[24];         /* "writer k length\n" */
};

static unsigned char append_byte(int writer, long k, size_t i)
{
	return (unsigned char)(mix64(seed + (uint64_t)writer * 1000003u + (uint64_t)k) >> (i * 7 % 57) & 0x7f);
}

static void append_fill(char *buf, int writer, long k)
{
	size_t len = record_len(k);
	struct record head = { { 0 }, "" };

	memset(head.mark, 0xff, sizeof(head.mark));
	snprintf(head.text, sizeof(head.text), "%d %ld %zu\n", writer, k, len);
	memcpy(buf, &head, sizeof(head));
	for (size_t i = sizeof(head); i < len; i++)
		buf[i] = (char)append_byte(writer, k, i);
}

/* ---- writing ---- */

static void write_records(bool append, int writer, bool finish)
{
	int fd = open(path, O_WRONLY | O_CREAT | (append ? O_APPEND : 0), 0644);
	char *buf = malloc(LARGE_LEN);
	long first = atomic_load(&progress->acked[writer]);

	if (fd < 0 || !buf)
		die("%s: open", path);
	atomic_fetch_add(&progress->ready, 1);
	if (finish)
		atomic_store(&progress->resumed[writer], first);
	for (long k = first; k < MAX_RECORDS && !(finish && k >= first + FINISH_RECORDS); k++) {
		size_t len = record_len(k);
		ssize_t n;

		if (append) {
			append_fill(buf, writer, k);
			n = write(fd, buf, len);
		} else {
			pattern_fill(buf, len, (uint64_t)record_off(writer, k), (unsigned)seed);
			n = pwrite(fd, buf, len, record_off(writer, k));
		}
		if (n != (ssize_t)len)
			die("%s: record %ld of writer %d: %zd bytes of %zu written", path, k, writer, n, len);
		atomic_store(&progress->acked[writer], k + 1);
		if (atomic_load(&progress->stop))
			break;
	}
	if (close(fd))
		die("%s: close", path);
	exit(0);
}

static void sleep_us(uint64_t us)
{
	struct timespec ts = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&ts, NULL);
}

/* SIGKILL to one or all, from the very first moment (nobody has opened the file yet) to well inside the writes. */
static void kill_some(const pid_t *pid, int nr)
{
	bool early = mix64(seed + 3) % 8 == 0;
	uint64_t us = mix64(seed + 2) % (early ? 2000 : 40000);
	int victim = (int)(mix64(seed + 1) % (2 * (uint64_t)nr));

	for (int i = 0; !early && i < 50000 && atomic_load(&progress->ready) < nr_writers(); i++)
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

	if (how == FINISH) {
		atomic_store(&progress->stop, 0);
		atomic_store(&progress->ready, 0);
	}
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

/* ---- checking ---- */

/* What no writer was told is written may be there or not, whole or in part, but is never anything else. */
static bool right_or_hole(const char *buf, size_t len, off_t off)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] && (unsigned char)buf[i] != pattern_byte((uint64_t)off + i, (unsigned)seed))
			return false;
	return true;
}

static int check_strided(int fd)
{
	char *buf = malloc(LARGE_LEN);
	long nr_tried = 0;
	int nr_bad = 0;

	for (int w = 0; w < nr_writers(); w++)
		nr_tried = atomic_load(&progress->acked[w]) < nr_tried ? nr_tried : atomic_load(&progress->acked[w]) + 1;
	for (long k = 0; k < nr_tried && k < MAX_RECORDS; k++)
		for (int w = 0; w < nr_writers(); w++) {
			off_t off = record_off(w, k);
			size_t len = record_len(k), n, good;
			bool acked = k < atomic_load(&progress->acked[w]);

			n = read_all(fd, buf, len, off, path);
			good = pattern_check(buf, n, (uint64_t)off, (unsigned)seed);
			if (acked ? good == len : right_or_hole(buf, n, off))
				continue;
			if (nr_bad++ < 5)
				printf("%s: record %ld of writer %d (%zu bytes at %lld, %s): %zu read, %zu right\n", path, k, w,
				       len, (long long)off, acked ? "acknowledged" : "not acknowledged", n, good);
		}
	return nr_bad;
}

/* The length of the whole record that begins at @at, or 0; whose it is in @writer and @k. */
static size_t parse_record(const char *at, size_t left, char *want, int *writer, long *k)
{
	struct record head;
	size_t len;

	if (left < sizeof(head))
		return 0;
	memcpy(&head, at, sizeof(head));
	head.text[sizeof(head.text) - 1] = 0;
	if (sscanf(head.text, "%d %ld %zu\n", writer, k, &len) != 3 || *writer < 0 || *writer >= nr_writers() || *k < 0 ||
	    *k >= MAX_RECORDS || len != record_len(*k) || len > left)
		return 0;
	append_fill(want, *writer, *k);
	return memcmp(want, at, len) ? 0 : len;
}

/*
 * Every writer's records are there whole, once and in order. A record that was on its way when its writer was
 * killed may be missing, torn, or there and written again by "finish".
 */
static int check_append(int fd)
{
	long next[MAX_WRITERS] = { 0 };
	int nr_bad = 0, nr_torn = 0;
	char *all, *want = malloc(LARGE_LEN);
	struct stat st;
	size_t len;

	if (fstat(fd, &st))
		die("%s", path);
	all = calloc(1, (size_t)st.st_size + 1);
	len = read_all(fd, all, (size_t)st.st_size + 1, 0, path);
	if (len != (size_t)st.st_size && ++nr_bad)
		printf("%s: %lld bytes long, %zu read\n", path, (long long)st.st_size, len);
	for (size_t pos = 0, n; pos < len; pos += n) {
		int w;
		long k;

		n = parse_record(all + pos, len - pos, want, &w, &k);
		if (n && k == next[w]) {
			next[w]++;
		} else if (n && k == next[w] - 1 && k == atomic_load(&progress->resumed[w])) {
			continue;
		} else if (n) {
			if (nr_bad++ < 5)
				printf("%s: at %zu, record %ld of writer %d follows its record %ld\n", path, pos, k, w, next[w] - 1);
			next[w] = k + 1;
		} else {
			char *mark = memmem(all + pos + 1, len - pos - 1, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);

			n = mark ? (size_t)(mark - all) - pos : len - pos;
			if (nr_torn++ < 5)
				printf("%s: at %zu, %zu bytes that are no whole record\n", path, pos, n);
		}
	}
	for (int w = 0; w < nr_writers(); w++)
		if (next[w] < atomic_load(&progress->acked[w])) {
			printf("%s: writer %d was told of %ld records, %ld are there\n", path, w,
			       atomic_load(&progress->acked[w]), next[w]);
			nr_bad++;
		}
	return nr_bad || nr_torn > nr_writers();
}

int main(int argc, char **argv)
{
	int fd, first = 0, end;
	bool append;

	if (argc != 6 && argc != 8) {
		fprintf(stderr, "usage: writers write|join|finish|check strided|append FILE PROGRESS SEED [FIRST END]\n");
		return 2;
	}
	append = !strcmp(argv[2], "append");
	path = argv[3];
	seed = strtoull(argv[5], NULL, 0);
	on_two_hosts = argc == 8;
	end = nr_writers();
	if (on_two_hosts) {
		first = atoi(argv[6]);
		end = atoi(argv[7]);
	}
	rows_init();
	fd = open(argv[4], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(*progress)))
		die("%s", argv[4]);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (progress == MAP_FAILED)
		die("%s: mmap", argv[4]);
	if (strcmp(argv[1], "check"))
		return run_writers(append, !strcmp(argv[1], "finish") ? FINISH : !strcmp(argv[1], "join") ? JOIN : WRITE, first, end - first);
	fd = open(path, O_RDONLY);
	if (fd < 0) {
		/* Killed before anybody had made the file: then nobody was told anything. */
		for (int w = 0; w < MAX_WRITERS; w++)
			if (errno != ENOENT || atomic_load(&progress->acked[w]))
				die("%s: open", path);
		return 0;
	}
	return (append ? check_append(fd) : check_strided(fd)) != 0;
}
