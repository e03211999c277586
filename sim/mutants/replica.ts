import { type Edit, type Mutant, type NamedTest, rare } from './mutant.js'

type Change = readonly [file: string, find: string, replace: string]

function planted(name: string, ...edits: Change[]): Mutant {
  const built = edits.map(([file, find, replace]): Edit => ({ file, find, replace }))
  return { name, edits: built, replicas: true }
}

/** A bug that a test of the replica catches. */
function tested(name: string, test: NamedTest, ...edits: Change[]): Mutant {
  const file = `packages/leasehold/test/replica/${test.file}.test.ts`
  return { ...planted(name, ...edits), test: { ...test, file } }
}

/**
 * Bugs in the replica. Most show in worlds with a shared log. The log of these worlds loses
 * nothing, and a wrong checksum has no effect if everything else is right: such bugs name a test.
 */
export const REPLICA: readonly Mutant[] = [
  planted('an expiry does not look at the position of the last renewal', [
    'replica/state/machine.js',
    'this.#isSameLease(slot, entry) && this.#renewedPosition.get(slot) <= entry.asOf',
    'this.#isSameLease(slot, entry)',
  ]),
  planted('a ttl counts from the time that the sender wrote', [
    'replica/shared-log/log-follower.js',
    'outcome = machine.apply(entry, position, now);',
    'outcome = machine.apply(entry, position, entry ? Math.min(now, now - (this.clock.at(now) - entry.time)) : now);',
  ]),
  planted('a second copy of an entry counts too', [
    'replica/state/machine.js',
    'if (this.members.isRepeated(entry))',
    'if (false)',
  ]),
  planted("a member's numbers are forgotten while its entries may still come", [
    'replica/state/member-table.js',
    'return sequence <= this.sequenceOf(member);',
    'return sequence === this.sequenceOf(member);',
  ]),
  tested(
    'a removed member comes back by a late copy of its first entry',
    {
      file: 'machine',
      name: 'that was removed does not join again by a late copy of its first entry',
    },
    [
      'replica/state/member-table.ts',
      'return entry.asOf >= this.#removedAt && joining(entry) !== undefined',
      'return joining(entry) !== undefined',
    ],
  ),
  planted('a late entry of a removed member is applied', [
    'replica/state/machine.js',
    'if (!this.members.admits(entry))',
    'if (false)',
  ]),
  planted(
    'a release is answered when it is in the log, not when it is applied',
    [
      'replica/replica.js',
      "if (this.#state === 'closed')\n            return;\n        if (refusal) {",
      `if (this.#state === 'closed')
            return;
        for (const call of position === undefined ? [] : batch.calls)
            if (call.isRelease && !call.isSettled)
                call.answer({ revision: this.machine.kernel.revision + 1 });
        if (refusal) {`,
    ],
    [
      'replica/replica.js',
      'this.#calls.add(call, command);',
      "this.#calls.add(call, command);\n        call.isRelease = command?.do === 'release';",
    ],
  ),
  planted('a renewal is answered when it is sent', [
    'replica/replica.js',
    'this.#own.add(batch);\n        void',
    `this.#own.add(batch);
        for (const call of batch.renewals)
            call.answer(this.machine.renewed(call.renews));
        void`,
  ]),
  rare(
    'Entries must be applied between two blocks of a snapshot that another replica loads.',
    planted('a snapshot has changes that came while it was written', [
      'replica/state/machine.js',
      'kernel: this.kernel.copy(),',
      'kernel: this.kernel,',
    ]),
  ),
  planted('a snapshot claims to have what was applied while it was written', [
    'replica/shared-log/snapshots.js',
    'await this.#log.saveSnapshot({ position, chunks',
    'await this.#log.saveSnapshot({ position: machine.position, chunks',
  ]),
  planted('the log is trimmed beyond its snapshot', [
    'replica/shared-log/snapshots.js',
    'await this.#log.trim(before);',
    'await this.#log.trim(machine.position);',
  ]),
  planted('a read does not wait for the tail of the log', [
    'replica/replica-store.js',
    'await this.#replica.caughtUp();',
    ';',
  ]),
  planted('a watch that is resumed skips a revision', [
    'replica/replica-store.js',
    'outbox.watchPrefix(target.prefix, target.from, observer)',
    'outbox.watchPrefix(target.prefix, target.from && Math.min(target.from + 1, this.#replica.machine.kernel.revision), observer)',
  ]),
  planted(
    'an append is repeated under a new number',
    [
      'replica/replica.js',
      'return { ...this.#author.write(machine, commands), calls, renewals, isOver: false };',
      'const batch = { ...this.#author.write(machine, commands), calls, renewals, isOver: false };\n        const copy = { count: commands.count, parts: commands.parts.map((part) => Uint8Array.from(part)) };\n        batch.again = () => Object.assign(batch, this.#author.write(this.machine, copy));\n        return batch;',
    ],
    [
      'replica/shared-log/appender.js',
      'await this.#pause(backoff(failures, this.#random, RETRY_MS, RETRY_MAX_MS));',
      'await this.#pause(backoff(failures, this.#random, RETRY_MS, RETRY_MAX_MS)); batch.again?.();',
    ],
  ),

  planted('a joining replica takes what it has not seen renewed for dead', [
    'replica/state/lease-timers.js',
    'this.#promisedUntil.set(slot, this.now + boundOf(lease.ttl + lease.grace, lifeLeft(slot)));',
    'this.#renewed.set(slot, 0);\n            this.#deadlines.schedule(slot);',
  ]),
  tested(
    'the time of the log decides how much is left of a life',
    { file: 'lives', name: 'is not cut short by a replica that knows the time better' },
    ['replica/state/machine.ts', 'return { lost: answer.lost, capped }', 'return answer'],
  ),
  rare(
    'A replica must be behind with a break, and its holder keep the key until the end.',
    planted('a replica does not wait for as long as a holder was told', [
      'replica/state/lease-timers.js',
      'return Math.max(this.#endOfLife.get(slot), this.#promisedUntil.get(slot));',
      'return this.#endOfLife.get(slot);',
    ]),
  ),
  tested(
    'a log that ends before what was applied is not noticed',
    { file: 'lost-tail', name: 'is noticed by a read, even if no entry is written' },
    ['replica/replica.ts', 'lost: () => void this.#logEndsEarly(),', 'lost: () => {},'],
  ),
  tested(
    'after a lost tail a call is sent again while its entry may still be applied',
    { file: 'lost-tail', name: 'is not resent if its entry arrives late, before the new epoch' },
    [
      'replica/replica.ts',
      'this.#own.rename()',
      'this.#calls.putBack(this.#own.takeThrough(Infinity))',
    ],
  ),
  tested(
    'after a lost tail a call is sent again that may have been applied',
    {
      file: 'lost-tail',
      name: 'is not resent if it may have been applied before the new epoch',
    },
    [
      'replica/calls/own-entries.ts',
      'return isOther || position < batch.asOf ? undefined : memberForgotten()',
      'return undefined',
    ],
  ),
  tested(
    'a snapshot is saved of entries that the log has lost',
    { file: 'lost-tail', name: 'is not resent if its entry arrives late, before the new epoch' },
    ['replica/shared-log/snapshots.ts', 'if (loads !== this.#loads) return', ''],
  ),
  tested(
    'a lease without a ttl outlives its maximum life',
    { file: 'lives', name: 'ends with its maximum life, though every replica has joined since' },
    ['replica/state/lease-timers.ts', 'span === Infinity ? lifeAtMost : span', 'span'],
  ),
  tested(
    'the checksum leaves out a field',
    { file: 'checksum', name: 'depends on every field of what was granted' },
    ['replica/state/checksum.ts', 'this.#hash.number(lease.grace)', ''],
  ),
]
