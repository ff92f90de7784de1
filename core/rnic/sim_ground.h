/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_SIM_GROUND_H
#define TM_RNIC_SIM_GROUND_H
/* The RNIC's ground in a simulation: for the link between simulated hosts. */
#include "core/rnic/ground.h"
#include "core/rt/sim.h"

struct rnic_ground sim_ground(struct sim *sim);
/* The simulation of a ground made by sim_ground(). */
struct sim *sim_of_ground(const struct rnic_ground *ground);

#endif
