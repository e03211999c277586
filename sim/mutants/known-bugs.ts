import { type Mutant, mutant, rare } from './mutant.js'

/** Bugs of other systems, as listed in the guarantees. */
export const KNOWN_BUGS: readonly Mutant[] = [
  mutant(
    'fence compared as strings',
    'sim/actors/resource.js',
    'const accepted = token >= (this.#highest.get(key) ?? 0);',
    'const accepted = String(token) >= String(this.#highest.get(key) ?? 0);',
  ),
  mutant(
    'renew bumps the token',
    'kernel/steps/leases-by-slot.js',
    'leases.renewedAt.set(slot, now);\n        const endOfLife',
    'leases.renewedAt.set(slot, now);\n        for (let c = leases.firstClaim.get(slot); c !== -1; c = this.#ledger.tables.claims.nextOfLease.get(c)) this.#ledger.tables.claims.token.set(c, ++this.#ledger.revision);\n        const endOfLife',
  ),
  mutant(
    'leases never expire after a restart',
    'kernel/ledger.js',
    'keys.forgetIdle();\n        if (this.isTimed)\n            this.deadlines.rescheduleAll();',
    'keys.forgetIdle();',
  ),
  rare(
    'Two claims must meet within a few milliseconds.',
    mutant(
      'an await between check and set',
      'runner/kernel-runner.js',
      'return this.#answer(this.kernel.claim(request, this.#clock.now(), obstacle), obstacle);',
      `if (request.ifFree && this.kernel.reader.read({ key: request.claims[0].key }).count === 0) {
            return new Promise((next) => this.#clock.timer(this.#clock.now() + 20, next)).then(() => {
                const answer = this.kernel.claim({ ...request, ifFree: false }, this.#clock.now());
                return this.#answer(answer.outcome === 'claimed' ? { ...answer, holds: true, ahead: [] } : answer);
            });
        }
        return this.#answer(this.kernel.claim(request, this.#clock.now(), obstacle), obstacle);`,
    ),
  ),
  mutant(
    'restart drops leases',
    'kernel/ledger.js',
    'keys.forgetIdle();\n        if (this.isTimed)\n            this.deadlines.rescheduleAll();',
    `keys.forgetIdle();
        this.deadlines.rescheduleAll();
        for (let slot = 0; slot < leases.slots.end; slot += 2)
            if (leases.born.get(slot) !== 0) this.endLeases(++this.revision, leases.withDescendants(slot), now, { reason: 'expired' });`,
  ),
  mutant(
    'no request deduplication',
    'kernel/kernel.js',
    'const known = request === undefined ? undefined : this.#ledger.requests.get(request);',
    'const known = undefined;',
  ),
  {
    name: 'token counter not persisted',
    edits: [
      {
        file: 'kernel/ledger.js',
        find: 'keys.forgetIdle();\n        if (this.isTimed)\n            this.deadlines.rescheduleAll();',
        replace: `keys.forgetIdle();
        this.deadlines.rescheduleAll();
        this.revision = 0;
        for (let slot = 0; slot < leases.slots.end; slot++) this.revision = Math.max(this.revision, leases.born.get(slot));`,
      },
      // The reserved revisions alone would hide this bug.
      {
        file: 'kernel/kernel.js',
        find: 'if (revision <= this.#ledger.revision)\n            return;',
        replace: 'return;',
      },
    ],
  },
  mutant(
    'release ignores the token',
    'kernel/kernel.js',
    'const claim = key === NONE ? NONE : this.#ledger.queues.find(key, token);\n        if (claim !== NONE && claims.lease.get(claim) === lease)',
    'const claim = key === NONE ? NONE : keys.first.get(key);\n        if (claim !== NONE)',
  ),
  mutant(
    'restart without grace',
    'kernel/ledger.js',
    'leases.renewedAt.set(slot, now);\n            leases.endOfLife',
    'leases.endOfLife',
  ),
  {
    name: 'deadline counted from the reply',
    edits: [
      {
        file: 'client/acquire/lease-source.js',
        find: 'const sentAt = this.#firstSentAt;',
        replace: 'const sentAt = this.core.timers.now();',
      },
      {
        file: 'client/leases/heartbeat.js',
        find: 'lease.renewed(sentAt, capped',
        replace: 'lease.renewed(this.#core.timers.now(), capped',
      },
    ],
  },
  mutant(
    'acknowledged before fsync',
    'runner/kernel-runner.js',
    'return this.#durability?.pending ? this.#durability.durable() : undefined;',
    'return undefined;',
  ),
  {
    name: 'server uses the wall clock',
    edits: [
      {
        file: 'sim/world/server-store.js',
        find: 'const clock = node.clock();',
        replace: 'const clock = node.clock(); clock.now = () => clock.wall();',
      },
    ],
  },
  mutant(
    'deadline counted from the last retry',
    'client/acquire/lease-source.js',
    'this.#firstSentAt ??= this.core.timers.now();',
    'this.#firstSentAt = this.core.timers.now();',
  ),
  mutant(
    'renew sets blindly',
    'kernel/kernel.js',
    'const slot = leases.find(id);\n            if (slot === NONE) {\n                lost',
    'const slot = Number.parseInt(id, 10);\n            if (slot === NONE) {\n                lost',
  ),
  mutant(
    'negative answers not deduplicated',
    'kernel/kernel.js',
    'if (call.request !== undefined)\n            this.#ledger.remember',
    "if (call.request !== undefined && answer.outcome !== 'busy' && answer.outcome !== 'refused')\n            this.#ledger.remember",
  ),
  {
    name: 'no drift margin',
    edits: [
      {
        file: 'client/leases/timings.js',
        find: 'const rate = 1 - caution.drift;',
        replace: 'const rate = 1;',
      },
    ],
  },
  mutant(
    'early expiry',
    'kernel/tables/lease-table.js',
    'const end = this.renewedAt.get(slot) + this.ttl.get(slot) + this.grace.get(slot);',
    'const end = this.renewedAt.get(slot) + this.ttl.get(slot) * 0.9 + this.grace.get(slot);',
  ),
  mutant(
    'client uses the wall clock',
    'client/timers/timer-queue.js',
    'return this.#clock.now() + this.#clock.asleep();',
    'return this.#clock.wall();',
  ),
  mutant(
    'renew accumulates ttl',
    'kernel/steps/leases-by-slot.js',
    'leases.renewedAt.set(slot, now);\n        const endOfLife',
    'leases.renewedAt.set(slot, leases.renewedAt.get(slot) + leases.ttl.get(slot));\n        const endOfLife',
  ),
  mutant(
    'replay skips a release',
    'kernel/replay.js',
    'released(revision, slot, at, key, token, end) {',
    'released(revision, slot, at, key, token, end) { if (token % 3 === 0) return;',
  ),
  rare(
    'A write of an old holder must come after a restart of the resource.',
    mutant(
      'fence not persisted',
      'sim/actors/resource.js',
      'this.node.start(() => this.#restarted());',
      'this.node.start(() => this.#highest.clear());',
    ),
  ),
  {
    name: 'renew by owner name instead of lease',
    edits: [
      {
        file: 'kernel/kernel.js',
        find: 'const slot = leases.find(id);\n            if (slot === NONE) {\n                lost',
        replace: `let slot = leases.find(id);
            const owner = (this.owners ??= new Map()).get(id);
            for (let other = 0; slot === NONE && other < leases.slots.end; other++)
                if (owner !== undefined && leases.born.get(other) !== 0 && leases.holder.get(other) === owner) slot = other;
            if (slot === NONE) {
                lost`,
      },
      {
        file: 'kernel/kernel.js',
        find: 'const id = leases.id(lease);',
        replace:
          'const id = leases.id(lease); (this.owners ??= new Map()).set(id, request.holder);',
      },
    ],
  },
  rare(
    'The server must crash while it writes what a refusal rests on.',
    mutant(
      '"no" answered before fsync',
      'runner/kernel-runner.js',
      'const durable = this.#untilDurable();\n        if (durable)',
      "const durable = this.#untilDurable();\n        if (durable && answer.outcome !== 'busy' && answer.outcome !== 'refused')",
    ),
  ),
  mutant(
    'torn tail accepted',
    'stores/file/log/frame.js',
    'if (crc32(payload, seed) !== header.checksum)',
    'if (false)',
  ),
  mutant(
    'expiry not logged before it is announced',
    'kernel/ledger.js',
    'this.#changeSink?.ended(revision, slot, now, end);',
    "if (end.reason !== 'expired') this.#changeSink?.ended(revision, slot, now, end);",
  ),
  mutant(
    "waiter's lease not rechecked at grant",
    'kernel/ledger.js',
    'return this.deadlines.nextDue(now);',
    `const { leases, claims } = this.tables;
        const slot = this.deadlines.nextDue(now);
        if (slot === undefined || slot === NONE) return slot;
        const claim = leases.firstClaim.get(slot);
        if (claim === NONE || claims.heldSince.get(claim) !== 0) return slot;
        leases.renewedAt.set(slot, now);
        this.schedule(slot);
        return NONE;`,
  ),
  mutant(
    'watch skips a revision after reconnect',
    'runner/outbox.js',
    'events.after(from)',
    'events.after(from + 1)',
  ),
  mutant(
    'child lease survives its parent',
    'kernel/steps/expire.js',
    'ledger.endLeases(++ledger.revision, leases.withDescendants(slot), now, end);',
    'for (let c = leases.firstChild.get(slot); c !== -1; c = leases.firstChild.get(slot)) leases.removeFromParent(c);\n    ledger.endLeases(++ledger.revision, [slot], now, end);',
  ),
  mutant(
    'a pool permit granted twice',
    'port/holds.js',
    'held < (claim.limit ?? Infinity)',
    'held <= (claim.limit ?? Infinity)',
  ),
]
