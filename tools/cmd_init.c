/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs init: what the owner of a directory that several users share does once, before they do.
 */
#include "tool.h"

#include <getopt.h>
#include <stdlib.h>

static const char HELP[] =
	"usage: plfs init [--mode=MODE] BACKEND\n"
	"\n"
	"Make .plfs in the directory BACKEND, with all its directories, for all users who will write files there. They\n"
	"belong to the owner of BACKEND, so that no user can take away what another has in them. What is there already\n"
	"is set right, files stay. To be run by the owner of BACKEND or root.\n"
	"\n"
	"      --mode=MODE  octal, of these directories; default: of BACKEND with the sticky bit if others than its owner\n"
	"                   may write there; of a directory of root's that nobody else may write to: 1777; else its own\n"
	"  -h, --help\n";

int cmd_init(int argc, char **argv)
{
	static const struct option options[] = {
		{ "mode", required_argument, NULL, 'M' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	mode_t mode = (mode_t)-1;
	char *end;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'M':
			mode = (mode_t)strtoul(optarg, &end, 8);
			if (*optarg < '0' || *optarg > '7' || *end || mode > 03777 || (mode & 0700) != 0700)
				return tool_misuse("init", "\"%s\" is no mode of a directory that its owner can use, as 1777", optarg);
			break;
		default:
			return tool_other_option("init", c, argv, HELP);
		}
	}
	if (argc - optind != 1)
		return tool_misuse("init", optind == argc ? "no directory given" : "more than one directory given");
	tool_leave_library();
	if (plfs_init_backend(argv[optind], &mode))
		return TOOL_FAILED;
	printf("%s/" PLFS_DIR_NAME ": its directories have mode %04o\n", argv[optind], (unsigned)mode);
	return tool_finish(TOOL_OK);
}
