/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether what a process knows of a logical file still holds, and what makes it current: looks at the stub's
 * length, at its header, and new maps.
 */
#include "core/file/acquire.h"

#include "core/file/hosts.h"
#include "core/dropping/notice.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"

int acquire_length(struct inode *ino, int fd)
{
	struct stat st;

	if (sys.fstat(fd, &st))
		return -errno;
	inode_heed_owner(ino, &st);
	ino->v.told_len = view_told_len(&ino->v, st.st_size);
	return 0;
}

/* What the maps had before a load. */
struct had {
	uint64_t cut_ns, max_stamp_ns;
};

static struct had had(const struct reader *r)
{
	return r->loaded ? (struct had){ r->levels.cut_ns, r->levels.max_stamp_ns } : (struct had){ 0 };
}

/* Whether the load has found a truncation. Of a kept map that is not known, only whether it has any news. */
static bool has_found_cut(const struct reader *r, const struct had *had)
{
	return r->levels.knows_cut ? r->levels.cut_ns != had->cut_ns :
				     r->levels.max_stamp_ns != had->max_stamp_ns;
}

/*
 * Look at the length behind a load. -EAGAIN: the file was truncated meanwhile. Then the maps may be of before
 * and the length of afterwards, or the other way: where a writer has not published the file's size yet, a
 * truncation makes the stub longer. What else the file has grown by is not in the maps: the next look has it.
 */
static int length_of_maps(struct inode *ino, int fd, const struct had *had)
{
	uint64_t before = ino->v.told_len;
	int ret = acquire_length(ino, fd);

	if (ret)
		return ret;
	if (ino->v.told_len < before) {
		view_forget_end(&ino->v);
		return -EAGAIN;
	}
	if (!view_is_cut(&ino->v) && ino->v.told_len > before) {
		if (has_found_cut(&ino->v.r, had))
			return -EAGAIN;
		ino->v.told_len = before;
	}
	inode_heed_cut(ino);
	return 0;
}

/* The header is not the one that the load went by. -EAGAIN: once more, with a length of before; -errno. */
static int follow_header(struct inode *ino, int fd, const struct stub *now)
{
	uint64_t before = ino->v.told_len;
	int ret;

	inode_follow(ino, now, NULL);
	ret = acquire_length(ino, fd);
	if (!ret && ino->v.told_len < before)
		view_forget_end(&ino->v);
	return ret ? ret : -EAGAIN;
}

/*
 * What to make of @ret of reader_load(); a line reports what is missing. Another process may have moved the
 * file into its body since this one read the header. Then the container was removed, all of it or a part, and
 * what was found there means nothing. -EAGAIN: the file was truncated meanwhile; what was found may be void,
 * or of another time than the length.
 */
static int judge(struct inode *ino, int ret, const struct had *had, struct stub_hosts *hosts)
{
	int fd = inode_any_fd(ino), ret2;
	struct stub now;

	ret2 = fd < 0 ? 0 : stub_hosts_read(fd, &now, hosts);
	if (fd >= 0 && !ret2 && now.in_body) {
		inode_follow(ino, &now, NULL);
		return acquire_length(ino, fd);
	}
	if (fd >= 0 && !ret2 && now.has_container &&
	    (now.placed != ino->v.stub.placed || now.spread != ino->v.stub.spread ||
	     now.generation_ns != ino->v.stub.generation_ns ||
	     now.cut_ns != ino->v.stub.cut_ns))
		return follow_header(ino, fd, &now);
	if (fd >= 0 && !ret2)
		ino->v.stub.moving = now.moving;
	if (!ret && fd >= 0 && !ret2)
		hosts_look(ino, fd, hosts);
	/* what was announced before this load watched for it may come after the look at the header */
	if (!ret && !ret2 && fd >= 0) {
		ret = length_of_maps(ino, fd, had);
		if (ret == -EAGAIN)
			return ret;
	}
	if (ret == -EIDRM && !ret2 && fd >= 0) {
		ret = inode_container_gone(ino, fd);
		return ret ? ret : -EAGAIN;
	}
	if (ret && *ino->v.r.lost)
		msg_error("%s/%s: the data log is not in any index: the index is lost", ino->c.dir,
			  ino->v.r.lost);
	return ret == -EIDRM ? -EIO : ret ? ret : ret2;
}

static int loaded(struct inode *ino, int ret, const struct had *had)
{
	struct stub_hosts *hosts = mem_alloc(sizeof(*hosts)); /* too large for a small stack */

	ret = hosts ? judge(ino, ret, had, hosts) : -ENOMEM;
	mem_free(hosts);
	return ret;
}

/*
 * Give the reader what the header says for the next load. A process that emptied the file may have been
 * killed before it notified readers. So this process notifies them, before it goes by the new generation
 * itself.
 */
static void heed_header(struct inode *ino)
{
	ino->v.r.seeks_cut = ino->v.stub.cut_ns;
	ino->v.r.emptied = stub_is_emptied(&ino->v.stub);
	if (ino->v.r.emptied && ino->v.told_cut_ns != ino->v.stub.cut_ns)
		notice_raise(&ino->c);
	ino->v.told_cut_ns = ino->v.stub.cut_ns;
}

/* Its own function: the name takes 4 KiB of the stack. */
static __attribute__((noinline, cold)) void tell_closed(struct inode *ino)
{
	char name[PATH_MAX];

	ino->c.told = true;
	stub_name(inode_any_fd(ino), name, sizeof(name));
	if (container_is_half_given(&ino->c))
		msg_error(
			"%s: is being given to user %u; if that chown was interrupted: as root, repeat it under libplfs, or run plfs repair",
			name, (unsigned)ino->c.uid);
	else
		msg_error(
			"%s: user %u has it open, and may not reach its logs in %s: if another user opened it, make it a plain file first (plfs flatten) or use a pipe; else set its mode again under libplfs",
			name, (unsigned)geteuid(), ino->c.dir);
}

int acquire_refused(struct inode *ino, int ret)
{
	if (unlikely(ret == -EACCES) && !ino->c.told && inode_any_fd(ino) >= 0)
		tell_closed(ino);
	return ret;
}

static int load(struct inode *ino)
{
	int ret = ino->writing ? writer_save(&ino->w) : 0;

	if (!ret)
		ret = inode_check_container(ino, CONTAINER_READ);
	if (ret)
		return ret;
	ino->v.r.may_make = false;
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		ino->v.r.may_make |= f->writable;
	ino->c.filled = ino->v.told_len > 0;
	do {
		struct had before = had(&ino->v.r);

		heed_header(ino);
		ret = loaded(ino, reader_load(&ino->v.r, ino->writing ? &ino->w : NULL,
					      ino->v.stub.generation_ns), &before);
	} while (ret == -EAGAIN);
	/* it has appeared since */
	if (!ret && !ino->v.stub.in_body && !container_is_checked(&ino->c, CONTAINER_READ)) {
		ret = inode_check_container(ino, CONTAINER_READ);
		if (ret)
			reader_release(&ino->v.r);
	}
	return ret;
}

int acquire_load(struct inode *ino) { return acquire_refused(ino, load(ino)); }

/* Have maps that cover what this process wrote. */
static int prepare(struct inode *ino)
{
	int ret = 0;

	if (!ino->v.stub.has_container || ino->v.stub.in_body)
		return 0;
	if (!ino->v.r.loaded)
		ret = acquire_load(ino);
	else if (ino->writing)
		ret = reader_add_own(&ino->v.r, &ino->w);
	return ret;
}

/*
 * Whether the watch tells all that others may have released since the container was listed, so that it need
 * not be listed again. The header is current.
 */
static bool is_watched(const struct inode *ino)
{
	const struct stub *s = &ino->v.stub;

	return !ino->m->store.remote && !s->placed && !s->spread && !s->moving && !s->cut_ns &&
	       reader_knows_writers(&ino->v.r);
}

/* Take what others wrote from the watch. 1: the maps are current; 0: the container must be listed; -errno. */
static int follow(struct inode *ino)
{
	struct reader *r = &ino->v.r;
	int ret;

	if (!is_watched(ino))
		return 0;
	if (watch_changed(&r->watch)) {
		ret = prepare(ino); /* what others wrote since goes on top of that */
		if (ret || !reader_follow(r))
			return ret;
	}
	return ino->v.told_len == ino->v.noted_len ||
	       ino->v.told_len <= max_u64(reader_end(r), ino->v.own_end);
}

/* What the container has, or @acquired: what others have released. */
static int list_again(struct inode *ino, bool acquired)
{
	struct timespec began = acquired ? entries_now() : (struct timespec){ 0 };
	struct had before = had(&ino->v.r);
	bool changed;
	int ret = loaded(ino, reader_reload(&ino->v.r, ino->writing ? &ino->w : NULL,
					    ino->v.stub.generation_ns, &changed), &before);

	if (ret == -EAGAIN)
		return acquire_load(ino);
	/* Else a notice came meanwhile. */
	if (!ret && acquired && !ino->v.acquired && !ino->v.stub.in_body && !ino->m->store.remote) {
		reader_note_writers(&ino->v.r, &began);
		ino->v.noted_len = ino->v.told_len;
	}
	return ret;
}

/*
 * Make the header's and the map's contents current. @acquired: others may have released something. Else there
 * is a reason to list the container.
 */
static int revalidate(struct inode *ino, int fd, const struct stat *st, bool acquired)
{
	uint64_t generation = ino->v.stub.generation_ns;
	bool was_cut = view_is_cut(&ino->v);
	int ret = st->st_size && fd >= 0 ? inode_read_header(ino, fd, st) : 0;

	if (!ret && ino->v.stub.in_body)
		return acquire_length(ino, fd); /* @st may be older than the move */
	/* The truncation that the last look met is over, and the file may have grown since. */
	if (!ret && was_cut && !view_is_cut(&ino->v))
		ret = acquire_length(ino, fd);
	if (ret || !ino->v.stub.has_container || !ino->v.r.loaded)
		return ret;
	if (ino->v.stub.generation_ns != generation)
		return acquire_load(ino);
	ret = ino->writing ? writer_save(&ino->w) : 0;
	if (ret)
		return ret;
	heed_header(ino);
	ret = acquired ? follow(ino) : 0;
	if (ret)
		return ret < 0 ? ret : 0;
	return list_again(ino, acquired);
}

/*
 * Whether a process may have written to a live file since that was read. On this host a few loads tell, as
 * long as all of them are watched.
 */
static bool may_have_grown(const struct inode *ino)
{
	const struct reader *r = &ino->v.r;

	if (!r->inputs.nr_lives)
		return false;
	return ino->m->store.remote || !r->watch.word || r->watch.nr_lives != r->inputs.nr_lives ||
	       watch_changed(&r->watch);
}

int acquire_look_again(struct inode *ino, int fd, const struct stat *st, bool reload)
{
	uint64_t len = view_told_len(&ino->v, st->st_size);
	bool acquired;
	int ret = 0;

	if (ino->v.stub.in_body) {
		ino->v.told_len = len;
		return 0;
	}
	reload |= inode_heed_cut(ino);
	/* who finishes one of a killed process tells nobody afterwards */
	reload |= ino->v.stub.cut_ns != 0;
	if (len < ino->v.told_len)
		view_forget_end(&ino->v);
	if (len != ino->v.told_len || may_have_grown(ino) || ino->v.acquired ||
	    (!ino->v.stub.has_container && st->st_size))
		reload = true;
	ino->v.told_len = len;
	if (reload) {
		acquired = ino->v.acquired;
		ino->v.acquired = false;
		ret = revalidate(ino, fd, st, acquired);
		ino->v.acquired |= ret != 0;
		if (view_is_cut(&ino->v))
			ino->v.told_len = ino->v.stub.cut_size;
	}
	/* until a truncation is finished the length is what it dictates, without what was written since */
	return !ret && (ino->v.end_lost || unlikely(view_is_cut(&ino->v))) ? prepare(ino) : ret;
}

/*
 * The map is of an empty container: a process is about to make the first log, and the word that announces it
 * may be made after that. A confirmed map, made without any input, is not: it is revoked first.
 */
static bool is_expecting(const struct inode *ino)
{
	const struct reader *r = &ino->v.r;

	return r->loaded && !r->inputs.nr_lives && !r->inputs.nr_indexes && !r->global.base &&
	       !r->watch.word && !ino->writing;
}

/*
 * This process only reads the file, and no process of this host had written it when the map was made: there
 * was no notice to watch, and no kept map.
 */
static bool is_untold(const struct inode *ino)
{
	const struct watch *w = &ino->v.r.watch;

	return unlikely(!w->word && !w->revoked && ino->v.r.loaded && !ino->m->store.remote);
}

/*
 * A notice that is there now means a change. A move into the body may have removed it, but that is in the
 * header.
 */
static bool has_begun(struct inode *ino)
{
	if (!is_untold(ino))
		return false;
	watch_word(&ino->v.r.watch, &ino->c, false);
	ino->v.acquired |= ino->v.r.watch.word != NULL;
	return ino->v.r.watch.word;
}

int acquire_size(struct inode *ino, int fd, const struct stat *st, uint64_t *size)
{
	int ret = acquire_look_again(ino, fd, st,
				     watch_changed(&ino->v.r.watch) || is_expecting(ino) ||
					     ino->v.stub.moving || has_begun(ino));

	if (!ret && !ino->v.r.loaded && ino->v.stub.has_container && !ino->v.stub.in_body)
		ret = acquire_load(ino);
	if (unlikely(inode_is_broken(ino))) {
		inode_mend(ino);
		ret = ino->v.stub.has_container && !ino->v.stub.in_body ? acquire_load(ino) : 0;
	}
	*size = view_known_size(&ino->v);
	return ret;
}

/*
 * Whether a process has changed the stub since it was opened. No word announces a change that came before
 * there was a map, and something to watch with it.
 */
static bool has_changed_before(const struct inode *ino, int fd)
{
	struct stat st;

	return sys.fstat(fd, &st) || stub_body_len(st.st_size) != ino->v.told_len ||
	       st.st_ctim.tv_sec != ino->v.first_ctim.tv_sec ||
	       st.st_ctim.tv_nsec != ino->v.first_ctim.tv_nsec;
}

/*
 * One look for a read of bytes below @stop: at the words of the watch alone, if nothing has changed.
 * *@looked: there was more to look at.
 */
static int look_for_read(struct inode *ino, int fd, uint64_t stop, bool *looked)
{
	bool first = ino->v.stub.has_container && !ino->v.r.loaded, stale;
	struct stat st;
	int ret = prepare(ino);

	*looked = first;
	if (ret || ino->v.stub.in_body)
		return ret;
	stale = reader_is_stale(&ino->v.r);
	*looked |= stale;
	if (stale && !ino->v.acquired && !inode_posix) {
		stale = !reader_follow(&ino->v.r);
		if (!ino->v.r.loaded)
			ret = acquire_load(ino);
		if (ret)
			return ret;
	}
	stale |= is_expecting(ino) || (first && has_changed_before(ino, fd)) || has_begun(ino);
	if (stop <= view_known_size(&ino->v) && !ino->v.acquired && !inode_posix && !stale)
		return 0;
	*looked = true;
	if (sys.fstat(fd, &st))
		return -errno;
	ret = acquire_look_again(ino, fd, &st, inode_posix || stale);
	return ret ? ret : prepare(ino);
}

/*
 * A look takes the live files one after the other. If one process writes to a file that it has taken, and
 * then another to one that it has not, it has the second write and lacks the first, and would show a hole. So
 * this looks until nothing has changed meanwhile, or often enough. The size is that of the look before the
 * last then: what was written before that is all there.
 */
#define LOOKS_MAX 3

static int look_till_still(struct inode *ino, int fd, uint64_t stop, uint64_t *size)
{
	bool looked = true;
	int ret = 0;

	for (int i = 1; i < LOOKS_MAX && looked && reader_is_stale(&ino->v.r) && !ret; i++) {
		ret = look_for_read(ino, fd, stop, &looked);
		*size = min_u64(*size, view_known_size(&ino->v));
	}
	return ret;
}

ssize_t acquire_readable(struct inode *ino, int fd, size_t len, uint64_t logical_off)
{
	bool looked;
	uint64_t size;
	int ret;

	if (ino->v.stub.in_body)
		return 0;
	ret = ino->v.stub.has_container && (unlikely(ino->v.stub.moving) || is_untold(ino)) ?
		      inode_look_for_move(ino, fd) :
		      0;
	if (!ret)
		ret = look_for_read(ino, fd, logical_off + len, &looked);
	if (ret)
		return ret;
	size = view_known_size(&ino->v);
	if (unlikely(looked))
		ret = look_till_still(ino, fd, logical_off + len, &size);
	if (ret || ino->v.stub.in_body)
		return ret;
	return logical_off >= size ? 0 : (ssize_t)min_u64(len, size - logical_off);
}

bool acquire_body_is_doubtful(struct inode *ino)
{
	return unlikely(ino->v.r.took_body) && (reader_body_is_doubtful(&ino->v.r) || has_begun(ino));
}
