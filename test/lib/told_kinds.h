/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the file of told_model.h and its logs are: for TestSuite(), before told_start().
 */
#ifndef TEST_TOLD_KINDS_H
#define TEST_TOLD_KINDS_H

void kind_shared(void); /* a file system that hosts share */
void kind_local(void);
void kind_small(void);  /* a local one, and the first bytes in the stub */
void kind_near(void);
void kind_near_home(void); /* what is released comes home */
void kind_spread(void);

#endif
