/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host of this process, as it stands in names and headers on disk.
 */
#ifndef PLFS_HOST_H
#define PLFS_HOST_H

#include "core/base/base.h"

/*
 * The host in names: the letters, digits, "-" and "_" of its name, and a hash of the kernel's boot id, since
 * two machines or containers may share a name. The string lives as long as the process.
 */
const char *host_name(void);

/* The boot of the kernel: the CRC-32C of its boot id, made odd; 0: not known. */
uint32_t host_boot(void);

#endif
