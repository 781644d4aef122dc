/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns: what several processes of a host would ask of the backend at once, though all want the same, one
 * asks for while the others wait here, in a place of this user (place.h). That asks nothing of the backend.
 * Nobody may depend on being alone: there are no turns until the first log makes the place. (Not before: what
 * it says of the backend cannot be told of one that has no format file yet.)
 */
#ifndef PLFS_PLACE_TURN_H
#define PLFS_PLACE_TURN_H

#include "core/store/store.h"

/*
 * Wait for the turn in the matter @number, of @home with near=. A descriptor, to give to place_turn_end();
 * -errno: there are no turns, and all go at once. Who is killed has ended it.
 */
int place_turn_take(struct store *home, uint64_t number);

void place_turn_end(int *fd);

#endif
