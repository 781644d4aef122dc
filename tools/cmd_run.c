/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs run: set the environment that puts the library in front of a command, and let the launchers of MPI jobs
 * hand it to ranks on other nodes, then become the command.
 */
#include "tool.h"

#include <getopt.h>
#include <glob.h>
#include <stdlib.h>

#define LIBRARY "libplfs.so"

static const char HELP[] =
	"usage: plfs run [-m MAP] [-d CATEGORIES] [--] COMMAND [ARGUMENT...]\n"
	"\n"
	"Run COMMAND with its files below the mapping kept by libplfs.\n"
	"\n"
	"  -m, --map=MAP           the mapping, as in PLFS_MAP: PREFIX=BACKEND or DIRECTORY, joined by \":\"\n"
	"  -d, --debug=CATEGORIES  what to report, as in PLFS_DEBUG: CATEGORY[,CATEGORY...][@FILE]\n"
	"  -h, --help\n"
	"\n"
	"The exit status is COMMAND's; 126 or 127 if it cannot be run, 78 if the settings are bad.\n";

/* What a process of the job needs, wherever it runs. */
static const char *const SETTINGS[] = { "LD_PRELOAD", "PLFS_MAP", "PLFSRC", "PLFS_DEBUG", "PLFS_CONSISTENCY", "PLFS_VERIFY" };

/* ---- the library ---- */

static bool take_first(const char *pattern, char *path)
{
	bool found = false;
	glob_t g;

	if (!glob(pattern, 0, NULL, &g))
		found = realpath(g.gl_pathv[0], path) != NULL;
	globfree(&g);
	return found;
}

/* The library beside the command, as built, or where make install puts it from there. */
static bool find_library(char *path)
{
	static const char *const places[] = { "", "../lib/", "../lib64/", "../lib/*/" };
	char self[PATH_MAX], pattern[PATH_MAX + 32], *slash;

	if (!realpath("/proc/self/exe", self))
		return false;
	slash = strrchr(self, '/');
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(pattern, sizeof(pattern), "%.*s/%s" LIBRARY, (int)(slash - self), self, places[i]);
		if (take_first(pattern, path))
			return true;
	}
	return false;
}

/* LD_PRELOAD with @library at its end: what others put there comes first, as they wanted it. */
static bool set_preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *list = strdup(old ? old : ""), *save, *value;
	bool ok;

	if (!list)
		return false;
	value = calloc(1, strlen(list) + strlen(library) + 3);
	if (!value) {
		free(list);
		return false;
	}
	for (char *p = strtok_r(list, ": ", &save); p; p = strtok_r(NULL, ": ", &save)) {
		const char *slash = strrchr(p, '/');

		if (!strcmp(slash ? slash + 1 : p, LIBRARY))
			continue;
		strcat(strcat(value, p), ":");
	}
	strcat(value, library);
	ok = !setenv("LD_PRELOAD", value, 1);
	free(value);
	free(list);
	return ok;
}

/* ---- other nodes ---- */

/* Whether @token, NAME or NAME=VALUE, is of a setting. */
static bool is_of_setting(const char *token, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++) {
		size_t n = strlen(SETTINGS[i]);

		if (len >= n && !memcmp(token, SETTINGS[i], n) && (len == n || token[n] == '='))
			return true;
	}
	return false;
}

/*
 * Put the settings that are there into the list in the variable @var, in the place of what it has of them. Of a name whose value has
 * a "=" Open MPI 4 makes another name and value, and of NAME=VALUE the right ones, if no ";" is in it.
 */
static void add_to_list(const char *var)
{
	const char *old = getenv(var);
	char *list = NULL;
	size_t list_len;
	FILE *out = open_memstream(&list, &list_len);

	if (!out)
		return;
	for (; old && *old; old += strspn(old, ";")) {
		size_t len = strcspn(old, ";");

		if (len && !is_of_setting(old, len))
			fprintf(out, "%.*s;", (int)len, old);
		old += len;
	}
	for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++) {
		const char *value = getenv(SETTINGS[i]);

		if (value)
			fprintf(out, "%s%s%s;", SETTINGS[i], strchr(value, '=') ? "=" : "", strchr(value, '=') ? value : "");
	}
	if (!fclose(out) && list_len) {
		list[list_len - 1] = '\0';
		setenv(var, list, 1);
	}
	free(list);
}

/*
 * Open MPI's mpirun hands over what mca_base_env_list names, and refuses to start when that and its option -x are
 * used together, or that and the list meant for its parameter files. The latter goes with -x: take it, unless
 * somebody has set the first. MPICH's launcher and Slurm's srun hand over everything by themselves.
 */
static void pass_on(char **argv)
{
	for (char **arg = argv; *arg; arg++)
		if (!strcmp(*arg, "mca_base_env_list")) /* --mca mca_base_env_list: theirs to complete */
			return;
	add_to_list(getenv("OMPI_MCA_mca_base_env_list") ? "OMPI_MCA_mca_base_env_list"
							  : "OMPI_MCA_mca_base_env_list_internal");
}

/* Whether the command is found below a mapping, where only a program with the library in front can run it. */
static bool is_mapped(const char *command)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];
	struct plfs_mount *m = NULL;

	if (strchr(command, '/'))
		return target_find(command, path, &m) && m;
	while (dirs && *dirs && !m) {
		size_t len = strcspn(dirs, ":");

		if (*dirs == '/' && snprintf(path, sizeof(path), "%.*s/%s", (int)len, dirs, command) < (int)sizeof(path)) {
			char out[PATH_MAX];

			if (plfs_path_map(path, out, &m) != 1)
				m = NULL;
		}
		dirs += len + (dirs[len] == ':');
	}
	return m;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "map", required_argument, NULL, 'm' },
		{ "debug", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	char library[PATH_MAX];
	char **command;
	int c;

	tool_leave_library();
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+m:d:h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			setenv("PLFS_MAP", optarg, 1);
			break;
		case 'd':
			setenv("PLFS_DEBUG", optarg, 1);
			break;
		default:
			return tool_other_option("run", c, argv, HELP);
		}
	}
	if (optind == argc)
		return tool_misuse("run", "no command given");
	if (!is_set("PLFS_MAP") && !is_set("PLFSRC")) {
		tool_error("no mapping: give -m PREFIX=BACKEND or set PLFS_MAP");
		return TOOL_SETTINGS;
	}
	if (!find_library(library) || strpbrk(library, ": ")) {
		tool_error(LIBRARY " is %s", find_library(library) ?
			   "in a directory with a space or colon in its name, which LD_PRELOAD cannot express" :
			   "neither beside this command nor in the lib directory next to its directory");
		return TOOL_FAILED;
	}
	plfs_setup(NULL); /* bad settings end here, once, and not in every process of the job */
	if (!set_preload(library)) {
		tool_error("%s", strerror(ENOMEM));
		return TOOL_FAILED;
	}
	command = argv + optind;
	pass_on(command);
	if (is_mapped(*command)) {
		char *shell[argc - optind + 4];

		memcpy(shell, (char *[]){ "sh", "-c", "exec \"$0\" \"$@\"" }, 3 * sizeof(*shell));
		memcpy(shell + 3, command, (size_t)(argc - optind + 1) * sizeof(*shell));
		execv("/bin/sh", shell);
	}
	execvp(*command, command);
	c = errno;
	tool_error("%s: %s", *command, strerror(c));
	return c == ENOENT ? 127 : 126;
}
