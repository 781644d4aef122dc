/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The view: what this process knows of one logical file. Every fact is a copy of something that other
 * processes can change. Each one says below what makes it stale, and which function may use it. No other
 * object keeps a copy.
 *
 * These functions make no system call: they only combine facts. acquire.c renews the facts, publish.c makes
 * the stub agree with them. The inode's lock is held around every call.
 */
#ifndef PLFS_VIEW_H
#define PLFS_VIEW_H

#include "core/backend/stub.h"
#include "core/read/reader.h"

struct view {
	/*
	 * The header as last read. The form only advances: bare, logged, in its body. So in_body is true for
	 * ever once it is set, and has_container until in_body is. While they are not set, any process may
	 * set them: inode_look_bare() reads the header before each use, inode_heed_notice() after each
	 * notice. generation_ns and cut_* are stale as soon as another process truncates; it notifies first.
	 * A load (acquire_load()) compares them with the header.
	 */
	struct stub stub;

	/*
	 * The maps. reader_is_stale() and watch_changed() detect that they are stale. For acquire_*() and the
	 * reads alone.
	 */
	struct reader r;

	/*
	 * The logical size that the stub said at the last look. Stale as soon as another process publishes or
	 * truncates. For view_known_size(), and for publish_extend(), which looks first.
	 */
	uint64_t told_len;

	/*
	 * End of what this process wrote and has not published; 0: nothing. Stale when another process
	 * truncates, which view_heed_cut() finds. For view_known_size() and publish_size().
	 */
	uint64_t own_end;

	/* own_end was dropped, and may be behind the cut: only a map knows. For publish_look_at_end(). */
	bool end_lost;

	/*
	 * Written since the stub's times were last set. Only this process makes it stale. For publish_size().
	 */
	bool touched;

	/*
	 * Others may have released something since the last look: an open, a lock, a sync. For
	 * acquire_look_again().
	 */
	bool acquired;

	/*
	 * told_len when the writers were last noted (reader_note_writers()). A length that is neither this
	 * nor in the maps comes from a writer that is not known.
	 */
	uint64_t noted_len;

	/* the last notice after which the header was read; a later one makes it stale: inode_heed_notice() */
	uint64_t notified_ns;
	uint64_t heeded_ns;    /* the last notice that own_end takes into account: view_heed_cut() */
	/* the truncation to 0 of which this process has notified readers: acquire_load() */
	uint64_t told_cut_ns;
	uint64_t published_ns; /* when the size was last published: is_publish_due() */
	uint64_t dated_ns;     /* when the time of modification was last set: is_date_due() */
	/* of the stub, at the first look; never stale: compared with the time of the first read */
	struct timespec first_ctim;
};

/*
 * Whether a truncation is under way that has happened, by the header and the maps as they are known here.
 * Then the stub's length does not count. A truncate record that is not in the maps yet has not happened for
 * their user.
 */
bool view_is_cut(const struct view *v);

/* The logical size that the stub says, with this st_size. */
uint64_t view_told_len(const struct view *v, off_t st_size);

/*
 * The size by all facts: the stub's, what was written here, what the map has. Current after
 * acquire_look_again().
 */
uint64_t view_known_size(const struct view *v);

/* This process has written up to @end, to a log. */
static inline void view_wrote(struct view *v, uint64_t end)
{
	v->own_end = max_u64(v->own_end, end);
	v->touched = true;
}

/* Whether this process has something that the stub does not say yet. */
static inline bool view_is_unpublished(const struct view *v) { return v->own_end || v->touched; }

/*
 * No write of this process counts for the size any more: the stub says it all, or another process has to say
 * it.
 */
void view_drop_end(struct view *v);

/*
 * The stub became shorter, and no notice says which of our writes came before that. So none of them counts
 * for the size until a map has been asked.
 */
void view_forget_end(struct view *v);

/*
 * This process has no live file any more, so it gets no notice of a truncation. None of its unpublished
 * writes counts for the size until a map has been asked.
 */
void view_lose_end(struct view *v);

/*
 * A notice stamped @notified_ns has come, when the last record had the stamp @last_ns. A write that came
 * before another process's truncation must not bring the old size back. A record that is later than the
 * truncation and earlier than this look counts: a map says how far it reaches. True: the notice was new, and
 * the maps need a look.
 */
bool view_heed_cut(struct view *v, uint64_t notified_ns, uint64_t last_ns);

/* The file is in its body, by the header @now: nothing that logs or maps said is true any more. */
void view_enter_body(struct view *v, const struct stub *now);

#endif
