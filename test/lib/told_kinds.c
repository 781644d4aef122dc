/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/told_kinds.h"

#include "test/lib/near.h"
#include "test/lib/told_model.h"

void kind_shared(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

void kind_local(void)
{
	told_local = true;
	kind_shared();
}

void kind_small(void)
{
	scratch_in_memory = told_local = true;
	scratch_setup_small();
}

void kind_near(void)
{
	scratch_in_memory = told_near = true;
	near_setup(",drain=none");
}

void kind_near_home(void)
{
	scratch_in_memory = told_near = model_comes_home = true;
	near_setup(",drain=none,release=home");
}

void kind_spread(void)
{
	scratch_in_memory = true;
	near_spread("process");
}
