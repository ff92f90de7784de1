/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_STDLIB_H
#define TM_LIBC_STDLIB_H
/*
 * What store code calls instead of functions of <stdlib.h>: numbers in texts, sorting, random
 * numbers, memory, the end of the process. (malloc and free are in core/rt/process/libc.h.)
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* number.c; the isoc23 names are what newer headers call. */
long sim_strtol(const char *s, char **end, int base);
unsigned long sim_strtoul(const char *s, char **end, int base);
long long sim_strtoll(const char *s, char **end, int base);
unsigned long long sim_strtoull(const char *s, char **end, int base);
long sim_isoc23_strtol(const char *s, char **end, int base);
unsigned long sim_isoc23_strtoul(const char *s, char **end, int base);
long long sim_isoc23_strtoll(const char *s, char **end, int base);
unsigned long long sim_isoc23_strtoull(const char *s, char **end, int base);
float sim_strtof(const char *s, char **end);
double sim_strtod(const char *s, char **end);
long double sim_strtold(const char *s, char **end);
int sim_atoi(const char *s);
long sim_atol(const char *s);
long long sim_atoll(const char *s);
double sim_atof(const char *s);

/* sort.c */
typedef int sim_compare_fn(const void *a, const void *b);
typedef int sim_compare_with_fn(const void *a, const void *b, void *arg);
void sim_qsort(void *base, size_t n, size_t bytes, sim_compare_fn *compare);
void sim_qsort_r(void *base, size_t n, size_t bytes, sim_compare_with_fn *compare, void *arg);
void *sim_bsearch(const void *key, const void *base, size_t n, size_t bytes,
		  sim_compare_fn *compare);

/* random.c: the same numbers in every run, others for each host, boot and process. rand() and its
 * like give what they give in glibc after the same seed. */
int sim_rand(void);
void sim_srand(unsigned seed);
int sim_rand_r(unsigned *seed);
long sim_random(void);
void sim_srandom(unsigned seed);
double sim_drand48(void);
long sim_lrand48(void);
long sim_mrand48(void);
void sim_srand48(long seed);
double sim_erand48(unsigned short state[3]);
long sim_nrand48(unsigned short state[3]);
long sim_jrand48(unsigned short state[3]);
ssize_t sim_getrandom(void *to, size_t len, unsigned flags);
int sim_getentropy(void *to, size_t len);
uint32_t sim_arc4random(void);
uint32_t sim_arc4random_uniform(uint32_t below);
void sim_arc4random_buf(void *to, size_t len);
uint64_t sim_random_word(void); /* for rdrand and rdseed */

/* memory.c */
void *sim_reallocarray(void *memory, size_t n, size_t bytes);
void *sim_memalign(size_t align, size_t bytes);
void *sim_valloc(size_t bytes);
size_t sim_malloc_usable_size(void *memory);
/* Anonymous memory only: else EBADF. */
void *sim_mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t off);
void *sim_mmap64(void *at, size_t bytes, int rights, int flags, int fd, off_t off);
int sim_munmap(void *memory, size_t bytes);
int sim_mlock(const void *memory, size_t bytes);
int sim_munlock(const void *memory, size_t bytes);
/* The server's pool; the path is only noted. */
void *sim_pmem_map_file(const char *path, size_t bytes, int flags, mode_t mode, size_t *mapped,
			int *is_pmem);
int sim_pmem_unmap(void *memory, size_t bytes);
const char *sim_pmem_check_version(unsigned major, unsigned minor);
const char *sim_pmem_errormsg(void);

/* process.c */
_Noreturn void sim_exit(int status);
_Noreturn void sim_exit_now(int status);
_Noreturn void sim_exit_quickly(int status);
_Noreturn void sim_exit_at_once(int status);
int sim_atexit(void (*fn)(void));
char *sim_getenv(const char *name);
char *sim_secure_getenv(const char *name);
int sim_getpid(void);
int sim_getppid(void);
int sim_gettid(void);
long sim_sysconf(int name);
int sim_getpagesize(void);
int sim_get_nprocs(void);
int sim_get_nprocs_conf(void);
int sim_gethostname(char *to, size_t room);

#endif
