/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the directory of a log in another backend.
 */
#include "core/backend/spread_enter.h"

#include "core/backend/names.h"
#include "core/store/posix.h"

#define DAMAGED "damaged."

const char *spread_undamaged(const char *name)
{
	bool is = !strncmp(name, DAMAGED, strlen(DAMAGED));
	const char *dot = is ? strchr(name + strlen(DAMAGED), '.') : NULL;

	return dot ? dot + 1 : name;
}

unsigned spread_slot_of(const char *name)
{
	uint32_t pid, seq;

	name_log_numbers(name, &pid, &seq);
	return seq % (SPREAD_SLOTS + 1);
}

/* What was found there first may be on another kind of file system than home, of which nothing was known. */
static void join(struct store *s, const struct store *there)
{
	if (there->remote > s->remote || there->coherent < s->coherent)
		store_posix_join(s, there, false);
}

int spread_enter(struct store *s, const char *dir, const char *file, const char *log, struct place_dir *to)
{
	char own[INDEX_LOG_NAME_LEN];
	int h, ret = place_enter_as(s, dir, file, to, false);

	if (ret)
		return ret;
	if (log && to->features & (PLACE_OWN_HOST | PLACE_OWN_PROCESS)) {
		h = name_own_dir(log, to->features & PLACE_OWN_PROCESS, own) ?
			    store_open(&to->store, own, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0) :
			    -ENOENT;
		if (h < 0) {
			place_leave(to);
			return h;
		}
		store_close(&to->store, &to->store.root);
		to->store.root = h;
	}
	store_posix_set_kind(&to->store);
	join(s, &to->store);
	return 0;
}
