/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The live file as others see it while its owner writes, is killed, or has gone.
 */
#include "test/lib/one_log.h"
#include "test/lib/calls.h"
#include "core/base/msg.h"
#include "core/dropping/datalog.h"

#include <criterion/criterion.h>

TestSuite(live, .init = log_setup, .fini = scratch_remove, .timeout = 300);

static char live_name[CONTAINER_PATH_LEN];

/* What a reader of another process gets for log bytes, from the log or the stage. */
static void check_log_bytes(const struct index_record *rec, const char *log_path)
{
	uint8_t got[64], want[64];
	int h = datalog_open(&c, log_path, false);
	ssize_t n = 0;

	cr_assert_geq(h, 0);
	cr_assert_leq(rec->length, sizeof(got));
	for (int tries = 0; tries < 5 && n < (ssize_t)rec->length; tries++) {
		n = store.ops->pread(&store, h, got, rec->length, DATALOG_DATA_OFF + rec->log_off);
		cr_assert_geq(n, 0);
		if (n < (ssize_t)rec->length) {
			ssize_t k = live_load_bytes(&c, live_name, rec->log_off + (uint64_t)n, got + n,
						     rec->length - (uint64_t)n);

			cr_assert_geq(k, 0);
			n += k;
		}
	}
	cr_assert_eq(n, (ssize_t)rec->length);
	pattern_fill(want, rec->length, rec->logical_off, 1);
	cr_assert_arr_eq(got, want, rec->length);
	store_close(&store, &h);
}

Test(live, is_consistent_while_its_owner_writes)
{
	char log_path[CONTAINER_PATH_LEN];
	pid_t pid;

	snprintf(live_name, sizeof(live_name), "%s", w.tail.live.path + strlen(c.dir) + 1);
	snprintf(log_path, sizeof(log_path), "%s", w.tail.log_path);
	pid = fork_child();
	if (!pid) { /* the mapping is shared: the child goes on as the owner */
		for (uint64_t i = 0;; i++) {
			uint64_t k = i % 400;

			put(i / 400 % 3 == 0 ? i * 100 :
			    i / 400 % 3 == 1 ? i * 100 + k * k :
					       k * 640 + i % 10 * 64,
			    20 + (i / 400 % 3 == 1 ? i % 5 : 0));
			if (i % 997 == 0)
				writer_commit(&w);
		}
	}
	for (int round = 0; round < 400; round++) {
		struct index_record *records;
		struct live_state state;
		uint64_t digest;

		cr_assert_eq(live_load(&c, live_name, &state, &records), 0);
		cr_assert_eq(live_digest(&c, live_name, &digest), 0);
		for (uint64_t i = 0; i < state.nr_records; i += 1 + state.nr_records / 20) {
			struct index_record rec = records[i];

			if (rec.count > 1) { /* its last element */
				rec.logical_off += (rec.count - 1) * rec.stride;
				rec.log_off += (rec.count - 1) * rec.length;
			}
			if (rec.length <= 64)
				check_log_bytes(&rec, log_path);
		}
		mem_free(records);
	}
	kill(pid, SIGKILL);
	wait_child(pid);
}

static int map_errno;

static int cannot_map(enum call call)
{
	return call == CALL_MMAP ? map_errno : 0;
}

/* The line that making a live file brings while maps fail with @err; "": none. */
static const char *line_without_maps(int err)
{
	static char line[1024];
	struct live l;

	map_errno = err;
	msg_catch(line, sizeof(line));
	cr_assert_eq(live_create(&l, &c, "data.here.1.0", NULL), 0);
	cr_assert(!l.shared);
	live_close(&l, true);
	msg_catch(NULL, 0);
	return line;
}

Test(live, that_no_file_system_keeps_from_being_mapped_says_so_once)
{
	calls_intercept();
	on_call = cannot_map;
	cr_assert_str_empty(line_without_maps(ENODEV));
	cr_assert_str_empty(line_without_maps(EINVAL));
	cr_assert(strstr(line_without_maps(ENOMEM), ": no shared memory: Cannot allocate memory: until"));
	cr_assert_str_empty(line_without_maps(ENOMEM));
	cr_assert_str_empty(line_without_maps(EPERM));
}

Test(live, of_an_owner_that_never_rests_is_never_seen_half_changed)
{
	time_t stop = time(NULL) + 8; /* a sanitizer makes it slow */
	pid_t pid;

	snprintf(live_name, sizeof(live_name), "%s", w.tail.live.path + strlen(c.dir) + 1);
	pid = fork_child();
	if (!pid) { /* elements in two pieces: each record grows, and goes into the one before */
		for (uint64_t e = 0;; e++) {
			uint64_t off = e / 1000 % 2 ? e * 64 : e * 64 + 1;

			if (writer_write(&w, "12345678", 8, off) != 8 ||
			    writer_write(&w, "12345678", 8, off + 8) != 8)
				die("writer_write");
		}
	}
	for (int round = 0; round < 40000 && time(NULL) < stop; round++) {
		struct index_record *records;
		struct live_state state;
		uint64_t between = 0;

		cr_assert_eq(live_load(&c, live_name, &state, &records), 0);
		for (uint64_t i = 0; i < state.nr_records; i++) {
			uint64_t written =
				records[i].logical_off / 64 * 16 + records[i].logical_off % 64 / 8 * 8;

			/* behind that and the blocks and tables of when the live index was full last */
			between = i ? between : records[0].log_off - written;
			cr_assert_eq(records[i].log_off - written, between, "record %llu of %llu",
				     (unsigned long long)i, (unsigned long long)state.nr_records);
			cr_assert(between < written + INDEX_CHUNK_LEN && between % 8 == 0);
		}
		mem_free(records);
	}
	kill(pid, SIGKILL);
	wait_child(pid);
}

Test(live, the_digest_changes_with_every_write)
{
	uint64_t last = 0, digest;

	snprintf(live_name, sizeof(live_name), "%s", w.tail.live.path + strlen(c.dir) + 1);
	for (uint64_t i = 0; i < 2000; i++) {
		put(i * 300 + i / 50 * 7, 20 + i / 100);
		cr_assert_eq(live_digest(&c, live_name, &digest), 0);
		cr_assert_neq(digest, last, "write %llu", (unsigned long long)i);
		last = digest;
	}
}

Test(live, of_a_closed_log_is_gone)
{
	struct live_state state;
	struct index_record *records;
	uint64_t digest;
	char buf[1];

	snprintf(live_name, sizeof(live_name), "%s", w.tail.live.path + strlen(c.dir) + 1);
	writer_close(&w);
	cr_assert_eq(live_load(&c, live_name, &state, &records), -ENOENT);
	cr_assert_eq(live_digest(&c, live_name, &digest), -ENOENT);
	cr_assert_eq(live_load_bytes(&c, live_name, 0, buf, 1), -ENOENT);
	cr_assert_eq(live_notify(&c, live_name, 1), -ENOENT);
}

Test(live, damage_is_an_error_and_no_crash)
{
	struct live_state state;
	struct index_record *records;
	char path[PATH_MAX];
	int fd;

	snprintf(live_name, sizeof(live_name), "%s", w.tail.live.path + strlen(c.dir) + 1);
	for (int i = 0; i < 10; i++)
		put((uint64_t)(i * i) * 100, 10 + (size_t)i);
	cr_assert(find_file("live.", path));
	fd = open(path, O_RDWR);
	for (off_t off = 0; off < 4096 + 600; off += off < 256 ? 3 : 17) {
		uint8_t old, bad;
		int ret;

		cr_assert_eq(pread(fd, &old, 1, off), 1);
		bad = (uint8_t)~old;
		cr_assert_eq(pwrite(fd, &bad, 1, off), 1);
		ret = live_load(&c, live_name, &state, &records);
		cr_assert(ret == 0 || ret == -EBADMSG, "damage at %lld: %d", (long long)off, ret);
		if (off < 256)
			cr_assert_eq(ret, -EBADMSG, "damage at %lld", (long long)off);
		if (!ret)
			mem_free(records);
		cr_assert_eq(pwrite(fd, &old, 1, off), 1);
	}
	close(fd);
	cr_assert_eq(live_load(&c, live_name, &state, &records), 0);
	mem_free(records);
}

static ssize_t (*real_pread)(int fd, void *buf, size_t len, off_t off);

static size_t longest_read;

/* Behind the back of who has just read the header: room for more records, and so many of them. */
static ssize_t pread_then_enlarge(int fd, void *buf, size_t len, off_t off)
{
	ssize_t n = real_pread(fd, buf, len, off);
	static const uint64_t MANY = 7000;
	char path[PATH_MAX];
	int h;

	longest_read = len > longest_read ? len : longest_read;
	if (len != 4096 || !find_file("live.", path))
		return n;
	h = open(path, O_RDWR);
	if (pwrite(h, &MANY, 8, 40) != 8 || pwrite(h, &MANY, 8, 520) != 8)
		die("pwrite");
	close(h);
	return n;
}

Test(live, may_be_written_over_while_it_is_loaded)
{
	struct index_record *records;
	struct live_state state;

	snprintf(live_name, sizeof(live_name), "%s", w.tail.live.path + strlen(c.dir) + 1);
	put(0, 100);
	real_pread = sys.pread;
	sys.pread = pread_then_enlarge;
	cr_assert_eq(live_load(&c, live_name, &state, &records), -EBADMSG);
	sys.pread = real_pread;
	cr_assert_leq(longest_read, LIVE_RECORDS_CAP * INDEX_RECORD_LEN);
}
