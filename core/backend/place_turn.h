/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns: what several processes of a host would ask of the backend at once, though all want the same, one
 * asks for while the others wait here, in a place of this user (place.h). That asks nothing of the backend.
 * Nobody may depend on being alone: while the place is made, several may have the turn.
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
