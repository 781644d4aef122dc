/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of PLFS_MAP and of the file that PLFSRC names, which a program's environment gives; and paths, as
 * the table of mounts takes them apart.
 */
#include "fuzz.h"

#include "core/backend/config.h"
#include "core/backend/mount.h"
#include "core/plfs.h"

const char fuzz_name[] = "config";

static void check_normal(const char *path)
{
	must(path[0] == '/' && strlen(path) < PATH_MAX && !strstr(path, "//") && !strstr(path, "/../") &&
		     !strstr(path, "/./"),
	     "a normal path");
	must(!path[1] || path[strlen(path) - 1] != '/', "a normal path ends with a name");
}

static void check_spec(const struct mount_spec *m)
{
	check_normal(m->prefix);
	must(m->nr_backends >= 1 && m->nr_backends <= CONFIG_BACKENDS_MAX, "there is a backend");
	for (int i = 0; i < m->nr_backends; i++)
		check_normal(m->backends[i]);
	must(m->nr_match <= CONFIG_GLOBS_MAX && m->nr_exclude <= CONFIG_GLOBS_MAX, "not too many patterns");
	for (int i = 0; i < m->nr_match; i++)
		must(m->match[i] != NULL, "a pattern is there");
	for (int i = 0; i < m->nr_exclude; i++)
		must(m->exclude[i] != NULL, "a pattern is there");
	must(m->nr_hostdirs <= CONFIG_HOSTDIRS_MAX, "hostdirs");
}

static void fuzz_paths(const char *text)
{
	static bool ready;
	char out[PATH_MAX + 8], norm[PATH_MAX];
	struct plfs_mount *m;
	int ret;

	if (!ready) /* /p leads elsewhere, /tmp is mapped in place */
		must(plfs_setup("/p=/dev,/tmp:/tmp") == 2, "two mounts");
	ready = true;
	memset(out, 'x', sizeof(out));
	ret = mount_path_map(text, out, &m);
	must_be(ret == 0 || ret == 1 || ret == -ENOENT || ret == -ENAMETOOLONG, ret,
		"an error that is documented");
	must(!memcmp(out + PATH_MAX, "xxxxxxxx", 8), "paths stay in their buffer");
	if (ret == 1 && !strstr(text, "..") && !option_normalise(out, norm))
		must(!strncmp(norm, "/dev", 4) || !strncmp(norm, "/tmp", 4),
		     "a mapped path is below its backend");
	if (ret == 1 && !option_normalise(out, norm) && strlen(norm) >= 4)
		must(strncmp(norm + 4, "/" PLFS_DIR_NAME, 6) || (norm[10] && norm[10] != '/'),
		     "no path leads to the containers");
	ret = mount_path_unmap(text, out);
	must_be(ret == 0 || ret == 1 || ret == -ENAMETOOLONG, ret, "an error that is documented");
	mount_cwd_class(text, &m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c = { 0 };
	char err[256] = "", *text;
	int ret;

	if (!size)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] % 4 == 3) {
		fuzz_paths(text);
	} else {
		ret = data[0] % 4 == 2 ? config_parse_file(&c, text, err, sizeof(err)) :
					 config_parse(&c, text, err, sizeof(err));
		must_be(ret == 0 || ret == -EINVAL, ret, "an error that is documented");
		must(!ret || (strlen(err) > 0 && strcmp(err, "out of memory")),
		     "one sentence says what is wrong");
		must(c.nr_specs >= 0 && c.nr_specs <= CONFIG_MOUNTS_MAX, "not too many mappings");
		for (int i = 0; i < c.nr_specs && !ret; i++)
			check_spec(&c.specs[i]);
		config_release(&c);
	}
	free(text);
	return 0;
}

static size_t fuzz_valid(uint8_t *buf)
{
	static const char *const parts[] = { "/p=/a",	  ":",		 "/q=/b,/c",
					     "/tmp/x",	  "{mode=log}",	 "{mode=flat,match=*.h5}",
					     "{small=4K", ",hostdirs=8", "}",
					     "\\:",	  "/../..",	 "\n#",
					     "\n",	  "//./.plfs/" };
	size_t len = 1;

	buf[0] = (uint8_t)rnd(256);
	for (uint64_t n = 1 + rnd(8); n > 0; n--)
		len += (size_t)sprintf((char *)buf + len, "%s", parts[rnd(ARRAY_SIZE(parts))]);
	return len;
}
