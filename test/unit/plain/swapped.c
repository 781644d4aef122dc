/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the owner of a directory puts in its place while root flattens a file there: another directory, a link
 * to somewhere else, another file under the name of the temporary one. Nothing outside is replaced.
 */
#include "test/lib/scratch.h"

#include "core/base/as_owner.h"

#include <criterion/criterion.h>
#include <grp.h>

#define LEN 100000
#define USER 41003

TestSuite(swapped, .init = scratch_setup, .fini = scratch_remove);

static char dir[PATH_MAX], path[PATH_MAX + 8], victim[64];

static void make(void)
{
	struct lfile l;
	FILE *f;

	lpath("d", dir);
	cr_assert_eq(mkdir(dir, 0777), 0);
	snprintf(path, sizeof(path), "%s/passwd", dir);
	l = made("d/passwd");
	if (lfill(&l, 0, LEN, 1) != LEN)
		die("write");
	lclose(&l);
	new_dir(victim, sizeof(victim));
	cr_assert_eq(chdir(victim), 0);
	f = fopen("passwd", "w");
	fputs("root", f);
	fclose(f);
}

static bool holds(const char *file, const char *text)
{
	char have[16] = "";
	FILE *f = fopen(file, "r");

	if (!f)
		return false;
	if (!fread(have, 1, sizeof(have) - 1, f))
		*have = '\0';
	fclose(f);
	return !strcmp(have, text);
}

/* ---- just before, and just after the names are exchanged ---- */

static int (*really)(int fromfd, const char *from, int tofd, const char *to, unsigned flags);
static const char *before, *after;

/* A stranger's commands. $1: the stub's directory, $2: the container, $3: the victim's, $4: the temporary. */
static void run(const char **commands)
{
	char temp[PATH_MAX], text[8 * PATH_MAX], *slash;

	if (!*commands)
		return;
	if (!find_file(".plfs-flatten", temp))
		die("no temporary file");
	slash = strrchr(temp, '/');
	snprintf(text, sizeof(text), "set -- '%s' '%.*s' '%s' '%s'; %s", dir, (int)(slash - temp), temp,
		 victim, slash + 1, *commands);
	*commands = NULL;
	cr_assert_eq(system(text), 0);
}

static int swap_hook(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	int ret;

	run(&before);
	ret = really(fromfd, from, tofd, to, flags);
	if (after)
		cr_assert_eq(system(after), 0);
	after = NULL;
	return ret;
}

static int flatten_while(const char *commands)
{
	int ret;

	before = commands;
	really = sys.renameat2;
	sys.renameat2 = swap_hook;
	ret = plfs_flatten(AT_FDCWD, path, NULL);
	sys.renameat2 = really;
	cr_assert_null(before);
	return ret;
}

Test(swapped, links_in_the_place_of_both_directories_lead_nowhere)
{
	char text[PATH_MAX + 8];

	make();
	snprintf(text, sizeof(text), "rm '%s'", dir); /* so that nothing could be taken back */
	after = text;
	flatten_while("mkdir \"$1.evil\"; echo -n evil >\"$1.evil/$4\"; "
		      "mv \"$2\" \"$2.away\"; ln -s \"$1.evil\" \"$2\"; "
		      "mv \"$1\" \"$1.away\"; ln -s \"$3\" \"$1\"");
	cr_assert(holds("passwd", "root"), "the victim has been replaced");
}

/* The file becomes USER's, its container, and the directory of the dropping @inside there. */
static void give(const char *inside)
{
	char up[PATH_MAX];

	cr_assert(find_file(inside, up));
	for (int i = 0; i < 4; i++) {
		*strrchr(up, '/') = '\0';
		cr_assert_eq(i < 2 ? chown(up, USER, USER) : chmod(up, 0755), 0);
	}
	cr_assert_eq(chmod(scratch, 0755), 0);
	cr_assert_eq(chown(path, USER, USER), 0);
	cr_assert_eq(chmod(path, S_ISVTX | 0644), 0);
}

/* Where the user could give it a name himself he may: in his own directory. */
Test(swapped, another_file_in_the_place_of_the_temporary_one_gets_no_name)
{
	char dropping[PATH_MAX];

	if (geteuid())
		cr_skip_test("only root can be several users");
	make();
	give("data.");
	cr_assert(find_file("data.", dropping) && !chown(dropping, USER, USER));
	flatten_while("rm \"$2/$4\"; ln -s \"$3/passwd\" \"$2/$4\"");
	cr_assert(!holds(path, "root"), "the name leads to the victim");
	cr_assert(holds("passwd", "root"));
}

Test(swapped, a_directory_that_moves_takes_the_plain_file_along)
{
	char moved[2 * PATH_MAX];
	struct stat st;

	make();
	cr_assert_eq(flatten_while("mv \"$1\" \"$1.away\""), 0);
	snprintf(moved, sizeof(moved), "%s.away/passwd", dir);
	cr_assert_eq(stat(moved, &st), 0);
	cr_assert_eq(st.st_size, LEN);
	cr_assert(!plfs_maybe_stub(st.st_mode));
}

/* ---- the owner's rights ---- */

static bool may_write(const char *file)
{
	int fd = open(file, O_WRONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

Test(swapped, root_may_do_no_more_than_the_owner_until_the_end)
{
	struct as_owner a = { .is = false };
	gid_t before_groups[] = { 41007, 41008 }, groups[8];

	if (geteuid())
		cr_skip_test("only root can be several users");
	make();
	cr_assert_eq(setgroups(2, before_groups), 0);
	cr_assert_eq(chmod("passwd", 0600), 0);
	as_owner_begin(&a, USER, USER);
	cr_assert(a.is);
	cr_assert(!may_write("passwd") && errno == EACCES);
	cr_assert_eq(chown("passwd", USER, USER), -1);
	as_owner_end(&a);
	cr_assert_eq(getgroups(8, groups), 2);
	cr_assert(groups[0] == 41007 && groups[1] == 41008);
	cr_assert(may_write("passwd"));
	as_owner_begin(&a, 0, 0);
	cr_assert(!a.is, "root's own");
	as_owner_end(&a);
}

/* The file and its container become USER's, but for the dropping @prefix, which another user has closed. */
static void give_all_but(const char *prefix)
{
	char dropping[PATH_MAX];

	cr_assert(find_file(prefix, dropping));
	cr_assert_eq(chown(dropping, 41001, 41001), 0); /* as if moved there */
	cr_assert_eq(chmod(dropping, 0600), 0);
	give(prefix);
	cr_assert_eq(chown(dir, USER, USER), 0);
}

/* A user's file that leads to a log which he may not read. */
Test(swapped, what_the_owner_may_not_read_does_not_get_into_his_file)
{
	if (geteuid())
		cr_skip_test("only root can be several users");
	make();
	give_all_but("data.");
	cr_assert_lt(plfs_flatten(AT_FDCWD, path, NULL), 0);
	cr_assert_eq(geteuid(), 0);
	cr_assert(may_write("passwd"), "root again");
}

static void ignore(void *arg, const struct plfs_finding *f)
{
	(void)arg, (void)f;
}

Test(swapped, what_the_owner_may_not_read_is_not_copied_by_a_repair)
{
	struct plfs_check check = { .repair = true, .found = ignore };
	char index[PATH_MAX], name[PATH_MAX];
	struct plfs_mount *m;
	int fd;

	if (geteuid())
		cr_skip_test("only root can be several users");
	make();
	cr_assert(find_file("index.", index));
	fd = open(index, O_WRONLY);
	cr_assert_eq(pwrite(fd, "secret", 6, 30), 6);
	close(fd);
	give_all_but("index.");
	m = lpath("d/passwd", name);
	plfs_check(m, AT_FDCWD, name, &check);
	cr_assert_eq(count_files("damaged."), 0, "the owner could read the copy");
	cr_assert(may_write("passwd"), "root again");
}
