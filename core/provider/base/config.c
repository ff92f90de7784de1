/* SPDX-License-Identifier: BSD-3-Clause */
/* See config.h. A fabric is given as a name, which stands for a directory of the user in /dev/shm,
 * or as a directory. */
#include "core/provider/base/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/provider/base/faults.h"

#define NAME_MAX_BYTES 64

const struct nic_setting_name nic_settings[SETTINGS] = {
	[SETTING_FABRIC] = {"TIDEMARK_FABRIC", "--fabric", "TIDEMARK_NET"},
	[SETTING_LINK] = {"TIDEMARK_LINK", "--link", NULL},
	[SETTING_ADDRESS] = {"TIDEMARK_ADDRESS", "--address", NULL},
	[SETTING_SEED] = {"TIDEMARK_SEED", "--seed", NULL},
	[SETTING_FAULTS] = {"TIDEMARK_FAULTS", "--fault", NULL},
	[SETTING_PCAP] = {"TIDEMARK_PCAP", "--pcap", NULL},
	[SETTING_KEYS] = {"TIDEMARK_KEYS", "--keys", NULL},
	[SETTING_GATHER] = {"TIDEMARK_GATHER", "--gather", NULL},
	[SETTING_LAYER] = {"TIDEMARK_LAYER", "--layer", NULL},
	[SETTING_DEVICES] = {"TIDEMARK_DEVICES", "--devices", NULL},
};

void nic_config_default(struct nic_config *config)
{
	*config = (struct nic_config){
		.link = LINK_SHM, .address = INADDR_LOOPBACK, .seed = 1, .devices = 1};
	snprintf(config->fabric, sizeof(config->fabric), "/dev/shm/tidemark-%u", geteuid());
}

static bool is_name(const char *text)
{
	size_t len = strspn(text,
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return len && !text[len] && len <= NAME_MAX_BYTES && text[0] != '.';
}

static int set_fabric(struct nic_config *config, const char *value)
{
	int n = -1;

	if (is_name(value))
		n = snprintf(config->fabric, sizeof(config->fabric), "/dev/shm/tidemark-%u-%s",
			     geteuid(), value);
	else if (value[0] == '/')
		n = snprintf(config->fabric, sizeof(config->fabric), "%s", value);
	if (n >= 0 && (size_t)n < sizeof(config->fabric))
		return 0;
	snprintf(config->why, sizeof(config->why),
		 "expected a name of at most %d letters, digits, '.', '_', '-', or the whole path "
		 "of a "
		 "directory, "
		 "at most %d bytes",
		 NAME_MAX_BYTES, CONFIG_FABRIC_BYTES - 1);
	return -EINVAL;
}

static int set_link(struct nic_config *config, const char *value)
{
	if (!strcmp(value, "shm"))
		config->link = LINK_SHM;
	else if (!strcmp(value, "udp"))
		config->link = LINK_UDP;
	else
		return -EINVAL;
	return 0;
}

static int set_either(bool *is_second, const char *first, const char *second, const char *value)
{
	*is_second = !strcmp(value, second);
	return *is_second || !strcmp(value, first) ? 0 : -EINVAL;
}

static int set_keys(struct nic_config *config, const char *value)
{
	return set_either(&config->equal_keys, "distinct", "equal", value);
}

static int set_gather(struct nic_config *config, const char *value)
{
	return set_either(&config->gathers_late, "early", "late", value);
}

static int set_layer(struct nic_config *config, const char *value)
{
	return set_either(&config->infiniband, "ethernet", "infiniband", value);
}

static int set_address(struct nic_config *config, const char *value)
{
	struct in_addr in;

	if (inet_pton(AF_INET, value, &in) != 1 || in.s_addr == htonl(INADDR_ANY) ||
	    in.s_addr == htonl(INADDR_BROADCAST) || IN_MULTICAST(ntohl(in.s_addr)))
		return -EINVAL;
	config->address = ntohl(in.s_addr);
	config->has_address = true;
	return 0;
}

static int set_seed(struct nic_config *config, const char *value)
{
	char *end;

	errno = 0;
	config->seed = strtoull(value, &end, 10);
	return value[0] >= '0' && value[0] <= '9' && !*end && !errno ? 0 : -EINVAL;
}

static int set_faults(struct nic_config *config, const char *value)
{
	struct faults faults;

	if (strlen(value) >= sizeof(config->faults)) {
		snprintf(config->why, sizeof(config->why), "expected less than %d bytes",
			 CONFIG_FAULTS_BYTES);
		return -EINVAL;
	}
	strcpy(config->faults, value);
	return faults_parse(&faults, value, 0, config->why, sizeof(config->why));
}

static int set_pcap(struct nic_config *config, const char *value)
{
	if (!*value || strlen(value) >= sizeof(config->pcap))
		return -EINVAL;
	strcpy(config->pcap, value);
	return 0;
}

static int set_devices(struct nic_config *config, const char *value)
{
	config->devices = (unsigned)value[0] - '0';
	return config->devices >= 1 && config->devices <= CONFIG_DEVICES_MOST && !value[1]
		       ? 0
		       : -EINVAL;
}

int nic_config_set(struct nic_config *config, enum nic_setting setting, const char *value)
{
	static const struct {
		int (*set)(struct nic_config *config, const char *value);
		const char *expected;
	} how[SETTINGS] = {
		[SETTING_FABRIC] = {set_fabric, ""},
		[SETTING_LINK] = {set_link, "expected shm or udp"},
		[SETTING_ADDRESS] = {set_address,
				     "expected an IPv4 address of this host, such as 10.0.0.1"},
		[SETTING_SEED] = {set_seed,
				  "expected a whole number from 0 to 18446744073709551615"},
		[SETTING_FAULTS] = {set_faults, ""},
		[SETTING_PCAP] = {set_pcap, "expected a file's name, of less than 1024 bytes"},
		[SETTING_KEYS] = {set_keys, "expected equal or distinct"},
		[SETTING_GATHER] = {set_gather, "expected early or late"},
		[SETTING_LAYER] = {set_layer, "expected ethernet or infiniband"},
		[SETTING_DEVICES] = {set_devices, "expected a number from 1 to 8"},
	};

	snprintf(config->why, sizeof(config->why), "%s", how[setting].expected);
	return how[setting].set(config, value);
}

static const char *show_word(const struct nic_config *config, enum nic_setting setting)
{
	switch (setting) {
	case SETTING_FABRIC:
		return config->fabric;
	case SETTING_LINK:
		return config->link == LINK_UDP ? "udp" : "shm";
	case SETTING_FAULTS:
		return config->faults;
	case SETTING_PCAP:
		return config->pcap;
	case SETTING_KEYS:
		return config->equal_keys ? "equal" : "distinct";
	case SETTING_GATHER:
		return config->gathers_late ? "late" : "early";
	case SETTING_LAYER:
		return config->infiniband ? "infiniband" : "ethernet";
	default:
		return NULL; /* a number */
	}
}

void nic_config_show(const struct nic_config *config, enum nic_setting setting, char *text,
		     size_t size)
{
	const uint32_t a = config->address;
	const char *word = show_word(config, setting);

	if (word)
		snprintf(text, size, "%s", word);
	else if (setting == SETTING_ADDRESS)
		snprintf(text, size, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	else
		snprintf(text, size, "%llu",
			 setting == SETTING_SEED ? (unsigned long long)config->seed
						 : config->devices);
}

/* The setting that does not go with the link; SETTINGS: all do. */
static enum nic_setting conflict(const struct nic_config *config)
{
	if (config->has_address && config->link != LINK_UDP)
		return SETTING_ADDRESS;
	if (config->infiniband && config->link == LINK_UDP)
		return SETTING_LAYER;
	return config->devices > 1 && config->link == LINK_UDP ? SETTING_DEVICES : SETTINGS;
}

int nic_config_check(struct nic_config *config)
{
	static const char *const why[SETTINGS] = {
		[SETTING_ADDRESS] = "an address is of the link udp; shm has none to choose",
		[SETTING_LAYER] = "the layer infiniband is of the link shm; udp is RoCE, over "
				  "Ethernet",
		[SETTING_DEVICES] = "several devices are of the link shm; udp has one address, and "
				    "so one device",
	};
	enum nic_setting setting = conflict(config);

	if (setting == SETTINGS)
		return 0;
	snprintf(config->why, sizeof(config->why), "%s", why[setting]);
	return -EINVAL;
}

int nic_config_read(struct nic_config *config, char *line, size_t size)
{
	nic_config_default(config);
	for (enum nic_setting i = 0; i < SETTINGS; i++) {
		const char *variable = nic_settings[i].variable, *value = getenv(variable);

		if ((!value || !*value) && nic_settings[i].old_variable) {
			variable = nic_settings[i].old_variable;
			value = getenv(variable);
		}
		if (!value || !*value || !nic_config_set(config, i, value))
			continue;
		snprintf(line, size, "%s=%.60s: %s", variable, value, config->why);
		return -EINVAL;
	}
	if (!nic_config_check(config))
		return 0;
	snprintf(line, size, "%s: %s", nic_settings[conflict(config)].variable, config->why);
	return -EINVAL;
}
