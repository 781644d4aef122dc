/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stats files, as the command sees them: what processes have left beside one becomes part of it.
 */
#include "core/plfs_admin.h"

#include "core/base/as_owner.h"
#include "core/base/sys.h"
#include "core/observe/job.h"
#include "core/observe/join.h"
#include "core/observe/settings.h"

#include <stdio.h>

/*
 * What is in the parts goes into a file of the same user, whoever runs this, and wherever names lead by
 * then.
 */
int plfs_stats_join(const char *file, struct plfs_joined *out)
{
	struct as_owner owner = { .is = false };
	struct joined j = { 0 };
	char path[PATH_MAX];
	struct stat st;
	int ret = 0;

	snprintf(path, sizeof(path), "%s.parts", file);
	if (!sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW)) {
		as_owner_begin(&owner, st.st_uid, st.st_gid);
		ret = join_parts(file, true, &j);
		as_owner_end(&owner);
	}
	*out = (struct plfs_joined){
		.parts = j.parts, .alive = j.alive, .newer = j.newer, .damaged = j.damaged
	};
	return ret;
}

void plfs_stats_default(const char *dir, char *out) { settings_default_file(dir, out); }

int plfs_job_rank(void)
{
	struct job j;

	job_find(&j);
	return j.rank;
}
