/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The later write wins: ranks of one host that overwrite each other's bytes, with nothing between two writes
 * but a barrier or a message. Each case is one program for all ranks, which know every write of every rank,
 * and so each byte of the file: a rank does its own writes, and reads all when a barrier has come. Rank -1 is
 * a process of its own that writes nothing, and compares what the job has left.
 *
 *     order posix|mpiio DIR SEED ROUNDS [CASE]            ROUNDS: of the random model
 *     order check DIR SEED ROUNDS RANKS [CASE]            afterwards, without MPI
 *
 * Prints one line a case; exit code 1 if one failed. SEED decides all, but what the scheduler does.
 */
#include <fcntl.h>
#include <sched.h>

#include "mpi_job.h"

enum { MODEL_MAX = 4 << 20, LEN_MAX = 200 << 10, WRITES_MAX = 1 << 16, NR_MAX = 64, TICK_MS = 20 };

static int rank = -1, nr_ranks;
static bool by_mpi;
static uint64_t seed, state, own_state;
static unsigned rounds;

/* The file as it must be, and the last writes, for messages. */
static unsigned char *model;
static off_t model_size;
static struct write {
	int who;
	off_t off, len;
} writes[WRITES_MAX];
static unsigned nr_writes;

static const char *case_name;
static char path[4096];
static int fd = -1;
static MPI_File fh;
static bool failed;

/* ---- all ranks together ---- */

/* The same on all ranks. */
static uint64_t rnd(uint64_t below)
{
	state = mix64(state);
	return (state >> 16) % below;
}

/* Ranks are more than processors: one that waits makes way, which MPICH's own barrier does not. */
static void await(MPI_Request *request)
{
	for (int done = 0; !done;) {
		ok(MPI_Test(request, &done, MPI_STATUS_IGNORE), "wait", path);
		if (!done)
			sched_yield();
	}
}

static void barrier(void)
{
	MPI_Request request;

	if (rank < 0)
		return;
	ok(MPI_Ibarrier(MPI_COMM_WORLD, &request), "barrier", path);
	await(&request);
}

/* What @to does next comes after what @from has done: a message between these two. */
static void hand_over(int from, int to)
{
	MPI_Request request;
	char c = 0;

	if (from == to || (rank != from && rank != to))
		return;
	if (rank == from)
		ok(MPI_Isend(&c, 1, MPI_CHAR, to, 0, MPI_COMM_WORLD, &request), "send", path);
	else
		ok(MPI_Irecv(&c, 1, MPI_CHAR, from, 0, MPI_COMM_WORLD, &request), "receive", path);
	await(&request);
}

/* ---- the file ---- */

static void file_open(bool new)
{
	if (rank < 0 || !by_mpi) {
		fd = open(path, rank < 0 ? O_RDONLY : O_RDWR | (new ? O_CREAT : 0), 0644);
		if (fd < 0)
			die("%s", path);
		return;
	}
	ok(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &fh), "open",
	   path);
}

static void file_close(void)
{
	if (by_mpi && rank >= 0)
		ok(MPI_File_close(&fh), "close", path);
	else if (close(fd))
		die("%s: close", path);
}

static void file_write(const void *buf, size_t len, off_t off)
{
	if (by_mpi)
		ok(MPI_File_write_at(fh, off, buf, (int)len, MPI_BYTE, MPI_STATUS_IGNORE), "write_at", path);
	else
		write_all(fd, buf, len, off, path);
}

static size_t file_read(void *buf, size_t len, off_t off)
{
	MPI_Status st;
	int n;

	if (!by_mpi || rank < 0)
		return read_all(fd, buf, len, off, path);
	ok(MPI_File_read_at(fh, off, buf, (int)len, MPI_BYTE, &st), "read_at", path);
	MPI_Get_count(&st, MPI_BYTE, &n);
	return (size_t)n;
}

/* ---- what all know ---- */

static void model_resize(off_t size)
{
	if (size > MODEL_MAX)
		die("%s: a file of %lld", case_name, (long long)size);
	if (size > model_size)
		memset(model + model_size, 0, (size_t)(size - model_size));
	model_size = size;
}

/* Rank @who writes bytes of round @round, or of their own. */
static void write_same(int who, off_t off, size_t len, unsigned round)
{
	if (off + (off_t)len > model_size)
		model_resize(off + (off_t)len);
	pattern_fill(model + off, len, (uint64_t)off, round);
	writes[round % WRITES_MAX] = (struct write){ who, off, (off_t)len };
	if (rank == who && len)
		file_write(model + off, len, off);
}

static void write_at(int who, off_t off, size_t len)
{
	write_same(who, off, len, ++nr_writes);
}

static void resize(int who, off_t size)
{
	model_resize(size);
	if (rank < 0)
		return;
	if (by_mpi)
		ok(MPI_File_set_size(fh, size), "set_size", path);
	else if (rank == who && ftruncate(fd, size))
		die("%s: ftruncate", path);
}

/* Whose byte it is, in words. */
static const char *whose(const unsigned char *bytes, off_t off)
{
	static char text[2][100];
	static int turn;
	char *out = text[turn++ % 2];

	snprintf(out, sizeof(text[0]), bytes[off] ? "nobody's" : "zero");
	for (unsigned n = nr_writes; n && n + WRITES_MAX > nr_writes; n--) {
		const struct write *w = &writes[n % WRITES_MAX];

		if (off < w->off || off >= w->off + w->len || bytes[off] != pattern_byte((uint64_t)off, n))
			continue;
		snprintf(out, sizeof(text[0]), "of write %u, rank %d's %lld@%lld", n, w->who,
			 (long long)w->len, (long long)w->off);
		break;
	}
	return out;
}

static void complain(const char *fmt, ...)
{
	char line[500];
	va_list ap;

	if (failed)
		return;
	failed = true;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s, %s, after write %u, seed %llu: rank %d of %d: %s\n", case_name,
		by_mpi ? "mpiio" : "posix", nr_writes, (unsigned long long)seed, rank, nr_ranks, line);
}

static void compare(off_t off, size_t len)
{
	static unsigned char *buf;
	size_t want = len, n;

	if (!buf)
		buf = malloc(MODEL_MAX + 1);
	if (off + (off_t)len > model_size)
		want = (size_t)(model_size - off);
	n = file_read(buf + off, len, off);
	if (n != want)
		complain("reads %zu bytes at %lld, not %zu", n, (long long)off, want);
	else if (memcmp(buf + off, model + off, n))
		for (size_t i = 0; i < n && !failed; i++)
			if (buf[off + (off_t)i] != model[off + (off_t)i])
				complain("byte %lld is %s, not %s", (long long)off + (long long)i,
					 whose(buf, off + (off_t)i), whose(model, off + (off_t)i));
}

/* Each reads some of it, as it likes, then all up to the end, then beyond. */
static void compare_all(void)
{
	for (int i = 0; i < 3 && model_size; i++) {
		own_state = mix64(own_state);
		compare((off_t)(own_state % (uint64_t)model_size), 1 + (own_state >> 40) % 5000);
	}
	compare(0, (size_t)model_size);
	compare(0, (size_t)model_size + 1);
}

/* After what has been written: all look. */
static void look(void)
{
	barrier();
	if (rank >= 0)
		compare_all();
	barrier();
}

/* ---- cases ---- */

/* The smallest: what comes after a fill. */
static void small(void)
{
	write_at(1, 4000, 1000);
	barrier();
	write_at(0, 0, 1 << 20);
	barrier();
	write_at(1, 5000, 1000);
	look();
}

/* One writes and never stops, one fills once. */
static void ticks(void)
{
	for (int i = 0; i < 12; i++) {
		if (i == 4) {
			hand_over(1, 0);
			write_at(0, 0, 1 << 20);
			hand_over(0, 1);
		}
		write_at(1, 1000 + i * 1000, 1000);
		if (rank == 1)
			usleep(TICK_MS * 1000);
	}
	look();
}

/* One fills, all patch, strided and anywhere. */
static void patches(void)
{
	enum { SLOT = 1000, SLOTS = 512 };
	int owner[SLOTS];

	for (int i = 0; i < 4; i++) {
		write_at(i % nr_ranks, 0, SLOT * SLOTS);
		barrier();
		for (int n = 0; n < SLOTS; n++)
			write_at(n % nr_ranks, n * SLOT + 100, SLOT / 2);
		look();
		write_at((i + 1) % nr_ranks, 0, SLOT * SLOTS);
		barrier();
		for (int n = 0; n < SLOTS; n++)
			owner[n] = (int)rnd((uint64_t)nr_ranks * 3); /* many stay as they are */
		for (int n = 0; n < SLOTS; n++)
			if (owner[n] < nr_ranks)
				write_at(owner[n], n * SLOT + (off_t)rnd(SLOT / 2), 1 + rnd(SLOT / 2));
		look();
	}
}

/* Each goes by a stride of its own, up or down, one write in turn, and meets the others on the way. */
static void crossing(void)
{
	static const int strides[] = { 1000, -1000, 2000, -2000, 500, -3000, 0, 700 };

	for (int shift = 0; shift < 4; shift++) {
		off_t at[NR_MAX];

		for (int r = 0; r < nr_ranks; r++)
			at[r] = 60000 + r * 3000;
		for (int i = 0; i < 12; i++)
			for (int r = 0; r < nr_ranks; r++) {
				write_at(r, at[r], 1000);
				at[r] += strides[(r + shift) % 8];
				hand_over(r, (r + 1) % nr_ranks);
			}
		look();
	}
}

/* Each writes its block, then edges into its neighbours' blocks. */
static void halo(void)
{
	enum { BLOCK = 30000, EDGE = 777 };

	for (int i = 0; i < 6; i++) {
		for (int r = 0; r < nr_ranks; r++)
			for (int n = 0; n < 10; n++)
				write_at(r, (off_t)r * BLOCK + n * (BLOCK / 10), BLOCK / 10);
		barrier();
		for (int r = 0; r < nr_ranks; r++)
			write_at(r, (off_t)((r + 1) % nr_ranks) * BLOCK, EDGE);
		if (i % 2)
			barrier();
		for (int r = 0; r < nr_ranks; r++)
			write_at(r, (off_t)((r + nr_ranks - 1) % nr_ranks) * BLOCK + BLOCK - EDGE, EDGE);
		look();
	}
}

/* A token goes round: one record is everybody's, and the edges of one's own record one's neighbours'. */
static void ring(void)
{
	enum { RECORD = 4000, EDGE = 500 };

	for (int i = 0; i < 8 * nr_ranks; i++) {
		int r = i % nr_ranks;

		write_at(r, 0, RECORD);
		write_at(r, (off_t)(r + 2) * RECORD - EDGE, RECORD + 2 * EDGE);
		hand_over(r, (r + 1) % nr_ranks);
	}
	look();
}

/* Rows of a block of three dimensions, which is cut along one and then along another. */
static void rows(void)
{
	enum { NZ = 6, NY = 32, NX = 4096 };

	for (int i = 0; i < 3; i++) {
		for (int r = 0; r < nr_ranks; r++)
			for (int z = 0; z < NZ; z++)
				for (int y = NY * r / nr_ranks; y < NY * (r + 1) / nr_ranks; y++)
					write_at(r, (z * NY + y) * NX, NX);
		look();
		for (int r = 0; r < nr_ranks; r++)
			for (int z = 0; z < NZ; z++)
				for (int y = 0; y < NY; y += 1 + i) {
					off_t from = NX * r / nr_ranks, to = NX * (r + 1) / nr_ranks;

					write_at(r, (z * NY + y) * NX + from, (size_t)(to - from));
				}
		look();
	}
}

/* Each writes its segment from its beginning to its end, and then goes on, into the next one's. */
static void segments(void)
{
	enum { RECORDS = 20 };

	for (size_t len = 10; len <= 1000; len *= 10) {
		for (int n = 0; n < RECORDS + 12; n++) {
			if (n == RECORDS || n == RECORDS + 6)
				barrier();
			for (int r = 0; r < nr_ranks; r++)
				write_at(r, (off_t)(r * RECORDS + n) * (off_t)len, len);
			if (n == RECORDS + 8)
				look();
		}
		look();
	}
}

/* Each in turn over half of what the one before has written, with a byte and with more. */
static void sizes(void)
{
	for (size_t len = 1; len <= LEN_MAX; len = len * 2 + rnd(len)) {
		off_t off = 100000;

		for (int i = 0; i < 2 * nr_ranks; i++) {
			write_at(i % nr_ranks, off, len);
			hand_over(i % nr_ranks, (i + 1) % nr_ranks);
			off += i % 3 == 2 ? -(off_t)(len / 2) : (off_t)(len / 2);
		}
		look();
	}
}

/* ---- the model: random rounds ---- */

enum { AREA = 1 << 20 };

static size_t some_len(size_t max)
{
	size_t len = 1;

	while (len < max && rnd(8))
		len = len * 2 + rnd(2);
	return len < max ? len : 1 + rnd(max);
}

/* Neighbouring pieces, each of any rank, written whole or bit by bit, in an order or another. */
static void pieces(void)
{
	off_t off = (off_t)rnd(AREA);

	for (int n = 1 + (int)rnd(40); n > 0; n--) {
		size_t len = some_len(40000), bit = rnd(4) ? len : 1 + len / (1 + rnd(6));
		int who = (int)rnd((uint64_t)nr_ranks);
		bool down = rnd(2);

		if (off + (off_t)len > AREA)
			break;
		for (size_t at = 0; at < len; at += bit) {
			size_t part = len - at < bit ? len - at : bit;

			write_at(who, off + (off_t)(down ? len - at - part : at), part);
		}
		off += (off_t)len + (rnd(2) ? 0 : (off_t)rnd(3000));
	}
}

static void strided(void)
{
	size_t len = some_len(8000), gap = rnd(3) ? 0 : rnd(len) + 1;
	off_t off = rnd(2) ? 0 : (off_t)rnd(AREA / 2);
	bool down = rnd(3) == 0;
	int nr = 1 + (int)rnd(30);

	while (nr > 0 && off + (off_t)((len + gap) * (size_t)(nr * nr_ranks)) > AREA)
		nr--;
	for (int i = 0; i < nr; i++)
		for (int r = 0; r < nr_ranks; r++) {
			int record = (down ? nr - 1 - i : i) * nr_ranks + r;

			write_at(r, off + (off_t)((len + gap) * (size_t)record), len);
		}
}

/* All write the same bytes, or overlapping parts of them. */
static void the_same(void)
{
	off_t off = (off_t)rnd(AREA - LEN_MAX);
	size_t len = some_len(LEN_MAX - 1) + 1;
	unsigned round = ++nr_writes;

	for (int r = 0; r < nr_ranks; r++) {
		size_t from = rnd(2) ? 0 : rnd(len);

		write_same(r, off + (off_t)from, len - from, round);
	}
}

/* One after another, each where it likes, over its own and the others'. */
static void in_turn(void)
{
	int who = (int)rnd((uint64_t)nr_ranks);
	off_t off = (off_t)rnd(AREA / 2);

	for (int n = 1 + (int)rnd(20); n > 0; n--) {
		int next = (int)rnd((uint64_t)nr_ranks);
		size_t len = some_len(50000);

		write_at(who, off, len);
		hand_over(who, next);
		who = next;
		off = rnd(3) ? off + (off_t)rnd(len + 1) : (off_t)rnd(AREA / 2);
		if (off > AREA - 50000)
			off = 0;
	}
}

static void alone(void)
{
	int who = (int)rnd((uint64_t)nr_ranks);

	if (rnd(2)) {
		write_at(who, 0, 1 + rnd(AREA));
		return;
	}
	for (int n = 1 + (int)rnd(50); n > 0; n--)
		write_at(who, (off_t)rnd(AREA - 5000), some_len(5000));
}

static void cut(void)
{
	barrier(); /* others may still write */
	resize((int)rnd((uint64_t)nr_ranks), rnd(4) ? (off_t)rnd(AREA) : 0);
}

static void let_go(void)
{
	int who = (int)rnd((uint64_t)nr_ranks);
	bool sync = rnd(2);

	if (by_mpi || rank != who)
		return;
	if (sync && fsync(fd))
		die("%s: fsync", path);
	if (sync)
		return;
	file_close();
	file_open(false);
}

static void random_rounds(void)
{
	static void (*const kinds[])(void) = { pieces,	pieces,	 strided, strided, the_same,
					       in_turn, in_turn, alone,	  cut,	   let_go };

	for (unsigned i = 0; i < rounds; i++) {
		kinds[rnd(sizeof(kinds) / sizeof(kinds[0]))]();
		if (rnd(3))
			look();
		else
			barrier();
	}
	look();
}

/* ---- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "small", small },   { "ticks", ticks },	{ "patches", patches }, { "crossing", crossing },
	{ "halo", halo },     { "ring", ring },		{ "rows", rows },	{ "segments", segments },
	{ "sizes", sizes },   { "random", random_rounds },
};

static int run_case(int nr, const char *dir)
{
	double begin = now_s();
	int bad, all_bad;

	case_name = cases[nr].name;
	snprintf(path, sizeof(path), "%s/%s", dir, case_name);
	model_size = 0;
	nr_writes = 0;
	failed = false;
	state = mix64(seed + (uint64_t)nr);
	own_state = mix64(seed + (uint64_t)rank * 1000);
	file_open(true);
	cases[nr].run();
	if (rank < 0)
		compare_all();
	file_close();
	bad = all_bad = failed;
	if (rank >= 0)
		MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank <= 0)
		printf("%s: %s, %u writes, %.1f s\n", case_name, all_bad ? "WRONG" : "ok", nr_writes,
		       now_s() - begin);
	fflush(stdout);
	return all_bad;
}

int main(int argc, char **argv)
{
	bool checks = argc > 5 && !strcmp(argv[1], "check");
	const char *only = argc > 5 + checks ? argv[5 + checks] : "";
	int bad = 0;

	if (argc < 5)
		die("usage: order posix|mpiio DIR SEED ROUNDS [CASE], check DIR SEED ROUNDS RANKS [CASE]");
	by_mpi = !strcmp(argv[1], "mpiio");
	seed = strtoull(argv[3], NULL, 10);
	rounds = (unsigned)strtoul(argv[4], NULL, 10);
	model = malloc(MODEL_MAX);
	if (checks) {
		nr_ranks = atoi(argv[5]);
	} else {
		MPI_Init(&argc, &argv);
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		MPI_Comm_size(MPI_COMM_WORLD, &nr_ranks);
	}
	if (nr_ranks < 2 || nr_ranks > NR_MAX)
		die("2 to %d ranks", NR_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!*only || !strcmp(only, cases[i].name))
			bad += run_case((int)i, argv[2]);
	if (!checks)
		MPI_Finalize();
	return bad != 0;
}
