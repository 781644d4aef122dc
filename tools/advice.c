/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Advice from what a file's container is like, each with the measured reason.
 */
#include "advice.h"

#include <sys/vfs.h>

#define RECORDS_MANY 100000
#define LARGE (1 << 20)
#define LUSTRE_MAGIC 0x0BD00BD0

struct sink {
	const char *about;
	advice_fn *fn;
	void *arg;
};

static void give(const struct sink *to, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void give(const struct sink *to, const char *what, const char *fmt, ...)
{
	char why[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	to->fn(to->arg, to->about, what, why);
}

static void advise_stripes(const struct target *t, const struct plfs_info *info, const struct sink *to)
{
	char what[PATH_MAX + 64];
	struct statfs fs;

	if (!info->nr_logs || fstatfs(t->fd, &fs) || fs.f_type != LUSTRE_MAGIC)
		return;
	snprintf(what, sizeof(what), "lfs setstripe -c 1 %s/" PLFS_DIR_NAME, plfs_backend(t->m));
	give(to, what, "each of its %llu logs has one writer: stripes spread what many logs spread already",
	     (unsigned long long)info->nr_logs);
}

void advice_of_file(const struct target *t, const struct plfs_info *info, uint64_t waste, advice_fn *fn,
		    void *arg)
{
	const struct sink to = { .about = t->name, .fn = fn, .arg = arg };
	char what[PATH_MAX + 64], size[TOOL_SIZE_LEN];

	if (info->nr_logs == 1 && info->size >= LARGE && !info->nr_writers)
		give(&to, "mode=flat or exclude= for files like this",
		     "one process wrote all of its %s: a plain file does as well, and needs no library to be read",
		     tool_size(info->size, size));
	if (waste > info->size / 2) {
		snprintf(what, sizeof(what), "plfs compact %s", t->name);
		give(&to, what, "%s in its logs are overwritten", tool_size(waste, size));
	}
	if (info->nr_records > RECORDS_MANY) {
		snprintf(what, sizeof(what), "plfs flatten %s, before it is read much", t->name);
		give(&to, what, "its index has %llu records: the writes had no pattern that could be folded",
		     (unsigned long long)info->nr_records);
	}
	if (info->nr_hosts > ADVICE_HOSTS_MANY)
		give(&to, "hostdirs= as many as there are hosts", "%llu hosts wrote it",
		     (unsigned long long)info->nr_hosts);
	if (info->nr_writers && !info->in_use)
		give(&to, "plfs check and plfs repair, if no process writes it any more",
		     "%llu of its logs were not closed: a repair closes them, and readers are faster then",
		     (unsigned long long)info->nr_writers);
	advise_stripes(t, info, &to);
}
