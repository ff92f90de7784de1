/* SPDX-License-Identifier: BSD-3-Clause */
/* See pm_replay.h. */
#include "checker/logs/pm_replay.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "core/array.h"
#include "core/pmem/crash.h"
#include "core/pmem/domain.h"

static uint64_t slot_bytes(const struct pm_file *file)
{
	return (file->len / PM_LINE + 1) * sizeof(uint32_t);
}

int pm_replay_open(struct pm_replay *r, const struct pm_log *log, const struct hardware *hw,
		   bool kill)
{
	bool room = true;
	memset(r, 0, sizeof(*r));
	r->log = log;
	r->kill = kill;
	r->hw = *hw;
	for (unsigned f = 0; f < log->files && room; f++) {
		const struct pm_file *file = &log->file[f];
		assert(file->before);
		r->durable[f] = pm_sparse_new(file->len);
		r->slot[f] = pm_sparse_new(slot_bytes(file));
		room = r->durable[f] && r->slot[f];
		for (uint64_t at = 0, n; room && pm_file_run(file, &at, &n); at += n)
			memcpy(r->durable[f] + at, file->before + at, n);
	}
	if (room)
		return 0;
	pm_replay_close(r);
	return -ENOMEM;
}

void pm_replay_close(struct pm_replay *r)
{
	for (unsigned f = 0; r->log && f < r->log->files; f++) {
		pm_sparse_free(r->durable[f], r->log->file[f].len);
		pm_sparse_free(r->slot[f], slot_bytes(&r->log->file[f]));
	}
	for (uint32_t i = 0; i < r->dirties; i++)
		free(r->dirty[i].version);
	free(r->dirty);
	free(r->flushed);
	free(r->landed);
	free(r->lost);
	memset(r, 0, sizeof(*r));
}

bool pm_replay_loses(const struct pm_replay *r, bool nic)
{
	return !r->kill && !domain_keeps_visible(&r->hw, nic);
}

/* Is what is stored or landed durable at once, and the rest of its line with it? */
static bool changes_durably(const struct pm_replay *r, const struct pm_event *e)
{
	return !pm_replay_loses(r, e->kind == PM_LAND) || (e->word && !r->hw.commit_visible);
}

/* --- a line --- */

static uint8_t *durable_line(const struct pm_replay *r, unsigned file, uint64_t line)
{
	assert(line < r->log->file[file].len / PM_LINE);
	return r->durable[file] + line * PM_LINE;
}

/* The line with its first `versions` versions in flight. */
static const uint8_t *line_as_of(const struct pm_replay *r, const struct pm_line *l,
				 unsigned versions)
{
	assert(versions <= l->versions);
	return versions ? l->version[l->first + versions - 1].content
			: durable_line(r, l->file, l->line);
}

void pm_replay_content(const struct pm_replay *r, const struct pm_line *l, unsigned left,
		       uint8_t out[PM_LINE])
{
	if (left <= l->versions) {
		memcpy(out, line_as_of(r, l, left), PM_LINE);
		return;
	}
	struct pmem_answer a = pmem_answer_split(l->versions, left);
	memcpy(out, line_as_of(r, l, a.over), PM_LINE);
	pmem_cut(a.words, line_as_of(r, l, a.version), out);
}

unsigned pm_replay_answers(const struct pm_replay *r, const struct pm_line *l)
{
	_Static_assert(PM_LINE == LINE, "both speak of the same lines");
	return pmem_answers(l->versions, pm_replay_torn(r));
}

enum line_torn pm_replay_torn(const struct pm_replay *r)
{
	return pm_replay_loses(r, true) ? (enum line_torn)r->hw.line_torn : TORN_OFF;
}

unsigned pm_left_whole(unsigned versions, unsigned left)
{
	return left <= versions ? left : pmem_answer_split(versions, left).over;
}

uint32_t pm_replay_event(const struct pm_line *l, unsigned nth)
{
	assert(nth < l->versions);
	return l->version[l->first + nth].event;
}

uint64_t pm_line_hash(unsigned file, uint64_t line, const uint8_t content[PM_LINE])
{
	return XXH3_64bits_withSeed(content, PM_LINE, line * PM_FILES + file);
}

uint64_t pm_replay_hash(const struct pm_replay *r, struct pm_line *l, unsigned left)
{
	uint8_t content[PM_LINE];
	if (!left || (left == l->versions && l->hashed))
		return left ? l->hash : 0;
	uint64_t hash = pm_line_hash(l->file, l->line, durable_line(r, l->file, l->line));
	pm_replay_content(r, l, left, content);
	hash ^= pm_line_hash(l->file, l->line, content);
	if (left == l->versions) {
		l->hash = hash;
		l->hashed = true;
	}
	return hash;
}

/* The dirty line, or a new one. NULL without memory. */
static struct pm_line *dirty_line(struct pm_replay *r, unsigned file, uint64_t line)
{
	uint32_t *slot = &r->slot[file][line];
	assert(file < r->log->files && line < r->log->file[file].len / PM_LINE);
	if (*slot)
		return &r->dirty[*slot - 1];
	if (!ARRAY_RESERVE(r->dirty, r->dirties, 1, r->dirty_room))
		return NULL;
	r->dirty[r->dirties] = (struct pm_line){
		.file = (uint8_t)file, .line = line, .born = ++r->born};
	*slot = ++r->dirties;
	return &r->dirty[*slot - 1];
}

/* The line's first versions are durable, up to the `upto`th of all that it ever had. */
static void make_durable(struct pm_replay *r, unsigned file, uint64_t line, uint32_t upto,
			 pm_durable_fn *durable, void *arg)
{
	uint32_t *slot = &r->slot[file][line];
	if (!*slot)
		return;
	struct pm_line *l = &r->dirty[*slot - 1];
	uint8_t *content = durable_line(r, file, line);
	assert(*slot <= r->dirties && l->file == file && l->line == line);
	if (l->durable_versions >= upto)
		return;
	assert(upto <= l->durable_versions + l->versions);
	r->hash ^= pm_line_hash(file, line, content);
	uint32_t more = upto - l->durable_versions;
	memcpy(content, line_as_of(r, l, more), PM_LINE);
	l->first += more;
	l->versions -= more;
	l->durable_versions = upto;
	l->hashed = false;
	r->hash ^= pm_line_hash(file, line, content);
	if (durable)
		durable(arg, file, line, content);
	if (l->versions)
		return;
	free(l->version);
	struct pm_line last = r->dirty[--r->dirties];
	r->dirty[*slot - 1] = last;
	r->slot[last.file][last.line] = *slot;
	r->slot[file][line] = 0;
}

/* --- events --- */

/* What its line holds now waits, because of this event. */
static bool wait_for(const struct pm_line *l, const struct pm_replay *r, const struct pm_event *e,
		     struct pm_waiting **list, uint32_t *n, uint32_t *room)
{
	if (!ARRAY_RESERVE(*list, *n, 1, *room))
		return false;
	(*list)[(*n)++] = (struct pm_waiting){.line = l->line,
					      .event = (uint32_t)(e - r->log->event),
					      .upto = l->durable_versions + l->versions,
					      .born = l->born,
					      .file = l->file};
	return true;
}

static int flush(struct pm_replay *r, const struct pm_event *e)
{
	uint64_t last = (e->off + e->len - 1) / PM_LINE;
	for (uint64_t line = e->off / PM_LINE; line <= last; line++) {
		uint32_t slot = r->slot[e->file][line];
		if (slot &&
		    !wait_for(&r->dirty[slot - 1], r, e, &r->flushed, &r->flushes, &r->flush_room))
			return -ENOMEM;
	}
	return 0;
}

bool pm_replay_waits(const struct pm_log *log, const struct pm_event *fence, uint32_t thread)
{
	return !log->threads || thread == fence->thread;
}

/* Does what waits because of event `by` wait for event `e`? */
typedef bool ends_fn(const struct pm_replay *r, const struct pm_event *e,
		     const struct pm_event *by);

static bool fences(const struct pm_replay *r, const struct pm_event *e, const struct pm_event *by)
{
	return pm_replay_waits(r->log, e, by->thread);
}

/* Has it not become durable in another way? */
static bool is_on_its_way(const struct pm_replay *r, const struct pm_waiting *f)
{
	uint32_t slot = r->slot[f->file][f->line];
	return slot && r->dirty[slot - 1].born == f->born &&
	       r->dirty[slot - 1].durable_versions < f->upto;
}

static bool ends_any(const struct pm_replay *r, const struct pm_event *e,
		     const struct pm_waiting *list, uint32_t n, ends_fn *ends)
{
	for (uint32_t i = 0; i < n; i++)
		if (ends(r, e, &r->log->event[list[i].event]) && is_on_its_way(r, &list[i]))
			return true;
	return false;
}

/* What waits for this event is durable. Returns how many of the list still wait. */
static uint32_t end_waits(struct pm_replay *r, const struct pm_event *e, struct pm_waiting *list,
			  uint32_t n, ends_fn *ends, pm_durable_fn *durable, void *arg)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct pm_waiting w = list[i];
		if (!is_on_its_way(r, &w))
			continue;
		if (ends(r, e, &r->log->event[w.event]))
			make_durable(r, w.file, w.line, w.upto, durable, arg);
		else
			list[kept++] = w;
	}
	return kept;
}

/* --- what nothing has shown yet: landings, non-temporal stores --- */

/* May a message have been acknowledged, and not have landed? */
static bool acks_early(const struct pm_replay *r)
{
	return !r->kill && r->hw.ack_early && !domain_keeps_nic_buffers(&r->hw);
}

/* May it be that its lines have not landed in this order? What is in the NIC's buffers need not
 * have landed to survive. */
static bool shuffles(const struct pm_replay *r)
{
	return dma_may_pass(&r->hw, true) && (r->kill || !domain_keeps_nic_buffers(&r->hw));
}

/* Does it wait in its CPU's buffers for non-temporal stores? No failure of the power leaves them;
 * where it takes caches too, they are like other stores. */
static bool is_buffered(const struct pm_replay *r, const struct pm_event *e)
{
	return e->kind == PM_STORE && e->nt && r->hw.nt_buffered && !r->kill &&
	       !pm_replay_loses(r, false);
}

static bool may_be_late(const struct pm_replay *r, const struct pm_event *e)
{
	if (is_buffered(r, e))
		return true;
	return e->kind == PM_LAND && e->message && !pm_replay_loses(r, true) &&
	       (acks_early(r) || shuffles(r));
}

/* Does event `e` show that this non-temporal store has left its CPU's buffers? Its thread's stores
 * and flushes of other lines do not wait for it. Anybody else may have looked at it. */
static bool shows_nt(const struct pm_event *e, const struct pm_event *l)
{
	if (e->kind == PM_MARK)
		return false;
	if (e->thread != l->thread || (e->kind != PM_STORE && e->kind != PM_FLUSH))
		return true;
	return !e->nt && pm_event_meets(e, l->file, l->off / PM_LINE);
}

/* Does event `e` show that the landing, or the non-temporal store, `l` has happened? */
static bool shows(const struct pm_replay *r, const struct pm_event *e, const struct pm_event *l)
{
	if (l->kind == PM_STORE)
		return shows_nt(e, l);
	switch ((enum pm_event_kind)e->kind) {
	case PM_LAND:
		return e->thread == l->thread && e->message != l->message &&
		       (!e->message || (!acks_early(r) && !dma_may_pass(&r->hw, false)));
	case PM_RDMA_FLUSH:
	case PM_COMMIT:
	case PM_PUSH:
		return e->thread == l->thread;
	case PM_ACK:
		if (!acks_early(r))
			return true;
		/* fallthrough */
	default:
		return e->process && e->process == l->process;
	}
}

void pm_replay_allow(const struct pm_replay *r, unsigned *left)
{
	const struct pm_event *event = r->log->event;
	bool changed = !dma_may_pass(&r->hw, false);
	while (changed) {
		uint32_t losts = 0; /* queue pairs that have lost something: their first one */
		changed = false;
		for (uint32_t i = 0; i < r->landings; i++) {
			const struct pm_waiting *w = &r->landed[i];
			const struct pm_event *l = &event[w->event];
			uint32_t k = 0;
			if (l->kind != PM_LAND || !is_on_its_way(r, w))
				continue;
			uint32_t d = r->slot[w->file][w->line] - 1;
			uint32_t before = w->upto - 1 - r->dirty[d].durable_versions;
			while (k < losts && event[r->lost[k]].thread != l->thread)
				k++;
			if (k == losts) {
				assert(losts < r->landing_room); /* as is r->lost */
				if (left[d] <= before)
					r->lost[losts++] = w->event;
			} else if (left[d] > before &&
				   !dma_may_pass(&r->hw, event[r->lost[k]].message == l->message)) {
				left[d] = before;
				changed = true;
			}
		}
	}
}

/* --- all events --- */

/* The landing stays in flight until something shows it. */
static int wait_for_sign(struct pm_replay *r, const struct pm_line *l, const struct pm_event *e)
{
	return ARRAY_RESERVE(r->lost, r->landings, 1, r->lost_room) &&
			       wait_for(l, r, e, &r->landed, &r->landings, &r->landing_room)
		       ? 0
		       : -ENOMEM;
}

static bool add_version(const struct pm_replay *r, struct pm_line *l, const struct pm_event *e)
{
	if (l->first && l->first >= l->versions) {
		/* Those that are durable make room. */
		memcpy(l->version, l->version + l->first, l->versions * sizeof(*l->version));
		l->first = 0;
	}
	if (!ARRAY_ROOM_FOR_ONE(l->version, l->first + l->versions))
		return false;
	struct pm_version *v = &l->version[l->first + l->versions];
	assert(e->off % PM_LINE + e->len <= PM_LINE);
	v->event = (uint32_t)(e - r->log->event);
	memcpy(v->content, line_as_of(r, l, l->versions), PM_LINE);
	memcpy(v->content + e->off % PM_LINE, r->log->bytes + e->data, e->len);
	l->versions++;
	l->hashed = false;
	return true;
}

static int change(struct pm_replay *r, const struct pm_event *e, pm_durable_fn *durable, void *arg)
{
	struct pm_line *l = dirty_line(r, e->file, e->off / PM_LINE);
	if (!l || !add_version(r, l, e))
		return -ENOMEM;
	r->last_change = (size_t)(e - r->log->event);
	if (may_be_late(r, e))
		return wait_for_sign(r, l, e);
	if (changes_durably(r, e))
		make_durable(r, l->file, l->line, l->durable_versions + l->versions, durable, arg);
	return 0;
}

/* How many of the line's versions does this event make durable? A line that goes to the media goes
 * as a whole, with what came before. */
static uint32_t reaches(const struct pm_replay *r, const struct pm_event *e,
			const struct pm_line *l)
{
	const enum nic_request request = e->kind == PM_COMMIT ? NIC_COMMIT
					 : e->kind == PM_PUSH ? NIC_READ
							      : NIC_FLUSH;
	struct nic_cover cover;
	uint32_t upto = l->versions;
	if (e->kind == PM_SYNC)
		return pm_event_meets(e, l->file, l->line) ? upto : 0;
	assert(request != NIC_FLUSH || e->kind == PM_RDMA_FLUSH);
	if (!domain_nic_drains(&r->hw, request, e->off, e->file == l->file ? e->len : 0, &cover))
		return 0;
	for (; upto; upto--) {
		const struct pm_event *by = &r->log->event[pm_replay_event(l, upto - 1)];
		if (by->kind == PM_LAND && by->thread == e->thread &&
		    nic_covers(&cover, by->send, by->off, by->len))
			break;
	}
	return upto;
}

/* Of a long range, only the dirty lines are looked at. */
static void sync(struct pm_replay *r, const struct pm_event *e, pm_durable_fn *durable, void *arg)
{
	for (unsigned i = r->dirties; i-- > 0;) {
		const struct pm_line *l = &r->dirty[i];
		make_durable(r, l->file, l->line, l->durable_versions + reaches(r, e, l), durable,
			     arg);
	}
}

static bool makes_durable(const struct pm_replay *r, const struct pm_event *e)
{
	if (e->kind == PM_FENCE)
		return ends_any(r, e, r->flushed, r->flushes, fences);
	for (unsigned i = 0; i < r->dirties; i++)
		if (reaches(r, e, &r->dirty[i]))
			return true;
	return false;
}

/* Of stores that were noticed together, or that one call has made, nobody knows the order. */
static bool is_of_group(const struct pm_replay *r)
{
	const struct pm_event *e = &r->log->event[r->at];
	return r->at && ((e->noticed && e[-1].noticed) ||
			 (e->together && e[-1].together && e->source == e[-1].source));
}

bool pm_replay_cut(const struct pm_replay *r)
{
	if (r->at == r->log->events)
		return true;
	const struct pm_event *e = &r->log->event[r->at];
	if (ends_any(r, e, r->landed, r->landings, shows))
		return true;
	switch ((enum pm_event_kind)e->kind) {
	case PM_STORE:
	case PM_LAND:
		return changes_durably(r, e) && !is_of_group(r) && !may_be_late(r, e);
	case PM_FENCE:
	case PM_SYNC:
	case PM_RDMA_FLUSH:
	case PM_COMMIT:
	case PM_PUSH:
		return pm_replay_loses(r, true) && makes_durable(r, e);
	case PM_ACK:
	case PM_MARK:
		return true;
	default:
		return false;
	}
}

int pm_replay_step(struct pm_replay *r, pm_durable_fn *durable, void *arg)
{
	if (r->at == r->log->events)
		return 0;
	const struct pm_event *e = &r->log->event[r->at];
	int error = 0;
	r->landings = end_waits(r, e, r->landed, r->landings, shows, durable, arg);
	switch ((enum pm_event_kind)e->kind) {
	case PM_STORE:
	case PM_LAND:
		error = change(r, e, durable, arg);
		break;
	/* Where all that was stored is left, flushed or not, nothing waits for these. */
	case PM_FLUSH:
		error = pm_replay_loses(r, true) ? flush(r, e) : 0;
		break;
	case PM_FENCE:
		if (pm_replay_loses(r, true))
			r->flushes = end_waits(r, e, r->flushed, r->flushes, fences, durable, arg);
		break;
	case PM_SYNC:
	case PM_RDMA_FLUSH:
	case PM_COMMIT:
	case PM_PUSH:
		if (pm_replay_loses(r, true))
			sync(r, e, durable, arg);
		break;
	case PM_ACK:
		r->acks++;
		break;
	case PM_MARK:
		r->mark = e;
		break;
	case PM_EVENT_KINDS:
		break;
	}
	if (error)
		return error;
	r->at++;
	return 1;
}
