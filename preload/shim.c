/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every wrapper asks first. init.c sets it.
 */
#include "shim.h"

HOT_DATA int shim_ready = 0;
HOT_DATA bool shim_active = false;
bool shim_observes = false;
