/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole logical file of a stranger's making: stub, container and what is in it are laid out as the input
 * says, in a directory in memory, and the file is opened, measured, read, written, cut and made a plain one,
 * as a program would. No input may crash that, keep it long, take memory beyond its size, or make it read or
 * write a file outside of the container.
 *
 * An input is a byte of flags, one that says what is done, and droppings:
 *   0  1  kind   see make_dropping()
 *   1  1  slot   where, and by which name
 *   2  1  size   0: as long as its bytes; else 2^size bytes, most of them a hole
 *   3  2  len    bytes that follow; a live file's are packed (droppings.h)
 */
#include "test/lib/scratch.h"

#include "fuzz.h"

#include "core/plfs.h"
#include "core/dropping/datalog.h"
#include "core/backend/host.h"
#include "core/backend/stub.h"
#include "index/map/merge.h"

#include "droppings.h"

const char fuzz_name[] = "container";

enum {
	MAKE_LOG,
	MAKE_LIVE,
	MAKE_INDEX,
	MAKE_GLOBAL,
	MAKE_NAMED,
	MAKE_LINK,
	MAKE_FIFO,
	MAKE_DIRECTORY,
	NR_MAKE
};
enum {
	DO_WRITE = 1,
	DO_TRUNCATE = 2,
	DO_EXTEND = 4,
	DO_FLATTEN = 8,
	DO_APPEND = 16,
	DO_REOPEN = 32,
	DO_SYNC = 64,
	DO_CREATE = 128
};

#define HEAD_LEN (2 + 128 + 8)
#define SECRET "these bytes are nobody's business"

static const uint8_t id[STUB_ID_LEN] = { 0x3f, 0xa9, 1, 2, 3 };
static char dir[128], secret[128], stub_path[128];

static int quiet_fsync(int fd)
{
	(void)fd;
	return 0;
}

static void remove_below(char *path)
{
	char *paths[] = { path, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts))
		if (e->fts_info != FTS_D)
			remove(e->fts_path);
	fts_close(fts);
}

static void init(void)
{
	static bool ready;
	FILE *f;

	if (ready)
		return;
	ready = true;
	scratch_in_memory = true;
	scratch_map("{small=0}");
	fuzz_init();
	sys.fsync = sys.fdatasync = quiet_fsync;
	atexit(scratch_remove);
	snprintf(dir, sizeof(dir), "%s/" PLFS_DIR_NAME "/3f/3fa90102030000000000000000000000", scratch);
	snprintf(stub_path, sizeof(stub_path), "%s/file", scratch);
	snprintf(secret, sizeof(secret), "%s/secret", scratch);
	f = fopen(secret, "w");
	must(f && fputs(SECRET, f) >= 0 && !fclose(f), "a file of somebody else");
	must(!plfs_flatten(AT_FDCWD, secret, NULL), "a plain file");
	struct lfile l = made("other"); /* makes the backend's directories */
	must(lfill(&l, 0, 100, 1) == 100, "a file can be written");
	lclose(&l);
	lunlink("other");
	char parent[160];
	snprintf(parent, sizeof(parent), "%s/" PLFS_DIR_NAME "/3f", scratch);
	mkdir(parent, 0755);
}

static void put_file(const char *path, const uint8_t *p, size_t len, unsigned size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);

	if (fd < 0)
		return;
	if (len && pwrite(fd, p, len, 0) < 0)
		must(false, "a dropping can be made");
	if (size && ftruncate(fd, 1ll << min_u64(size, 42)) < 0)
		must(false, "a dropping can be made");
	close(fd);
}

static void make_dropping(int kind, unsigned slot, unsigned size, uint8_t *p, size_t len, bool fix)
{
	static const char *const hosts[] = { "", "other-12345678", "a.b..c", "x/../../../secret" };
	char path[600], hostdir[200], host[64], name[256];
	size_t live_len;
	uint8_t *live;

	snprintf(host, sizeof(host), "%s", slot & 3 ? hosts[slot & 3] : host_name());
	snprintf(hostdir, sizeof(hostdir), "%s/hostdir.%u", dir,
		 slot >> 2 & 3 ? slot >> 2 & 3 : crc32c(0, host, strlen(host)) % 32);
	mkdir(hostdir, 0755);
	snprintf(name, sizeof(name), "%s.%u.%u", host, slot >> 4 & 3, slot >> 6 & 1);
	switch (kind % NR_MAKE) {
	case MAKE_LOG:
		if (fix)
			fix_log(p, len, id);
		snprintf(path, sizeof(path), "%s/data.%s", hostdir, name);
		put_file(path, p, len, size ? size : 17);
		return;
	case MAKE_LIVE:
		live = unpack_live(p, len, fix ? id : NULL, &live_len);
		snprintf(path, sizeof(path), "%s/live.%s", hostdir, name);
		put_file(path, live, live_len, size ? size : 20);
		free(live);
		return;
	case MAKE_INDEX:
		if (fix)
			fix_blocks(p, len);
		snprintf(path, sizeof(path), "%s/index.%s", hostdir, host);
		/* holes take long to be read: unit/file/hostile.c has one */
		put_file(path, p, len, size > 20 && size < 35 ? 20 : size);
		return;
	case MAKE_GLOBAL:
		snprintf(path, sizeof(path), "%s/index.global", dir);
		if (fix)
			fix_global(p, len, id);
		put_file(path, p, len, size);
		if (fix && slot & 1) { /* confirmed */
			int fd = open(path, O_RDWR);
			struct statx stx;

			if (fd >= 0 && !statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &stx)) {
				uint64_t number = stx.stx_ino;

				if (stx.stx_mask & STATX_BTIME)
					number ^= (uint64_t)stx.stx_btime.tv_sec * 1000000000 +
						  stx.stx_btime.tv_nsec;
				if (pwrite(fd, &number, 8, 128) < 0)
					must(false, "a map can be confirmed");
			}
			if (fd >= 0)
				close(fd);
		}
		return;
	default:
		break;
	}
	/* Anything, by any name: the bytes are the name. */
	memcpy(name, p, min_size(len, 250));
	name[min_size(len, 250)] = '\0';
	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '.';
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return;
	snprintf(path, sizeof(path), "%s/%s", slot & 1 ? hostdir : dir, name);
	if (kind % NR_MAKE == MAKE_NAMED)
		put_file(path, p, len, size);
	else if (kind % NR_MAKE == MAKE_LINK && symlink(secret, path))
		return;
	else if (kind % NR_MAKE == MAKE_FIFO && mkfifo(path, 0644))
		return;
	else if (kind % NR_MAKE == MAKE_DIRECTORY && mkdir(path, 0755))
		return;
}

/* Stub, container. */
static bool lay_out(uint8_t *p, size_t len, bool fix)
{
	int fd;

	if (len < HEAD_LEN - 2)
		return false;
	mkdir(dir, 0755);
	if (fix) {
		memcpy(p, STUB_MAGIC, 8);
		put_le32(p + 8, STUB_VERSION);
		memcpy(p + 24, id, STUB_ID_LEN);
		fix_crc(p, 12, STUB_HEADER_LEN);
	}
	fd = open(stub_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(fd >= 0 && pwrite(fd, p, 128, 0) == 128 &&
		     !ftruncate(fd, PLFS_BODY_OFF + (off_t)(get_le64(p + 128) >> 2)) &&
		     !fchmod(fd, 0644 | S_ISVTX),
	     "a stub can be made");
	close(fd);
	p += HEAD_LEN - 2;
	len -= HEAD_LEN - 2;
	for (int nr = 0; len >= 5 && nr < 24; nr++) {
		size_t n = min_size(get_le16(p + 3), len - 5);

		make_dropping(p[0], p[1], p[2], p + 5, n, fix);
		p += 5 + n;
		len -= 5 + n;
	}
	return true;
}

static void check_error(ssize_t ret, const char *what)
{
	static const int documented[] = { EIO, EPROTONOSUPPORT, EFBIG, ENOSPC, EBUSY, EMLINK };

	if (ret >= 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(documented); i++)
		if (ret == -documented[i])
			return;
	must_be(false, (int)ret, what);
}

static ssize_t read_some(struct lfile *l, uint8_t *buf, size_t len, uint64_t off)
{
	ssize_t n = off <= INT64_MAX ? plfs_pread(l->f, buf, len, (off_t)off) : 0;

	check_error(n, "a read fails with an error that is documented");
	must(n <= (ssize_t)len, "no more is read than was asked for");
	must(n != -EIO || nr_lines > 0, "an error is told of");
	must(n < (ssize_t)strlen(SECRET) || !memmem(buf, (size_t)n, SECRET, strlen(SECRET)),
	     "what is read is in the container");
	return n;
}

static int count_piece(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	unsigned *nr = arg;

	(void)logical_off;
	(void)log_off;
	must(len > 0 && (!log || log == plfs_in_stub || !strncmp(log, "hostdir.", 8)),
	     "a piece is of a log in the container");
	return ++*nr > 200;
}

static void change(struct lfile *l, int what, uint64_t size, uint64_t seed)
{
	static uint8_t buf[5000], back[5000];
	uint64_t off = seed % 3 == 0 ? seed % 100000 : seed % 3 == 1 ? size : size / 2 + 1;
	off_t end;
	ssize_t n;

	memset(buf, (int)(seed | 1), sizeof(buf));
	if (what & DO_WRITE && off < (1ull << 43)) {
		n = plfs_pwrite(l->f, buf, sizeof(buf), (off_t)off);
		check_error(n, "a write fails with an error that is documented");
		if (n > 0 && read_some(l, back, (size_t)n, off) == n)
			must(!memcmp(buf, back, (size_t)n), "what was written is read");
	}
	if (what & DO_APPEND)
		check_error(lappend(l, buf, 100, &end), "an append fails with an error that is documented");
	if (what & DO_TRUNCATE)
		check_error(plfs_truncate(l->f, (off_t)(seed % 2 ? 0 : min_u64(size / 3, 1ull << 43))),
			    "a truncation fails with an error that is documented");
	if (what & DO_EXTEND)
		check_error(plfs_truncate(l->f, (off_t)(seed % 2 ? 1ull << 40 : INT64_MAX)),
			    "a truncation fails with an error that is documented");
	if (what & DO_SYNC)
		check_error(plfs_sync(l->f), "a sync fails with an error that is documented");
}

static void fix_stat(struct stat *st)
{
	const struct plfs_name name = { .dirfd = AT_FDCWD, .path = stub_path, .ended = UINT64_MAX };

	plfs_fix_stat(st, &name);
}

static void use(int what, uint64_t seed)
{
	static uint8_t buf[65536];
	struct plfs_info info;
	struct lfile l;
	struct stat st;
	unsigned nr = 0;
	off_t size;
	int ret = ltry(&l, "file", what & DO_CREATE ? O_RDWR | O_CREAT : O_RDWR);

	check_error(ret, "an open fails with an error that is documented");
	if (ret)
		return;
	must(l.f != NULL, "a stub is a logical file");
	if (!stat(stub_path, &st))
		fix_stat(&st);
	size = plfs_size(l.f);
	check_error(size, "a size, or an error that is documented");
	size = size < 0 ? 0 : size;
	read_some(&l, buf, sizeof(buf), 0);
	read_some(&l, buf, 3000, (uint64_t)size / 2);
	read_some(&l, buf, 100, (uint64_t)size - 50);
	read_some(&l, buf, 4096, seed >> 2);
	check_error(min_u64((uint64_t)plfs_get_map(l.f, count_piece, &nr), 0), "a map");
	check_error(plfs_get_info(l.f, &info), "looking inside fails with an error that is documented");
	change(&l, what, (uint64_t)size, seed);
	if (what & DO_REOPEN)
		read_some(&l, buf, 4096, 0);
	check_error(lclose(&l), "a close fails with an error that is documented");
	if (what & DO_REOPEN && !ltry(&l, "file", O_RDONLY)) {
		read_some(&l, buf, sizeof(buf), 0);
		lclose(&l);
	}
	if (what & DO_FLATTEN && !stat(stub_path, &st)) {
		fix_stat(&st);
		if (st.st_size <= 1 << 20 && size <= 1 << 20)
			check_error(plfs_flatten(AT_FDCWD, stub_path, NULL),
				    "flattening fails with an error that is documented");
	}
}

static void check_secret(void)
{
	char buf[100] = "";
	int fd = open(secret, O_RDONLY);
	struct stat st;

	must(fd >= 0 && !fstat(fd, &st) && st.st_size == (off_t)strlen(SECRET) &&
		     read(fd, buf, sizeof(buf)) == st.st_size && !strcmp(buf, SECRET),
	     "files outside of the container stay as they are");
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p;
	int fds;

	if (size < HEAD_LEN)
		return 0;
	init();
	fds = count_fds();
	nr_lines = 0;
	p = malloc(size);
	memcpy(p, data, size);
	memory_begin();
	if (lay_out(p + 2, size - 2, p[0] & FIX))
		use(p[1], crc32c(0, data, size) * 0x9e3779b97f4a7c15);
	memory_end((40 << 20) + 128 * size);
	lunlink("file");
	unlink(stub_path);
	remove_below(dir);
	check_secret();
	must(count_fds() == fds, "no descriptor is left");
	free(p);
	return 0;
}

static uint8_t *begin_dropping(uint8_t *p, int kind, unsigned slot)
{
	p[0] = (uint8_t)kind;
	p[1] = (uint8_t)slot;
	p[2] = 0;
	return p + 5;
}

static uint8_t *end_dropping(uint8_t *p, size_t len)
{
	p[-2] = (uint8_t)len;
	p[-1] = (uint8_t)(len >> 8);
	return p + len;
}

/*
 * One host, whose process wrote and closed one log, and perhaps has another open; and a kept map, or what
 * should not be there.
 */
static size_t fuzz_valid(uint8_t *buf)
{
	static const char *const names[] = { "data.x", "index.x",  "live.x",	"hostdir.7", "index.global",
					     "lock",   "notice.x", "hostdir..", "data.a.1.0" };
	unsigned slot = (unsigned)rnd(128);
	struct stub stub = { .has_container = true, .generation_ns = rnd(3) ? 0 : rnd(20) };
	uint8_t *p = buf;
	size_t len;

	memcpy(stub.id, id, sizeof(id));
	p[0] = rnd(8) ? FIX : 0;
	p[1] = (uint8_t)rnd(256);
	stub_encode(&stub, p + 2);
	put_le64(p + 130, rnd(1ull << rnd(62)));
	p += HEAD_LEN;
	p = begin_dropping(p, MAKE_LOG, slot);
	memset(p, 'a', DATALOG_HEADER_LEN);
	p = end_dropping(p, DATALOG_HEADER_LEN);
	if (rnd(4)) {
		p = begin_dropping(p, MAKE_INDEX, slot);
		len = random_block(p, slot >> 4 & 3);
		put_le32(p + 32, slot >> 6 & 1);
		fix_blocks(p, len);
		p = end_dropping(p, len);
	}
	if (rnd(3) == 0) {
		static const uint64_t words[] = { LIVE_RECORDS_OFF, LIVE_RECORDS_CAP, LIVE_CHUNKS_OFF,
						  LIVE_CHUNKS_CAP,  LIVE_STAGE_OFF,   LIVE_CAP };
		uint64_t nr = 1 + rnd(6);

		p = begin_dropping(p, MAKE_LIVE, slot);
		memset(p, 0, PACKED_LEN);
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			put_le64(p + 32 + 8 * i, words[i]);
		snprintf((char *)p + 80, 100, "data.%s.%u.%u", slot & 3 ? "other-12345678" : host_name(),
			 slot >> 4 & 3, slot >> 6 & 1);
		put_le64(p + LIVE_FIXED_LEN + 8, nr);
		put_le64(p + LIVE_FIXED_LEN + 16, 1000);
		put_le64(p + LIVE_FIXED_LEN + 24, rnd(3000));
		for (uint64_t i = 0; i < nr; i++) {
			struct index_record rec = random_record();

			index_record_encode(&rec, p + PACKED_LEN + i * INDEX_RECORD_LEN);
		}
		p = end_dropping(p, PACKED_LEN + nr * INDEX_RECORD_LEN);
	}
	if (rnd(3) == 0) {
		struct index_merge merge;
		void *image;
		size_t names_len, image_len;

		index_merge_init(&merge);
		for (uint64_t n = 1 + rnd(10); n > 0; n--) {
			struct index_record rec = random_record();

			index_merge_add(&merge, (uint32_t)rnd(2), &rec);
		}
		must(!index_merge_build(&merge, &image, &image_len), "a map can be built");
		index_merge_release(&merge);
		p = begin_dropping(p, MAKE_GLOBAL, 1);
		memset(p, 0, 144);
		put_le64(p + 32, stub.generation_ns);
		names_len = (size_t)sprintf((char *)p + 144, "hostdir.%u/data.%s.%u.%u", slot >> 2 & 3,
					    host_name(), slot >> 4 & 3, slot >> 6 & 1) +
			    1;
		put_le64(p + 48, names_len);
		len = (144 + names_len + 7) / 8 * 8;
		put_le64(p + 56, len);
		put_le64(p + 64, image_len);
		put_le32(p + 72, 1);
		memcpy(p + len, image, image_len);
		fix_global(p, len + image_len, id);
		p = end_dropping(p, len + image_len);
		mem_free(image);
	}
	if (rnd(3) == 0) {
		const char *name = names[rnd(ARRAY_SIZE(names))];

		p = begin_dropping(p, MAKE_NAMED + (int)rnd(4), (unsigned)rnd(256));
		memcpy(p, name, strlen(name));
		p = end_dropping(p, strlen(name));
	}
	return (size_t)(p - buf);
}
