/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the job's memory has left, with files as the kernel has them.
 */
#include "core/base/memroom.h"

#include "core/base/sys.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define M ((uint64_t)1 << 20)

static char root[] = "/tmp/plfs-test.memroom.XXXXXX";

static void setup(void)
{
	sys_init();
	cr_assert(mkdtemp(root));
}

static void clean(void)
{
	char text[100];

	snprintf(text, sizeof(text), "rm -r %s", root);
	cr_assert_eq(system(text), 0);
}

TestSuite(memroom, .init = setup, .fini = clean);

static void has(const char *path, const char *text)
{
	char command[1000];
	FILE *f;

	snprintf(command, sizeof(command), "f=%s%s && mkdir -p \"${f%%/*}\" && cat >\"$f\"", root, path);
	f = popen(command, "w");
	cr_assert(f && fputs(text, f) >= 0);
	cr_assert_eq(pclose(f), 0);
}

static void machine_has(uint64_t available)
{
	char text[200];

	snprintf(text, sizeof(text), "MemTotal: 10240000 kB\nMemFree: 1 kB\nMemAvailable: %llu kB\n",
		 (unsigned long long)(available >> 10) + 1024000);
	has("/proc/meminfo", text);
}

Test(memroom, nothing_that_can_be_read_is_no_limit) { cr_assert_eq(memroom(root), UINT64_MAX); }

Test(memroom, a_tenth_of_the_machine_stays)
{
	machine_has(300 * M);
	cr_assert_eq(memroom(root), 300 * M);
	has("/proc/meminfo", "MemTotal: 10240000 kB\nMemAvailable: 1023999 kB\n");
	cr_assert_eq(memroom(root), 0);
}

Test(memroom, a_group_of_version_2_and_those_above_it)
{
	machine_has(9000 * M);
	has("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
	has("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
	has("/sys/fs/cgroup/slurm/job_7/step_0/memory.current", "104857600\n");
	cr_assert_eq(memroom(root), 9000 * M);
	has("/sys/fs/cgroup/slurm/job_7/memory.max", "1048576000\n");
	has("/sys/fs/cgroup/slurm/job_7/memory.current", "209715200\n");
	cr_assert_eq(memroom(root), 700 * M);
	has("/sys/fs/cgroup/slurm/memory.max", "2097152000\n");
	has("/sys/fs/cgroup/slurm/memory.current", "1782579200\n");
	has("/sys/fs/cgroup/slurm/memory.stat", "anon 1\n");
	cr_assert_eq(memroom(root), 100 * M);
}

Test(memroom, what_is_cache_counts_as_left)
{
	has("/proc/self/cgroup", "0::/job\n");
	has("/sys/fs/cgroup/job/memory.max", "1048576000\n");
	has("/sys/fs/cgroup/job/memory.current", "1048576000\n");
	cr_assert_eq(memroom(root), 0);
	has("/sys/fs/cgroup/job/memory.stat",
	    "anon 5\nfile 700000000\nshmem 6\ninactive_anon 8\nactive_anon 7\ninactive_file 314572800\nactive_file 104857600\n");
	cr_assert_eq(memroom(root), 300 * M);
}

Test(memroom, a_group_of_version_1)
{
	has("/proc/self/cgroup", "12:cpuset:/\n4:memory:/slurm/uid_5/job_7\n1:name=systemd:/x\n0::/\n");
	has("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	has("/sys/fs/cgroup/memory/memory.usage_in_bytes", "9223372036854\n");
	has("/sys/fs/cgroup/memory/slurm/uid_5/job_7/memory.limit_in_bytes", "1048576000\n");
	has("/sys/fs/cgroup/memory/slurm/uid_5/job_7/memory.usage_in_bytes", "943718400\n");
	has("/sys/fs/cgroup/memory/slurm/uid_5/job_7/memory.stat",
	    "inactive_file 0\nactive_file 0\ntotal_inactive_file 104857600\ntotal_active_file 104857600\n");
	cr_assert_eq(memroom(root), 200 * M);
}

Test(memroom, the_kernel_of_here_says_something) { cr_assert_neq(memroom(""), 0); }
