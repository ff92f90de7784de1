/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_WORLD_H
#define TM_CHECKER_WORLD_WORLD_H
/*
 * A simulated machine with its store, its RNICs and its clients. World 0 runs the
 * workload. World i + 1 boots from what a power failure left of world i, recovers,
 * has every key read back by a client, and then lives on (life.h) or proves with one PUT and one
 * GET that the store still works.
 *
 * In world 0 the server's process can die alone (DEATH_SERVER): memory and caches stay as they are,
 * a new process recovers the pool, and clients connect again as soon as an operation fails. When
 * all have ended one more client reads every key.
 */
#include "checker/judge/history.h"
#include "checker/world/life.h"
#include "checker/world/setup.h"
#include "core/pmem/crash.h"

#define WORLDS (SETUP_POWER_FAILURES + 1)

struct world;
typedef void world_observer(void *arg, struct world *world, const struct choice_point *at);
/* A client's operation has returned; the next one begins when this does. `error`: of OP_CLEAN; of
 * the others see the history. On the client's task, which may sleep. */
typedef void world_between(void *arg, struct world *world, const struct workload_op *op, int error);

/* How `why` below ends if the run was given up because it repeated itself. */
#define WORLD_REPEATS ": the same steps repeat, with no chosen delay that will end"

/* What became of a run apart from its history. */
struct world_result {
	enum sim_end end;
	bool live_broken; /* an operation does not terminate, or the store is unusable */
	int live_op;	  /* the operation that does not end (index in the history), or -1 */
	bool unended;	  /* LIVE: what does not end is a cleaning, and all else does */
	bool fsck_broken;
	bool ok_broken; /* what is not in the history failed for no reason that was injected:
			 * connecting, a cleaning, what proves life */
	bool agree_broken;
	char why[200]; /* of LIVE, one line */
	char ok_why[200], fsck_why[200], agree_why[200];
	uintptr_t pc; /* the line of the store's code that `why` is about; 0: none */
	uint32_t recovery[STEP_KINDS]; /* steps that the store's recovery took */
};

/* An operation of a machine that has recovered. */
struct world_get {
	struct workload_op op;
	int32_t error;	  /* the store's */
	uint32_t len, at; /* of what it returned, and where that begins in world_gets.byte */
	uint16_t client;  /* 0: the reader */
	uint8_t returned, unexplained;
	uint8_t joined, aborted; /* of the transaction of the one before; it was aborted */
};

/* All of them: GETs of all keys, if the store has any, and the looks (setup_look()); a life, and
 * the GETs and looks once more. */
#define WORLD_GETS (2 * SETUP_LOOKS + LIFE_OPS)
struct world_gets {
	bool kept; /* until then they are not noted */
	unsigned n, events;
	struct world_get get[WORLD_GETS];
	uint16_t event[2 * WORLD_GETS]; /* in order: twice the place in get[], and 1: it returned */
	uint8_t *byte;
	uint32_t bytes, longest; /* of `byte`; the longest value that there is */
};

struct world_client {
	struct world *world;
	unsigned number;
	void *handle;
	bool done, dead;
	bool died;     /* a fault has killed it; if it had more to do, it has come back */
	bool away;     /* it has left, or not come yet */
	bool lost;     /* its connection failed since the server's process has died */
	int op;	       /* in the history, -1: none open */
	uint8_t apart; /* enum tm_operation: one that is not in the history is open, a cleaning or
			* what proves life; 0: none */
	unsigned life; /* of the server, when it connected last, ... */
	unsigned primary; /* ... and the one that clients asked then */
	unsigned get;	  /* its operation's place in world_gets, where they are kept */
	uint16_t opens;
	struct tm_answer *answer; /* of operations of the store's own; NULL: there was none */
	unsigned next;		  /* of its operations in the workload: the one to begin next */
	struct tm_env *env;
};

/* The store has recovered, and nothing is wrong with it. True: the world ends here. */
typedef bool world_recovered(void *arg, struct world *world);

struct world {
	const struct setup *setup;
	unsigned machine;
	struct sim *sim;
	struct pmem *pm;
	struct history *history; /* shared by all worlds of a stack */
	int32_t *op_of_value;	 /* setup->value's index -> operation in the history; shared */
	struct world_result result;
	sim_tracer *tracer; /* for the event trace, or NULL */
	void *tracer_arg;
	bool wordless;		/* as sim_trace_no_words() */
	world_between *between; /* or NULL */
	void *between_arg;
	world_recovered *recovered; /* or NULL */
	void *recovered_arg;
	bool eager;		    /* tests: undecided lines are decided at boot */
	bool anywhere;		    /* tests: as sim_set_anywhere() */
	void (*at_rest)(void *arg); /* or NULL: machine 0, as sim_set_at_rest() */
	void *rest_arg;
	/* of the run that is on */
	struct rnic_net *net;
	struct source *source;
	world_observer *observer;
	void *observer_arg;
	struct tm_env server[SIM_SERVERS];
	bool loading, booted, agreeing; /* members are asked what they hold */
	bool filling;			/* the load phase goes on until the store is full */
	uint32_t serving;		/* bits: this server's process takes connections */
	unsigned failures;	      /* what has happened to single servers on this machine, ... */
	unsigned failed[SIM_SERVERS]; /* ... and what of it to this one last; 0: nothing */
	uint32_t gone; /* likewise: it has lost its power for ever, on this machine or before it */
	bool reread;   /* machine 0: all keys are read, since the server's process or a client has
			  died, or the log was cleaned */
	uint64_t reread_ns; /* since when */
	unsigned opened, ended;
	/* By number; the last are those of a machine that has recovered. */
	struct world_client client[WORKLOAD_MAX_CLIENTS + 1 + LIFE_CLIENTS];
	struct life life;
	struct world_gets gets;
};

struct worlds {
	/* The store does not get through the load phase; or it has less room than it was made for,
	 * or does not answer when that is used up. `failed`: then what that came to. */
	bool unloaded, unfilled;
	struct world_result failed;
	struct rt_config loaded; /* of several servers, as the load phase left it */
	struct pmem_stack *stack;
	struct history *history;
	int32_t *op_of_value;
	struct world world[WORLDS];
};

/* Worlds for pools of up to setup->pm_len bytes. 0 or -ENOMEM. The load phase is run, its
 * image kept in setup->image. -EIO: ws->unloaded; see worlds_why(). Nothing else can be run then,
 * and world_run() comes to what the load phase came to. */
int worlds_open(struct worlds *ws, struct setup *setup);
/* A name of all that machine `machine` > 0 takes over from the one before it, besides PM, if that
 * fails now, or has failed: what the configuration service knows, and which servers are gone. 0:
 * one server. */
uint64_t worlds_inherited(const struct worlds *ws, unsigned machine);
/* Is there room for as many updates as the store was made for (tm_params.updates), and does it
 * answer when there is no more? The worlds are then as they were. 0, or -EIO: ws->unfilled; see
 * worlds_why(). */
int worlds_fill(struct worlds *ws);
/* In place of world_run(): the load phase, or the filling, that has failed; once more if world 0
 * has a tracer. */
void worlds_fail_again(struct worlds *ws);
/* What the store could not do, in a sentence, and the line of its source where that was seen. */
#define WORLDS_WHY 300
void worlds_why(const struct worlds *ws, char why[WORLDS_WHY]);
void worlds_close(struct worlds *ws);

/* Run the workload. The history starts anew. Ends by itself, or with SIM_POWER. The
 * world stays as it is (a later world may boot from it) until world_end(). */
void world_run(struct worlds *ws, struct source *source, world_observer *observer, void *arg);
/* Boot world `machine` > 0, after history_crash(). `prove_life`: PUT and GET at the end, if the
 * source wants no life. */
void world_recover(struct worlds *ws, unsigned machine, struct source *source,
		   world_observer *observer, void *arg, bool prove_life);
void world_end(struct worlds *ws, unsigned machine);
/* As world_run() of the same worlds, once checkpoint_return() has made them what they were: what
 * came before has happened, and the source, the same, is asked only about what comes after it. */
void world_resume(struct worlds *ws, struct source *source, world_observer *observer, void *arg);
/* Machine `machine` > 0 has power, and nothing runs on it: it is led (core/pmem/course.h). */
void world_stand(struct worlds *ws, unsigned machine, struct source *source);
/* For the history of a machine that has recovered: the operation begins once more. */
void world_begins(struct world *w, const struct world_get *get);
/* It returns, as operation `op` of the history, if it did; `bytes`: where get->at counts from. */
void world_returns(struct world *w, int op, const struct world_get *get, const uint8_t *bytes);
/* The value that an operation takes, by its name: detail->value.len bytes. */
void world_value(const struct history_detail *detail, uint8_t *out);
/* Number of keys that are read, each by a GET. */
unsigned world_keys_read(const struct world *w);

/* The label of an operation of the history; of the load phase, or -1: none. */
struct op_label world_op_label(const struct history *h, int op);
/* Its name: "c1.put2"; load: "load k1". */
void world_op_name(const struct setup *s, const struct history *h, int op, char *buf, size_t n);

#endif
