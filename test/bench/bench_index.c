/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files with many records, made by many processes, and a reader of them: how long it takes from open to the
 * first byte, what memory it needs, and whether everything is right.
 *
 *     bench_index make -k KIND -p LOGS -n RECORDS_OF_EACH -b BLOCK [-u HOSTS] FILE
 *     bench_index open|read|empty -k KIND -p LOGS -n RECORDS_OF_EACH -b BLOCK [-l BYTES] FILE
 *
 * Each log is written by a process of its own, with -u under that many host names (which needs root). "open"
 * reads one byte, "read" reads and checks everything, or the first BYTES, as well; "empty" is the same
 * process with an empty file. Prints a JSON object.
 */
#include "bench.h"

#include <sched.h>
#include <sys/wait.h>

enum { HEADER_LEN = 1000, SMALL_LEN = 24, ROWS = 32, SLOT_LEN = 128, WINDOW_LEN = 1 << 20 };

/*
 * strided  record after record, each process every nth
 * header   the same with a header of the file, by the first process, and a small one before each block
 * 2d       a tile each of a matrix, row by row
 * 3d       a brick each of a cube: 32 rows of each plane
 * arrays   two arrays by turns: a small element of the one, a block of the other
 * random   pieces of 8 to 120 bytes in an order without order, none overlapping
 */
enum kind { STRIDED, HEADER, TILE, BRICK, ARRAYS, RANDOM, NR_KINDS };

static const char *const kind_names[NR_KINDS] = { "strided", "header", "2d", "3d", "arrays", "random" };

static enum kind kind;
static uint64_t limit = UINT64_MAX, nr_logs = 4, nr_records = 1024, block = 4096, columns, lines;
static char buf[WINDOW_LEN];
static const char *path;

/* A permutation of the numbers below @nr, a power of 2. */
static uint64_t shuffle(uint64_t i, uint64_t nr)
{
	unsigned half = (unsigned)(64 - __builtin_clzll(nr)) / 2;

	for (int round = 0; round < 3; round++) {
		i = (i * 0x9e3779b97f4a7c15u + 0x7f4a7c15u) & (nr - 1);
		i ^= i >> half;
	}
	return i;
}

/* The piece in slot @slot of a file of random records. */
static void piece(uint64_t slot, uint64_t *off, uint64_t *len)
{
	uint64_t h = mix64(slot);

	*len = 8 + h % 113;
	*off = slot * SLOT_LEN + (h >> 32) % (SLOT_LEN - *len + 1);
}

static void record(uint64_t rank, uint64_t k, uint64_t *off, uint64_t *len)
{
	uint64_t across = rank % columns, down = rank / columns, element = k / 2 * nr_logs + rank;

	*len = block;
	switch (kind) {
	case STRIDED:
		*off = (k * nr_logs + rank) * block;
		break;
	case HEADER:
		*off = HEADER_LEN + element * (SMALL_LEN + block) + (k & 1 ? SMALL_LEN : 0);
		*len = k & 1 ? block : SMALL_LEN;
		break;
	case TILE:
		*off = ((down * nr_records + k) * columns + across) * block;
		break;
	case BRICK:
		*off = ((k / ROWS * lines * ROWS + down * ROWS + k % ROWS) * columns + across) * block;
		break;
	case ARRAYS:
		*off = k & 1 ? nr_records / 2 * nr_logs * SMALL_LEN + element * block : element * SMALL_LEN;
		*len = k & 1 ? block : SMALL_LEN;
		break;
	default:
		piece(shuffle(k * nr_logs + rank, nr_logs * nr_records), off, len);
	}
}

static uint64_t file_len(void)
{
	uint64_t off, len;

	switch (kind) {
	case HEADER:
		return HEADER_LEN + nr_records / 2 * nr_logs * (SMALL_LEN + block);
	case ARRAYS:
		return nr_records / 2 * nr_logs * (SMALL_LEN + block);
	case RANDOM:
		piece(nr_logs * nr_records - 1, &off, &len);
		return off + len;
	default:
		return nr_records * nr_logs * block;
	}
}

static void write_log(uint64_t rank)
{
	int fd = bench_open(path, O_WRONLY | O_CREAT);
	uint64_t off, len;

	if (kind == HEADER && !rank) {
		pattern_fill(buf, HEADER_LEN, 0, 0);
		write_all(fd, buf, HEADER_LEN, 0, path);
	}
	for (uint64_t k = 0; k < nr_records; k++) {
		record(rank, k, &off, &len);
		pattern_fill(buf, len, off, 0);
		write_all(fd, buf, len, (off_t)off, path);
	}
	if (close(fd))
		die("%s: close", path);
}

static void wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("%s: a writer failed", path);
}

/* Worker @w of @nr has every @nr-th log made, one process after the other. */
static void make_some(unsigned w, unsigned nr, bool named)
{
	char name[64];

	snprintf(name, sizeof(name), "bench-%u", w);
	if (named && (unshare(CLONE_NEWUTS) || sethostname(name, strlen(name))))
		die("a host name of one's own");
	for (uint64_t rank = w; rank < nr_logs; rank += nr) {
		pid_t pid = fork();

		if (!pid) {
			write_log(rank);
			exit(0);
		}
		wait_for(pid);
	}
}

static int make(unsigned hosts)
{
	unsigned nr = hosts ? hosts : 2;
	pid_t pid[MAX_RANKS];

	for (unsigned w = 0; w < nr; w++) {
		pid[w] = fork();
		if (!pid[w]) {
			make_some(w, nr, hosts > 0);
			_exit(0);
		}
	}
	for (unsigned w = 0; w < nr; w++)
		wait_for(pid[w]);
	return 0;
}

/* Whether @len bytes of the file, from @off on, are what they should be. */
static bool good(const char *got, uint64_t off, uint64_t len)
{
	uint64_t from, piece_len;

	if (kind != RANDOM)
		return pattern_check(got, len, off, 0) == len;
	for (uint64_t pos = 0; pos < len; pos++) {
		piece((off + pos) / SLOT_LEN, &from, &piece_len);
		if (off + pos >= from && off + pos < from + piece_len) {
			uint64_t n = from + piece_len - (off + pos);

			n = n < len - pos ? n : len - pos;
			if (pattern_check(got + pos, n, off + pos, 0) != n)
				return false;
			pos += n - 1;
		} else if (got[pos]) {
			return false;
		}
	}
	return true;
}

/* A line of /proc/self/status, KiB. */
static long status_kib(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	long kib = -1;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name) + 1);
	if (!f || fclose(f) || kib < 0)
		die("%s", name);
	return kib;
}

static int look(bool all, bool empty)
{
	double start_s, first_s, read_s = 0;
	uint64_t off, len, done = 0, size = empty ? 0 : file_len();
	bool fine;
	ssize_t n;
	char byte = 0;
	int fd;

	memset(buf, 0x5a, sizeof(buf));
	record(nr_logs / 2, nr_records / 2, &off, &len);
	start_s = now_s();
	fd = bench_open(path, O_RDONLY);
	n = pread(fd, &byte, 1, (off_t)off);
	first_s = now_s() - start_s;
	fine = empty ? n == 0 : n == 1 && good(&byte, off, 1);
	for (uint64_t pos = 0; all && fine && pos <= size && pos < limit; pos += sizeof(buf)) {
		size_t want = size - pos < sizeof(buf) ? size - pos : sizeof(buf);

		start_s = now_s();
		fine = read_all(fd, buf, sizeof(buf), (off_t)pos, path) == want;
		read_s += now_s() - start_s;
		fine = fine && good(buf, pos, want);
		done += want;
	}
	printf("{\"first_s\": %.9f, \"read_s\": %.9f, \"bytes\": %llu, \"peak_kib\": %ld, \"anon_kib\": %ld, \"good\": %s}\n",
	       first_s, read_s, (unsigned long long)done, status_kib("VmHWM"), status_kib("RssAnon"),
	       fine ? "true" : "false");
	return !fine;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	unsigned hosts = 0;
	int c;

	while ((c = getopt(argc - 1, argv + 1, "k:p:n:b:u:l:")) != -1)
		switch (c) {
		case 'k':
			kind = (enum kind)bench_word(optarg, kind_names, NR_KINDS);
			break;
		case 'p':
			nr_logs = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			nr_records = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			block = strtoull(optarg, NULL, 0);
			break;
		case 'u':
			hosts = (unsigned)atoi(optarg);
			break;
		case 'l':
			limit = strtoull(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	if (optind != argc - 2 || !nr_logs || nr_records < ROWS || nr_records % ROWS || !block ||
	    block > sizeof(buf) || hosts > MAX_RANKS ||
	    (kind == RANDOM && (nr_logs * nr_records & (nr_logs * nr_records - 1)))) {
		fprintf(stderr,
			"usage: bench_index make|open|read|empty -k KIND -p LOGS -n RECORDS -b BLOCK [-u HOSTS] [-l BYTES] FILE\n");
		return 2;
	}
	path = argv[argc - 1];
	for (columns = 1; (columns + 1) * (columns + 1) <= nr_logs;)
		columns++;
	while (nr_logs % columns)
		columns--;
	lines = nr_logs / columns;
	if (!strcmp(verb, "make"))
		return make(hosts);
	return look(!strcmp(verb, "read") || !strcmp(verb, "empty"), !strcmp(verb, "empty"));
}
