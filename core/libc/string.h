/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_STRING_H
#define TM_LIBC_STRING_H
/* What store code calls instead of functions of <string.h> and <strings.h>. */
#include <stddef.h>

size_t sim_strlen(const char *s);
size_t sim_strnlen(const char *s, size_t max);
int sim_strcmp(const char *a, const char *b);
int sim_strncmp(const char *a, const char *b, size_t max);
int sim_strcasecmp(const char *a, const char *b);
int sim_strncasecmp(const char *a, const char *b, size_t max);
int sim_bcmp(const void *a, const void *b, size_t len);
char *sim_strcpy(char *to, const char *from);
char *sim_stpcpy(char *to, const char *from);
char *sim_strncpy(char *to, const char *from, size_t max);
char *sim_stpncpy(char *to, const char *from, size_t max);
char *sim_strcat(char *to, const char *from);
char *sim_strncat(char *to, const char *from, size_t max);
void *sim_mempcpy(void *to, const void *from, size_t len);
void sim_bzero(void *to, size_t len);
void sim_explicit_bzero(void *to, size_t len);
char *sim_strdup(const char *s);
char *sim_strndup(const char *s, size_t max);
void *sim_memchr(const void *s, int byte, size_t len);
void *sim_rawmemchr(const void *s, int byte);
void *sim_memrchr(const void *s, int byte, size_t len);
char *sim_strchr(const char *s, int byte);
char *sim_index(const char *s, int byte);
char *sim_strchrnul(const char *s, int byte);
char *sim_strrchr(const char *s, int byte);
char *sim_rindex(const char *s, int byte);
char *sim_strstr(const char *hay, const char *needle);
char *sim_strcasestr(const char *hay, const char *needle);
void *sim_memmem(const void *hay, size_t room, const void *needle, size_t len);
size_t sim_strspn(const char *s, const char *set);
size_t sim_strcspn(const char *s, const char *set);
char *sim_strpbrk(const char *s, const char *set);
char *sim_strtok_r(char *s, const char *set, char **save);
char *sim_strsep(char **rest, const char *set);

#endif
