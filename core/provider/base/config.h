/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_CONFIG_H
#define TM_PROVIDER_BASE_CONFIG_H
/*
 * The settings of a process's soft RNIC. They are variables of its environment, which `tidemark
 * run` sets from its options. One table (config.c) has both names of each setting and the values
 * that it may have, so that the same error is reported for a variable and for an option.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_FABRIC_BYTES 200
#define CONFIG_FAULTS_BYTES 4096
#define CONFIG_PATH_BYTES   1024
#define CONFIG_DEVICES_MOST 8
#define CONFIG_PCAP_MAGIC   0xa1b23c4d /* how the file of SETTING_PCAP begins: times in ns */

enum nic_setting {
	SETTING_FABRIC,
	SETTING_LINK,
	SETTING_ADDRESS,
	SETTING_SEED,
	SETTING_FAULTS,
	SETTING_PCAP,
	SETTING_KEYS,
	SETTING_GATHER,
	SETTING_LAYER,
	SETTING_DEVICES,
	SETTINGS
};

enum nic_link_kind { LINK_SHM, LINK_UDP };

struct nic_config {
	char fabric[CONFIG_FABRIC_BYTES]; /* directory */
	enum nic_link_kind link;
	uint32_t address; /* udp: IPv4, host byte order; loopback unless told otherwise */
	bool has_address;
	uint64_t seed;
	char faults[CONFIG_FAULTS_BYTES]; /* faults.h has the language */
	char pcap[CONFIG_PATH_BYTES];	  /* "": none */
	bool equal_keys;		  /* a region's lkey and rkey are one number */
	bool gathers_late;		  /* data are read when their completion is asked for */
	unsigned devices;		  /* 1 to CONFIG_DEVICES_MOST */
	bool infiniband;		  /* the port's link layer; else Ethernet */
	char why[200];			  /* what was expected, of the setting that was refused */
};

extern const struct nic_setting_name {
	const char *variable, *option;
	const char *old_variable; /* read when `variable` is not set; NULL: none */
} nic_settings[SETTINGS];

void nic_config_default(struct nic_config *config);
/* 0, or -EINVAL and config->why: what was expected. */
int nic_config_set(struct nic_config *config, enum nic_setting setting, const char *value);
/* The value as nic_config_set() takes it. */
void nic_config_show(const struct nic_config *config, enum nic_setting setting, char *text,
		     size_t size);
/* Do the settings go together? 0, or -EINVAL and config->why. */
int nic_config_check(struct nic_config *config);
/* All of it from the environment. 0, or -EINVAL and one line in `line`, without its end. */
int nic_config_read(struct nic_config *config, char *line, size_t size);

#endif
