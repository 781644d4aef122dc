/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans a container until two scans agree on the damage; reports findings.
 */
#include "core/admin/scan/examine.h"

#include "core/admin/scan/lost.h"
#include "core/admin/scan/scan_container.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>

#define SCANS_MAX 6
#define WAIT_NS 20000000

/* ---- reports ---- */

static void report(const struct examined *k, const struct finding *f)
{
	struct plfs_finding told = { .severity = f->severity, .file = k->file, .code = f->code,
		.path = f->path,
		.text = f->text };

	if (!f->doubtful)
		k->check->found(k->check->arg, &told);
}

void examine_report(struct examined *k, enum plfs_severity severity, const char *code, const char *path,
		    const char *fmt, ...)
{
	struct findings one = { 0 };
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (findings_add(&one, severity, code, path, 0, "%s", text))
		report(k, one.first);
	findings_release(&one);
}

static void report_lost(void *arg, uint64_t logical_off, uint64_t len)
{
	const struct examined *k = arg;
	struct plfs_finding told = {
		.severity = k->check->repair ? PLFS_REMAINS : PLFS_DAMAGED, .file = k->file, .code = "lost",
		.path = "", .text = "", .logical_off = logical_off, .len = len,
	};

	k->check->found(k->check->arg, &told);
}

#define LOST_TOLD 100 /* unless the caller says another number */

static void report_all_lost(struct examined *k, struct scan *l)
{
	enum plfs_severity severity = k->check->repair ? PLFS_REMAINS : PLFS_DAMAGED;
	uint64_t max = k->check->lost_max ? k->check->lost_max : LOST_TOLD;
	struct scan_lost sum;
	int ret = scan_each_lost(l, max, report_lost, k, &sum);
	const char *some = sum.more ? "at least " : "";

	if (ret == -ENOMEM)
		examine_report(k, PLFS_FAILED, "memory", "",
			       "not enough memory to find out which bytes of the file are lost");
	else if (sum.more || sum.nr > max)
		examine_report(k, severity, "lost-more", "",
			       "lost: and %s%llu more ranges; in all %s%llu bytes in %llu ranges",
			       some, (unsigned long long)(sum.nr - min_u64(max, sum.nr)), some,
			       (unsigned long long)sum.bytes, (unsigned long long)sum.nr);
}

/* *@other: the file has changed since its header was read, so that the findings mean nothing. */
static int reread(struct examined *k, bool *other)
{
	struct stub before = k->stub;
	int ret;

	*other = true;
	if (sys.fstat(k->fd, &k->st))
		return -errno;
	k->gone = !k->st.st_nlink;
	if (k->gone)
		return 0;
	ret = stub_read(k->fd, &k->stub);
	*other = ret || k->stub.has_container != before.has_container ||
		k->stub.generation_ns != before.generation_ns;
	return ret;
}

/* ---- scans ---- */

int examine_container(struct examined *k, struct scan *l, struct findings *found)
{
	const struct timespec wait = { .tv_nsec = WAIT_NS };
	struct findings before = { 0 };
	bool other = false;
	int ret = 0;

	memset(found, 0, sizeof(*found));
	for (int tries = 0;; tries++) {
		bool again;

		ret = scan_container(l, &k->c, k->fd, &k->stub, k->check, found);
		if (!ret && !found->nr_damaged)
			break;
		again = ret == -ENOENT || ret == -EAGAIN || !tries || findings_confirm(found, &before) ||
			other;
		/* Removed, moved into its body, or flattened. */
		if (reread(k, &other) || k->gone || !k->stub.has_container) {
			k->gone = true;
			ret = 0;
			break;
		}
		if ((!again && !other) || tries == SCANS_MAX - 1 || (ret && ret != -ENOENT && ret != -EAGAIN))
			break;
		scan_release(l);
		findings_release(&before);
		before = *found;
		memset(found, 0, sizeof(*found));
		io_nanosleep(&wait, NULL);
	}
	if (k->gone) {
		findings_release(found);
		scan_release(l);
	}
	findings_release(&before);
	return ret ? ret : found->ret;
}

void examine_report_all(struct examined *k, struct scan *l, const struct findings *found, bool remains)
{
	for (struct finding *f = found->first; f; f = f->next) {
		if (remains && f->severity != PLFS_DAMAGED && f->severity != PLFS_FAILED)
			continue;
		if (remains && f->severity == PLFS_DAMAGED)
			f->severity = PLFS_REMAINS;
		report(k, f);
	}
	if (found->nr_damaged && remains == k->check->repair)
		report_all_lost(k, l);
}

void examine_report_gone(struct examined *k, const struct findings *first, const struct findings *now)
{
	for (const struct finding *f = first->first; f; f = f->next)
		if ((f->severity != PLFS_DAMAGED && f->severity != PLFS_FAILED) || !findings_have(now, f))
			report(k, f);
}

int examine_result(const struct scan *l, const struct findings *found)
{
	return found->nr_damaged ? 1 : l->unknown ? -EPROTONOSUPPORT : 0;
}
