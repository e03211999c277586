import { type Edit, type Mutant, rare } from './mutant.js'

function planted(
  name: string,
  ...edits: (readonly [file: string, find: string, replace: string])[]
) {
  const built = edits.map(([file, find, replace]): Edit => ({ file, find, replace }))
  return { name, edits: built, replicas: true } satisfies Mutant
}

/**
 * Bugs in the replica, in worlds with a shared log. Two more bugs do nothing in a world in which all
 * else is right, and a test finds each: a checksum that leaves out a field (`checksum.test.ts`), and a
 * lost tail that nobody notices (`lost-tail.test.ts`), because the log of these worlds loses nothing.
 */
export const REPLICA: readonly Mutant[] = [
  planted('an expiry does not look at the position of the last renewal', [
    'replica/machine.js',
    'this.#isMeant(slot, entry) && this.#renewedPosition.get(slot) <= entry.asOf',
    'this.#isMeant(slot, entry)',
  ]),
  planted('a ttl counts from the time that the sender wrote', [
    'replica/log-follower.js',
    'outcome = machine.apply(entry, position, now);',
    'outcome = machine.apply(entry, position, entry ? Math.min(now, now - (this.clock.at(now) - entry.time)) : now);',
  ]),
  planted('a second copy of an entry counts too', [
    'replica/machine.js',
    'if (this.members.isRepeated(entry))',
    'if (false)',
  ]),
  planted("a member's numbers are forgotten while its entries may still come", [
    'replica/member-table.js',
    'return sequence <= this.sequenceOf(member);',
    'return sequence === this.sequenceOf(member);',
  ]),
  rare(
    'Copies of two entries of a removed member must come late.',
    planted('a removed member comes back by a late copy of its first entry', [
      'replica/member-table.js',
      'return entry.asOf >= this.#removedAt && joining(entry) !== undefined;',
      'return joining(entry) !== undefined;',
    ]),
  ),
  planted('a late entry of a removed member is applied', [
    'replica/machine.js',
    'if (!this.members.admits(entry))',
    'if (false)',
  ]),
  planted('a release is answered when it is in the log, not when it is applied', [
    'replica/replica.js',
    "if (this.#state === 'closed')\n            return;\n        if (refusal) {",
    `if (this.#state === 'closed')
            return;
        for (const { call } of position === undefined ? [] : batch.calls)
            if (call.asks[0] === 6 && !call.isSettled)
                call.answer({ revision: this.machine.kernel.revision + 1 });
        if (refusal) {`,
  ]),
  planted('a renewal is answered when it is sent', [
    'replica/replica.js',
    'this.#own.add(batch);\n        void',
    `this.#own.add(batch);
        for (const call of batch.renewals)
            call.answer(this.machine.renewed(call.asks));
        void`,
  ]),
  rare(
    'Entries must be applied between two blocks of a snapshot that another replica loads.',
    planted('a snapshot has changes that came while it was written', [
      'replica/machine.js',
      'kernel: this.kernel.copy(),',
      'kernel: this.kernel,',
    ]),
  ),
  rare(
    'Entries must be applied between two blocks of a snapshot that another replica loads.',
    planted('a snapshot claims to have what was applied while it was written', [
      'replica/snapshots.js',
      'await this.#log.saveSnapshot({ position, chunks',
      'await this.#log.saveSnapshot({ position: machine.position, chunks',
    ]),
  ),
  rare(
    'A replica must join between the trimming and the next snapshot.',
    planted('the log is trimmed beyond its snapshot', [
      'replica/snapshots.js',
      'await this.#log.trim(before);',
      'await this.#log.trim(machine.position);',
    ]),
  ),
  rare(
    'A client must read through a replica that is behind what another client was told.',
    planted('a read does not wait for the tail of the log', [
      'replica/replica-store.js',
      'await this.#replica.caughtUp();',
      ';',
    ]),
  ),
  planted('a watch that is resumed skips a revision', [
    'replica/replica-store.js',
    'outbox.watchPrefix(target.prefix, target.from, observer)',
    'outbox.watchPrefix(target.prefix, target.from && Math.min(target.from + 1, this.#replica.machine.kernel.revision), observer)',
  ]),
  planted(
    'an append is repeated under a new number',
    [
      'replica/replica.js',
      'return { ...this.#encode(commands), calls, renewals, isOver: false };',
      'const batch = { ...this.#encode(commands), calls, renewals, isOver: false };\n        batch.again = () => Object.assign(batch, this.#encode(commands));\n        return batch;',
    ],
    [
      'replica/appender.js',
      'await this.#pause(wait);',
      'await this.#pause(wait); batch.again?.();',
    ],
  ),

  planted('a joining replica takes what it has not seen renewed for dead', [
    'replica/lease-timers.js',
    'this.#told.set(slot, this.now + lease.ttl + lease.grace);',
    'this.#renewed.set(slot, 0);\n            this.#deadlines.schedule(slot);',
  ]),
  rare(
    'A replica must join amid a break, and another one renew the lease.',
    planted('the time of the log decides how much is left of a life', [
      'replica/machine.js',
      'return { lost: answer.lost, capped };',
      'return answer;',
    ]),
  ),
  rare(
    'A replica must be behind with a break, and its holder keep the key until the end.',
    planted('a replica does not wait for as long as a holder was told', [
      'replica/lease-timers.js',
      'return Math.max(this.#endOfLife.get(slot), this.#told.get(slot));',
      'return this.#endOfLife.get(slot);',
    ]),
  ),
]
