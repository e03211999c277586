/*
 * Leases on a shared log, small enough to check every schedule.
 *
 * Two replicas apply one log. Holder h sends its requests to replica h. Both holders want one key.
 * Appends may be lost, late, or in the log twice. Replicas and holders may stop at any point for any
 * time, one replica may crash, and one member may be removed although it is alive.
 *
 * Time moves in ticks, without end. The clocks of replicas count every tick. The clock of holder 0
 * may be slow: it may miss one tick out of SPACING. Only the difference between two rates matters, so
 * this covers fast replicas too, and the two holders are alike, so one slow clock is enough. Clock
 * offsets do not exist here because no clock is compared with another.
 *
 * What must hold, after every step:
 *   - two holders never believe at the same time that they hold the key;
 *   - one request is granted at most once.
 *
 * Each switch below removes one condition of the protocol. The checker must then find a trace that
 * breaks one of the two. WITNESS asks for a trace that the unchanged protocol must have: holder 1 gets
 * the key from holder 0, which never released it. A model in which nothing can happen has none.
 */

#ifndef ENTRIES
#define ENTRIES 6    /* entries that are written in all, without those that are sent again */
#endif
#define LENGTH 6     /* entries that the log has room for, which not both replicas have applied */
#ifndef RESENDS
#define RESENDS 1    /* appends with an unknown outcome that are sent again */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef EXPELS
#define EXPELS 0     /* times that a replica assumes that the other one is dead, rightly or not */
#endif

#ifndef SLOTS
#define SLOTS 2      /* copies of entries of one replica that are on their way at a time */
#endif
#ifndef HOLDERS
#define HOLDERS 2    /* holders that ask for the key */
#endif
#ifndef REQUESTS
#define REQUESTS 1   /* times that each holder asks for the key */
#endif

#define TTL 2        /* ticks that a replica waits before it proposes an expiry */
#ifdef NO_MARGIN
#define BELIEF 2
#else
#define BELIEF 1     /* ticks on its own clock that a holder believes in its lease */
#endif
#define SPACING 2

#define MEMBERS 4    /* names of members: 0 and 1 at the start, each later one is used once */
#define NO_NAME MEMBERS
#define HOLDER(lease) ((lease - 1) / REQUESTS)
#define BELIEVES(h) (holds[h] != 0 && age[h] < BELIEF)

mtype = { acquire, renew, release, expire, expel, join };

typedef Entry {
  mtype kind;
  byte member;
  byte sequence;
  byte asOf;         /* what the member had applied when it wrote the entry */
  byte lease;        /* the lease that is asked for, renewed or released; the member for expel */
  byte ended;        /* the lease whose time is over as of `asOf`, or 0 */
}

typedef Replica {
  /* The replicated state: a function of the entries that were applied. */
  byte applied;
  byte owner;               /* the lease that holds the key, or 0 */
  byte renewedAt;           /* the position of its grant or last renewal */
  bool isMember[MEMBERS + 1];
  byte sequence[MEMBERS];   /* the last applied entry of each member */
  byte position[MEMBERS];   /* and its position */
  byte removedAt;           /* the position of the last removal */
  /* What is local to this replica. */
  byte since;               /* ticks since it applied the grant or last renewal */
  byte name;
  byte next;                /* the sequence number of its next entry */
  bool busy;                /* `sent` is not applied yet */
  Entry sent;
  mtype wanted;             /* what to do when it is a member again: its holder still waits */
  byte wantedLease;
}

/* Copies of entries that were sent and have not arrived. The first SLOTS are of replica 0. */
typedef Copy { bool used; Entry entry; }

Replica replica[2];
Copy copy[2 * SLOTS];
Entry log[LENGTH];
byte tail, written, resends, crashes, expels, names;

/* Holders. */
byte asked[2];       /* requests made so far */
byte holds[2];       /* the lease that it was granted, or 0 */
byte age[2];         /* ticks on its clock since it first sent the request that gave it this time */
byte sentAge[2];     /* ticks on its clock since it first sent the request that is open */
bool waits[2];       /* a request is open */
byte sinceMiss[2];   /* ticks since its clock missed one */

byte grantedAt[5];   /* the position at which each lease was granted: only for the checks */

hidden byte i, h, lease;
hidden byte isNext;

#define R replica[r]
#define E log[R.applied]
#ifdef NO_AS_OF
#define NOT_RENEWED true
#else
#define NOT_RENEWED (R.renewedAt <= E.asOf)
#endif

inline put(r) {
  /* Sends the entry `R.sent`, if the network has room for a copy. */
  i = SLOTS * r;
  do
  :: copy[i].used -> i++
  :: else -> break
  od;
  copy[i].used = true;
  copy[i].entry.kind = R.sent.kind;
  copy[i].entry.member = R.sent.member;
  copy[i].entry.sequence = R.sent.sequence;
  copy[i].entry.asOf = R.sent.asOf;
  copy[i].entry.lease = R.sent.lease;
  copy[i].entry.ended = R.sent.ended
}

#define ROOM(r) (written < ENTRIES && CAN_PUT(r))
#define CAN_PUT(r) (!copy[SLOTS * r].used || !copy[SLOTS * r + 1].used || !copy[SLOTS * r + SLOTS - 1].used)

inline write(r, what, about) {
  written++;
  R.busy = true;
  R.sent.kind = what;
  R.sent.member = R.name;
  R.sent.sequence = R.next;
  R.next++;
  R.sent.asOf = R.applied;
  R.sent.lease = about;
  /* Every entry carries the expiry that is due: a contender need not wait for a timer. */
  R.sent.ended = (R.owner != 0 && R.since >= TTL -> R.owner : 0);
  put(r)
}

inline done(r) {
  R.busy = false;
  R.sent.kind = 0; R.sent.member = 0; R.sent.sequence = 0;
  R.sent.asOf = 0; R.sent.lease = 0; R.sent.ended = 0
}

inline forget() {
  /* Clears scratch variables, so that they do not distinguish states. */
  i = 0; h = 0; lease = 0; isNext = false
}

inline answered(r) {
  /* The replica's own entry was applied: its holder gets its answer. */
  h = r;
  if
  :: E.kind == acquire && waits[h] ->
     waits[h] = false;
     if
     :: R.owner == E.lease -> holds[h] = E.lease;
#ifdef COUNT_FROM_REPLY
        age[h] = 0
#else
        age[h] = sentAge[h]
#endif
     :: else -> skip
     fi;
     sentAge[h] = 0
  :: E.kind == renew && waits[h] ->
     waits[h] = false;
     if
     :: holds[h] == E.lease && R.owner == E.lease ->
#ifdef COUNT_FROM_REPLY
        age[h] = 0
#else
        age[h] = sentAge[h]
#endif
     :: holds[h] == E.lease && R.owner != E.lease ->
#ifdef RENEW_THE_DEAD
        age[h] = sentAge[h]
#else
        holds[h] = 0; age[h] = 0
#endif
     :: else -> skip
     fi;
     sentAge[h] = 0
  :: else -> skip
  fi
}

inline started(r) {
  /* The lease was granted or renewed here: this replica counts its ttl from now on. */
  R.renewedAt = R.applied + 1;
#ifdef COUNT_FROM_STAMP
  /* The sender's clock says nothing about the clock of this replica. */
  R.since = TTL
#else
  R.since = 0
#endif
}

inline stopped(r) {
  R.owner = 0; R.renewedAt = 0; R.since = 0
}

inline carryOut(r) {
  if
  :: E.ended != 0 && E.ended == R.owner && NOT_RENEWED -> stopped(r)
  :: else -> skip
  fi;
  if
  :: E.kind == acquire && R.owner == 0 ->
     R.owner = E.lease;
#ifdef WITNESS
     assert(!(HOLDER(E.lease) == 1 && holds[0] != 0 && E.ended == holds[0]));
#endif
     assert(grantedAt[E.lease] == 0 || grantedAt[E.lease] == R.applied + 1);
     grantedAt[E.lease] = R.applied + 1;
     started(r)
  :: E.kind == renew && R.owner == E.lease -> started(r)
#ifdef RELEASE_ANY
  :: E.kind == release && R.owner != 0 -> stopped(r)
#else
  :: E.kind == release && R.owner == E.lease -> stopped(r)
#endif
  :: E.kind == expel ->
     if
     :: R.isMember[E.lease] && R.position[E.lease] <= E.asOf ->
        R.isMember[E.lease] = false;
        R.sequence[E.lease] = 0;
        R.position[E.lease] = 0;
        R.removedAt = R.applied + 1
     :: else -> skip
     fi
  :: else -> skip
  fi
}

inline apply(r) {
  /* Whether this entry is the next one of a member. */
  if
  :: R.isMember[E.member] ->
#ifdef NO_SEQUENCE
     isNext = true
#else
     isNext = (E.sequence > R.sequence[E.member])
#endif
  :: else ->
#ifdef LATE_ENTRIES
     isNext = true
#else
#ifdef JOIN_AGAIN
     isNext = (E.kind == join)
#else
     isNext = (E.kind == join && E.asOf >= R.removedAt)
#endif
#endif
  fi;
  if
  :: isNext ->
     R.isMember[E.member] = true;
     R.sequence[E.member] = E.sequence;
     R.position[E.member] = R.applied + 1;
     carryOut(r);
     if
     :: R.busy && E.member == R.name && E.sequence == R.sent.sequence ->
        done(r);
        answered(r);
        assert(!(BELIEVES(0) && BELIEVES(1)))
     :: else -> skip
     fi
  :: else ->
     /* Its own first entry was refused: it had not seen a removal. It joins again. */
     if
     :: R.busy && E.member == R.name && E.kind == join && R.sent.kind == join -> done(r)
     :: else -> skip
     fi
  fi;
  R.applied++;
  forget()
}

inline rejoin(r) {
  /* Entries under the old name no longer count: they are sent again under the new one. */
  if
  :: R.busy && (R.sent.kind == acquire || R.sent.kind == renew || R.sent.kind == release) ->
     R.wanted = R.sent.kind; R.wantedLease = R.sent.lease
  :: else -> skip
  fi;
  R.name = names;
  names++;
  R.next = 1;
  write(r, join, 0);
  forget()
}

inline crash(r) {
  /* It starts with the snapshot that the other one made, and counts every ttl from now on. */
  crashes++;
  R.applied = replica[1 - r].applied; R.removedAt = replica[1 - r].removedAt;
  R.owner = replica[1 - r].owner; R.renewedAt = replica[1 - r].renewedAt;
  for (i : 0 .. MEMBERS - 1) {
    R.isMember[i] = replica[1 - r].isMember[i];
    R.sequence[i] = replica[1 - r].sequence[i];
    R.position[i] = replica[1 - r].position[i]
  }
#ifdef NO_FULL_TTL_AFTER_JOINING
  R.since = (R.owner != 0 -> TTL : 0);
#else
  R.since = 0;
#endif
  R.wanted = 0; R.wantedLease = 0; R.name = NO_NAME;
  done(r);
  /* The holder gets no answer to its request, and keeps its belief. */
  waits[r] = false; sentAge[r] = 0;
  forget()
}

#define LONG_AGO 200
#define LESS(number) number = (number > 0 -> number - 1 : 0)

inline shiftReplica(r) {
  R.applied--;
  LESS(R.renewedAt); LESS(R.removedAt); LESS(R.sent.asOf);
  for (i : 0 .. MEMBERS - 1) { LESS(R.position[i]) }
}

inline shift() {
  /* Both have applied the first entry, and nobody refers to what is before it. Forgetting it makes
     equal what cannot be told apart: positions are only ever compared. */
  for (i : 0 .. tail - 2) {
    log[i].kind = log[i + 1].kind; log[i].member = log[i + 1].member;
    log[i].sequence = log[i + 1].sequence; log[i].asOf = log[i + 1].asOf;
    log[i].lease = log[i + 1].lease; log[i].ended = log[i + 1].ended;
    LESS(log[i].asOf)
  }
  tail--;
  log[tail].kind = 0; log[tail].member = 0; log[tail].sequence = 0;
  log[tail].asOf = 0; log[tail].lease = 0; log[tail].ended = 0;
  for (i : 0 .. 2 * SLOTS - 1) { LESS(copy[i].entry.asOf) }
  shiftReplica(0);
  shiftReplica(1);
  for (i : 1 .. 4) { grantedAt[i] = (grantedAt[i] == 1 -> LONG_AGO : (grantedAt[i] > 1 && grantedAt[i] < LONG_AGO -> grantedAt[i] - 1 : grantedAt[i])) }
  forget()
}

inline arrive(at) {
  log[tail].kind = copy[at].entry.kind;
  log[tail].member = copy[at].entry.member;
  log[tail].sequence = copy[at].entry.sequence;
  log[tail].asOf = copy[at].entry.asOf;
  log[tail].lease = copy[at].entry.lease;
  log[tail].ended = copy[at].entry.ended;
  tail++;
#ifdef ANSWER_BEFORE_APPLY
  /* The append is acknowledged, and the replica answers with its current state. */
  if
  :: waits[at / SLOTS] && copy[at].entry.kind == acquire && replica[at / SLOTS].owner == 0 ->
     holds[at / SLOTS] = copy[at].entry.lease;
     age[at / SLOTS] = sentAge[at / SLOTS]; sentAge[at / SLOTS] = 0; waits[at / SLOTS] = false;
     assert(!(BELIEVES(0) && BELIEVES(1)))
  :: else -> skip
  fi;
#endif
#ifdef RENEW_BEFORE_APPLY
  if
  :: waits[at / SLOTS] && copy[at].entry.kind == renew && holds[at / SLOTS] == copy[at].entry.lease ->
     age[at / SLOTS] = sentAge[at / SLOTS]; sentAge[at / SLOTS] = 0; waits[at / SLOTS] = false;
     assert(!(BELIEVES(0) && BELIEVES(1)))
  :: else -> skip
  fi;
#endif
  copy[at].used = false;
  copy[at].entry.kind = 0; copy[at].entry.member = 0; copy[at].entry.sequence = 0;
  copy[at].entry.asOf = 0; copy[at].entry.lease = 0; copy[at].entry.ended = 0
}

inline tickOf(h, misses) {
  replica[h].since = (replica[h].owner != 0 && replica[h].since < TTL -> replica[h].since + 1 : replica[h].since);
  if
  :: holds[h] == 0 && !waits[h] -> sinceMiss[h] = SPACING
  :: (holds[h] != 0 || waits[h]) && misses -> sinceMiss[h] = 1
  :: else ->
     age[h] = (holds[h] != 0 && age[h] < BELIEF -> age[h] + 1 : age[h]);
     sentAge[h] = (waits[h] && sentAge[h] < BELIEF -> sentAge[h] + 1 : sentAge[h]);
     sinceMiss[h] = (sinceMiss[h] < SPACING -> sinceMiss[h] + 1 : sinceMiss[h])
  fi
}

inline tick(misses) {
  tickOf(0, misses);
  tickOf(1, false)
}

inline ask(r) {
  /* The holder counts from now on, whatever is sent again later. */
  asked[r]++;
  lease = r * REQUESTS + asked[r];
  waits[r] = true; sentAge[r] = 0;
  write(r, acquire, lease);
  forget()
}

inline renewHeld(r) {
  waits[r] = true; sentAge[r] = 0;
  write(r, renew, holds[r]);
  forget()
}

inline releaseHeld(r) {
  /* It stops believing before it releases. */
  lease = holds[r];
  holds[r] = 0; age[r] = 0;
  write(r, release, lease);
  forget()
}

inline sendAgain(r) { resends++; put(r); forget() }
inline proposeExpiry(r) { write(r, expire, 0); forget() }
inline expelOther(r) { expels++; write(r, expel, replica[1 - r].name); forget() }
inline sendWanted(r) {
  write(r, R.wanted, R.wantedLease);
  R.wanted = 0; R.wantedLease = 0;
  forget()
}

/* When the replica r or its holder may take each step. */
#define IS_IDLE(r) (!replica[r].busy && replica[r].isMember[replica[r].name] && replica[r].wanted == 0 && ROOM(r))
#define IS_PAST(at) (!copy[at].used || copy[at].entry.asOf > 0)
#define IS_LATE(at) (tail <= at || log[at].asOf > 0)
#define IS_SENT(r) (!replica[r].busy || replica[r].sent.asOf > 0)
#define MAY_SHIFT (replica[0].applied > 0 && replica[1].applied > 0 && IS_PAST(0) && IS_PAST(1) && IS_PAST(2) && IS_PAST(3) && IS_PAST(2 * SLOTS - 2) && IS_PAST(2 * SLOTS - 1) && IS_LATE(1) && IS_LATE(2) && IS_LATE(3) && IS_LATE(4) && IS_LATE(5) && IS_SENT(0) && IS_SENT(1))
#define MAY_MISS(h) (sinceMiss[h] >= SPACING && (holds[h] != 0 || waits[h]))
#define MAY_APPLY(r) (replica[r].applied < tail)
#define MAY_SEND_AGAIN(r) (resends < RESENDS && replica[r].busy && CAN_PUT(r))
#define MAY_ASK(r) (r < HOLDERS && asked[r] < REQUESTS && !waits[r] && holds[r] == 0 && IS_IDLE(r))
#define MAY_RENEW(r) (holds[r] != 0 && !waits[r] && IS_IDLE(r))
#define MAY_PROPOSE(r) (replica[r].owner != 0 && replica[r].since >= TTL && IS_IDLE(r))
#define MAY_EXPEL(r) (r + HOLDERS > 1 && expels < EXPELS && replica[r].isMember[replica[1 - r].name] && IS_IDLE(r))
#define MUST_JOIN(r) (!replica[r].isMember[replica[r].name] && !(replica[r].busy && replica[r].sent.kind == join))
#define MAY_JOIN(r) (MUST_JOIN(r) && names < MEMBERS && ROOM(r))
#define MAY_SEND_WANTED(r) (replica[r].wanted != 0 && replica[r].isMember[replica[r].name] && !replica[r].busy && ROOM(r))

#define EITHER(may, step) \
  :: d_step { may(0) -> step(0) } \
  :: d_step { may(1) -> step(1) }

active proctype world() {
  names = 2;
  for (h : 0 .. 1) {
    replica[h].name = h; replica[h].next = 1;
    replica[h].isMember[0] = true; replica[h].isMember[1] = true;
    sinceMiss[h] = SPACING
  }
  forget();

end:
  do
  :: d_step { MAY_SHIFT -> shift() }
  :: else ->
endOfTrace:
  if
#ifndef NO_TIME
  :: d_step { true -> tick(false) }
  :: d_step { MAY_MISS(0) -> tick(true) }
#endif
  /* The network: a copy arrives, at any time. One that never does is lost. */
  :: d_step { copy[0].used && tail < LENGTH -> arrive(0) }
  :: d_step { copy[1].used && tail < LENGTH -> arrive(1) }
  :: d_step { copy[2].used && tail < LENGTH -> arrive(2) }
  :: d_step { copy[3].used && tail < LENGTH -> arrive(3) }
#if SLOTS == 3
  :: d_step { copy[4].used && tail < LENGTH -> arrive(4) }
  :: d_step { copy[5].used && tail < LENGTH -> arrive(5) }
#endif
  EITHER(MAY_APPLY, apply)
  /* The outcome of its append is unknown. */
  EITHER(MAY_SEND_AGAIN, sendAgain)
  EITHER(MAY_ASK, ask)
  EITHER(MAY_RENEW, renewHeld)
  EITHER(MAY_RENEW, releaseHeld)
  EITHER(MAY_PROPOSE, proposeExpiry)
  /* It assumes that the other one is dead. Nothing depends on whether that is true. */
  EITHER(MAY_EXPEL, expelOther)
  EITHER(MAY_JOIN, rejoin)
  EITHER(MAY_SEND_WANTED, sendWanted)
  /* It starts again without any memory. */
  :: d_step { crashes < CRASHES -> crash(0) }
#if HOLDERS == 2
  :: d_step { crashes < CRASHES -> crash(1) }
#endif
  fi
  od
}
