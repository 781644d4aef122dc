/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * form_logged. Its operations are those of logged.h.
 */
#include "core/file/logged.h"

const struct form_ops form_logged = {
	.write = logged_write,
	.begin_read = logged_begin_read,
	.append = logged_append,
	.truncate = logged_truncate,
	.fallocate = logged_fallocate,
	.sync = logged_sync,
};
