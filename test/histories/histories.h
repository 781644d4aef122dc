/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All short histories of a few processes on one file: what a step is, what it comes to, and who plays which
 * part. The driver (drive.c) runs without the library. Servers (serve.c) carry out steps on a plain
 * directory, or on mapped ones under the library; the same program is both. Nothing here judges: judge.c
 * does.
 */
#ifndef HISTORIES_H
#define HISTORIES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * P and Q make the histories, R those of three processes; S only looks, with a process that has nothing of
 * the file yet.
 */
enum slot { P, Q, R, S, NR_SLOTS };

enum call {
	OPEN, RDONLY, APPEND, TRUNC, EXCL,
	PREAD, W0, W50, WFAR, READ, WRITE,
	CUT0, CUT70, FCUT30, FCUT200,
	FSTAT, STAT, END,
	STORE, LOAD, MSYNC, FSYNC, LOCK, UNLOCK,
	FORK, EXEC, DUP,
	UNLINK, OVER, AWAY, LINK,
	SWAP, CLOSE, EXIT, KILL,
	PUNCH, ALLOC, COPY, BOTH,
	FLATTEN, COMPACT, REPAIR, DRAIN, COLLECT,
	NR_CALLS, /* those from here on are the checker's own */
	STAT_G = NR_CALLS, LOOK, LOOK_G, DONE, REMOVE, MANY, NR_ALL_CALLS
};

struct step {
	uint8_t slot, call;
};

enum {
	STEPS_MAX = 64,
	RUNS_MAX = 14,
	DEPTH_MAX = 3,
	FDS_MAX = 3,
	NO_FD = 1000,
	NO_MAP,
	NO_ROOM,
	BUS,
	HANG,
	GONE
};

/*
 * What a step came to. Bytes that were read are runs of one value each, since each call writes a value of its
 * own.
 */
struct outcome {
	int64_t ret;    /* a count, a size; 0 where it only says that all went well */
	int32_t err;    /* errno, or NO_FD..GONE */
	uint32_t extra; /* mode and links of a file */
	uint32_t nr_runs;
	struct byte_run {
		uint32_t len;
		uint8_t byte;
	} runs[RUNS_MAX];
};

/* What a process has; in shared memory, so that it outlives an exec. */
struct process {
	pid_t pid;
	uint32_t word; /* 1: go on */
	int nr_fds, fds[FDS_MAX], step;
	unsigned char *map;
};

/* A process that has forked waits below its child, until that has ended. */
struct part {
	int depth;
	struct process stack[DEPTH_MAX + 1];
};

/* Shared by one driver and the servers of one environment. */
struct board {
	char f[256], g[256], h[256];
	uint32_t driver_word, zygote_word, fork_word;
	int zygote_slot, nr_steps, at;
	pid_t zygote;
	bool begun[STEPS_MAX], done[STEPS_MAX]; /* the system calls between the two are counted */
	bool beside; /* two are: each tells the driver when it is done, and passes nothing on */
	bool ended[STEPS_MAX]; /* of two beside each other: and the driver is told */
	struct part parts[NR_SLOTS];
	struct step steps[STEPS_MAX];
	struct outcome outcomes[STEPS_MAX];
};

struct history {
	int nr, nr_prefix; /* steps in all; those that make the state */
	struct step steps[STEPS_MAX];
};

enum { BOARD_FD = 200 };

void word_wait(uint32_t *word);
bool word_wait_for(uint32_t *word, int timeout_ms); /* false: not in time */
void word_wake(uint32_t *word);

/* serve.c: for good. @depth and @slot of an image that goes on after an exec; -1: the zygote. */
_Noreturn void serve(struct board *board, int slot, int depth);

/* Tell the library that many logs of each file in the backend @dir were closed. 0: it was told. */
int count_more_in(const char *dir);

/* ---- calls.c: words, text, and what is possible when ---- */

struct scene {
	bool f, g; /* names that there are */
	int depth[NR_SLOTS];
	struct {
		int nr_fds;
		bool writable[FDS_MAX], map, locked;
	} at[NR_SLOTS][DEPTH_MAX + 1];
	bool acted[NR_SLOTS];
};

const char *call_word(enum call call);
/* The step as C, of the @i th step of a history. */
void call_text(char *buf, size_t size, struct step step, int i);
bool call_looks(enum call call); /* changes nothing that another process could see on a plain file */
/* The arguments of the plfs command of a step, "f" for the file, "." for its directory; NULL: it is none. */
const char *const *call_command(enum call call);
/* The step is carried out in @scene. false: nothing could come of it, and @scene is as it was. */
bool scene_step(struct scene *scene, struct step step);
void history_text(char *buf, size_t size, const struct history *h);
/* -EINVAL: not a history. */
int history_parse(struct history *h, const char *text);
static inline void history_add(struct history *h, enum slot slot, enum call call)
{
	if (h->nr < STEPS_MAX)
		h->steps[h->nr++] = (struct step){ slot, call };
}
/* Everybody who is in @scene, and one who is not, looks at the file. */
void history_add_looks(struct history *h, const struct scene *scene);

/* ---- drive.c, walk.c: a history under one environment ---- */

struct variant {
	const char *name, *options;
	bool preload, inplace, posix;
	bool several; /* two backends */
};

extern const struct variant variants[];
extern const int nr_variants; /* the first is the plain directory */

/* Where all directories and backends of this driver lie, and which library. */
void drive_begin(const char *dir, const char *preload, int cpu);
/* Outcomes of all steps. false: somebody did not come back; the outcome of the step says HANG. */
bool drive(const struct variant *v, const struct history *h, struct outcome *out);
/*
 * Whether a server has written to its standard error since this was asked last, as the library does when
 * something is wrong; the first line of it.
 */
bool drive_said(const struct variant *v, char *line, size_t size);
void drive_anew(void); /* all servers are replaced */
void drive_end(void);

/* As drive(), and who does step @last is killed at its @nr th system call. *done: it had fewer. */
bool drive_and_kill(const struct variant *v, const struct history *h, int last, int nr, struct outcome *out,
		    bool *done);
/*
 * As drive(), and the next step is carried out while who does step @last stands before its @nr th system
 * call; or behind it, if that waits for something.
 */
bool drive_beside(const struct variant *v, const struct history *h, int last, int nr, struct outcome *out,
		  bool *done);
/*
 * How long the first stands there, as a process does whose processor is taken away, if the other waits for
 * it; a moment without this.
 */
void drive_stall(int ms);
/*
 * As drive_beside(), but the next step is stopped too, before its @nr_next th system call, until the first
 * has ended. *done_next: it had fewer.
 */
bool drive_crossed(const struct variant *v, const struct history *h, int last, int nr, int nr_next,
		   struct outcome *out, bool *done, bool *done_next);

/* ---- judge.c ---- */

/* What differs by a promise: each is an item of plfs-consistency(7), in whose words it is told (judge.c). */
enum allowance { A_PART_OF_A_WRITE, NR_ALLOWANCES };

struct tally {
	unsigned long possible, histories, runs, kills, differences, allowed[NR_ALLOWANCES], explained,
		not_again;
};

void judge_begin(void);     /* before the drivers are forked: what they find is shared */
void judge(const struct variant *v, const struct history *h, const struct outcome *want,
	   const struct outcome *got);
bool outcome_equal(const struct outcome *a, const struct outcome *b);
void outcome_text(char *buf, size_t size, const struct outcome *o);
void allow(enum allowance allowance); /* counts it */
struct tally *tally(void);  /* shared by all drivers; adding is atomic */
/* What was found, at most @examples of it; how many differences. */
unsigned long judge_report(int examples);

/*
 * What happened at the @nr th system call of the step @last: it was killed; or the next step was carried out
 * there; or that was stopped itself before its @nr_next th call, until the first had ended.
 */
struct inner {
	enum { KILLED, BESIDE, CROSSED } what;
	int last, nr, nr_next;
};

/* At the step @at: neither @before nor @after. */
void inner_found(const struct variant *v, const struct history *h, struct inner in, int at,
		 const struct outcome *before, const struct outcome *after, const struct outcome *got);

/* killed.c: the same with kills. The last step of @h is killed at each of its system calls,. */
void killed_try(const struct variant *v, const struct history *h);

/*
 * beside.c: the last step of @h is carried out in the middle of the one before, at each @stride th of its
 * system calls.
 */
void beside_try(const struct variant *v, const struct history *h, int stride);

/*
 * The same, but both stop: the first before each of its system calls, and then the last before each of its
 * own, until the first has ended. So many are tried as @sample says: one of @sample pairs of calls.
 */
void crossed_try(const struct variant *v, const struct history *h, unsigned sample);

#endif
