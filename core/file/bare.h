/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bare files: stubs without a container, whose bytes are all in the body. Every file begins as one. A file
 * into which little is written stays one: a container with its logs would cost many times what the bytes
 * are worth. As soon as a process claims the file it has a container, and all writes go to logs. What is in
 * the body by then is the oldest layer.
 *
 * A write locks no other process out, so the file may be claimed while the bytes go to the body. Therefore
 * the header is read before the write and after it:
 *
 *   - Before, there is no container. So no write to a log had returned when this one began. It is right
 *     that every log covers what it puts in the body.
 *   - Afterwards, there is still none. Then no write to a log had begun before these bytes were in the
 *     body. Any later write covers them, and every reader looks at the body.
 *   - Afterwards, there is one. Another process may have written to a log and returned meanwhile, or cut
 *     the file. So the write returns -EREMCHG, and the same bytes are written once more, to a log, with a
 *     stamp of now. Both writes were under way at the same time, and this one comes last. The bytes in the
 *     body are the same, or covered.
 *
 * A read takes the bytes, and reads the header then: a file that is bare still was bare all the time.
 *
 * An append needs more: another appender must not get the same place in a log. It is made under the lock of
 * the header, without which no file is claimed. So is a truncation to a length, which must not come twice
 * with an append in between.
 *
 * Which writes stay in the body: those that end at or below the mapping's small=, by any process. Beyond
 * it, each process has a few: BARE_FEW writes with together at most small= bytes, that end at or below
 * BARE_SHARED times small=. So a hundred ranks that write one piece each, and close, make no container. Nor
 * does a program that opens its text log for each line. Ranks that go on writing have their logs from the
 * second piece or the fifth on.
 *
 * Where other hosts share the store, small= is 0 unless it is set. There only a process that finds nobody
 * else at its first write writes to the body, and up to small= alone: what one host writes between two looks
 * of another, that one may see late. No append is made to the body there.
 *
 * Allocation: the kernel does what it can with the body.
 */
#ifndef PLFS_BARE_H
#define PLFS_BARE_H

#include "core/file/form.h"

#define BARE_SHARED CONFIG_SMALL_REACH
#define BARE_FEW 4     /* of them; and at most small= bytes together */

#endif
