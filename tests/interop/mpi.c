/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program for scripts/interop: sums over all processes, small and large; then, one-sided, a
 * put into the neighbour's window and fetch-and-adds of all into one word. Says "ok", or what is
 * wrong, and ends with 1.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LONGS (1 << 15)
#define ADDS  20

static int wrong(const char *what, long is, long expected)
{
	printf("%s: %ld, expected %ld\n", what, is, expected);
	MPI_Abort(MPI_COMM_WORLD, 1);
	return 1;
}

static int sums(int rank, int size)
{
	static long all[LONGS], mine[LONGS];
	long one = rank + 1, sum;

	MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (sum != size * (size + 1) / 2)
		return wrong("sum", sum, size * (size + 1) / 2);
	for (long i = 0; i < LONGS; i++)
		mine[i] = i + rank;
	MPI_Allreduce(mine, all, LONGS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (long i = 0; i < LONGS; i++)
		if (all[i] != size * i + size * (size - 1) / 2)
			return wrong("sum of many", all[i], size * i + size * (size - 1) / 2);
	return 0;
}

static int one_sided(int rank, int size)
{
	const int before = (rank + size - 1) % size, behind = (rank + 1) % size;
	long *window, put = 100 + rank, one = 1, old;
	MPI_Win win;

	MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window,
			 &win);
	window[0] = window[1] = 0;
	MPI_Win_fence(0, win);
	MPI_Put(&put, 1, MPI_LONG, behind, 0, 1, MPI_LONG, win);
	MPI_Win_fence(0, win);
	if (window[0] != 100 + before)
		return wrong("put", window[0], 100 + before);
	for (int i = 0; i < ADDS; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 1, MPI_SUM, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Win_fence(0, win);
	if (rank == 0 && window[1] != (long)ADDS * size)
		return wrong("fetch and add", window[1], (long)ADDS * size);
	MPI_Win_free(&win);
	return 0;
}

int main(int argc, char **argv)
{
	int rank, size, status;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	status = sums(rank, size) || one_sided(rank, size);
	MPI_Finalize();
	if (!status && rank == 0)
		puts("ok");
	return status;
}
