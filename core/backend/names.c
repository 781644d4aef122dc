/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File names inside a container: taken apart and put together.
 */
#include "core/backend/names.h"

#include "core/backend/host.h"
#include "core/base/crc32c.h"
#include "core/base/sys.h"

#include <stdio.h>
#include <stdlib.h>

#define LOG "data."
#define LIVE "live."
#define INDEX "index."
#define NOTICE "notice."
#define LOST "lost."
#define NEAR "near."
#define COPIES "copies." /* spare.h */
#define SPREAD "spread."
#define PARITY "parity." /* parity.h */

/* What stands behind the kind: "HOST.PID.SEQ", "HOST". */
static const char *rest_of(const char *name)
{
	return strchr(name, '.') + 1;
}

/* "hostdir.K/" of @path, then @kind, then @len bytes at @rest. */
static void put_beside(char *out, const char *path, const char *kind, const char *rest, size_t len)
{
	snprintf(out, CONTAINER_PATH_LEN, "%.*s%s%.*s", (int)(name_of(path) - path), path, kind, (int)len,
		 rest);
}

/* The same for the whole rest of its own name. */
static void change_kind(char *out, const char *path, const char *kind)
{
	const char *rest = rest_of(name_of(path));

	put_beside(out, path, kind, rest, strlen(rest));
}

/* ---- names ---- */

/* "KIND.N.HOST" */
static bool has_slot(const char *name, const char *kind)
{
	const char *n = name + strlen(kind);

	return !strncmp(name, kind, strlen(kind)) && *n >= '1' && *n <= '7' && n[1] == '.' && n[2];
}

enum dropping_kind name_kind(const char *name)
{
	if (strstr(name, ".tmp."))
		return DROPPING_OTHER;
	if (!strncmp(name, LOG, strlen(LOG)))
		return DROPPING_DATA;
	if (!strncmp(name, LIVE, strlen(LIVE)))
		return DROPPING_LIVE;
	if (!strncmp(name, INDEX, strlen(INDEX)))
		return DROPPING_INDEX;
	if (name_is_near(name))
		return DROPPING_NEAR;
	if (!strncmp(name, COPIES, strlen(COPIES)))
		return DROPPING_COPIES;
	if (!strncmp(name, PARITY, strlen(PARITY)))
		return DROPPING_PARITY;
	return name_spread_slot(name) ? DROPPING_SPREAD : DROPPING_OTHER;
}

enum dropping_kind name_kind_to_be(const char *name)
{
	const char *tmp = strstr(name, ".tmp.");
	char last[NAME_MAX + 1];

	snprintf(last, sizeof(last), "%.*s", tmp ? (int)(tmp - name) : (int)strlen(name), name);
	return name_kind(last);
}

unsigned name_spread_slot(const char *name)
{
	return has_slot(name, SPREAD) && !strstr(name, ".tmp.") ? (unsigned)(name[strlen(SPREAD)] - '0') : 0;
}

/* Whether the @len bytes at @p are digits. */
static bool is_number(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] < '0' || p[i] > '9')
			return false;
	return len > 0;
}

/* Whether the @len bytes at @p end with ".PID.SEQ". */
static bool ends_with_numbers(const char *p, size_t len)
{
	for (int numbers = 0; numbers < 2; numbers++) {
		const char *dot = memrchr(p, '.', len);

		if (!dot || dot == p || !is_number(dot + 1, (size_t)(p + len - dot) - 1))
			return false;
		len = (size_t)(dot - p);
	}
	return true;
}

static bool is_top_name(const char *name, size_t len)
{
	return (len == 12 && !memcmp(name, "index.global", 12)) || (len == 4 && !memcmp(name, "lock", 4)) ||
	       (len == 6 && !memcmp(name, "parity", 6)) ||
	       (len > 4 && !memcmp(name, "for.", 4) && is_number(name + 4, len - 4)) ||
	       !strncmp(name, ".plfs-flatten.", 14);
}

bool name_is_known(const char *name, bool top)
{
	const char *tmp, *dot = strncmp(name, "damaged.", 8) ? NULL : strchr(name + 8, '.');
	size_t len;

	if (!strncmp(name, ".nfs", 4)) /* NFS: it has been removed, and a process has it open */
		return true;
	if (dot && is_number(name + 8, (size_t)(dot - name) - 8))
		name = dot + 1;
	tmp = strstr(name, ".tmp.");
	len = tmp ? (size_t)(tmp - name) : strlen(name);
	if (top)
		return is_top_name(name, len);
	if (!strncmp(name, LOG, strlen(LOG)) || !strncmp(name, LIVE, strlen(LIVE)))
		return len > strlen(LOG) && ends_with_numbers(name + strlen(LOG), len - strlen(LOG));
	return (!strncmp(name, INDEX, strlen(INDEX)) && len > strlen(INDEX)) ||
	       (!strncmp(name, NOTICE, strlen(NOTICE)) && len > strlen(NOTICE)) ||
	       (!strncmp(name, NEAR, strlen(NEAR)) && len > strlen(NEAR)) ||
	       (!strncmp(name, COPIES, strlen(COPIES)) && len > strlen(COPIES)) ||
	       (!strncmp(name, PARITY, strlen(PARITY)) && len > strlen(PARITY)) ||
	       has_slot(name, SPREAD) || name_is_old(name);
}

bool name_is_live_of(const char *live, const char *log)
{
	return name_is_live(live) && name_is_log(log) && !strcmp(rest_of(live), rest_of(log));
}

bool name_is_ours(const char *name)
{
	const char *host = host_name(), *at = strchr(name, '.');
	size_t len = strlen(host);

	return at && !strncmp(at + 1, host, len) && (at[1 + len] == '.' || !at[1 + len]);
}

const char *name_host(const char *name, size_t *len)
{
	enum dropping_kind kind = name_kind(name);
	const char *host, *dot;

	if (kind == DROPPING_OTHER || kind == DROPPING_PARITY) /* it may have no dot */
		return NULL;
	host = rest_of(kind == DROPPING_SPREAD ? rest_of(name) : name);
	*len = strlen(host);
	if (kind == DROPPING_INDEX || kind == DROPPING_NEAR || kind == DROPPING_SPREAD ||
	    kind == DROPPING_COPIES)
		return host;
	if (!ends_with_numbers(host, *len))
		return NULL;
	for (int numbers = 0; numbers < 2; numbers++) {
		dot = memrchr(host, '.', *len);
		*len = (size_t)(dot - host);
	}
	return host;
}

bool name_own_dir(const char *name, bool process, char *own)
{
	size_t len;
	const char *host = name_host(name, &len), *seq = strrchr(name, '.');

	if (!host)
		return false;
	snprintf(own, INDEX_LOG_NAME_LEN, "own.%.*s", process ? (int)(seq - host) : (int)len, host);
	return true;
}

bool name_is_our_live(const char *name)
{
	return name_is_live(name) && name_is_ours(name);
}

bool name_is_running(const char *name)
{
	uint32_t pid, seq;

	name_log_numbers(name, &pid, &seq);
	return name_is_our_live(name) && (pid_t)pid != sys.getpid() &&
	       (!sys.syscall(SYS_kill, pid, 0) || errno == EPERM);
}

void name_make_log(uint32_t seq, char *name)
{
	snprintf(name, INDEX_LOG_NAME_LEN, LOG "%s.%d.%u", host_name(), (int)sys.getpid(), seq);
}

bool name_is_of(const char *name, const char *host, uint64_t pid, uint32_t seq)
{
	char other[INDEX_LOG_NAME_LEN];

	snprintf(other, sizeof(other), LOG "%.63s.%llu.%u", host, (unsigned long long)pid, seq);
	return !strcmp(name, other);
}

void name_log_numbers(const char *name, uint32_t *pid, uint32_t *seq)
{
	const char *second = strrchr(name, '.'), *first = second;

	*pid = *seq = 0;
	while (first && first > name && *--first != '.')
		;
	if (!first || first == name)
		return;
	*pid = (uint32_t)strtoul(first + 1, NULL, 10);
	*seq = (uint32_t)strtoul(second + 1, NULL, 10);
}

/* ---- paths ---- */

unsigned name_hostdir(const struct container *c)
{
	const char *host = host_name();

	return crc32c(0, host, strlen(host)) % c->nr_hostdirs;
}

static void put_here(const struct container *c, const char *kind, const char *rest, char *path)
{
	snprintf(path, CONTAINER_PATH_LEN, "hostdir.%u/%s%s", name_hostdir(c), kind, rest);
}

void name_here(const struct container *c, const char *name, char *path) { put_here(c, "", name, path); }

void name_live_here(const struct container *c, const char *log, char *path)
{
	put_here(c, LIVE, rest_of(log), path);
}

void name_index_here(const struct container *c, char *path) { put_here(c, INDEX, host_name(), path); }

void name_notice_here(const struct container *c, char *path) { put_here(c, NOTICE, host_name(), path); }

void name_beside(const char *path, const char *name, char *other)
{
	put_beside(other, path, "", name, strlen(name));
}

void name_live_of_log(const char *log_path, char *path) { change_kind(path, log_path, LIVE); }

void name_log_of_live(const char *live_path, char *path) { change_kind(path, live_path, LOG); }

void name_lost_of_log(const char *log_path, char *path) { change_kind(path, log_path, LOST); }

bool name_is_lost(const char *path)
{
	return strstr(path, "/" LOST);
}

void name_index_of_live(const char *live_path, char *path)
{
	const char *host = rest_of(name_of(live_path));

	put_beside(path, live_path, INDEX, host, strcspn(host, "."));
}

void name_index_of(const char *path, char *index)
{
	const char *host = rest_of(name_of(path)), *end = host + strlen(host);

	for (int dots = 0; dots < 2 && end > host;)
		dots += *--end == '.';
	put_beside(index, path, INDEX, host, (size_t)(end - host));
}

void name_log_of_block(const char *index, const struct index_block *block, char *path)
{
	char rest[CONTAINER_PATH_LEN];

	if (!strchr(index, '/')) {
		snprintf(path, CONTAINER_PATH_LEN, LOG ".%u.%u", block->pid, block->seq);
		return;
	}
	snprintf(rest, sizeof(rest), "%s.%u.%u", rest_of(name_of(index)), block->pid, block->seq);
	put_beside(path, index, LOG, rest, strlen(rest));
}

int name_kept(const struct container *c, const char *path, char *kept)
{
	const char *name = name_of(path);
	char full[CONTAINER_PATH_LEN];
	struct stat st;

	for (int i = 0; i < 1000; i++) {
		int ret;

		if (snprintf(kept, CONTAINER_PATH_LEN, "%.*sdamaged.%d.%s", (int)(name - path), path, i,
			     name) >= CONTAINER_PATH_LEN - 64)
			return -ENAMETOOLONG;
		container_path(c, kept, full);
		ret = c->store->ops->stat(c->store, full, &st);
		if (ret)
			return ret == -ENOENT ? 0 : ret;
	}
	return -EEXIST;
}
