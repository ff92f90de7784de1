/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark run: another program on the soft RNIC.
 *
 * The program takes this process's place, with the library to preload and the settings in its
 * environment, so its signals, its terminal and its status are its own. A watcher cleans up what
 * the program leaves when it is killed: a separate process that sleeps until the program has ended,
 * and then until the last process of the fabric has.
 *
 * Programs that are linked with the system's library get ours preloaded. A program that looks the
 * library up by name while it runs (dlopen) finds ours, too: its directory is searched first.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "core/provider/base/config.h"
#include "core/provider/base/fabric_dir.h"
#include "core/rt/asan.h"
#include "core/text/regular.h"

#define PRELOAD "libtidemark-verbs.so"

struct choice {
	struct nic_config config;
	bool dropin;
	char preload[PATH_MAX], libraries[PATH_MAX];
};

/* More than one --fault: one after the other. */
static int add_fault(struct nic_config *config, const char *rule)
{
	char all[2 * CONFIG_FAULTS_BYTES + 2];

	if (!rule[strspn(rule, " \t,;\n")]) {
		snprintf(config->why, sizeof(config->why), "expected a rule, such as 'lose 5%%'");
		return -EINVAL;
	}
	if (strlen(rule) >= CONFIG_FAULTS_BYTES)
		return nic_config_set(config, SETTING_FAULTS, rule);
	snprintf(all, sizeof(all), "%s%s%s", config->faults, config->faults[0] ? "; " : "", rule);
	return nic_config_set(config, SETTING_FAULTS, all);
}

/* The program may go to another directory. */
static int set_path(struct nic_config *config, enum nic_setting setting, const char *path)
{
	char whole[PATH_MAX], here[PATH_MAX];

	if (path[0] == '/' || !path[0] || !getcwd(here, sizeof(here)))
		return nic_config_set(config, setting, path);
	if (snprintf(whole, sizeof(whole), "%s/%s", here, path) >= (int)sizeof(whole))
		return -EINVAL;
	return nic_config_set(config, setting, whole);
}

static void show_setting(const struct option_row *row, const void *into, char *text, size_t size)
{
	nic_config_show(&((const struct choice *)into)->config, (enum nic_setting)row->lo, text,
			size);
}

/* The setting that `row->lo` names. */
static bool take_setting(const struct option_row *row, void *into, const char *value)
{
	enum nic_setting setting = (enum nic_setting)row->lo;
	struct nic_config *config = &((struct choice *)into)->config;
	int rc;

	if (setting == SETTING_FAULTS)
		rc = add_fault(config, value);
	else if (setting == SETTING_PCAP || (setting == SETTING_FABRIC && strchr(value, '/')))
		rc = set_path(config, setting, value);
	else
		rc = nic_config_set(config, setting, value);
	if (rc)
		fail(EXIT_USAGE, "run: %s \"%.60s\": %s", nic_settings[setting].option, value,
		     config->why);
	return !rc;
}

#define TAKE(setting) OPTION_CALL(take_setting), .lo = (setting), .show = show_setting

static const struct option_row rows[] = {
	{"fabric", "NAME|DIR", "the fabric (one a user); a name, or the whole path of a directory",
	 TAKE(SETTING_FABRIC)},
	{"net", "NAME|DIR", NULL, TAKE(SETTING_FABRIC)}, /* its old name */
	{"link", "shm|udp", "shm: processes of this host; udp: RoCEv2 on the wire (=)",
	 TAKE(SETTING_LINK)},
	{"address", "A", "udp: listen on this address of the host (=)", TAKE(SETTING_ADDRESS)},
	{"fault", "RULE", "inject a fault: 'lose 5%', 'drop write 3 packet 2'; may be repeated",
	 TAKE(SETTING_FAULTS)},
	{"seed", "N", "for the faults (=)", TAKE(SETTING_SEED)},
	{"pcap", "FILE", "write what passes there; %p in its name: the process's number",
	 TAKE(SETTING_PCAP)},
	{"keys", "equal|distinct", "a region's lkey and rkey: one number as on many cards, or two",
	 TAKE(SETTING_KEYS)},
	{"gather", "early|late",
	 "when the data of a request are read: at once, or when its completion is asked for (=)",
	 TAKE(SETTING_GATHER)},
	{"layer", "ethernet|infiniband", "the port's link layer; infiniband: paths by LID (=)",
	 TAKE(SETTING_LAYER)},
	{"devices", "N", "devices tide0, tide1, ... (=)", TAKE(SETTING_DEVICES)},
	{"dropin", NULL, "only the directory of libraries, nothing preloaded",
	 OPTION_FIELD(struct choice, dropin)},
	OPTION_END};

static const struct options options = {
	.command = "run",
	.usage = "[OPTION...] [--] PROGRAM [ARGUMENT...]",
	.about = "Runs a verbs program on the soft RNIC: it finds a device tide0. Programs of the "
		 "same fabric reach each other. docs/nic/guide.md explains it.",
	.row = rows,
	.status = "the program's; 2 usage, or it cannot be run"};

/* -1: go on; else the exit status. */
static int read_choice(struct choice *choice, int argc, char **argv)
{
	int status = options_read_leading(&options, choice, argc, argv);

	if (status >= 0)
		return status;
	if (optind == argc)
		return fail(EXIT_USAGE, "run: no program given (tidemark run --help)");
	if (nic_config_check(&choice->config))
		return fail(EXIT_USAGE, "run: %s", choice->config.why);
	return -1;
}

/* --- the libraries --- */

static int find_libraries(struct choice *choice)
{
	char library[PATH_MAX];

	if (find_beside("lib/libibverbs.so.1", library, sizeof(library)))
		find_beside("lib", choice->libraries, sizeof(choice->libraries));
	if (choice->dropin)
		return choice->libraries[0]
			       ? 0
			       : fail(EXIT_INTERNAL,
				      "run: no lib/libibverbs.so.1 beside this program");
	if (find_beside(PRELOAD, choice->preload, sizeof(choice->preload)))
		return 0;
	return fail(EXIT_INTERNAL, "run: no %s beside this program", PRELOAD);
}

/* --- the program --- */

/* Why the dynamic linker would not load our library into this file; NULL: it would, as far as can
 * be seen. */
static const char *refuses_preload(int fd)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (pread(fd, &head, sizeof(head), 0) < (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG))
		return NULL; /* a script: what matters is its interpreter */
	if (head.e_ident[EI_CLASS] != ELFCLASS64)
		return "it is a 32-bit program";
	for (unsigned i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)(head.e_phoff + (uint64_t)i * head.e_phentsize);

		if (pread(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part))
			return NULL;
		if (part.p_type == PT_INTERP)
			return NULL;
	}
	return "it is linked statically";
}

/* Our library has sanitizers if this program has them, and they want to be the program's. */
static bool lacks_sanitizers(const struct stat *program)
{
	struct stat own;

	return TM_ASAN && !stat("/proc/self/exe", &own) &&
	       (own.st_ino != program->st_ino || own.st_dev != program->st_dev);
}

static int check_program(const char *command, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *why = NULL;
	struct stat is = {0};

	if (fd < 0)
		return 0; /* execute only: the kernel decides */
	if (!fstat(fd, &is) && ((is.st_mode & S_ISUID && is.st_uid != geteuid()) ||
				(is.st_mode & S_ISGID && is.st_gid != getegid())))
		why = "it is setuid or setgid";
	else if (geteuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		why = "it has capabilities of its own";
	else if (lacks_sanitizers(&is))
		why = "it has no sanitizers, as this build of Tidemark has";
	else
		why = refuses_preload(fd);
	close(fd);
	return why ? fail(EXIT_USAGE, "%s: %s: no library can be preloaded: %s", command, path, why)
		   : 0;
}

int find_runnable(const char *command, const char *name, char *path, size_t size)
{
	int rc = program_find(name, path, size);
	return rc ? fail(EXIT_USAGE, "%s: %s: %s", command, name, strerror(-rc))
		  : check_program(command, path);
}

static int set_environment(const struct choice *choice)
{
	const struct nic_config *config = &choice->config;
	char value[CONFIG_FAULTS_BYTES];
	int rc = 0;

	for (unsigned i = 0; i < SETTINGS; i++) {
		nic_config_show(config, i, value, sizeof(value));
		rc |= i == SETTING_ADDRESS && !config->has_address
			      ? unsetenv(nic_settings[i].variable)
			      : setenv(nic_settings[i].variable, value, 1);
	}
	if (choice->libraries[0])
		rc |= environment_prepend("LD_LIBRARY_PATH", choice->libraries);
	if (choice->preload[0])
		rc |= environment_preload(choice->preload);
	return rc ? fail(EXIT_INTERNAL, "run: the environment: %s", strerror(errno)) : 0;
}

/* --- the watcher --- */

static void wait_for(pid_t program, int pidfd)
{
	const struct timespec moment = {.tv_nsec = 100000000};
	struct pollfd gone = {.fd = pidfd, .events = POLLIN};

	if (pidfd >= 0)
		while (poll(&gone, 1, -1) < 0 && errno == EINTR)
			;
	else /* a kernel without pidfd_open() */
		while (!kill(program, 0))
			nanosleep(&moment, NULL);
}

/* If a fabric has several watchers, one stays until the last process has ended. */
static void watch(pid_t program, int pidfd, const char *fabric)
{
	int fd, lives;

	wait_for(program, pidfd);
	do {
		lives = fabric_dir_sweep(fabric, false);
		fd = lives > 0 ? open(fabric, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
			return; /* no process is left, or another watcher stays */
		fabric_dir_sweep(fabric, true);
		close(fd);
		/* A watcher that came meanwhile found the lock held, and left. */
		lives = fabric_dir_sweep(fabric, false);
	} while (lives > 0);
}

/* The watcher is a grandchild, so that the program has no child that it did not make. It is made
 * without the handlers of fork(), because it outlives its parent. */
static int start_watcher(const char *fabric)
{
	pid_t program = getpid(), child;
	int pidfd = pidfd_open(program, 0), status;

	fflush(NULL);
	child = _Fork();
	if (child < 0)
		return fail(EXIT_INTERNAL, "run: no process: %s", strerror(errno));
	if (!child) {
		prctl(PR_SET_NAME, RUN_WATCHER); /* before the program can end */
		if (setsid() < 0 || _Fork())
			_exit(0);
		if (chdir("/"))
			_exit(0);
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		/* Do not hold a pipe of the program open. */
		if (pidfd >= 0) {
			dup2(pidfd, 0);
			pidfd = 0;
		}
		close_range(pidfd + 1, ~0u, 0);
		watch(program, pidfd, fabric);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (pidfd >= 0)
		close(pidfd);
	return 0;
}

/* As if the shell had started it. */
static void restore_signals(void)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction old;

		if (!sigaction(sig, NULL, &old) &&
		    (sig == SIGXFSZ || sig == SIGPIPE || old.sa_handler != SIG_IGN))
			signal(sig, SIG_DFL);
	}
}

/* Become the program. Returns an exit status only after an error, which is reported. */
static int start(struct choice *choice, const char *path, char **argv)
{
	int status = set_environment(choice), rc = fabric_dir_make(choice->config.fabric);

	if (!status && rc && rc != -ENOENT)
		status = fail(EXIT_USAGE, "no fabric in %s: %s", choice->config.fabric,
			      rc == -EPERM ? "it is another user's, or others may enter it"
					   : strerror(-rc));
	if (!status)
		status = start_watcher(choice->config.fabric);
	if (status)
		return status;
	restore_signals();
	execv(path, argv);
	return fail(EXIT_USAGE, "%s: %s", argv[0], strerror(errno));
}

int run_again(void)
{
	struct choice choice = {0};
	char line[300];
	int status;

	if (nic_config_read(&choice.config, line, sizeof(line)))
		return fail(EXIT_USAGE, "%s", line);
	status = find_libraries(&choice);
	return status ? status : start(&choice, "/proc/self/exe", arguments);
}

int run_main(int argc, char **argv)
{
	struct choice choice = {0};
	char path[PATH_MAX], line[300];
	int status;

	if (nic_config_read(&choice.config, line, sizeof(line)))
		return fail(EXIT_USAGE, "run: %s", line);
	status = read_choice(&choice, argc, argv);
	if (status >= 0)
		return status;
	status = find_runnable("run", argv[optind], path, sizeof(path));
	if (!status)
		status = find_libraries(&choice);
	if (!status && choice.config.pcap[0])
		status = check_output("--pcap", choice.config.pcap, OUTPUT_PCAP);
	return status ? status : start(&choice, path, argv + optind);
}
