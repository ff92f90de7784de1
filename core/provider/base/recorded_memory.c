/* SPDX-License-Identifier: BSD-3-Clause */
/* See recorded_memory.h. */
#include "core/provider/base/recorded_memory.h"
#include "core/provider/base/fault_safe.h"
#include "core/record/record_hooks.h"
#include "core/rnic/transport/packet.h"

static int check_recorded(void *memory, const void *at, uint64_t len, unsigned access,
			  struct pm_place *place)
{
	int error = fault_safe_memory.check(memory, at, len, access, place);
	if (!error && access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		tidemark_record_hooks.registered(at, len);
	return error;
}

static enum record_landing how(const struct packet_name *name)
{
	return name->answer ? LANDED_READ : name->send ? LANDED_SEND : LANDED_WRITE;
}

static bool write_how(void *memory, const struct rnic_mr *mr, uint8_t *to, const void *from,
		      uint32_t len, const struct packet_name *name, enum record_landing landing,
		      uint32_t message)
{
	tidemark_record_hooks.before_landing(to, len);
	if (!fault_safe_memory.write(memory, mr, to, from, len, name))
		return false;
	tidemark_record_hooks.landed(to, len, landing, name->qp, message);
	return true;
}

static bool write_recorded(void *memory, const struct rnic_mr *mr, uint8_t *to, const void *from,
			   uint32_t len, const struct packet_name *name)
{
	return write_how(memory, mr, to, from, len, name, how(name),
			 name->answer ? 0 : name->request);
}

/* It reads first, which pushes what the queue pair has landed before. */
static bool compare_swap_recorded(uint64_t *at, uint64_t compare, uint64_t swap, uint64_t *original,
				  const struct packet_name *name)
{
	tidemark_record_hooks.pushed(name->qp);
	tidemark_record_hooks.before_landing(at, sizeof(*at));
	if (!fault_safe_memory.compare_swap(at, compare, swap, original, name))
		return false;
	if (*original == compare)
		tidemark_record_hooks.landed(at, sizeof(*at), LANDED_WRITE, name->qp, 0);
	return true;
}

static bool flush_recorded(void *memory, const struct rnic_mr *mr, const uint8_t *at, uint64_t len,
			   const struct packet_name *name)
{
	if (!fault_safe_memory.flush(memory, mr, at, len, name))
		return false;
	if (mr)
		tidemark_record_hooks.flushed(at, len, name->qp);
	else
		tidemark_record_hooks.pushed(name->qp);
	return true;
}

static bool commit_recorded(void *memory, const struct rnic_mr *mr, const uint8_t *at, uint64_t len,
			    const struct packet_name *name)
{
	if (!fault_safe_memory.commit(memory, mr, at, len, name))
		return false;
	tidemark_record_hooks.committed(at, len, name->qp);
	return true;
}

/* In the two steps that it has here. What is not posted is not acknowledged before it lands. */
static bool commit_word_recorded(void *memory, const struct rnic_mr *mr, uint8_t *at, uint64_t word,
				 const struct packet_name *name)
{
	return write_how(memory, mr, at, &word, sizeof(word), name, LANDED_WORD, 0) &&
	       commit_recorded(memory, mr, at, sizeof(word), name);
}

const struct rnic_memory *process_memory(void)
{
	static struct rnic_memory recorded;
	if (!&tidemark_record_hooks)
		return &fault_safe_memory;
	recorded = fault_safe_memory;
	recorded.check = check_recorded;
	recorded.write = write_recorded;
	recorded.compare_swap = compare_swap_recorded;
	recorded.flush = flush_recorded;
	recorded.commit = commit_recorded;
	recorded.commit_word = commit_word_recorded;
	return &recorded;
}

void process_deregisters(const void *at, size_t len)
{
	if (&tidemark_record_hooks)
		tidemark_record_hooks.deregistered(at, len);
}

void process_posts(const void *caller)
{
	if (&tidemark_record_hooks)
		tidemark_record_hooks.acknowledges(caller);
}
