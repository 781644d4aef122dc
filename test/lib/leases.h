/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several writers of one host in one process, for what they do to each other in the notice.
 */
#ifndef TEST_LEASES_H
#define TEST_LEASES_H

#include "core/dropping/lease.h"

/* Open the lease @l as one more writer, in the file "notice" of @store, which is made if it is missing. */
void take_part(struct store *store, struct lease *l);

#endif
