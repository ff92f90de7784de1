/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_NIC_RULES_H
#define TM_CHECKER_HUNT_NIC_RULES_H
/*
 * Rules that the emulated NIC and memory must keep whatever stores do with them: small
 * programs on verbs, between two hosts, under random schedules and faults. Stores that check a CRC
 * do not notice every broken rule; these do.
 */
#include "faultinject/deviation.h"
#include "core/hardware/hardware.h"

struct nic_rules_result {
	bool broken;
	const char *rule;	      /* the first rule that is broken, or NULL */
	char text[200];		      /* how */
	uint64_t run;		      /* which run of it, from 0: the plain one */
	uint64_t runs;		      /* of all rules */
	struct deviations deviations; /* of that run; the caller's to free */
};

/* `runs` runs of each rule, seeded by `seed`; stops at the first that is broken. 0 or -ENOMEM. */
int nic_rules(const struct hardware *hw, uint64_t seed, uint64_t runs,
	      struct nic_rules_result *out);

#endif
