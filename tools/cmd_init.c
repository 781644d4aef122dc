/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs init: the owner of a directory that several users will share prepares it once.
 */
#include "options.h"
#include "tool.h"

#include <stdlib.h>

static int run(const struct verb *v, int argc, char **argv)
{
	mode_t mode = (mode_t)-1;
	char *end;

	while (options_next(v, argc, argv) != -1) {
		mode = (mode_t)strtoul(optarg, &end, 8);
		if (*optarg < '0' || *optarg > '7' || *end || mode > 03777 || (mode & 0700) != 0700)
			return tool_misuse(v->name,
					   "\"%s\" is not a mode of a directory that its owner can use, as 1777",
					   optarg);
	}
	if (argc - optind != 1)
		return tool_misuse(v->name, optind == argc ? "no directory given" :
							     "more than one directory given");
	tool_leave_library();
	if (plfs_init_backend(argv[optind], &mode))
		return TOOL_FAILED;
	if (opt.json) {
		printf("{\"backend\": ");
		tool_print_json(argv[optind]);
		printf(", \"mode\": \"%04o\"}\n", (unsigned)mode);
	} else if (!opt.quiet) {
		tool_print("%s/" PLFS_DIR_NAME ": its directories have mode %04o", argv[optind],
			   (unsigned)mode);
	}
	return tool_finish(TOOL_OK);
}

const struct verb verb_init = {
	.name = "init",
	.run = run,
	.flags = VERB_NO_MAP | VERB_NO_SIZES,
	.what = "prepare a directory as a backend for several users",
	.arguments = "BACKEND",
	.about = "Make .plfs in the directory BACKEND, with all its directories, for all users that will write files\n"
		 "there. The owner of BACKEND owns them, so that no user can remove the data of another. Directories\n"
		 "that exist are corrected; files stay. The owner of BACKEND, or root, runs this.\n",
	.options = (const struct verb_option[]){
		{ OPT_MODE, "mode", "MODE", "the mode of these directories, octal. Default: if others than its owner\n"
		  "may write to BACKEND, its mode with the sticky bit; if root alone may, 1777;\nelse its mode" },
		{ 0 },
	},
};
