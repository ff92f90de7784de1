/* SPDX-License-Identifier: BSD-3-Clause */
/* See tm_x86.h. */
#include "tm_x86.h"
#include_next <emmintrin.h>
