/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_NIC_FABRIC_H
#define TM_TESTS_NIC_FABRIC_H
/* Live tests of the soft RNIC: each run has a fabric of its own. */
#include "tests/suite.h"

/* Run the suite and free it. The result of main(): 0, all pass; 1; 70, there is no place for a
 * fabric. */
int nic_fabric_run(Suite *suite);

#endif
