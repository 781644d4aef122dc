/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and paths inside a container. A host's name has no dots; PID and SEQ are the last two parts.
 */
#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <unistd.h>

TestSuite(names, .init = sys_init);

static char path[CONTAINER_PATH_LEN], want[CONTAINER_PATH_LEN];
static struct container c = { .dir = ".plfs/3f/3fa9", .nr_hostdirs = 32 };

Test(names, a_log_and_its_live_file_lead_to_each_other)
{
	name_live_of_log("hostdir.7/data.host-1a2b.17.3", path);
	cr_assert_str_eq(path, "hostdir.7/live.host-1a2b.17.3");
	name_log_of_live("hostdir.7/live.host-1a2b.17.3", path);
	cr_assert_str_eq(path, "hostdir.7/data.host-1a2b.17.3");
	cr_assert(name_is_live_of("live.host-1a2b.17.3", "data.host-1a2b.17.3"));
	cr_assert(!name_is_live_of("live.host-1a2b.17.3", "data.host-1a2b.17.30"));
	cr_assert(!name_is_live_of("live.host-1a2b.17.3", ""));
	cr_assert(!name_is_live_of("data.host-1a2b.17.3", "data.host-1a2b.17.3"));
}

Test(names, a_node_index_is_found_from_a_log_and_from_a_live_file)
{
	name_index_of("hostdir.7/data.host-1a2b.17.3", path);
	cr_assert_str_eq(path, "hostdir.7/index.host-1a2b");
	name_index_of("hostdir.7/live.host-1a2b.17.3", path);
	cr_assert_str_eq(path, "hostdir.7/index.host-1a2b");
	name_index_of_live("hostdir.7/live.host-1a2b.17.3", path);
	cr_assert_str_eq(path, "hostdir.7/index.host-1a2b");
}

Test(names, of_too_few_parts_stay_inside_the_directory)
{
	static const char *const odd[] = { "hostdir.7/data.", "hostdir.7/data.x", "hostdir.7/data.x.1",
					   "hostdir.7/data..", "hostdir.7/data...." };

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		name_index_of(odd[i], path);
		cr_assert(!strncmp(path, "hostdir.7/index.", 16), "%s", path);
		name_live_of_log(odd[i], path);
		cr_assert(!strncmp(path, "hostdir.7/live.", 15) && !strcmp(path + 15, odd[i] + 15), "%s",
			  path);
	}
}

Test(names, a_block_names_its_log_by_two_numbers)
{
	struct index_block block = { .pid = 4000000000, .seq = 5 };
	uint32_t pid, seq;

	name_log_of_block("hostdir.7/index.host-1a2b", &block, path);
	cr_assert_str_eq(path, "hostdir.7/data.host-1a2b.4000000000.5");
	name_log_numbers(name_of(path), &pid, &seq);
	cr_assert(pid == 4000000000 && seq == 5);
	cr_assert(name_is_of(name_of(path), "host-1a2b", 4000000000, 5));
	cr_assert(!name_is_of(name_of(path), "host-1a2b", 4000000000, 6));
	cr_assert(!name_is_of(name_of(path), "host-1a2", 4000000000, 5));
	name_log_numbers("data.5", &pid, &seq);
	cr_assert(pid == 0 && seq == 0);
}

Test(names, lost_bytes_have_a_path_that_no_log_has)
{
	name_lost_of_log("hostdir.7/data.host-1a2b.17.3", path);
	cr_assert_str_eq(path, "hostdir.7/lost.host-1a2b.17.3");
	cr_assert(name_is_lost(path));
	cr_assert(!name_is_lost("hostdir.7/data.host-1a2b.17.3"));
	cr_assert(!name_is_lost("hostdir.7/data.lost.17.3"));
}

Test(names, of_this_host_are_in_its_hostdir)
{
	char name[INDEX_LOG_NAME_LEN], other[CONTAINER_PATH_LEN];

	name_make_log(9, name);
	snprintf(want, sizeof(want), "data.%s.%d.9", host_name(), (int)getpid());
	cr_assert_str_eq(name, want);
	cr_assert(name_is_log(name) && name_is_ours(name));
	name_here(&c, name, path);
	snprintf(want, sizeof(want), "hostdir.%u/%s", name_hostdir(&c), name);
	cr_assert_str_eq(path, want);
	name_live_here(&c, name, other);
	name_live_of_log(path, want);
	cr_assert_str_eq(other, want);
	cr_assert(name_is_our_live(name_of(other)));
	name_index_here(&c, other);
	name_index_of(path, want);
	cr_assert_str_eq(other, want);
	name_notice_here(&c, other);
	snprintf(want, sizeof(want), "hostdir.%u/notice.%s", name_hostdir(&c), host_name());
	cr_assert_str_eq(other, want);
	name_beside(path, "index.x", other);
	snprintf(want, sizeof(want), "hostdir.%u/index.x", name_hostdir(&c));
	cr_assert_str_eq(other, want);
}

Test(names, say_the_kind_unless_the_file_is_still_being_written)
{
	cr_assert_eq(name_kind("data.host.17.3"), DROPPING_DATA);
	cr_assert_eq(name_kind("live.host.17.3"), DROPPING_LIVE);
	cr_assert_eq(name_kind("index.host"), DROPPING_INDEX);
	cr_assert_eq(name_kind("index.host.tmp.5"), DROPPING_OTHER);
	cr_assert_eq(name_kind("notice.host"), DROPPING_OTHER);
	cr_assert_eq(name_kind("damaged.0.index.host"), DROPPING_OTHER);
	cr_assert_eq(name_kind("dat"), DROPPING_OTHER);
}

Test(names, that_lead_elsewhere_are_no_logs)
{
	cr_assert(!name_is_log("data.x/../y"));
	cr_assert(!name_is_log("live.x.1.2"));
	cr_assert(!name_is_our_live("live.otherhost-00000000.1.2"));
}

Test(names, a_way_to_another_backend_has_a_number_and_a_host)
{
	size_t len;
	const char *host = name_host("spread.3.host-1a2b", &len);
	char own[INDEX_LOG_NAME_LEN];

	cr_assert_eq(name_spread_slot("spread.3.host-1a2b"), 3);
	cr_assert_eq(name_kind("spread.7.host-1a2b"), DROPPING_SPREAD);
	cr_assert(host && len == 9 && !strcmp(host, "host-1a2b"));
	cr_assert_eq(name_spread_slot("spread.0.host-1a2b"), 0);
	cr_assert_eq(name_spread_slot("spread.8.host-1a2b"), 0);
	cr_assert_eq(name_spread_slot("spread.12.host"), 0);
	cr_assert_eq(name_spread_slot("spread.1."), 0);
	cr_assert_eq(name_kind("spread.1.host.tmp.7"), DROPPING_OTHER);
	cr_assert(name_own_dir("data.host-1a2b.17.3", false, own) && !strcmp(own, "own.host-1a2b"));
	cr_assert(name_own_dir("live.host-1a2b.17.3", true, own) && !strcmp(own, "own.host-1a2b.17"));
	cr_assert(!name_own_dir("data.host", true, own));
}
