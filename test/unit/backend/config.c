/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of PLFS_MAP and PLFSRC taken apart.
 */
#include "core/backend/config.h"
#include "core/backend/place.h"

#include <criterion/criterion.h>

#include <stdlib.h>

static struct config c;
static char err[512];

static void clean(void)
{
	config_release(&c);
}

TestSuite(config, .fini = clean);
TestSuite(config_errors, .fini = clean);
TestSuite(option_normalise);

static int parse(const char *text)
{
	return config_parse(&c, text, err, sizeof(err));
}

Test(config, a_mapping_has_a_prefix_and_backends)
{
	cr_assert_eq(parse("/p=/a,/b/c"), 0, "%s", err);
	cr_assert_eq(c.nr_specs, 1);
	cr_assert_str_eq(c.specs[0].prefix, "/p");
	cr_assert_eq(c.specs[0].nr_backends, 2);
	cr_assert_str_eq(c.specs[0].backends[0], "/a");
	cr_assert_str_eq(c.specs[0].backends[1], "/b/c");
	cr_assert_not(c.specs[0].in_place);
	cr_assert_eq(c.specs[0].mode, MOUNT_LOG);
}

Test(config, a_directory_that_is_its_own_first_backend_is_mapped_in_place)
{
	cr_assert_eq(parse("/a/b=/a/b,/c{mirror=2}:/p=/q,/p"), 0, "%s", err);
	cr_assert(c.specs[0].in_place);
	cr_assert_eq(c.specs[0].nr_backends, 2);
	cr_assert_str_eq(c.specs[0].backends[1], "/c");
	cr_assert_not(c.specs[1].in_place);
}

Test(config, several_backends_may_share_the_logs_by_a_rule)
{
	cr_assert_eq(parse("/p=/a,/b{spread=host}:/q=/a,/b,/c{spread=process}:/r=/a,/b{spread=file}:/s=/a,/b"), 0,
		     "%s", err);
	cr_assert_eq(c.specs[0].spread, SPREAD_HOST);
	cr_assert_eq(c.specs[1].spread, SPREAD_PROCESS);
	cr_assert_eq(c.specs[2].spread, SPREAD_FILE);
	cr_assert_eq(c.specs[3].spread, SPREAD_NONE);
}

Test(config_errors, a_rule_for_one_backend_or_with_a_place)
{
	cr_assert_eq(parse("/p=/a{spread=host}"), -EINVAL);
	cr_assert(strstr(err, "several backends"), "%s", err);
	config_release(&c);
	cr_assert_eq(parse("/p=/a,/b{spread=host,near=/n}"), -EINVAL);
	cr_assert(strstr(err, "near="), "%s", err);
	config_release(&c);
	cr_assert_eq(parse("/p=/a,/b{spread=node}"), -EINVAL);
	cr_assert(strstr(err, "host|process|file"), "%s", err);
}

Test(config, a_place_may_be_named_by_the_environment)
{
	setenv("PLFS_TEST_TMP", "/local/job.17", 1);
	setenv("PLFS_TEST_J", "7", 1);
	cr_assert_eq(parse("/p=/a{near=/dev/shm//}:/q=/b{near=$PLFS_TEST_TMP,near-max=8G,rate=200M}:/r=/c{near=/x/$PLFS_TEST_J/y,near-max=5,wait=60}"),
		     0, "%s", err);
	cr_assert_str_eq(c.specs[0].near, "/dev/shm");
	cr_assert_eq(c.specs[0].near_max, 0);
	cr_assert_eq(c.specs[0].rate, 0);
	cr_assert_eq(c.specs[0].wait, 0);
	cr_assert_str_eq(c.specs[1].near, "/local/job.17");
	cr_assert_eq(c.specs[1].near_max, 8ULL << 30);
	cr_assert_eq(c.specs[1].rate, 200ULL << 20);
	cr_assert_str_eq(c.specs[2].near, "/x/7/y");
	cr_assert_eq(c.specs[2].near_max, 5);
	cr_assert_eq(c.specs[2].wait, 60);
	config_release(&c);
	cr_assert_eq(parse("/p=/a"), 0);
	cr_assert_null(c.specs[0].near);
}

Test(config, a_place_may_have_a_name)
{
	cr_assert_eq(parse("/p=/a{near=nvme}:/q=/b{near=nvme-2.x}:/r=/c{near=auto}"), 0, "%s", err);
	cr_assert(!c.specs[0].near && !c.specs[0].near_auto);
	cr_assert_str_eq(c.specs[0].near_name, "nvme");
	cr_assert_str_eq(c.specs[1].near_name, "nvme-2.x");
	cr_assert(c.specs[2].near_auto && !c.specs[2].near_name);
	config_release(&c);
	cr_assert_eq(parse("/p=/a,/b{spread=host,near=nvme}"), -EINVAL);
	cr_assert(strstr(err, "near="), "%s", err);
}

Test(config, a_place_has_a_word_for_who_drains_it)
{
	cr_assert_eq(parse("/p=/a{near=/n}:/q=/a{drain=helper}:/r=/a{drain=none}:/s=/a{drain=close}"), 0,
		     "%s", err);
	cr_assert_eq(c.specs[0].drain, DRAIN_HELPER);
	cr_assert_eq(c.specs[1].drain, DRAIN_HELPER);
	cr_assert_eq(c.specs[2].drain, DRAIN_NONE);
	cr_assert_eq(c.specs[3].drain, DRAIN_CLOSE);
}

Test(config, a_place_has_words_for_where_syncs_and_releases_go)
{
	cr_assert_eq(parse("/p=/a{near=/n}:/q=/a{near=/n,sync=near}:/r=/a{sync=home}"), 0, "%s", err);
	cr_assert_eq(c.specs[0].sync, SYNC_HOME);
	cr_assert_eq(c.specs[1].sync, SYNC_NEAR);
	cr_assert_eq(c.specs[2].sync, SYNC_HOME);
	config_release(&c);
	cr_assert_eq(parse("/p=/a{near=/n}:/q=/a{near=/n,release=home}:/r=/a{release=near}"), 0, "%s", err);
	cr_assert_eq(c.specs[0].release, RELEASE_NEAR);
	cr_assert_eq(c.specs[1].release, RELEASE_HOME);
	cr_assert_eq(c.specs[2].release, RELEASE_NEAR);
}

Test(config, a_place_that_the_environment_makes_too_long_is_refused)
{
	static char value[PATH_MAX];

	memset(value, 'x', sizeof(value) - 1);
	*value = '/';
	setenv("PLFS_TEST_TMP", value, 1);
	cr_assert_eq(parse("/p=/a{near=$PLFS_TEST_TMP}"), -EINVAL);
	config_release(&c);
	cr_assert_eq(parse("/p=/a{near=$PLFS_TEST_TMP$PLFS_TEST_TMP}"), -EINVAL);
	config_release(&c);
	value[1030] = '\0';
	setenv("PLFS_TEST_TMP", value, 1);
	cr_assert_eq(parse("/p=/a{near=$PLFS_TEST_TMP}"), -EINVAL);
}

Test(config, a_bare_directory_maps_onto_itself)
{
	cr_assert_eq(parse("/scratch/me"), 0);
	cr_assert(c.specs[0].in_place);
	cr_assert_str_eq(c.specs[0].prefix, "/scratch/me");
	cr_assert_str_eq(c.specs[0].backends[0], "/scratch/me");
}

Test(config, paths_are_made_tidy)
{
	cr_assert_eq(parse("//p/./q/../r//=/a/"), 0);
	cr_assert_str_eq(c.specs[0].prefix, "/p/r");
	cr_assert_str_eq(c.specs[0].backends[0], "/a");
}

Test(config, several_mappings_and_options_are_taken)
{
	cr_assert_eq(parse("/p=/a{mode=flat,match=*.h5,match=run*/x,exclude=*.txt}:/q:/r=/s{}") == 0, 0);
	config_release(&c);
	cr_assert_eq(
		parse("/p=/a{mode=flat,match=*.h5,match=run*/x,exclude=*.txt}:/q:/r=/s{mode=log,hostdirs=4096}"),
		0, "%s", err);
	cr_assert_eq(c.nr_specs, 3);
	cr_assert_eq(c.specs[0].mode, MOUNT_FLAT);
	cr_assert_eq(c.specs[0].nr_match, 2);
	cr_assert_str_eq(c.specs[0].match[1], "run*/x");
	cr_assert_eq(c.specs[0].nr_exclude, 1);
	cr_assert(c.specs[1].in_place);
	cr_assert_eq(c.specs[2].mode, MOUNT_LOG);
	cr_assert_eq(c.specs[1].nr_hostdirs, 0);
	cr_assert_eq(c.specs[2].nr_hostdirs, 4096);
}

Test(config, the_size_of_small_files_is_taken)
{
	cr_assert_eq(parse("/p=/a:/q=/b{small=0}:/r{small=1000}:/s{small=8K}:/t{small=2M}"), 0, "%s", err);
	cr_assert_eq(c.specs[0].small, CONFIG_SMALL_DEFAULT);
	cr_assert_eq(c.specs[1].small, 0);
	cr_assert_eq(c.specs[2].small, 1000);
	cr_assert_eq(c.specs[3].small, 8192);
	cr_assert_eq(c.specs[4].small, 2 << 20);
}

Test(config, a_backslash_takes_meaning_away)
{
	cr_assert_eq(parse("/p\\:q=/a\\,b\\=c\\{d\\}{match=x\\,y\\}}"), 0, "%s", err);
	cr_assert_str_eq(c.specs[0].prefix, "/p:q");
	cr_assert_eq(c.specs[0].nr_backends, 1);
	cr_assert_str_eq(c.specs[0].backends[0], "/a,b=c{d}");
	cr_assert_str_eq(c.specs[0].match[0], "x,y}");
}

Test(config, a_file_has_a_map_on_each_line)
{
	cr_assert_eq(config_parse_file(&c, "# site\n\n/p=/a\n/q:/r=/b\n", err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(c.nr_specs, 3);
	cr_assert_eq(config_parse_file(&c, "/s=/a", err, sizeof(err)), 0);
	cr_assert_eq(c.nr_specs, 4);
}

Test(config, what_is_around_a_map_in_a_file_is_no_part_of_it)
{
	cr_assert_eq(config_parse_file(&c, " \t/p=/a  \t# mine\r\n\t#\n  \n/q/x#y\n/r=/b c\\ \\#\\  \n /s\r\n", err, sizeof(err)),
		     0, "%s", err);
	cr_assert_eq(c.nr_specs, 4);
	cr_assert_str_eq(c.specs[0].backends[0], "/a");
	cr_assert_str_eq(c.specs[1].prefix, "/q/x#y");
	cr_assert_str_eq(c.specs[2].backends[0], "/b c #\x20");
	cr_assert_str_eq(c.specs[3].prefix, "/s");
}

static const char *absolute(const char *text, const char *cwd)
{
	static char out[200];

	cr_assert_eq(config_absolute(text, cwd, out, sizeof(out)), 0);
	return out;
}

Test(config, relative_paths_are_made_absolute)
{
	char small[12];

	cr_assert_str_eq(absolute(".", "/w d"), "/w\\ d");
	cr_assert_str_eq(absolute("/p=a,/b,c{match=x,exclude=y/z}:../q:/r=s", "/w"),
			 "/p=/w/a,/b,/w/c{match=x,exclude=y/z}:/q:/r=/w/s");
	cr_assert_str_eq(absolute("\\:x:/=\\=y:p=/q", "/a:b"), "/a\\:b/\\:x:/=/a\\:b/\\=y:p=/q");
	cr_assert_str_eq(absolute("/p=/a:/q{match=a:b}", "/w"), "/p=/a:/q{match=a:b}");
	cr_assert_str_eq(absolute("./a:./:.{match=.}:.,.b:..", "/w"), "/w/a:/w:/w{match=.}:/w,/w/.b:/");
	cr_assert_str_eq(absolute(".././/..//c:..a/..:...", "/u/v/w"), "/u/c:/u/v/w/..a/..:/u/v/w/...");
	cr_assert_str_eq(absolute("", "/w"), "");
	cr_assert_str_eq(absolute(":=,{", "/w"), ":=,{");
	cr_assert_eq(config_absolute("a", "/123456789", small, sizeof(small)), -ENAMETOOLONG);
	cr_assert_eq(config_absolute("a", "/12345678", small, sizeof(small)), 0);
}

Test(config_errors, nonsense_is_reported_in_one_sentence)
{
	static const char *const BAD[] = {
		"",
		":",
		"/p=",
		"/p=,",
		"/p=/a,",
		"/p=/a:",
		"p=/a",
		"/p=a",
		"=/a",
		"/=/a",
		"/p=/",
		"/p=/..",
		"/p=/a{",
		"/p=/a{mode=log",
		"/p=/a{mode=tiny}",
		"/p=/a{mode=}",
		"/p=/a{mode=log|flat}",
		"/p=/a{mode=lo}",
		"/p=/a{match=}",
		"/p=/a{match=*.h5;match=x}",
		"/p=/a{mode=log;}",
		"/p=/a{hostdirs=}",
		"/p=/a{hostdirs=0}",
		"/p=/a{hostdirs=4097}",
		"/p=/a{hostdirs=9x}",
		"/p=/a{nonsense}",
		"/p=/a{mode=log}x",
		"/p=/a=/b",
		"/p=/a:/p=/b",
		"/p=/a:/p/../p",
		"/p=/a}",
		"{mode=log}",
		"/p{mode=log}{mode=log}",
		"/p,/q",
		"/p=/a,/a,/a,/a,/a,/a,/a,/a,/a",
		"/p{small=}",
		"/p{small=K}",
		"/p{small=-1}",
		"/p{small=1G}",
		"/p{small=1KK}",
		"/p{small=12345678901}",
		"/p{near=}",
		"/p{near=./here}",
		"/p{near=-here}",
		"/p{near=/}",
		"/p{near=$PLFS_TEST_UNSET}",
		"/p{near=/a$}",
		"/p{near-max=0}",
		"/p{log-max=0}",
		"/p{near-max=}",
		"/p{near-max=8GB}",
		"/p{near-max=-1}",
		"/p{near-max=1X}",
		"/p{spread}",
		"/p{mirror=2}",
		"/p{far=/cold}",
		"/p{drain=}",
		"/p{drain=thread}",
		"/p{sync=}",
		"/p{sync=far}",
		"/p{rate=}",
		"/p{rate=0}",
		"/p{rate=fast}",
		"/p{wait=}",
		"/p{wait=-1}",
		"/p{wait=86401}",
		"/p{wait=1m}",
		"/p{release=}",
		"/p{release=close}",
		"/p{near=/n,sync=near,release=home}",
		"/p{release=home,near=/n,sync=near}",
		"/1:/2:/3:/4:/5:/6:/7:/8:/9:/10:/11:/12:/13:/14:/15:/16:/17",
	};

	for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
		*err = '\0';
		cr_expect_eq(parse(BAD[i]), -EINVAL, "\"%s\"", BAD[i]);
		cr_expect(*err && !strchr(err, '\n'), "\"%s\": \"%s\"", BAD[i], err);
		config_release(&c);
	}
}

Test(config_errors, names_that_are_too_long_are_refused)
{
	static char text[3 * PATH_MAX];

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "/", 1);
	cr_assert_eq(parse(text), -EINVAL);
	config_release(&c);
	memcpy(text, "/p=/", 4);
	cr_assert_eq(parse(text), -EINVAL);
	config_release(&c);
	cr_assert_eq(config_parse_file(&c, text, err, sizeof(err)), -EINVAL);
}

Test(config_errors, a_short_buffer_for_the_sentence_is_enough)
{
	char tiny[8];

	cr_assert_eq(config_parse(&c, "nonsense", tiny, sizeof(tiny)), -EINVAL);
	cr_assert_lt(strlen(tiny), sizeof(tiny));
}

static void expect_normal(const char *path, const char *want)
{
	char out[PATH_MAX];

	cr_expect_eq(option_normalise(path, out), 0, "%s", path);
	cr_expect_str_eq(out, want, "%s: %s", path, out);
}

Test(option_normalise, takes_out_what_means_nothing)
{
	char out[PATH_MAX];

	expect_normal("/", "/");
	expect_normal("//", "/");
	expect_normal("/a/b", "/a/b");
	expect_normal("/a//b/", "/a/b");
	expect_normal("/./a/./b/.", "/a/b");
	expect_normal("/a/../b", "/b");
	expect_normal("/../a", "/a");
	expect_normal("/a/b/../..", "/");
	expect_normal("/a/..b/...", "/a/..b/...");
	cr_assert_eq(option_normalise("a", out), -EINVAL);
	cr_assert_eq(option_normalise("", out), -EINVAL);
}

Test(option_normalise, knows_its_limit)
{
	static char path[2 * PATH_MAX];
	char out[PATH_MAX];

	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 2 ? 'a' : '/';
	cr_assert_eq(option_normalise(path, out), -ENAMETOOLONG);
	path[PATH_MAX - 1] = '\0';
	cr_assert_eq(option_normalise(path, out), 0);
	cr_assert_leq(strlen(out), (size_t)PATH_MAX - 1);
}

Test(config_parse_hints, choose_what_mappings_leave_open)
{
	cr_assert_eq(config_parse(&c, "/a=/b:/c=/d{match=*.h5,hostdirs=3,small=0}", err, sizeof(err)), 0);
	cr_assert_eq(config_parse_hints(&c,
					"# by plfs advise\nexclude=own.*\nexpect ck.* 5 0.1\n\n hostdirs=128 # many\n"
					"small=1M\n",
					err, sizeof(err)),
		     0, "%s", err);
	cr_assert_eq(c.specs[0].nr_exclude, 1);
	cr_assert_str_eq(c.specs[0].exclude[0], "own.*");
	cr_assert_eq(c.specs[0].nr_hostdirs, 128);
	cr_assert_eq(c.specs[0].small, 1 << 20);
	cr_assert_eq(c.specs[1].nr_exclude, 0);
	cr_assert_eq(c.specs[1].nr_hostdirs, 3);
	cr_assert_eq(c.specs[1].small, 0);
	config_release(&c);
}

Test(config_parse_hints, stop_at_what_is_none)
{
	cr_assert_eq(config_parse(&c, "/a=/b", err, sizeof(err)), 0);
	cr_assert_eq(config_parse_hints(&c, "exclude=x\nmode=flat\nexclude=y\n", err, sizeof(err)), -EINVAL);
	cr_assert(strstr(err, "\"mode=flat\" is no hint"), "%s", err);
	cr_assert_eq(c.specs[0].nr_exclude, 1);
	config_release(&c);
}
