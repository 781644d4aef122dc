/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for the end of its standard input, before any library of it has begun, and is then the program of its
 * arguments. So there is a moment in which nobody but the kernel knows of the descriptors that it inherits,
 * and that lasts as long as a test wants.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* No preloaded library has a poll() of its own. */
static void wait_first(int argc, char **argv, char **envp)
{
	struct pollfd in = {.fd = 0};

	(void)argc, (void)argv, (void)envp;
	while (!(in.revents & (POLLHUP | POLLNVAL)))
		poll(&in, 1, -1);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_all)(int, char **,
										 char **) = wait_first;

int main(int argc, char **argv)
{
	if (argc > 1)
		execv(argv[1], argv + 1);
	perror("waits");
	return 127;
}
