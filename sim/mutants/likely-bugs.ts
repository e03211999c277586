import { type Mutant, mutant, rare } from './mutant.js'

/** The bugs that we are most likely to make ourselves. */
export const LIKELY_BUGS: readonly Mutant[] = [
  mutant(
    'a late renewal revives what was lost',
    'client/leases/kept-lease.js',
    'if (now >= this.#keptUntil)\n            this.#giveUp();',
    'if (now >= this.#keptUntil + 1000)\n            this.#giveUp();',
  ),
  mutant(
    'a suspended machine is not noticed',
    'client/timers/timer-queue.js',
    'return this.#clock.now() + this.#clock.asleep();',
    'return this.#clock.now();',
  ),
  mutant(
    'an unanswered claim is forgotten by its client',
    'client/leases/kept-lease.js',
    'if (this.alive)\n            void new ReleaseCall',
    'if (false)\n            void new ReleaseCall',
  ),
  mutant(
    'the notification that a lease has ended is ignored',
    'client/leases/lease-watch.js',
    'this.#lease.endedByStore(notice.end);',
    ';',
  ),
  mutant(
    'the key goes to the newest waiter',
    'kernel/tables/queues.js',
    'const claim = last === NONE ? keys.first.get(key) : claims.nextOnKey.get(last);',
    'const claim = last === NONE ? keys.last.get(key) : claims.nextOnKey.get(last);',
  ),
  mutant(
    'no watch is notified that its claim holds',
    'runner/outbox.js',
    "this.#enqueueAll(this.#leases.of(lease), { type: 'holds', revision, token });",
    ';',
  ),
  mutant(
    'a lease is checked for expiry only once',
    'kernel/tables/lazy-deadlines.js',
    'return slot;\n        this.schedule(slot);',
    'return slot;',
  ),
  rare(
    'A crash must follow a snapshot that was taken amid changes.',
    mutant(
      'the contents of a snapshot are replayed again',
      'stores/file/recovery.js',
      'revision > stamps.of(slot)',
      'revision >= stamps.of(slot)',
    ),
  ),
  rare(
    'A request must be repeated after a snapshot and a restart.',
    mutant(
      'a snapshot forgets the answers to requests',
      'kernel/replay.js',
      'changeSink.answered(request, answer);',
      ';',
    ),
  ),
  rare(
    'All must stop watching while a change is being written.',
    mutant(
      'an old watch gets the same events again',
      'runner/watchers.js',
      'if (number <= this.#sent)\n            return;',
      ';',
    ),
  ),
  mutant(
    'a failed write is not repeated',
    'stores/file/file-durability.js',
    'this.#timer = this.#clock.timer(time, () => this.#retry());',
    'this.#timer = undefined;',
  ),
  mutant(
    'a repeated request is a new one each time',
    'client/acquire/lease-source.js',
    'return this.core.store.grant(this.#request);',
    'return this.core.store.grant({ ...this.#request, request: this.core.requestId() });',
  ),
  {
    // A real bug of ours: every lease lost the time that opening took.
    name: 'after a restart the ttl counts from before the store can be reached',
    rare: 'A slow disk, and a lease that nobody renews after the restart.',
    edits: [
      {
        file: 'stores/file/file-store.js',
        find: 'const file = await disk.open(segmentName(end.position.segment));',
        replace:
          'const early = clock.now(); const file = await disk.open(segmentName(end.position.segment)); await disk.sync();',
      },
      {
        file: 'stores/file/file-store.js',
        find: 'kernel.finishReplay(now, now - shift);',
        replace: 'kernel.finishReplay(early, early - shift);',
      },
    ],
  },
  mutant(
    'a second owner of the disk is accepted',
    'stores/file/file-store.js',
    'lock = await disk.lock();',
    'lock = await disk.lock().catch(() => ({ release: () => Promise.resolve() }));',
  ),
  mutant(
    'after a stall, overdue leases end before the renewals are read',
    'runner/kernel-runner.js',
    'this.#sweeping = true;\n        this.#clock.defer(() => this.#sweep());',
    'this.#sweeping = true;\n        this.#sweep();',
  ),
]
