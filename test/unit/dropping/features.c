/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feature words and versions of what is on disk: a feature that a reader must know and does not, and another
 * version, are refused with one line that names the file; a feature that it may ignore is.
 */
#include "test/lib/calls.h"
#include "test/lib/scratch.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/dropping/datalog.h"
#include "core/dropping/live.h"
#include "index/record/trailer.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

TestSuite(features, .init = scratch_setup, .fini = scratch_remove, .timeout = 100);

#define LEN 200000

/* The @len bytes from @at on of a dropping, and in them the checksum of 4 bytes that covers them, being 0. */
struct field_place {
	const char *prefix;
	off_t at; /* below 0: from the end */
	size_t len, crc_at;
};

static const struct field_place log_header = { "data.", 0, DATALOG_HEADER_LEN, 12 };
static const struct field_place live_header = { "live.", 0, LIVE_FIXED_LEN, LIVE_OFF_CRC };
static const struct field_place index_block = { "index.", 0, INDEX_BLOCK_HEADER_LEN, 8 };
static const struct field_place last_trailer = { "data.", -INDEX_TRAILER_LEN, INDEX_TRAILER_LEN, 8 };

static char said[4096];

static void change(const struct field_place *p, size_t off, uint32_t value, size_t size)
{
	uint8_t buf[256], word[4];
	char path[PATH_MAX];
	off_t at = p->at;
	int fd;

	cr_assert(find_file(p->prefix, path));
	fd = open(path, O_RDWR);
	cr_assert_geq(fd, 0);
	if (at < 0)
		at += lseek(fd, 0, SEEK_END);
	cr_assert_eq(pread(fd, buf, p->len, at), (ssize_t)p->len);
	put_le32(word, value);
	memcpy(buf + off, word, size);
	put_le32(buf + p->crc_at, 0);
	put_le32(buf + p->crc_at, crc32c(0, buf, p->len));
	cr_assert_eq(pwrite(fd, buf, p->len, at), (ssize_t)p->len);
	close(fd);
}

/*
 * Read the file as another program: 0 if it is as written, or -errno. What is printed meanwhile goes to
 * @said.
 */
static int read_file(void)
{
	static uint8_t buf[LEN];
	FILE *out = tmpfile();
	int was = dup(2), ret;
	struct lfile l;

	dup2(fileno(out), 2);
	ret = ltry(&l, "file", O_RDONLY);
	if (!ret) {
		ret = (int)plfs_pread(l.f, buf, LEN, 0);
		if (ret >= 0)
			ret = ret == LEN && pattern_check(buf, LEN, 0, 1) == LEN ? 0 : -EBADMSG;
		lclose(&l);
	}
	dup2(was, 2);
	close(was);
	rewind(out);
	said[fread(said, 1, sizeof(said) - 1, out)] = '\0';
	fclose(out);
	return ret;
}

static void expect_refusal(const struct field_place *p, const char *why)
{
	char path[PATH_MAX];
	int ret = read_file();

	cr_assert_eq(ret, -EPROTONOSUPPORT, "%d: %s", ret, said);
	cr_assert(find_file(p->prefix, path));
	cr_assert(strstr(said, strrchr(path, '/')), "no %s in: %s", path, said);
	cr_assert(strstr(said, why), "no \"%s\" in: %s", why, said);
	cr_assert_eq(strchr(said, '\n'), said + strlen(said) - 1, "one line, not: %s", said);
}

static void expect_all_is_well(void)
{
	int ret = read_file();

	cr_assert_eq(ret, 0, "%d: %s", ret, said);
	cr_assert_eq(*said, '\0', "%s", said);
}

static int write_file(void *arg)
{
	struct lfile l = made("file");

	(void)arg;
	return lfill(&l, 0, LEN, 1) != LEN || lclose(&l);
}

/* By another process: the maps of its own files a process keeps, and reads no index anew. */
static void make_closed(void) { cr_assert_eq(in_child(write_file, NULL), 0); }

/* Its writer is killed: the live file stays. */
static void make_killed(void)
{
	pid_t pid = fork_child();

	if (!pid) {
		struct lfile l = made("file");

		if (lfill(&l, 0, LEN, 1) == LEN)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	cr_assert_eq(wait_child(pid), 256 + SIGKILL);
}

Test(features, of_a_log)
{
	make_closed();
	change(&log_header, 56, UINT32_MAX, 4);
	expect_all_is_well();
	change(&log_header, 60, 1, 4);
	expect_refusal(&log_header,
		       "features that this library does not know (incompat 0x1): use the one that wrote it");
	change(&log_header, 60, 1U << 31, 4);
	expect_refusal(&log_header, "incompat 0x80000000");
	change(&log_header, 60, 0, 4);
	expect_all_is_well();
}

Test(features, of_a_live_file)
{
	make_killed();
	change(&live_header, LIVE_OFF_COMPAT, UINT32_MAX, 4);
	expect_all_is_well();
	change(&live_header, LIVE_OFF_INCOMPAT, 1U << 31, 4);
	expect_refusal(
		&live_header,
		"features that this library does not know (incompat 0x80000000): use the one that wrote it");
	change(&live_header, LIVE_OFF_INCOMPAT, 0, 4);
	expect_all_is_well();
}

Test(features, of_an_index_block)
{
	make_closed();
	change(&index_block, 36, UINT32_MAX - 1, 4);
	expect_all_is_well();
	change(&index_block, 14, 1U << 15, 2);
	expect_refusal(&index_block, "of another version");
}

/* Trailers are read where the node index is lost. */
Test(features, of_a_trailer)
{
	char path[PATH_MAX];

	make_closed();
	cr_assert(find_file("index.", path));
	cr_assert_eq(unlink(path), 0);
	change(&last_trailer, 56, UINT32_MAX, 4);
	cr_assert_eq(read_file(), 0, "%s", said);
	change(&last_trailer, 60, 1, 4);
	expect_refusal(&last_trailer, "features that this library does not know");
}

Test(features, older_and_newer_versions_are_refused)
{
	make_closed();
	change(&log_header, 8, DATALOG_VERSION - 1, 4);
	expect_refusal(&log_header, "data log of version 2, this library's is 3");
	change(&log_header, 8, DATALOG_VERSION + 1, 4);
	expect_refusal(&log_header, "data log of version 4, this library's is 3");
}

Test(features, older_and_newer_versions_of_a_live_file_are_refused)
{
	make_killed();
	change(&live_header, LIVE_OFF_VERSION, LIVE_VERSION - 1, 4);
	expect_refusal(&live_header, "live index of version 5, this library's is 6");
	change(&live_header, LIVE_OFF_VERSION, LIVE_VERSION + 1, 4);
	expect_refusal(&live_header, "live index of version 7, this library's is 6");
}
