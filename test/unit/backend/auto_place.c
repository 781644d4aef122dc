/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near=auto: the choice among made-up directories, and what is found of real ones with made-up mounts.
 */
#include "core/backend/auto_find.h"

#include "core/backend/auto_take.h"
#include "core/base/sys.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define G ((uint64_t)1 << 30)

static struct auto_candidate disk(const char *dir, uint64_t size, uint64_t free)
{
	struct auto_candidate c = {
		.fs = "xfs",   .source = "/dev/nvme0n1", .exists = true, .writable = true,
		.size = size, .free = free,
	};

	snprintf(c.dir, sizeof(c.dir), "%s", dir);
	return c;
}

static struct auto_candidate of_job(const char *dir, uint64_t size, uint64_t free)
{
	struct auto_candidate c = disk(dir, size, free);

	strcpy(c.from, "TMPDIR");
	return c;
}

static struct auto_candidate memory(const char *dir, uint64_t size)
{
	struct auto_candidate c = disk(dir, size, size);

	strcpy(c.fs, "tmpfs");
	strcpy(c.source, "tmpfs");
	return c;
}

TestSuite(auto_choose, .init = NULL);

Test(auto_choose, the_directory_of_the_job_comes_before_a_larger_disk_and_memory)
{
	struct auto_candidate c[] = { memory("/dev/shm", 500 * G), disk("/local", 2000 * G, 1900 * G),
				      of_job("/ssd/job.1", 100 * G, 90 * G),
				      of_job("/ssd/other", 800 * G, 800 * G) };

	cr_assert_eq(auto_choose(c, 4, UINT64_MAX), 2);
	cr_assert_eq(c[2].max, 0);
	for (int i = 0; i < 4; i++)
		cr_assert_null(c[i].why);
}

Test(auto_choose, the_largest_disk_is_taken_and_the_first_of_equals)
{
	struct auto_candidate c[] = { disk("/a", 100 * G, 90 * G), disk("/b", 900 * G, 200 * G),
				      disk("/c", 900 * G, 800 * G), memory("/dev/shm", 5000 * G) };

	cr_assert_eq(auto_choose(c, 4, UINT64_MAX), 1);
}

Test(auto_choose, a_disk_without_room_is_passed_over)
{
	struct auto_candidate c[] = { disk("/b", 900 * G, 90 * G), of_job("/j", 100 * G, 10 * G + G / 2),
				      disk("/a", 20 * G, 3 * G) };

	cr_assert_eq(auto_choose(c, 3, 0), 2); /* a tenth of each is not counted */
	cr_assert_str_eq(c[0].why, "too little space");
	cr_assert_str_eq(c[1].why, "too little space");
}

Test(auto_choose, memory_is_taken_last_and_half_of_what_there_is)
{
	struct auto_candidate c[] = { disk("/b", G, G), memory("/dev/shm", 100 * G) };

	cr_assert_eq(auto_choose(c, 2, 8 * G), 1);
	cr_assert_eq(c[1].max, 4 * G);
	cr_assert_eq(auto_choose(c, 2, 200 * G), 1);
	cr_assert_eq(c[1].max, 50 * G);
	cr_assert_eq(auto_choose(c, 2, 2 * AUTO_MEMORY_ROOM), 1);
	cr_assert_eq(auto_choose(c, 2, 2 * AUTO_MEMORY_ROOM - 2), -1);
	cr_assert_str_eq(c[1].why, "the job has too little memory left");
}

Test(auto_choose, memory_that_a_variable_names_comes_behind_the_disks_and_before_other_memory)
{
	struct auto_candidate c[] = { memory("/dev/shm", 900 * G), of_job("/run/job", 10 * G, 10 * G),
				      disk("/b", 100 * G, 90 * G) };

	strcpy(c[1].fs, "tmpfs");
	cr_assert_eq(auto_choose(c, 3, UINT64_MAX), 2);
	c[2].read_only = true;
	cr_assert_eq(auto_choose(c, 3, UINT64_MAX), 0); /* in their order: variables are listed first */
	cr_assert_eq(auto_choose(c + 1, 2, UINT64_MAX), 0);
}

Test(auto_choose, half_of_the_room_of_the_root_file_system_is_left)
{
	struct auto_candidate c = disk("/tmp", 100 * G, 50 * G);

	c.is_root = true;
	cr_assert_eq(auto_choose(&c, 1, 0), 0);
	cr_assert_eq(c.max, 20 * G);
}

static void passed_over(struct auto_candidate c, const char *why)
{
	cr_assert_eq(auto_choose(&c, 1, UINT64_MAX), -1, "%s", why);
	cr_assert_str_eq(c.why, why);
}

Test(auto_choose, what_cannot_be_taken_gets_its_reason)
{
	struct auto_candidate c = of_job("/a", 900 * G, 900 * G), d;
	static const char *const shared[] = { "nfs", "nfs4", "lustre", "gpfs", "ceph",	    "fuse.glusterfs",
					      "9p",  "cifs", "beegfs", "overlay", "fuse.sshfs", "virtiofs" };
	static const char *const devices[] = { "/dev/rbd0", "/dev/nbd1", "/dev/loop7", "/dev/drbd1" };

	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		d = c;
		snprintf(d.fs, sizeof(d.fs), "%s", shared[i]);
		strcpy(d.source, "server:/a");
		passed_over(d, "not known as a file system of this node alone");
	}
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		d = c;
		strcpy(d.source, devices[i]);
		passed_over(d, "its device may be elsewhere, or a file");
	}
	d = c, d.exists = false;
	passed_over(d, "not there");
	d = c, d.read_only = true;
	passed_over(d, "read-only");
	d = c, d.writable = false;
	passed_over(d, "not writable");
	d = c, d.may_lose = true;
	passed_over(d, "neither this user's, nor sticky as /tmp is");
	d = c, d.is_home = true;
	passed_over(d, "the backend is on the same file system");
	cr_assert_eq(auto_choose(&c, 0, UINT64_MAX), -1);
}

/* ---- made-up mounts ---- */

static char root[64];
static struct auto_found found;

static void setup(void)
{
	static const char *const variables[] = { "SLURM_TMPDIR", "PBS_JOBFS", "TMPDIR", "LSCRATCH", "SLURM_JOB_ID" };

	sys_init();
	new_dir(root, sizeof(root));
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
}

static void clean(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	cr_assert_eq(system(command), 0);
}

static char *below(const char *name)
{
	static char paths[8][128];
	static int at;
	char *path = paths[at++ % 8];

	snprintf(path, 128, "%s%s", root, name);
	return path;
}

static void make_dir(const char *name, mode_t mode)
{
	cr_assert(!mkdir(below(name), 0700) && !chmod(below(name), mode));
}

/* @lines: with "%s" for the directory. */
static void find(const char *format, const char *backend)
{
	char text[2000];
	FILE *f;

	snprintf(text, sizeof(text), format, root, root, root, root, root, root);
	if (access(below("/proc"), F_OK)) {
		make_dir("/proc", 0755);
		make_dir("/proc/self", 0755);
	}
	f = fopen(below("/proc/self/mountinfo"), "w");
	cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
	cr_assert_eq(auto_find(&found, backend, root), 0);
}

static const struct auto_candidate *candidate(const char *name)
{
	for (int i = 0; i < found.nr; i++)
		if (!strcmp(found.v[i].dir, below(name)))
			return &found.v[i];
	return NULL;
}

TestSuite(auto_find, .init = setup, .fini = clean);

#define ROOT "20 1 0:30 / / rw,relatime - overlay overlay rw,upperdir=/x\n"
#define DISK "21 20 8:1 / %s/disk rw,relatime shared:2 - xfs /dev/sda1 rw,attr2\n"

Test(auto_find, a_sticky_directory_on_a_mounted_disk_is_found)
{
	make_dir("/disk", 0775); /* not what any user keeps as his own */
	make_dir("/disk/scratch", 01777);
	find(ROOT DISK, NULL);
	cr_assert(candidate("/disk/scratch"));
	cr_assert_eq(candidate("/disk/scratch") - found.v, found.taken);
	cr_assert_null(candidate("/disk"));
	cr_assert_gt(candidate("/disk/scratch")->size, 0);
}

Test(auto_find, a_directory_that_others_can_write_is_not_taken)
{
	make_dir("/disk", 0777);
	find(ROOT DISK, NULL);
	cr_assert(candidate("/disk"));
	cr_assert_str_eq(candidate("/disk")->why, "neither this user's, nor sticky as /tmp is");
}

Test(auto_find, names_with_blanks_and_mounts_over_mounts_are_understood)
{
	make_dir("/a b", 01777);
	make_dir("/over", 01777);
	find(ROOT "21 20 8:1 / %s/a\\040b rw - ext4 /dev/sda1 rw\n"
		  "22 20 8:2 / %s/over rw - ext4 /dev/sda2 rw\n"
		  "23 20 0:44 / %s/over rw - nfs4 server:/x rw\n",
	     NULL);
	cr_assert(candidate("/a b"));
	cr_assert_str_eq(candidate("/a b")->fs, "ext4");
	cr_assert_null(candidate("/over"));
}

Test(auto_find, the_variable_of_the_batch_system_comes_first_if_it_is_on_this_node)
{
	make_dir("/disk", 01777);
	make_dir("/net", 01777);
	make_dir("/disk/job", 0700);
	setenv("SLURM_TMPDIR", below("/net/job"), 1);
	setenv("PBS_JOBFS", below("/disk/job"), 1);
	find(ROOT DISK "22 20 0:41 / %s/net rw - lustre mds:/l rw\n", NULL);
	cr_assert_str_eq(candidate("/net/job")->why, "not known as a file system of this node alone");
	cr_assert_eq(candidate("/net/job")->exists, false); /* nobody asked */
	cr_assert_eq(found.taken, candidate("/disk/job") - found.v);
	cr_assert_str_eq(found.v[found.taken].from, "PBS_JOBFS");
}

Test(auto_find, a_read_only_mount_and_the_backend_s_own_are_not_taken)
{
	make_dir("/disk", 01777);
	make_dir("/ro", 01777);
	find(ROOT DISK "22 20 8:2 / %s/ro ro,relatime - ext4 /dev/sda2 rw\n", below("/disk"));
	cr_assert_str_eq(candidate("/ro")->why, "read-only");
	cr_assert_str_eq(candidate("/disk")->why, "the backend is on the same file system");
}

Test(auto_find, a_device_of_the_network_a_home_and_a_file_are_no_disks)
{
	make_dir("/rbd", 01777);
	cr_assert(!symlink("/nowhere", below("/dangling")));
	setenv("LSCRATCH", below("/rbd"), 1);
	setenv("TMPDIR", below("/dangling"), 1);
	find(ROOT "21 20 8:1 / %s/rbd rw - xfs /dev/rbd0 rw\n"
		  "22 20 8:2 / /home/u rw - ext4 /dev/sda2 rw\n"
		  "23 20 8:3 / %s/proc/self/mountinfo rw - ext4 /dev/sda3 rw\n",
	     NULL);
	cr_assert_str_eq(candidate("/rbd")->why, "its device may be elsewhere, or a file");
	for (int i = 0; i < found.nr; i++)
		cr_assert(strncmp(found.v[i].dir, "/home", 5) && !strstr(found.v[i].dir, "mountinfo"));
}

Test(auto_find, mounts_that_cannot_be_read_are_an_error)
{
	cr_assert_eq(auto_find(&found, NULL, below("/none")), -ENOENT);
	cr_assert_eq(found.nr, 0);
	cr_assert_eq(found.taken, -1);
}

/* ---- one answer for a job ---- */

static char *choice_of(const char *job)
{
	static char path[128];
	char command[200];
	FILE *f;

	snprintf(command, sizeof(command), "ls -d /dev/shm/plfs.%u/auto.*.%s 2>/dev/null",
		 (unsigned)geteuid(), job);
	f = popen(command, "r");
	if (!f || !fgets(path, sizeof(path), f))
		*path = '\0';
	path[strcspn(path, "\n")] = '\0';
	pclose(f);
	return path;
}

Test(auto_find, all_processes_of_a_job_take_what_the_first_has_chosen)
{
	char dir[CONFIG_NEAR_MAX + 1], job[40], text[200];
	uint64_t max;
	FILE *f;
	bool took;

	if (access("/dev/shm", W_OK))
		cr_skip_test("no /dev/shm");
	snprintf(job, sizeof(job), "test-%d", (int)getpid());
	setenv("SLURM_JOB_ID", job, 1);
	cr_assert(!auto_chosen(root, dir, &max));
	took = auto_take(root, dir, &max);
	cr_assert(*choice_of(job));
	cr_assert(auto_chosen(root, dir, &max));
	cr_assert_eq(took, *dir != '\0');
	/* another choice than this process would make: it is taken all the same */
	make_dir("/chosen", 0700);
	snprintf(text, sizeof(text), "%s\t12345\n", below("/chosen"));
	f = fopen(choice_of(job), "w");
	cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
	cr_assert(auto_take(root, dir, &max));
	cr_assert_str_eq(dir, below("/chosen"));
	cr_assert_eq(max, 12345);
	/* none: nobody of the job takes any */
	f = fopen(choice_of(job), "w");
	cr_assert(f && fputs("/\t0\n", f) >= 0 && !fclose(f));
	cr_assert(!auto_take(root, dir, &max));
	/* what is no choice, or leads nowhere here, is made anew */
	f = fopen(choice_of(job), "w");
	cr_assert(f && fputs("/nowhere/at/all\t7\n", f) >= 0 && !fclose(f));
	cr_assert_eq(auto_take(root, dir, &max), took);
	cr_assert(auto_chosen(root, dir, &max));
	cr_assert(strcmp(dir, "/nowhere/at/all"));
	cr_assert(!unlink(choice_of(job)));
}
