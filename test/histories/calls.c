/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The alphabet: the calls' words and their text in C, and a model of names and descriptors that says which
 * calls can be tried. No file is touched here.
 */
#define _GNU_SOURCE
#include "histories.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *word, *text;
} calls[NR_ALL_CALLS] = {
	[OPEN] = { "open", "fd = open(f, O_RDWR | O_CREAT, 0644)" },
	[RDONLY] = { "rdonly", "fd = open(f, O_RDONLY)" },
	[APPEND] = { "append", "fd = open(f, O_RDWR | O_APPEND | O_CREAT, 0644)" },
	[TRUNC] = { "trunc", "fd = open(f, O_RDWR | O_TRUNC | O_CREAT, 0644)" },
	[EXCL] = { "excl", "fd = open(f, O_RDWR | O_CREAT | O_EXCL, 0644)" },
	[PREAD] = { "pread", "pread(fd, buf, 65536, 0)" },
	[W0] = { "w0", "pwrite(fd, \"%c...\", 100, 0)" },
	[W50] = { "w50", "pwrite(fd, \"%c...\", 100, 50)" },
	[WFAR] = { "wfar", "pwrite(fd, \"%c...\", 100, 300)" },
	[READ] = { "read", "read(fd, buf, 60)" },
	[WRITE] = { "write", "write(fd, \"%c...\", 60)" },
	[CUT0] = { "cut0", "truncate(f, 0)" },
	[CUT70] = { "cut70", "truncate(f, 70)" },
	[FCUT30] = { "fcut30", "ftruncate(fd, 30)" },
	[FCUT200] = { "fcut200", "ftruncate(fd, 200)" },
	[FSTAT] = { "fstat", "fstat(fd, &st)" },
	[STAT] = { "stat", "stat(f, &st)" },
	[END] = { "end", "lseek(fd, 0, SEEK_END)" },
	[STORE] = { "store",
		    "memset(map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) + 20, '%c', 10) /* or into the map that there is */" },
	[LOAD] = { "load", "memcpy(buf, map, 100)" },
	[MSYNC] = { "msync", "msync(map, 4096, MS_SYNC)" },
	[FSYNC] = { "fsync", "fsync(fd)" },
	[LOCK] = { "lock", "flock(fd, LOCK_EX | LOCK_NB)" },
	[UNLOCK] = { "unlock", "flock(fd, LOCK_UN)" },
	[FORK] = { "fork", "fork() /* the child goes on, the parent waits for its end */" },
	[EXEC] = { "exec", "execv(...) /* the new image goes on with the descriptors */" },
	[DUP] = { "dup", "fd = dup(fd)" },
	[UNLINK] = { "unlink", "unlink(f)" },
	[OVER] = { "over",
		   "h = open(\"h\", O_RDWR | O_CREAT | O_EXCL, 0644), write(h, \"%c...\", 40), close(h), rename(\"h\", f)" },
	[AWAY] = { "away", "rename(f, g)" },
	[LINK] = { "link", "link(f, g)" },
	[SWAP] = { "swap", "fd = the one opened before, until this is done again" },
	[CLOSE] = { "close", "close(fd)" },
	[EXIT] = { "exit", "exit(0)" },
	[KILL] = { "kill", "kill(getpid(), SIGKILL)" },
	[PUNCH] = { "punch", "fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20, 60)" },
	[ALLOC] = { "alloc", "fallocate(fd, 0, 80, 200)" },
	[COPY] = { "copy", "copy_file_range(fd, (off_t[]){ 0 }, fd, (off_t[]){ 120 }, 60, 0)" },
	[BOTH] = { "both", "fork() /* the child goes on as R, and the parent too */" },
	[FLATTEN] = { "flatten", "system(\"plfs flatten f\") /* on a plain directory nothing */" },
	[COMPACT] = { "compact", "system(\"plfs compact f\") /* on a plain directory nothing */" },
	[REPAIR] = { "repair", "system(\"plfs repair f\") /* on a plain directory nothing */" },
	[DRAIN] = { "drain", "system(\"plfs drain --to=home f\") /* on a plain directory nothing */" },
	[COLLECT] = { "collect", "system(\"plfs gc -a 0 .\") /* on a plain directory nothing */" },
	[STAT_G] = { "statg", "stat(g, &st)" },
	[LOOK] = { "look", "fd = open(f, O_RDONLY), pread(fd, buf, 65536, 0), close(fd)" },
	[LOOK_G] = { "lookg", "fd = open(g, O_RDONLY), pread(fd, buf, 65536, 0), close(fd)" },
	[DONE] = { "done", "close all" },
	[MANY] = { "many", "/* a thousand processes more have closed f, for all that the library knows */" },
	[REMOVE] = { "remove", "unlink(f), unlink(g)" },
};

static const char *const commands[NR_ALL_CALLS][7] = {
	[FLATTEN] = { "flatten", "-q", "f" },
	[COMPACT] = { "compact", "-q", "f" },
	[REPAIR] = { "repair", "-q", "-j", "1", "f" },
	[DRAIN] = { "drain", "-q", "--to=home", "f" },
	[COLLECT] = { "gc", "-q", "-j", "1", "-a0", "." },
};

const char *const *call_command(enum call call)
{
	return commands[call][0] ? commands[call] : NULL;
}

const char *call_word(enum call call)
{
	return calls[call].word;
}

void call_text(char *buf, size_t size, struct step step, int i)
{
	snprintf(buf, size, calls[step.call].text, 'A' + i % 58);
}

bool call_looks(enum call call)
{
	switch (call) {
	case PREAD:
	case FSTAT:
	case STAT:
	case END:
	case READ:
	case LOAD:
	case STAT_G:
	case LOOK:
	case LOOK_G:
		return true;
	default:
		return false;
	}
}

static bool opened(struct scene *sc, int slot, bool writable)
{
	int d = sc->depth[slot], n = sc->at[slot][d].nr_fds;

	if (n == FDS_MAX)
		return false;
	sc->at[slot][d].writable[n] = writable;
	sc->at[slot][d].nr_fds = n + 1;
	return true;
}

static bool scene_names(struct scene *sc, enum call call)
{
	if (call != OVER && !sc->f)
		return false;
	switch (call) {
	case UNLINK:
		sc->f = false;
		return true;
	case OVER:
		sc->f = true;
		return true;
	case AWAY:
		sc->f = false;
		sc->g = true;
		return true;
	default:
		if (sc->g)
			return false;
		sc->g = true;
		return true;
	}
}

/* What needs no descriptor. */
static bool scene_open(struct scene *sc, struct step st)
{
	switch (st.call) {
	case RDONLY:
		return !sc->f || opened(sc, st.slot, false);
	case EXCL:
		if (sc->f)
			return true;
		/* fall through */
	default:
		if (!opened(sc, st.slot, true))
			return false;
		sc->f = true;
		return true;
	}
}

static bool scene_process(struct scene *sc, struct step st)
{
	int d = sc->depth[st.slot];

	switch (st.call) {
	case FORK:
		if (d == DEPTH_MAX)
			return false;
		sc->at[st.slot][d + 1] = sc->at[st.slot][d];
		sc->depth[st.slot] = d + 1;
		return true;
	case BOTH: /* R has nothing */
		if (st.slot == R || sc->depth[R] || sc->at[R][0].nr_fds || sc->at[R][0].map)
			return false;
		sc->at[R][0] = sc->at[st.slot][d];
		return true;
	case EXEC:
		sc->at[st.slot][d].map = false;
		return true;
	default:
		memset(&sc->at[st.slot][d], 0, sizeof(sc->at[st.slot][d]));
		if (d)
			sc->depth[st.slot] = d - 1;
		return true;
	}
}

/* With a descriptor: the newest counts. */
static bool scene_fd(struct scene *sc, struct step st)
{
	int d = sc->depth[st.slot], n = sc->at[st.slot][d].nr_fds;
	bool writable = n && sc->at[st.slot][d].writable[n - 1];

	if (st.call == LOAD || st.call == MSYNC)
		return sc->at[st.slot][d].map;
	if (st.call == STORE && sc->at[st.slot][d].map)
		return true;
	if (!n)
		return (st.call == EXIT || st.call == KILL) && d && scene_process(sc, st);
	switch (st.call) {
	case STORE:
		sc->at[st.slot][d].map |= writable;
		return true;
	case W50: case WFAR: case WRITE: case FCUT30: case FCUT200: case PUNCH: case ALLOC: case COPY:
		return writable;
	case LOCK:
		sc->at[st.slot][d].locked = true;
		return true;
	case UNLOCK:
		return sc->at[st.slot][d].locked;
	case DUP:
		return opened(sc, st.slot, writable);
	case SWAP:
		if (n < 2)
			return false;
		sc->at[st.slot][d].writable[n - 1] = sc->at[st.slot][d].writable[n - 2];
		sc->at[st.slot][d].writable[n - 2] = writable;
		return true;
	case CLOSE:
		sc->at[st.slot][d].nr_fds--;
		return true;
	case FORK: case EXEC: case EXIT: case KILL: case BOTH:
		return scene_process(sc, st);
	default:
		return true;
	}
}

bool scene_step(struct scene *sc, struct step st)
{
	switch (st.call) {
	case OPEN: case RDONLY: case APPEND: case TRUNC: case EXCL:
		return scene_open(sc, st);
	case CUT0: case CUT70: case FLATTEN: case COMPACT: case REPAIR: case DRAIN:
		return sc->f;
	case UNLINK: case OVER: case AWAY: case LINK:
		return scene_names(sc, st.call);
	case STAT: case STAT_G: case LOOK: case LOOK_G: case DONE: case REMOVE: case MANY: case COLLECT:
		return true;
	default:
		return scene_fd(sc, st);
	}
}

void history_text(char *buf, size_t size, const struct history *h)
{
	size_t len = 0;

	buf[0] = 0;
	for (int i = 0; i < h->nr && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%c.%s", i ? " " : "",
					"PQRS"[h->steps[i].slot], calls[h->steps[i].call].word);
}

static const char slots[] = "PQRS";

static int step_parse(struct history *h, const char *word, size_t len)
{
	const char *slot = memchr(slots, word[0], 4);

	if (!slot || len < 3 || word[1] != '.')
		return -EINVAL;
	for (int c = 0; c < NR_ALL_CALLS; c++)
		if (strlen(calls[c].word) == len - 2 && !memcmp(calls[c].word, word + 2, len - 2)) {
			history_add(h, (enum slot)(slot - slots), (enum call)c);
			return 0;
		}
	return -EINVAL;
}

int history_parse(struct history *h, const char *text)
{
	int ret = 0;

	memset(h, 0, sizeof(*h));
	while (!ret && *(text += strspn(text, " "))) {
		size_t len = strcspn(text, " ");

		ret = step_parse(h, text, len);
		text += len;
	}
	return ret;
}

void history_add_looks(struct history *h, const struct scene *scene)
{
	for (int s = P; s <= R; s++)
		if (scene->at[s][scene->depth[s]].nr_fds) {
			history_add(h, (enum slot)s, FSTAT);
			history_add(h, (enum slot)s, PREAD);
		}
	history_add(h, S, STAT);
	history_add(h, S, LOOK);
	history_add(h, S, LOOK_G);
}
