/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a file (test/lib/life.h) with the 1st, 2nd, 3rd... call of each kind failing, or being short,
 * until it runs without a fault.
 */
#include "test/lib/life.h"

#include "test/lib/near.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#define TIMEOUT_S 7200 /* with PLFS_FAULTS=all; who runs us has his own */

#define FAILING(call_name, call) \
	Test(fault_file, call_name##_failing_once_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		life_fail_each(call, \
			  call == CALL_OPENAT || call == CALL_OPEN || call == CALL_FCNTL ? EMFILE : \
			  call == CALL_MMAP || call == CALL_ALLOC			 ? ENOMEM : \
											   EIO, \
			  false); \
	}

FAILING(openat, CALL_OPENAT)
FAILING(open, CALL_OPEN)
FAILING(pwrite, CALL_PWRITE)
FAILING(pread, CALL_PREAD)
FAILING(ftruncate, CALL_FTRUNCATE)
FAILING(fallocate, CALL_FALLOCATE)
FAILING(mmap, CALL_MMAP)
FAILING(fsync, CALL_FSYNC)
FAILING(fdatasync, CALL_FDATASYNC)
FAILING(unlinkat, CALL_UNLINKAT)
FAILING(renameat, CALL_RENAMEAT)
FAILING(mkdirat, CALL_MKDIRAT)
FAILING(fchmodat, CALL_FCHMODAT)
FAILING(fstat, CALL_FSTAT)
FAILING(fstatat, CALL_FSTATAT)
FAILING(getdents64, CALL_GETDENTS)
FAILING(fcntl, CALL_FCNTL)
FAILING(futimens, CALL_FUTIMENS)
FAILING(allocation, CALL_ALLOC)

Test(fault_file, openat_without_space_for_a_name_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_OPENAT, ENOSPC, false);
}

Test(fault_file, pwrite_on_a_full_disk_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_PWRITE, ENOSPC, true);
}

Test(fault_file, a_disk_that_is_full_for_a_moment_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_PWRITE, ENOSPC, false);
}

Test(fault_file, fallocate_on_a_full_disk_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_FALLOCATE, ENOSPC, true);
}

Test(fault_file, a_file_system_without_fallocate_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_FALLOCATE, EOPNOTSUPP, true);
}

Test(fault_file, a_file_system_without_shared_mappings_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_MMAP, ENODEV, true);
}

Test(fault_file, short_writes_lose_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_PWRITE, CALL_SHORT, true);
}

Test(fault_file, a_short_write_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_PWRITE, CALL_SHORT, false);
}

Test(fault_file, short_reads_lose_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_PREAD, CALL_SHORT, true);
}

/* Those that are taken up again must not even be noticed. */
Test(fault_file, interrupted_writes_lose_nothing, .timeout = TIMEOUT_S)
{
	life.never_noticed = true;
	life_fail_each(CALL_PWRITE, EINTR, false);
}

Test(fault_file, interrupted_reads_lose_nothing, .timeout = TIMEOUT_S)
{
	life.never_noticed = true;
	life_fail_each(CALL_PREAD, EINTR, false);
}

Test(fault_file, an_interrupted_fallocate_loses_nothing, .timeout = TIMEOUT_S)
{
	life.never_noticed = true;
	life_fail_each(CALL_FALLOCATE, EINTR, false);
}

Test(fault_file, a_process_without_descriptors_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_OPENAT, EMFILE, true);
}

Test(fault_file, a_quota_that_is_used_up_loses_nothing, .timeout = TIMEOUT_S)
{
	life_fail_each(CALL_PWRITE, EDQUOT, true);
}

/* What other errors there are, once and from there on, where they can come from. */
static void fail_all(int err, const enum call *calls, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		life_sweep(calls[i], err, false, 1);
		life_sweep(calls[i], err, true, 1);
	}
}

#define FAIL_ALL(err, ...) \
	fail_all(err, (const enum call[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

TestSuite(fault_kinds, .init = life_map, .fini = scratch_remove, .timeout = TIMEOUT_S);

Test(fault_kinds, files_that_went_stale_lose_nothing)
{
	FAIL_ALL(ESTALE, CALL_OPENAT, CALL_PWRITE, CALL_PREAD, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC,
		 CALL_FDATASYNC, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FSTAT, CALL_FSTATAT,
		 CALL_GETDENTS, CALL_FCNTL);
}

Test(fault_kinds, a_file_system_that_goes_read_only_loses_nothing)
{
	FAIL_ALL(EROFS, CALL_OPENAT, CALL_PWRITE, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC, CALL_FDATASYNC,
		 CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FCHMODAT, CALL_FUTIMENS);
}

Test(fault_kinds, a_quota_that_is_used_up_anywhere_loses_nothing)
{
	FAIL_ALL(EDQUOT, CALL_OPENAT, CALL_PWRITE, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC, CALL_FDATASYNC,
		 CALL_RENAMEAT, CALL_MKDIRAT, CALL_FUTIMENS);
}

Test(fault_kinds, a_disk_that_is_full_anywhere_loses_nothing)
{
	FAIL_ALL(ENOSPC, CALL_OPENAT, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC, CALL_FDATASYNC,
		 CALL_RENAMEAT, CALL_MKDIRAT, CALL_FUTIMENS, CALL_UNLINKAT);
}

Test(fault_kinds, devices_that_fail_for_good_lose_nothing)
{
	FAIL_ALL(EIO, CALL_OPENAT, CALL_PWRITE, CALL_PREAD, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC,
		 CALL_FDATASYNC, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FCHMODAT, CALL_FSTAT,
		 CALL_FSTATAT, CALL_GETDENTS, CALL_FCNTL, CALL_FUTIMENS);
}

Test(fault_kinds, rights_that_are_taken_away_lose_nothing)
{
	FAIL_ALL(EACCES, CALL_OPENAT, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FSTATAT, CALL_MMAP,
		 CALL_FUTIMENS);
}

Test(fault_kinds, memory_that_the_kernel_refuses_loses_nothing)
{
	FAIL_ALL(ENOMEM, CALL_OPENAT, CALL_PWRITE, CALL_PREAD, CALL_MMAP, CALL_FSTAT, CALL_FSTATAT,
		 CALL_GETDENTS, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT);
}

Test(fault_kinds, memory_that_the_allocator_refuses_loses_nothing)
{
	FAIL_ALL(ENOMEM, CALL_ALLOC);
}

Test(fault_kinds, a_system_without_descriptors_loses_nothing)
{
	FAIL_ALL(ENFILE, CALL_OPENAT, CALL_FCNTL);
	FAIL_ALL(EMFILE, CALL_OPENAT, CALL_FCNTL);
}

Test(fault_kinds, a_file_system_without_locks_loses_nothing)
{
	FAIL_ALL(ENOLCK, CALL_FCNTL);
}

/*
 * A program gets those that it would get of a plain file: of an open, a truncation, a sync, a wait for a
 * lock.
 */
Test(fault_kinds, signals_lose_nothing)
{
	static const enum call calls[] = { CALL_OPENAT, CALL_FTRUNCATE, CALL_FSYNC, CALL_FDATASYNC,
					   CALL_FCNTL };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		life_sweep(calls[i], EINTR, false, 1);
}

/* The same for a file that is moved into its body. */
#define FAILING_MOVE(name, ...) \
	Test(fault_move, name, .timeout = TIMEOUT_S) \
	{ \
		static const enum call calls[] = { __VA_ARGS__ }; \
		life.moved = true; \
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) { \
			life_sweep(calls[i], MOVE_ERROR, false, 2); \
			life_sweep(calls[i], MOVE_ERROR, true, 2); \
		} \
	}

TestSuite(fault_move, .init = life_map, .fini = scratch_remove);

#define MOVE_ERROR ENOSPC
FAILING_MOVE(a_full_disk_loses_nothing, CALL_PWRITE, CALL_FALLOCATE, CALL_FTRUNCATE, CALL_OPENAT,
	     CALL_FDATASYNC, CALL_FSYNC)
#undef MOVE_ERROR
#define MOVE_ERROR EIO
FAILING_MOVE(a_device_that_fails_loses_nothing, CALL_PWRITE, CALL_PREAD, CALL_FALLOCATE, CALL_FTRUNCATE,
	     CALL_OPENAT, CALL_FDATASYNC, CALL_FSYNC, CALL_FSTAT, CALL_FSTATAT, CALL_GETDENTS, CALL_UNLINKAT)
#undef MOVE_ERROR
#define MOVE_ERROR ENOMEM
FAILING_MOVE(memory_that_is_refused_loses_nothing, CALL_ALLOC, CALL_MMAP)
#undef MOVE_ERROR
#define MOVE_ERROR EMFILE
FAILING_MOVE(a_process_without_descriptors_loses_nothing, CALL_OPENAT, CALL_OPEN, CALL_FCNTL)

/* The same for a file that begins in its stub. */
#define FAILING_SMALL(call_name, call, err, from_there_on) \
	Test(fault_small, call_name##_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		life.options = ""; \
		life_fail_each(call, err, from_there_on); \
	}

FAILING_SMALL(failing_pread, CALL_PREAD, EIO, false)
FAILING_SMALL(failing_pwrite, CALL_PWRITE, EIO, false)
FAILING_SMALL(failing_ftruncate, CALL_FTRUNCATE, EIO, false)
FAILING_SMALL(failing_fcntl, CALL_FCNTL, EMFILE, false)
FAILING_SMALL(failing_fstat, CALL_FSTAT, EIO, false)
FAILING_SMALL(a_full_disk, CALL_PWRITE, ENOSPC, true)
FAILING_SMALL(short_writes, CALL_PWRITE, CALL_SHORT, true)
FAILING_SMALL(short_reads, CALL_PREAD, CALL_SHORT, true)
FAILING_SMALL(an_interrupted_write, CALL_PWRITE, EINTR, false)

/* The same for a file whose logs are near (near=). */
static const char *near_options = "{small=0,near=$PLFS_TEST_NEAR}";

static void near_each(enum call call, int err, bool from_there_on)
{
	char near[64], command[100];

	scratch_in_memory = true;
	new_dir(near, sizeof(near));
	setenv("PLFS_TEST_NEAR", near, 1);
	life.options = near_options;
	life_fail_each(call, err, from_there_on);
	snprintf(command, sizeof(command), "rm -rf %s", near);
	cr_assert_eq(system(command), 0);
}

#define FAILING_NEAR(call_name, call, err, from_there_on) \
	Test(fault_near, call_name##_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		near_each(call, err, from_there_on); \
	}

FAILING_NEAR(failing_openat, CALL_OPENAT, EMFILE, false)
FAILING_NEAR(failing_open, CALL_OPEN, EMFILE, false)
FAILING_NEAR(failing_pwrite, CALL_PWRITE, EIO, false)
FAILING_NEAR(failing_pread, CALL_PREAD, EIO, false)
FAILING_NEAR(failing_fallocate, CALL_FALLOCATE, EIO, false)
FAILING_NEAR(failing_ftruncate, CALL_FTRUNCATE, EIO, false)
FAILING_NEAR(failing_fdatasync, CALL_FDATASYNC, EIO, false)
FAILING_NEAR(failing_fsync, CALL_FSYNC, EIO, false)
FAILING_NEAR(failing_unlinkat, CALL_UNLINKAT, EIO, false)
FAILING_NEAR(failing_renameat, CALL_RENAMEAT, EIO, false)
FAILING_NEAR(failing_mkdirat, CALL_MKDIRAT, EIO, false)
FAILING_NEAR(failing_fstat, CALL_FSTAT, EIO, false)
FAILING_NEAR(failing_fstatat, CALL_FSTATAT, EIO, false)
FAILING_NEAR(failing_getdents, CALL_GETDENTS, EIO, false)
FAILING_NEAR(failing_fcntl, CALL_FCNTL, EMFILE, false)
FAILING_NEAR(a_refused_allocation, CALL_ALLOC, ENOMEM, false)
FAILING_NEAR(a_full_disk, CALL_PWRITE, ENOSPC, true)
FAILING_NEAR(a_full_place, CALL_FALLOCATE, ENOSPC, true)
FAILING_NEAR(a_process_without_descriptors, CALL_OPENAT, EMFILE, true)
FAILING_NEAR(a_file_system_without_fallocate, CALL_FALLOCATE, EOPNOTSUPP, true)
FAILING_NEAR(short_writes, CALL_PWRITE, CALL_SHORT, true)
FAILING_NEAR(short_reads, CALL_PREAD, CALL_SHORT, true)

FAILING_NEAR(a_quota_that_is_used_up, CALL_PWRITE, EDQUOT, true)
FAILING_NEAR(a_quota_of_the_place_that_is_used_up, CALL_FALLOCATE, EDQUOT, true)
FAILING_NEAR(a_stale_file_that_is_written, CALL_PWRITE, ESTALE, false)
FAILING_NEAR(a_stale_file_that_is_read, CALL_PREAD, ESTALE, false)
FAILING_NEAR(a_stale_file_that_is_synced, CALL_FDATASYNC, ESTALE, false)

/* And where they are synced there. */
#define FAILING_SYNC_NEAR(call_name, call, err, from_there_on) \
	Test(fault_near, call_name##_of_a_sync_near_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		near_options = "{small=0,near=$PLFS_TEST_NEAR,sync=near}"; \
		near_each(call, err, from_there_on); \
	}

FAILING_SYNC_NEAR(failing_openat, CALL_OPENAT, EMFILE, false)
FAILING_SYNC_NEAR(failing_open, CALL_OPEN, EIO, false)
FAILING_SYNC_NEAR(failing_pread, CALL_PREAD, EIO, false)
FAILING_SYNC_NEAR(failing_fsync, CALL_FSYNC, EIO, false)
FAILING_SYNC_NEAR(failing_fdatasync, CALL_FDATASYNC, EIO, false)
FAILING_SYNC_NEAR(a_process_without_descriptors, CALL_OPENAT, EMFILE, true)

/* And where a release brings them home. */
#define FAILING_RELEASE(call_name, call, err, from_there_on) \
	Test(fault_near, call_name##_of_a_release_home_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		near_options = "{small=0,near=$PLFS_TEST_NEAR,release=home}"; \
		near_each(call, err, from_there_on); \
	}

FAILING_RELEASE(failing_openat, CALL_OPENAT, EMFILE, false)
FAILING_RELEASE(failing_pread, CALL_PREAD, EIO, false)
FAILING_RELEASE(failing_pwrite, CALL_PWRITE, EIO, false)
FAILING_RELEASE(failing_fsync, CALL_FSYNC, EIO, false)
FAILING_RELEASE(failing_fdatasync, CALL_FDATASYNC, EIO, false)
FAILING_RELEASE(failing_renameat, CALL_RENAMEAT, EIO, false)
FAILING_RELEASE(failing_unlinkat, CALL_UNLINKAT, EIO, false)
FAILING_RELEASE(a_refused_allocation, CALL_ALLOC, ENOMEM, false)
FAILING_RELEASE(a_full_disk, CALL_PWRITE, ENOSPC, true)
FAILING_RELEASE(a_process_without_descriptors, CALL_OPENAT, EMFILE, true)

/* The same for a file whose logs are in two backends (spread=). */
static void spread_each(enum call call, int err, bool from_there_on)
{
	char spread[100];

	scratch_in_memory = true;
	near_backends("process", spread, sizeof(spread));
	life.options = spread;
	life_fail_each(call, err, from_there_on);
	near_lose();
}

#define FAILING_SPREAD(call_name, call, err, from_there_on) \
	Test(fault_spread, call_name##_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		spread_each(call, err, from_there_on); \
	}

FAILING_SPREAD(a_quota_that_is_used_up, CALL_PWRITE, EDQUOT, true)
FAILING_SPREAD(a_stale_file_that_is_written, CALL_PWRITE, ESTALE, false)
FAILING_SPREAD(a_stale_file_that_is_read, CALL_PREAD, ESTALE, false)
FAILING_SPREAD(failing_openat, CALL_OPENAT, EMFILE, false)
FAILING_SPREAD(failing_open, CALL_OPEN, EIO, false)
FAILING_SPREAD(failing_pwrite, CALL_PWRITE, EIO, false)
FAILING_SPREAD(failing_pread, CALL_PREAD, EIO, false)
FAILING_SPREAD(failing_fallocate, CALL_FALLOCATE, EIO, false)
FAILING_SPREAD(failing_ftruncate, CALL_FTRUNCATE, EIO, false)
FAILING_SPREAD(failing_fdatasync, CALL_FDATASYNC, EIO, false)
FAILING_SPREAD(failing_fsync, CALL_FSYNC, EIO, false)
FAILING_SPREAD(failing_unlinkat, CALL_UNLINKAT, EIO, false)
FAILING_SPREAD(failing_renameat, CALL_RENAMEAT, EIO, false)
FAILING_SPREAD(failing_mkdirat, CALL_MKDIRAT, EIO, false)
FAILING_SPREAD(failing_fstat, CALL_FSTAT, EIO, false)
FAILING_SPREAD(failing_fstatat, CALL_FSTATAT, EIO, false)
FAILING_SPREAD(failing_getdents, CALL_GETDENTS, EIO, false)
FAILING_SPREAD(failing_fcntl, CALL_FCNTL, EMFILE, false)
FAILING_SPREAD(a_refused_allocation, CALL_ALLOC, ENOMEM, false)
FAILING_SPREAD(a_full_disk, CALL_PWRITE, ENOSPC, true)
FAILING_SPREAD(a_full_disk_that_allocates, CALL_FALLOCATE, ENOSPC, true)
FAILING_SPREAD(a_process_without_descriptors, CALL_OPENAT, EMFILE, true)
FAILING_SPREAD(short_writes, CALL_PWRITE, CALL_SHORT, true)
FAILING_SPREAD(short_reads, CALL_PREAD, CALL_SHORT, true)
