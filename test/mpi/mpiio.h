/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the MPI-IO cases: a program of cases, all run by all ranks, one after another. A rank says what it
 * sees; after each case rank 0 prints what all said, in the order of their ranks. run compares that, and the
 * files that are left, with a plain directory. Each rank's bytes are the pattern of job.h with 1 + its rank
 * as the round.
 *
 *     PROGRAM DIR [CASE...]
 *     PROGRAM list
 */
#ifndef TEST_MPIIO_H
#define TEST_MPIIO_H

#include <stddef.h>

#include "mpi_job.h"

struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
};
static struct test_case *cases, **cases_end = &cases;

#define CASE(fn) \
	static void fn(void); \
	static struct test_case case_##fn = { #fn, fn, NULL }; \
	static __attribute__((constructor)) void add_##fn(void) \
	{ \
		*cases_end = &case_##fn; \
		cases_end = &case_##fn.next; \
	} \
	static void fn(void)

static const char *dir;
static int rank, nr_ranks;

enum { SAID_MAX = 1 << 16 };
static char said[SAID_MAX];
static int said_len;

__attribute__((format(printf, 1, 2))) static inline void say(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(said + said_len, (size_t)(SAID_MAX - said_len), fmt, ap);
	va_end(ap);
	if (n >= SAID_MAX - said_len)
		die("a case says too much");
	said_len += n;
}

/* Print what the ranks have said; what all agree on, once. */
static void print_said(const char *name)
{
	int lens[64], starts[64], total = 0, same = 1;
	char *all;

	MPI_Gather(&said_len, 1, MPI_INT, lens, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < nr_ranks; i++) {
		starts[i] = total;
		total += lens[i];
	}
	all = malloc((size_t)total + 1);
	MPI_Gatherv(said, said_len, MPI_CHAR, all, lens, starts, MPI_CHAR, 0, MPI_COMM_WORLD);
	for (int i = 1; rank == 0 && i < nr_ranks; i++)
		same = same && lens[i] == lens[0] && !memcmp(all, all + starts[i], (size_t)lens[0]);
	for (int i = 0; rank == 0 && i < nr_ranks && (i == 0 || !same); i++) {
		if (same)
			printf("== %s\n", name);
		else
			printf("== %s, rank %d\n", name, i);
		fwrite(all + starts[i], 1, (size_t)lens[i], stdout);
	}
	fflush(stdout);
	free(all);
	said_len = 0;
}

/* A name in the directory of the job; eight live at a time. */
static inline const char *at(const char *name)
{
	static char ring[8][4096];
	static int next;
	char *out = ring[next++ % 8];

	snprintf(out, sizeof(ring[0]), "%s/%s", dir, name);
	return out;
}

static inline const char *class_name(int rc)
{
	static const struct {
		int class;
		const char *name;
	} known[] = {
		{ MPI_SUCCESS, "ok" },
		{ MPI_ERR_ACCESS, "ACCESS" },
		{ MPI_ERR_AMODE, "AMODE" },
		{ MPI_ERR_ARG, "ARG" },
		{ MPI_ERR_BAD_FILE, "BAD_FILE" },
		{ MPI_ERR_FILE_EXISTS, "FILE_EXISTS" },
		{ MPI_ERR_FILE_IN_USE, "FILE_IN_USE" },
		{ MPI_ERR_IO, "IO" },
		{ MPI_ERR_NO_SPACE, "NO_SPACE" },
		{ MPI_ERR_NO_SUCH_FILE, "NO_SUCH_FILE" },
		{ MPI_ERR_QUOTA, "QUOTA" },
		{ MPI_ERR_READ_ONLY, "READ_ONLY" },
		{ MPI_ERR_OTHER, "OTHER" },
		{ MPI_ERR_UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION" },
		{ MPI_ERR_UNSUPPORTED_DATAREP, "UNSUPPORTED_DATAREP" },
	};
	static char other[32];
	int class;

	MPI_Error_class(rc, &class);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].class == class)
			return known[i].name;
	snprintf(other, sizeof(other), "class %d", class);
	return other;
}

/* Make a call and say how it went. */
#define T(call) \
	({ \
		int t_rc = (call); \
		say("%s: %s\n", #call, class_name(t_rc)); \
		t_rc; \
	})

/* A call that moves data: also how many bytes (status @st is of MPI_BYTE transfers or multiples). */
#define X(call) \
	({ \
		MPI_Status st; \
		int x_rc = (call), x_n = -1; \
		if (!x_rc) \
			MPI_Get_count(&st, MPI_BYTE, &x_n); \
		say("%s: %s, %d bytes\n", #call, class_name(x_rc), x_n); \
		x_rc; \
	})

/* What a nonblocking call did, when it is done. */
#define W(request) \
	({ \
		MPI_Status w_st; \
		int w_rc = MPI_Wait(&(request), &w_st), w_n = -1; \
		if (!w_rc) \
			MPI_Get_count(&w_st, MPI_BYTE, &w_n); \
		say("wait %s: %s, %d bytes\n", #request, class_name(w_rc), w_n); \
	})

static inline uint64_t hash_of(const void *buf, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const unsigned char *)buf)[i]) * 0x100000001b3u;
	return h;
}

/* A buffer that the caller frees, of this rank's bytes for offset @off of a file; or of '?'. */
static inline char *mine(size_t len, MPI_Offset off)
{
	char *buf = malloc(len ? len : 1);

	pattern_fill(buf, len, (uint64_t)off, 1 + (unsigned)rank);
	return buf;
}

static inline char *blank(size_t len)
{
	return memset(malloc(len ? len : 1), '?', len ? len : 1);
}

static inline void say_hash(const char *what, const void *buf, size_t len)
{
	say("%s: %zu bytes %016llx\n", what, len, (unsigned long long)hash_of(buf, len));
}

/*
 * Opened together, not before all are here: a rank that opens a file again while others still close it meets
 * OMPIO removing its semaphore, fails, and the others wait for ever.
 */
static inline MPI_File open_file(const char *name, int amode, MPI_Info info)
{
	MPI_File fh;

	MPI_Barrier(MPI_COMM_WORLD);
	ok(MPI_File_open(MPI_COMM_WORLD, at(name), amode, info, &fh), "open", name);
	return fh;
}

/* The whole file as every rank reads it by itself, after all have come here. */
static inline void say_file(const char *name)
{
	MPI_Offset size = 0;
	MPI_Status st;
	MPI_File fh;
	char *buf;
	int got;

	fh = open_file(name, MPI_MODE_RDONLY, MPI_INFO_NULL);
	ok(MPI_File_get_size(fh, &size), "get_size", name);
	buf = blank((size_t)size + 10);
	ok(MPI_File_read_at(fh, 0, buf, (int)size + 10, MPI_BYTE, &st), "read_at", name);
	MPI_Get_count(&st, MPI_BYTE, &got);
	say("%s: size %lld, read %d, %016llx\n", name, (long long)size, got,
	    (unsigned long long)hash_of(buf, (size_t)size));
	ok(MPI_File_close(&fh), "close", name);
	free(buf);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* What MPI asks for between a write and another rank's access to the same bytes, outside atomic mode. */
static inline void all_synced(MPI_File fh)
{
	ok(MPI_File_sync(fh), "sync", dir);
	MPI_Barrier(MPI_COMM_WORLD);
	ok(MPI_File_sync(fh), "sync", dir);
}

/*
 * The process that writes a rank's bytes, and the one that reads them for it, may be on different hosts: then
 * a sync is needed even for what a rank has written itself (libplfs.7, LIMITS).
 */
static inline void hosts_synced(MPI_File fh)
{
	MPI_Comm here;
	int nr_here;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Comm_size(here, &nr_here);
	MPI_Comm_free(&here);
	if (nr_here < nr_ranks)
		all_synced(fh);
}

enum { RDWR_NEW = MPI_MODE_CREATE | MPI_MODE_RDWR };

/*
 * Old bytes below what has holes: where there are none, MPI libraries fill holes with what they have in
 * memory.
 */
static inline void fill_old(const char *name, int len)
{
	char *old = mine((size_t)len, 0);
	MPI_File fh = open_file(name, RDWR_NEW, MPI_INFO_NULL);

	if (rank == 0)
		ok(MPI_File_write_at(fh, 0, old, len, MPI_BYTE, MPI_STATUS_IGNORE), "write_at", name);
	ok(MPI_File_close(&fh), "close", name);
	free(old);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (struct test_case *c = cases; c; c = c->next)
			puts(c->name);
		return 0;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nr_ranks);
	if (argc < 2 || nr_ranks > 64) {
		fprintf(stderr, "usage: %s DIR [CASE...], at most 64 ranks\n", argv[0]);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	dir = argv[1];
	for (struct test_case *c = cases; c; c = c->next) {
		int chosen = argc == 2;

		for (int i = 2; i < argc; i++)
			chosen |= !strcmp(argv[i], c->name);
		if (!chosen)
			continue;
		MPI_Barrier(MPI_COMM_WORLD);
		c->run();
		print_said(c->name);
	}
	MPI_Finalize();
	return 0;
}

#endif
