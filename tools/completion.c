/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs --completion=SHELL: what bash, zsh and fish need to complete a command line, from the tables of the
 * verbs.
 */
#include "completion.h"

#include <stdio.h>

/* Call @print with each option of @v. */
static void each_option(const struct verb *v,
			void (*print)(const struct verb *v, const struct verb_option *o))
{
	for (const struct verb_option *o = v->options; o && o->name; o++)
		print(v, o);
	for (const struct verb_option *o = COMMON_OPTIONS; o->name; o++)
		if (options_has(v, o))
			print(v, o);
}

static bool is_path(const struct verb_option *o)
{
	return o->value && (!strcmp(o->value, "OUT") || !strcmp(o->value, "MAP"));
}

/* @s as it stands between single quotes, on one line; @special: behind a backslash. */
static void put_text(const char *s, const char *special)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", stdout);
		else if (strchr(special, *s))
			printf("\\%c", *s);
		else
			putchar(*s == '\n' ? ' ' : *s);
	}
}

/* ---- bash ---- */

static void bash_word(const struct verb *v, const struct verb_option *o)
{
	(void)v;
	if (o->letter < OPT_LONG)
		printf("-%c ", o->letter);
	printf("--%s%s ", o->name, o->value && *o->value != '[' ? "=" : "");
}

/* A value that is no path: nothing is completed. */
static void bash_value(const struct verb *v, const struct verb_option *o)
{
	if (!o->value || is_path(o))
		return;
	if (o->letter < OPT_LONG)
		printf("\t\"%s -%c\") return ;;\n", v->name, o->letter);
}

static void print_bash(const struct verb *const *verbs)
{
	puts("# Completion of plfs(1) for bash, made by: plfs --completion=bash\n"
	     "_plfs() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} words='' i\n"
	     "\tCOMPREPLY=()");
	fputs("\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tmapfile -t COMPREPLY < <(compgen -W '", stdout);
	for (const struct verb *const *v = verbs; *v; v++)
		printf("%s ", (*v)->name);
	puts("--help --version' -- \"$cur\")\n\t\treturn\n\tfi\n\tcase \"$verb $prev\" in");
	for (const struct verb *const *v = verbs; *v; v++)
		each_option(*v, bash_value);
	puts("\tesac\n\tcase $verb in");
	for (const struct verb *const *v = verbs; *v; v++) {
		printf("\t%s) words='", (*v)->name);
		each_option(*v, bash_word);
		puts("' ;;");
	}
	puts("\tesac\n"
	     "\tif [ \"$verb\" = run ]; then\n"
	     "\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	     "\t\t\tcase ${COMP_WORDS[i]} in -m | -d) i=$((i + 1)) ;; -*) ;; *) break ;; esac\n"
	     "\t\tdone\n"
	     "\t\tif [ \"$i\" -lt \"$COMP_CWORD\" ]; then return; fi\n"
	     "\t\tcase $cur in\n"
	     "\t\t-* | */*) ;;\n"
	     "\t\t*) mapfile -t COMPREPLY < <(compgen -c -- \"$cur\") && return ;;\n"
	     "\t\tesac\n"
	     "\tfi\n"
	     "\tcase $cur in\n"
	     "\t-*) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	     "\t\tcase ${COMPREPLY[0]} in *=) compopt -o nospace ;; esac ;;\n"
	     "\tesac\n"
	     "}\n"
	     "complete -o default -o bashdefault -F _plfs plfs");
}

/* ---- zsh ---- */

static void zsh_option(const struct verb *v, const struct verb_option *o)
{
	(void)v;
	if (o->letter < OPT_LONG)
		printf("\t\t\t'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, o->value ? "+" : "",
		       o->name, o->value ? "=" : "");
	else
		printf("\t\t\t'--%s%s[", o->name, o->value ? *o->value == '[' ? "=-" : "=" : "");
	put_text(o->text, "[]:\\");
	putchar(']');
	if (o->value && *o->value == '[')
		printf("::file:_files");
	else if (o->value)
		printf(":%s:%s", o->value, is_path(o) ? "_files" : " ");
	puts("' \\");
}

static void print_zsh(const struct verb *const *verbs)
{
	puts("#compdef plfs\n"
	     "# Completion of plfs(1) for zsh, made by: plfs --completion=zsh\n"
	     "_plfs() {\n"
	     "\tlocal -a verbs\n"
	     "\tverbs=(");
	for (const struct verb *const *v = verbs; *v; v++) {
		printf("\t\t'%s:", (*v)->name);
		put_text((*v)->what, ":\\");
		puts("'");
	}
	puts("\t)\n"
	     "\tif (( CURRENT == 2 )); then\n"
	     "\t\t_describe -t verbs verb verbs\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tshift words\n"
	     "\t(( CURRENT-- ))\n"
	     "\tcase $words[1] in");
	for (const struct verb *const *v = verbs; *v; v++) {
		bool command = (*v)->flags & VERB_IS_COMMAND;

		printf("\t%s)\n\t\t_arguments -s %s\\\n", (*v)->name, command ? "" : "-S ");
		each_option(*v, zsh_option);
		puts(command ? "\t\t\t'(-)1:command:_command_names -e' '*::argument:_normal' ;;" : "\t\t\t'*:file:_files' ;;");
	}
	puts("\tesac\n}\n_plfs \"$@\"");
}

/* ---- fish ---- */

static void fish_option(const struct verb *v, const struct verb_option *o)
{
	printf("complete -c plfs -n '__fish_seen_subcommand_from %s' ", v->name);
	if (o->letter < OPT_LONG)
		printf("-s %c ", o->letter);
	printf("-l %s %s-d '", o->name, !o->value || *o->value == '[' ? "" : is_path(o) ? "-r " : "-x ");
	put_text(o->text, "\\");
	puts("'");
}

static void print_fish(const struct verb *const *verbs)
{
	puts("# Completion of plfs(1) for fish, made by: plfs --completion=fish");
	for (const struct verb *const *v = verbs; *v; v++) {
		printf("complete -c plfs -n __fish_use_subcommand -f -a %s -d '", (*v)->name);
		put_text((*v)->what, "\\");
		puts("'");
	}
	for (const struct verb *const *v = verbs; *v; v++) {
		each_option(*v, fish_option);
		if ((*v)->flags & VERB_IS_COMMAND)
			printf("complete -c plfs -n '__fish_seen_subcommand_from %s' -x -a '(__fish_complete_subcommand)'\n",
			       (*v)->name);
	}
}

/* ---- for scripts/check-command ---- */

static void table_line(const struct verb *v, const struct verb_option *o)
{
	printf("%s\t%c\t%s\t%s\n", v->name, o->letter < OPT_LONG ? o->letter : '-', o->name, o->value ? o->value : "-");
}

bool completion_print(const struct verb *const *verbs, const char *shell)
{
	if (!strcmp(shell, "bash"))
		print_bash(verbs);
	else if (!strcmp(shell, "zsh"))
		print_zsh(verbs);
	else if (!strcmp(shell, "fish"))
		print_fish(verbs);
	else if (!strcmp(shell, "table"))
		for (const struct verb *const *v = verbs; *v; v++)
			each_option(*v, table_line);
	else
		return false;
	return true;
}
