/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking for what a program without the library wrote into the stub of a logged file.
 */
#ifndef PLFS_CHECK_BODY_H
#define PLFS_CHECK_BODY_H

#include "core/admin/scan/examine.h"

/*
 * Report bytes in the body of a logged file, where the library leaves a hole. They are the oldest layer:
 * reads give them where no record says otherwise. The bytes that a small file had before it got its
 * container lie there as well, so the first ones are not looked at.
 */
void check_body(struct examined *k);

#endif
