/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs run --stats: the stats file is named before the command runs, and completed behind it.
 */
#include "run_stats.h"

#include "options.h"
#include "tool.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

bool run_stats_set(const char *file)
{
	char cwd[PATH_MAX], path[2 * PATH_MAX], *absolute;

	if (!getcwd(cwd, sizeof(cwd))) {
		tool_error("the working directory: %s", strerror(errno));
		return false;
	}
	if (file) {
		absolute = plfs_path_absolute(file);
		snprintf(path, sizeof(path), "%s", absolute ? absolute : file);
		mem_free(absolute);
	} else {
		plfs_stats_default(cwd, path);
	}
	return !setenv("PLFS_STATS", path, 1);
}

static volatile pid_t child;

/* What is meant for the command. From a terminal it has got the signal itself. */
static void pass_on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code <= 0 && child > 0)
		kill(child, sig);
}

static void pass_on_signals(void)
{
	static const int sigs[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT };
	struct sigaction act = { .sa_sigaction = pass_on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };

	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		sigaction(sigs[i], &act, NULL);
}

/* The stats file below a prefix is a plain file on the backend. */
static const char *stats_path(char *path)
{
	struct plfs_mount *m;
	const char *file = getenv("PLFS_STATS");

	return plfs_path_map(file, path, &m) == 1 ? path : file;
}

static void finish_stats(void)
{
	char path[PATH_MAX];
	const char *file = getenv("PLFS_STATS");
	struct plfs_joined j;
	int ret = plfs_stats_join(stats_path(path), &j);
	struct stat st;

	if (ret)
		tool_error("%s: %s: what was counted is in %s.parts, from where plfs stats %s takes it", file,
			   strerror(-ret), file, file);
	else if (j.alive)
		tool_error("%s: %u processes of the job still run: plfs stats %s takes in what they count later",
			   file, j.alive, file);
	else if (j.newer)
		tool_error("%s.parts: %u processes ran another version of the library: plfs stats of that version takes what they counted",
			   file, j.newer);
	else if (!opt.quiet && !stat(stats_path(path), &st))
		tool_error("statistics are in %s: plfs stats shows them", file);
}

void run_stats_and_finish(void)
{
	int status;

	if (plfs_job_rank() >= 0)
		return;
	child = fork();
	if (child <= 0)
		return;
	pass_on_signals();
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			exit(TOOL_FAILED);
	finish_stats();
	if (WIFSIGNALED(status)) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_FAILED);
}
