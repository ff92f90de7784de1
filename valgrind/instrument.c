/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of events.c, put into the program's code.
 *
 * After each statement that writes memory comes a call that reads there what was written. It is
 * made only if the address is between the lowest and the highest of PM: two comparisons' worth of
 * code for a store to anything else. The two bounds are read once a superblock, for only a system
 * call changes them, and no superblock goes on after one.
 *
 * CLFLUSH ends a superblock, with a jump that makes Valgrind forget its translations of the bytes
 * around, for code that changes itself. CLWB and CLFLUSHOPT, which VEX (3.19) does not know, end it
 * with the kind of jump for what is no instruction; here it becomes an ordinary one to what
 * follows, after the call. A program that asks CPUID does not use them, as Valgrind's CPU has none.
 */
#include "tidepm.h"
#include "../core/instruction.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_machine.h"
#include "pub_tool_vki.h"
#include "libvex_guest_amd64.h"

struct block {
	IRSB *out;
	IRTemp low, span; /* IRTemp_INVALID: not read yet */
	Addr ip;	  /* of the instruction that is at hand */
	Int offset_ip;
};

static IRExpr *number(ULong n)
{
	return IRExpr_Const(IRConst_U64(n));
}

static IRExpr *assign(struct block *b, IRType type, IRExpr *e)
{
	IRTemp t = newIRTemp(b->out->tyenv, type);
	addStmtToIRSB(b->out, IRStmt_WrTmp(t, e));
	return IRExpr_RdTmp(t);
}

static IRExpr *read_word(struct block *b, const UWord *word)
{
	return assign(b, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, number((Addr)word)));
}

/* guard NULL: always. */
static void call(struct block *b, IRExpr *guard, const HChar *name, void *function, IRExpr **args)
{
	UInt n = 0;
	while (args[n])
		n++;
	IRDirty *d = unsafeIRDirty_0_N((Int)n, name, VG_(fnptr_to_fnentry)(function), args);
	if (guard)
		d->guard = guard;
	addStmtToIRSB(b->out, IRStmt_Dirty(d));
}
#define CALL(b, guard, function, ...) call(b, guard, #function, (void *)(function), __VA_ARGS__)

/* Stack traces begin at the program counter, which VEX does not keep for all instructions. */
static void set_ip(struct block *b)
{
	addStmtToIRSB(b->out, IRStmt_Put(b->offset_ip, number(b->ip)));
}

/* May `size` bytes at the address be PM? */
static IRExpr *near_pm(struct block *b, IRExpr *address)
{
	if (b->low == IRTemp_INVALID) {
		b->low = read_word(b, &pm_low)->Iex.RdTmp.tmp;
		b->span = read_word(b, &pm_span)->Iex.RdTmp.tmp;
	}
	IRExpr *at = assign(b, Ity_I64, IRExpr_Binop(Iop_Sub64, address, IRExpr_RdTmp(b->low)));
	return assign(b, Ity_I1, IRExpr_Binop(Iop_CmpLT64U, at, IRExpr_RdTmp(b->span)));
}

static IRExpr *both(struct block *b, IRExpr *one, IRExpr *other)
{
	return assign(b, Ity_I1, IRExpr_Binop(Iop_And1, one, other));
}

/* `guard` NULL: whenever the address is PM. */
static void stored(struct block *b, IRExpr *address, Int size, IRExpr *guard)
{
	struct operand unused;
	IRExpr **args = mkIRExprVec_2(address, number((ULong)size));
	if (size <= PM_SLACK) {
		IRExpr *near = near_pm(b, address);
		guard = guard ? both(b, near, guard) : near;
	}
	switch (insn_at(b->ip, &unused)) {
	case INSN_PAST_CACHE:
		CALL(b, guard, event_store_past_cache, args);
		break;
	case INSN_STRING:
		CALL(b, guard, event_store_string, args);
		break;
	default:
		CALL(b, guard, event_store, args);
	}
}

static IROp equal(IRType type)
{
	switch (type) {
	case Ity_I8:
		return Iop_CasCmpEQ8;
	case Ity_I16:
		return Iop_CasCmpEQ16;
	case Ity_I32:
		return Iop_CasCmpEQ32;
	default:
		tl_assert(type == Ity_I64);
		return Iop_CasCmpEQ64;
	}
}

static void compare_and_swap(struct block *b, IRStmt *s)
{
	IRCAS *cas = s->Ist.CAS.details;
	IRType type = typeOfIRExpr(b->out->tyenv, cas->dataLo);
	Int size = sizeofIRType(type);
	IRExpr *flushed = read_word(b, &pm_flushed);
	IRExpr *wait = assign(b, Ity_I1, IRExpr_Binop(Iop_CmpNE64, flushed, number(0)));
	CALL(b, wait, event_locked, mkIRExprVec_0());
	addStmtToIRSB(b->out, s);
	IRExpr *same = assign(b, Ity_I1,
			      IRExpr_Binop(equal(type), IRExpr_RdTmp(cas->oldLo), cas->expdLo));
	if (cas->oldHi != IRTemp_INVALID) {
		IRExpr *high = assign(
			b, Ity_I1,
			IRExpr_Binop(equal(type), IRExpr_RdTmp(cas->oldHi), cas->expdHi));
		same = both(b, same, high);
		size *= 2;
	}
	stored(b, cas->addr, size, same);
}

static void fence(struct block *b, IRStmt *s)
{
	struct operand unused;
	addStmtToIRSB(b->out, s);
	if (s->Ist.MBE.event != Imbe_Fence || insn_at(b->ip, &unused) == INSN_LFENCE)
		return;
	IRExpr *touched = read_word(b, &pm_touched);
	IRExpr *any = assign(b, Ity_I1, IRExpr_Binop(Iop_CmpNE64, touched, number(0)));
	set_ip(b);
	CALL(b, any, event_fence, mkIRExprVec_0());
}

/* The operand's address, while the guest's registers are as before the instruction. */
static IRExpr *effective_address(struct block *b, const struct operand *o)
{
	Int rax = offsetof(VexGuestAMD64State, guest_RAX);
	IRExpr *sum = number((ULong)o->displacement);
	if (o->base >= 0) {
		IRExpr *base = assign(b, Ity_I64, IRExpr_Get(rax + 8 * o->base, Ity_I64));
		sum = assign(b, Ity_I64, IRExpr_Binop(Iop_Add64, base, sum));
	}
	if (o->index >= 0) {
		IRExpr *index = assign(b, Ity_I64, IRExpr_Get(rax + 8 * o->index, Ity_I64));
		IRExpr *shift = IRExpr_Const(IRConst_U8((UChar)o->shift));
		index = assign(b, Ity_I64, IRExpr_Binop(Iop_Shl64, index, shift));
		sum = assign(b, Ity_I64, IRExpr_Binop(Iop_Add64, sum, index));
	}
	if (o->narrow)
		sum = assign(b, Ity_I64, IRExpr_Binop(Iop_And64, sum, number(0xffffffff)));
	if (o->segment) {
		Int offset = o->segment == 0x64 ? offsetof(VexGuestAMD64State, guest_FS_CONST)
						: offsetof(VexGuestAMD64State, guest_GS_CONST);
		IRExpr *segment = assign(b, Ity_I64, IRExpr_Get(offset, Ity_I64));
		sum = assign(b, Ity_I64, IRExpr_Binop(Iop_Add64, sum, segment));
	}
	return sum;
}

static void flush(struct block *b, const struct operand *o)
{
	IRExpr *address = effective_address(b, o);
	IRExpr *near = near_pm(b, address);
	set_ip(b);
	CALL(b, near, event_flush, mkIRExprVec_1(address));
}

static void statement(struct block *b, IRStmt *s)
{
	const IRTypeEnv *types = b->out->tyenv;
	switch (s->tag) {
	case Ist_IMark:
		b->ip = s->Ist.IMark.addr;
		addStmtToIRSB(b->out, s);
		break;
	case Ist_Store:
		addStmtToIRSB(b->out, s);
		stored(b, s->Ist.Store.addr, sizeofIRType(typeOfIRExpr(types, s->Ist.Store.data)),
		       NULL);
		break;
	case Ist_StoreG: {
		IRStoreG *g = s->Ist.StoreG.details;
		addStmtToIRSB(b->out, s);
		stored(b, g->addr, sizeofIRType(typeOfIRExpr(types, g->data)), g->guard);
		break;
	}
	case Ist_CAS:
		compare_and_swap(b, s);
		break;
	case Ist_Dirty: {
		IRDirty *d = s->Ist.Dirty.details;
		addStmtToIRSB(b->out, s);
		if (d->mFx == Ifx_Write || d->mFx == Ifx_Modify)
			stored(b, d->mAddr, d->mSize, d->guard);
		break;
	}
	case Ist_MBE:
		fence(b, s);
		break;
	default:
		addStmtToIRSB(b->out, s);
	}
}

/* Code that is jumped to and not mapped ends a block, too. */
static Bool is_code(Addr ip)
{
	return VG_(am_is_valid_for_client)(ip, 15, VKI_PROT_READ);
}

static void last_jump(struct block *b)
{
	struct operand o;
	IRSB *out = b->out;
	if (out->jumpkind == Ijk_InvalICache && insn_at(b->ip, &o) == INSN_FLUSH)
		flush(b, &o);
	if (out->jumpkind == Ijk_NoDecode && out->next->tag == Iex_Const) {
		Addr ip = out->next->Iex.Const.con->Ico.U64;
		if (!is_code(ip) || insn_at(ip, &o) != INSN_FLUSH)
			return;
		b->ip = ip;
		flush(b, &o);
		out->next = number(ip + o.end);
		out->jumpkind = Ijk_Boring;
	}
}

IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
		 const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word,
		 IRType host_word)
{
	(void)closure, (void)extents, (void)host;
	tl_assert(guest_word == Ity_I64 && host_word == Ity_I64);
	struct block b = {.out = deepCopyIRSBExceptStmts(in),
			  .low = IRTemp_INVALID,
			  .span = IRTemp_INVALID,
			  .offset_ip = layout->offset_IP};
	Int i = 0;
	/* What precedes the first instruction is Valgrind's own. */
	while (i < in->stmts_used && in->stmts[i]->tag != Ist_IMark)
		addStmtToIRSB(b.out, in->stmts[i++]);
	for (; i < in->stmts_used; i++)
		statement(&b, in->stmts[i]);
	last_jump(&b);
	return b.out;
}
