/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs run: put the library in front of a command by its environment, let the launchers of MPI jobs hand that
 * to ranks on other nodes, then execute the command.
 */
#include "options.h"
#include "run_stats.h"
#include "run_which.h"
#include "tool.h"

#include <glob.h>
#include <stdlib.h>

#define LIBRARY "libplfs.so"

/* Every process of the job needs these variables. */
static const char *const SETTINGS[] = { "LD_PRELOAD", "PLFS_MAP",	  "PLFSRC",
					"PLFS_DEBUG", "PLFS_CONSISTENCY", "PLFS_VERIFY",
					"PLFS_STATS", "PLFS_TRACE",	 "PLFS_HINTS" };

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

/* Find the library beside the command, as built, or in the lib directory of an installation. */
static bool find_library(char *path)
{
	static const char *const places[] = { "", "../lib/", "../lib64/", "../lib/*/", "../lib64/*/" };
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

/* Add @library to the end of LD_PRELOAD: other libraries stay in front. */
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

/* Whether @token, NAME or NAME=VALUE, is one of the SETTINGS. */
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
 * Put the settings of this environment into the list in the variable @var, instead of those in it. Open MPI 4
 * splits the value of a bare NAME at its "=", if it has one; NAME=VALUE works, unless it has a ";".
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
			fprintf(out, "%s%s%s;", SETTINGS[i], strchr(value, '=') ? "=" : "",
				strchr(value, '=') ? value : "");
	}
	if (!fclose(out) && list_len) {
		list[list_len - 1] = '\0';
		setenv(var, list, 1);
	}
	free(list);
}

static bool is_nothing(const char *token, size_t len)
{
	static const char *const words[] = { "NONE", "NIL" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i]) == len && !strncasecmp(token, words[i], len))
			return true;
	return false;
}

/*
 * Slurm's srun passes on what SLURM_EXPORT_ENV names; sbatch --export=NONE sets it to that, for the whole
 * job. A name alone stands for the variable as it is.
 */
static void add_to_slurm(void)
{
	const char *old = getenv("SLURM_EXPORT_ENV");
	char *list = NULL;
	size_t list_len;
	FILE *out;

	if (!old || !*old || (!strncasecmp(old, "ALL", 3) && (!old[3] || old[3] == ',')))
		return;
	out = open_memstream(&list, &list_len);
	if (!out)
		return;
	for (size_t len; *old; old += len + (old[len] == ',')) {
		len = strcspn(old, ",");
		if (len && !is_of_setting(old, len) && !is_nothing(old, len))
			fprintf(out, "%.*s,", (int)len, old);
	}
	for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++)
		if (getenv(SETTINGS[i]))
			fprintf(out, "%s,", SETTINGS[i]);
	if (!fclose(out) && list_len) {
		list[list_len - 1] = '\0';
		setenv("SLURM_EXPORT_ENV", list, 1);
	}
	free(list);
}

/*
 * Open MPI's mpirun passes on the variables that mca_base_env_list names. It refuses to start if that list is
 * used together with its option -x, or with the list meant for its parameter files. The latter list works
 * with -x: use it, unless the environment sets the first. Open MPI 5 does not know that one; its PRRTE passes
 * on the whole environment when it is asked to, also beside -x. MPICH's launcher passes on everything by
 * itself.
 */
static void pass_on(char **argv)
{
	setenv("PRTE_MCA_prte_fwd_environment", "1", 0);
	add_to_slurm();
	for (char **arg = argv; *arg; arg++)
		if (!strcmp(*arg, "mca_base_env_list")) /* --mca mca_base_env_list: the user completes it */
			return;
	add_to_list(getenv("OMPI_MCA_mca_base_env_list") ? "OMPI_MCA_mca_base_env_list"
							  : "OMPI_MCA_mca_base_env_list_internal");
}

/* Whether the command lies below a mapping: then only a program under the library can execute it. */
static bool is_mapped(const char *command)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];
	struct plfs_mount *m = NULL;

	if (strchr(command, '/'))
		return target_find(command, path, &m) && m;
	while (dirs && *dirs && !m) {
		size_t len = strcspn(dirs, ":");

		if (*dirs == '/' &&
		    snprintf(path, sizeof(path), "%.*s/%s", (int)len, dirs, command) < (int)sizeof(path)) {
			char out[PATH_MAX];

			if (plfs_path_map(path, out, &m) != 1)
				m = NULL;
		}
		dirs += len + (dirs[len] == ':');
	}
	return m;
}

/* The file that execvp() runs: the first in PATH that may be executed, into @path (PATH_MAX). */
static bool find_command(const char *command, char *path)
{
	const char *dirs = getenv("PATH");
	struct stat st;

	if (strchr(command, '/'))
		return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX;
	for (dirs = dirs ? dirs : "/bin:/usr/bin";; dirs++) {
		size_t len = strcspn(dirs, ":");

		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, dirs, len ? "/" : "", command) <
			    PATH_MAX &&
		    !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
			return true;
		dirs += len;
		if (!*dirs)
			return false;
	}
}

/* It would see stubs, without a word. */
static void warn_of_unreached(const char *command)
{
	static const char *const whys[] = {
		[REACH_STATIC] = "is linked statically",
		[REACH_OTHER_WORDS] = "is a program of another word size",
		[REACH_GO] = "makes system calls without the C library, as programs in Go do",
		[REACH_PRIVILEGED] = "is privileged (set-user-id, set-group-id or capabilities)",
	};
	char path[PATH_MAX], file[PATH_MAX];
	enum reach reach;

	if (!find_command(command, path))
		return;
	reach = reach_of(AT_FDCWD, path, file);
	if (reach != REACH_FULL)
		tool_error("warning: %s%s%s %s: libplfs cannot serve it, and it sees stubs instead of files (run "
			   "plfs flatten on these first)", file,
			   strcmp(file, path) ? ", the interpreter of " : "", strcmp(file, path) ? path : "",
			   whys[reach]);
}

/* Files of either mapping are found under both, but their data lie apart. */
static void warn_of_nested(void)
{
	const char *outer;
	struct plfs_mount *m;

	for (int i = 0; (m = plfs_mount_at(i)); i++) {
		outer = plfs_outer_backend(m);
		if (outer)
			tool_error(
				"warning: %s lies in the backend %s: new files have their data in %s/"
				PLFS_DIR_NAME ", so move and archive the two together",
				plfs_backend(m), outer, plfs_backend(m));
	}
}

/* The processes of the job may start in other directories. */
static void make_absolute(void)
{
	const char *text;
	char *absolute;

	for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++) {
		text = getenv(SETTINGS[i]);
		absolute = text ? plfs_setting_absolute(SETTINGS[i], text) : NULL;
		if (absolute)
			setenv(SETTINGS[i], absolute, 1);
		mem_free(absolute);
	}
}

static void show_settings(const char *library)
{
	tool_error("version " PLFS_VERSION ", %s", library);
	for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++)
		if (getenv(SETTINGS[i]))
			tool_error("%s=%s", SETTINGS[i], getenv(SETTINGS[i]));
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static int show_which(char **command)
{
	char path[PATH_MAX];
	bool found = *command && find_command(*command, path);

	if (*command && !found)
		tool_error("%s: %s", *command, strerror(ENOENT));
	run_which_settings(SETTINGS, ARRAY_SIZE(SETTINGS), found ? path : NULL);
	return tool_finish(*command && !found ? 127 : TOOL_OK);
}

static int run(const struct verb *v, int argc, char **argv)
{
	char library[PATH_MAX];
	bool which = false;
	char **command;
	bool stats = false;
	int c;

	tool_leave_library();
	while ((c = options_next(v, argc, argv)) != -1) {
		if (c == 'd')
			setenv("PLFS_DEBUG", optarg, 1);
		else if (c == OPT_STATS && !run_stats_set(optarg))
			return TOOL_FAILED;
		which |= c == OPT_WHICH;
		stats |= c == OPT_STATS;
	}
	if (optind == argc && !which)
		return tool_misuse(v->name, "no command given");
	if (opt.map)
		setenv("PLFS_MAP", opt.map, 1);
	make_absolute();
	if (!find_library(library) || strpbrk(library, ": ")) {
		tool_error(
			LIBRARY " is %s",
			find_library(library) ?
				"in a directory with a space or colon in its name, which LD_PRELOAD cannot express" :
				"neither beside this command nor in the lib directory next to its directory");
		return TOOL_FAILED;
	}
	if (which)
		run_which_library(library);
	if (!stats && !is_set("PLFS_MAP") && !is_set("PLFSRC")) {
		tool_error("no mapping: give -m PREFIX=BACKEND or set PLFS_MAP");
		return TOOL_SETTINGS;
	}
	plfs_setup(NULL); /* bad settings end here, once, and not in every process of the job */
	if (!set_preload(library)) {
		tool_error("%s", strerror(ENOMEM));
		return TOOL_FAILED;
	}
	command = argv + optind;
	pass_on(command);
	if (!opt.quiet) {
		if (*command)
			warn_of_unreached(*command);
		warn_of_nested();
	}
	if (which)
		return show_which(command);
	if (opt.verbose)
		show_settings(library);
	if (stats)
		run_stats_and_finish();
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

const struct verb verb_run = {
	.name = "run",
	.run = run,
	.flags = VERB_NO_JSON | VERB_NO_SIZES | VERB_IS_COMMAND,
	.what = "run a command; libplfs stores its files below the mapping",
	.arguments = "[--] COMMAND [ARGUMENT...]",
	.about = "Run COMMAND; libplfs stores the files that it writes below the mapping, PREFIX=BACKEND or DIRECTORY,\n"
		 "several with \":\" between. With -v, lines show the library and the settings; with -q, no warnings.\n"
		 "With --stats no mapping is needed: then libplfs counts the calls on plain files, and changes nothing.\n",
	.end = "Exit status: that of COMMAND; 126 or 127 if it cannot be run; 78 if the settings are bad.\n",
	.options = (const struct verb_option[]){
		{ 'd', "debug", "CATEGORIES", "debugging messages, as in PLFS_DEBUG: CATEGORY[,CATEGORY...][@FILE]" },
		{ OPT_WHICH, "which", NULL, "run nothing; show the library, its version, the mappings and the settings" },
		{ OPT_STATS, "stats", "[=FILE]",
		  "count the calls on files; default: ./plfs-stats.JOB.jsonl" },
		{ 0 },
	},
};
