/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a mapping says of places (place.h), and their paths.
 */
#ifndef PLFS_PLACE_SETTINGS_H
#define PLFS_PLACE_SETTINGS_H

#include "core/backend/near_host.h"
#include "core/store/store.h"

#define PLACE_SHARED_END "-shared"
#define PLACE_LOG_MAX ((uint64_t)1 << 30) /* unless log-max= says otherwise */

enum place_drain { DRAIN_HELPER, DRAIN_NONE, DRAIN_CLOSE }; /* the words of drain= */
enum place_sync { SYNC_HOME, SYNC_NEAR };                   /* of sync= */
enum place_release { RELEASE_NEAR, RELEASE_HOME };          /* of release= */

/* Where new logs of a backend may be made: what its mapping says (struct store's @near). */
struct place_settings {
	const char *near; /* the directory NEAR */
	uint64_t max;     /* bytes of one user there; 0: no limit */
	const char *home; /* the backend's path */
	char backend_id[32]; /* 16 digits; PLACE_SHARED_END behind it: another backend (spread.h) */
	unsigned drain;   /* enum place_drain: who moves closed logs home */
	uint64_t log_max; /* a log that is so long ends, so that it can be moved */
	unsigned sync;    /* enum place_sync: where a sync leaves what it covers */
	uint64_t rate;    /* bytes a second that the helper copies at most; 0: no limit */
	unsigned writers;   /* processes of all hosts that copy to the backend at a time; 0: any number */
	unsigned exit_wait; /* seconds that the end of a process waits for its logs to be moved */
	unsigned release; /* enum place_release: where other hosts find what a process has released */
	uint32_t features; /* of the near.HOST; PLACE_SHARED and more: another backend (spread.h) */
};

/* Fill in @backend_id from @home. */
void place_settings_init(struct place_settings *ps);

/* NEAR/plfs.UID, into @path (PLACE_PATH_LEN). */
void place_user_path(const struct place_settings *ps, uid_t uid, char *path);

/* NEAR/plfs.UID/BACKEND-ID, of this user, into @path (PLACE_PATH_LEN). -ENAMETOOLONG. */
int place_top_path(const struct place_settings *ps, char *path);

/* A hostdir of a container, near. */
struct place_dir {
	struct store store; /* its root is the hostdir */
	int lock;           /* with place_begin(): the near.HOST in it, locked; else -1 */
	unsigned slot;      /* N of the spread.N.HOST that leads there; 0: near */
	uint32_t features;  /* of the near.HOST or spread.N.HOST */
};

#endif
