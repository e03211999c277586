import { describe, expect, it } from 'vitest'
import type { Election, ElectionOptions, Leader, Leasehold, Term } from '../../../src/index.ts'
import { inNewScene, SCENES, type Scene } from '../scenes/scene.ts'

/** A candidate that leads whenever it can, and ends a term when it is asked to or loses it. */
class Runner {
  readonly leasehold: Leasehold
  readonly election: Election
  readonly terms: Term[] = []
  readonly stop = new AbortController()
  readonly ended: Promise<void>

  constructor(leasehold: Leasehold, name: string, options?: ElectionOptions) {
    this.leasehold = leasehold
    this.election = leasehold.election(name, options)
    this.ended = this.#run()
  }

  get leads(): boolean {
    return this.terms.at(-1)?.leading === true
  }

  async #run(): Promise<void> {
    for await (const term of this.election.lead({ signal: this.stop.signal })) {
      this.terms.push(term)
      await aborted(term.asked)
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Runners that join the queue one after another, in this order. */
async function join(scene: Scene, names: readonly string[], options: ElectionOptions = {}) {
  const runners: Runner[] = []
  for (const name of names) runners.push(await joined(scene, name, options))
  return runners
}

async function joined(scene: Scene, name: string, options: ElectionOptions = {}): Promise<Runner> {
  const before = await lengthOf(scene)
  const runner = new Runner(await scene.open(name), 'boss', { ttl: '2s', ...options })
  await scene.until(`${name} is in the queue`, async () => (await lengthOf(scene)) > before)
  return runner
}

async function lengthOf(scene: Scene): Promise<number> {
  return (await scene.store.read({ key: 'election/boss/line' })).count
}

describe.each(SCENES)('elections on $name', ({ make }) => {
  const inScene = inNewScene(make)

  it(
    'go to the next of three candidates when the leader is killed, with a higher term each time',
    inScene(async (scene) => {
      const runners = await join(scene, ['a', 'b', 'c'])
      const [a, b, c] = runners as [Runner, Runner, Runner]
      await scene.until('a leads', () => a.leads)
      scene.kill(a.leasehold)
      await scene.until('b leads', () => b.leads)
      expect(a.leads).toBe(false)
      expect(c.terms).toHaveLength(0)
      scene.kill(b.leasehold)
      await scene.until('c leads', () => c.leads)
      expect(b.leads).toBe(false)
      const numbers = runners.map(({ terms }) => terms[0]!.number)
      expect(numbers).toEqual([...numbers].sort((x, y) => x - y))
      expect(a.terms[0]!.signal.reason).toMatchObject({ code: 'lost' })
    }),
  )

  it(
    'hand a term over to a named candidate with four others in the queue before it',
    inScene(async (scene) => {
      // Nobody dies here, so the limits are long: on a busy machine four candidates let f pass slowly.
      const names = ['a', 'b', 'c', 'd', 'e', 'f']
      const runners = await join(scene, names, { ttl: '30s' })
      const [a] = runners as [Runner]
      await scene.until('a leads', () => a.leads)
      const seen: (string | undefined)[] = []
      const follower = (await scene.open('follower')).election('boss').observe()
      const watching = (async () => {
        for await (const leader of follower) seen.push(leader?.candidate)
      })()
      await scene.until('the follower sees a', () => seen.includes('a'))
      const handing = a.terms[0]!.handOver('f', { timeout: '30s' })
      await scene.until('f leads', () => runners[5]!.leads)
      await scene.pass(50)
      expect(await handing).toMatchObject({ outcome: 'handed-over', leader: { candidate: 'f' } })
      expect(a.terms[0]!.signal.reason).toMatchObject({ reason: 'released', by: 'f' })
      await scene.until('the follower sees f', () => seen.at(-1) === 'f')
      // Those that let it pass never led and never reported so.
      expect(seen.filter((name) => name !== undefined)).toEqual(['a', 'f'])
      for (const { terms } of runners.slice(1, 5)) expect(terms).toHaveLength(0)
      follower.close()
      await watching
      // The name was removed, and the others kept their order.
      const { count } = await scene.store.read({ key: 'election/boss/successor' })
      expect(count).toBe(0)
      await runners[5]!.election.resign()
      await scene.until('b leads', () => runners[1]!.leads)
    }),
  )

  it(
    'hand nothing over to a name without a candidate: the term continues',
    inScene(async (scene) => {
      const [a, b] = (await join(scene, ['a', 'b'])) as [Runner, Runner]
      await scene.until('a leads', () => a.leads)
      const { outcome } = await a.terms[0]!.handOver('nobody')
      expect(outcome).toBe('not-campaigning')
      expect(a.leads).toBe(true)
      expect(a.terms[0]!.asked.aborted).toBe(false)
      expect(b.terms).toHaveLength(0)
    }),
  )

  it(
    'prefer the highest priority at the next change, and the order of the queue among equals',
    inScene(async (scene) => {
      const [a, b, c] = (await join(scene, ['a', 'b', 'c'])) as [Runner, Runner, Runner]
      const high = await joined(scene, 'high', { priority: 2 })
      const higher = await joined(scene, 'higher', { priority: 3 })
      await scene.until('a leads', () => a.leads)
      await scene.pass(200)
      expect(a.leads).toBe(true)
      await a.leasehold.close()
      await scene.until('higher leads', () => higher.leads)
      // A candidate that lets it pass is out of the queue for a moment.
      await scene.until('all are in the queue', async () => (await lengthOf(scene)) === 4)
      higher.stop.abort()
      await scene.until('high leads', () => high.leads)
      await scene.until('all are in the queue', async () => (await lengthOf(scene)) === 3)
      const { claims } = await scene.store.read({ key: 'election/boss/line' })
      high.stop.abort()
      const equals = claims.slice(1).map(({ holder }) => (holder === 'b' ? b : c))
      await scene.until('the first of the equals leads', () => equals[0]!.leads)
      await equals[0]!.election.resign()
      await scene.until('the second of them leads', () => equals[1]!.leads)
      expect(higher.terms[0]!.number).toBeLessThan(high.terms[0]!.number)
      await Promise.all([higher.ended, high.ended])
    }),
  )

  it(
    'make a leader step down for a preferred candidate that asks for it',
    inScene(async (scene) => {
      const [a, b] = (await join(scene, ['a', 'b'])) as [Runner, Runner]
      await scene.until('a leads', () => a.leads)
      const boss = await joined(scene, 'boss', { priority: 1, preempt: true })
      await scene.until('the boss leads', () => boss.leads)
      expect(a.terms[0]!.signal.reason).toMatchObject({ reason: 'superseded', by: 'boss' })
      expect(b.terms).toHaveLength(0)
      // A candidate of the same priority does not preempt.
      const equal = await joined(scene, 'equal', { priority: 1, preempt: true })
      await scene.pass(200)
      expect(boss.leads).toBe(true)
      await boss.leasehold.close()
      await scene.until('the equal one leads', () => equal.leads)
    }),
  )

  it(
    'show followers who leads, in which term, since when, and what it proclaims',
    inScene(async (scene) => {
      const follower = (await scene.open('follower')).election('boss')
      using observed = follower.observe()
      await observed.ready
      expect(observed.leader()).toBeUndefined()
      expect(await follower.leader()).toBeUndefined()
      const a = await joined(scene, 'a', { value: 'http://a:1' })
      // The follower may notice it first.
      await scene.until('a is seen', () => observed.leader() !== undefined && a.leads)
      const { number } = a.terms[0]!
      const expected = { candidate: 'a', holder: 'a', term: number, value: 'http://a:1' }
      expect(observed.leader()).toMatchObject(expected)
      expect(await follower.leader()).toMatchObject({ ...expected, age: 0 })
      const { since } = (await follower.leader()) as Leader
      expect(Math.abs(since - observed.leader()!.since)).toBeLessThan(1)
      await a.election.proclaim('http://a:2')
      await a.terms[0]!.proclaim('http://a:3')
      await scene.until('it is seen', () => observed.leader()?.value === 'http://a:3')
      expect(observed.leader()).toMatchObject({ term: number })
      expect(observed.age()).toBeLessThan(5000)
      expect(observed.live).toBe(true)
      await a.leasehold.close()
      await scene.until('nobody leads', () => observed.leader() === undefined)
    }),
  )

  it(
    'go to the next when the leader resigns, which rejoins behind the others',
    inScene(async (scene) => {
      const [a, b] = (await join(scene, ['a', 'b'])) as [Runner, Runner]
      await scene.until('a leads', () => a.leads)
      await a.election.resign()
      expect(a.terms[0]!.leading).toBe(false)
      expect(a.terms[0]!.signal.reason).toMatchObject({ code: 'lost', reason: 'released' })
      await scene.until('b leads', () => b.leads)
      await scene.until('a is back in the queue', async () => (await lengthOf(scene)) === 2)
      await b.election.resign()
      await scene.until('a leads again', () => a.leads)
      expect(a.terms).toHaveLength(2)
      expect(a.terms[1]!.number).toBeGreaterThan(b.terms[0]!.number)
      expect(() => a.terms[0]!.token).toThrowError(/term \d+ of "boss" is over/)
    }),
  )

  it(
    'end a campaign and a loop when the client is closed, and leave nobody in the queue',
    inScene(async (scene) => {
      const [a, b] = (await join(scene, ['a', 'b'])) as [Runner, Runner]
      const c = await scene.open('c')
      const campaign = c.election('boss').campaign()
      const failed = campaign.catch((error: unknown) => error)
      await scene.until('all are in the queue', async () => (await lengthOf(scene)) === 3)
      await Promise.all([b.leasehold.close(), c.close()])
      expect(await failed).toMatchObject({ code: 'closed' })
      await b.ended
      await a.leasehold.close()
      await a.ended
      expect(a.terms[0]!.signal.reason).toMatchObject({ code: 'lost', reason: 'closed' })
      await scene.until('the queue is empty', async () => (await lengthOf(scene)) === 0)
    }),
  )
})
