// Run it: npm run build && node examples/dist/leader-failover.js
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Election, Leasehold, type LeaseStore, type Observation, type Term } from 'leasehold'
import { fileStore } from 'leasehold/file'
import { createServer } from 'leasehold-server'

/**
 * A leader with automatic failover, with real processes. This process runs a server on a durable
 * store and observes who leads; three candidates campaign there. The leader is killed with SIGKILL, so
 * it does not resign: when its ttl is over, the next candidate leads, in a higher term. The killed one
 * comes back at the end of the queue, and the new leader hands over to it by name, after its work has
 * ended.
 */
const TTL_MS = 2000
const FILE = fileURLToPath(import.meta.url)

type ToCandidate = { readonly handOverTo: string } | { readonly stop: true }

async function candidate(name: string, url: string): Promise<void> {
  // The channel to the parent keeps this process running until it has reached the server.
  process.channel?.ref()
  const leasehold = await Leasehold.open(url, { holder: name })
  const election = leasehold.election('scheduler', { ttl: TTL_MS, value: `http://${name}:8080` })
  const stop = new AbortController()
  process.on('disconnect', () => process.exit())
  process.on('message', async (message: ToCandidate) => {
    if ('stop' in message) stop.abort()
    else if ('handOverTo' in message) {
      const handed = await election.term?.handOver(message.handOverTo, { timeout: '5s' })
      process.send?.({ says: `handed its term over: ${handed?.outcome}` })
    }
  })
  const lead = async (term: Term): Promise<void> => {
    process.send?.({ says: `LEADS in term ${term.number}` })
    while (!term.asked.aborted) {
      await term.run(async ({ token }) => {
        process.send?.({ did: token })
        await pause(100)
      })
    }
    process.send?.({ says: `has ended its work in term ${term.number}` })
  }
  await election.withTerms(lead, { signal: stop.signal })
  await leasehold.close()
  process.disconnect()
}

const start = performance.now()

function say(who: string, what: string): void {
  const time = `${((performance.now() - start) / 1000).toFixed(2)} s`.padStart(7)
  console.log(`${time}  ${who.padEnd(8)}  ${what}`)
}

/** Starts the candidates, observes them, and receives what they write. */
class Candidates {
  readonly #store: LeaseStore
  readonly #url: string
  readonly #election: Election
  readonly #observed: Observation
  /** The resource that leaders write to: it refuses a token lower than one it has seen. */
  #highest = 0
  refused = 0

  constructor(store: LeaseStore, url: string, election: Election) {
    this.#store = store
    this.#url = url
    this.#election = election
    this.#observed = election.observe()
  }

  /** Starts a candidate, and waits until it is in the queue. */
  async begin(name: string): Promise<ChildProcess> {
    const before = (await this.queue()).length
    const child = fork(FILE, [name, this.#url])
    say(name, `starts as process ${child.pid}`)
    child.on('message', ({ says, did = this.#highest }: { says?: string; did?: number }) => {
      if (says !== undefined) say(name, says)
      if (did < this.#highest) this.refused++
      else this.#highest = did
    })
    while ((await this.queue()).length === before) await pause(10)
    return child
  }

  /** Waits until this candidate leads and has written. */
  async leads(name: string): Promise<void> {
    let leader = this.#observed.leader()
    while (leader?.candidate !== name || this.#highest < leader.term) {
      await pause(10)
      leader = this.#observed.leader()
    }
    const { candidate, term, value } = leader
    say('follower', `sees that ${candidate} leads in term ${term}, at ${value}`)
  }

  async queue() {
    return (await this.#store.read({ key: this.#election.key })).claims
  }
}

async function follow(): Promise<void> {
  // If anything goes wrong, this ends the example with an exit code.
  setTimeout(() => {
    console.error('this takes too long: something is wrong')
    process.exit(1)
  }, 60_000).unref()
  const folder = await mkdtemp(join(tmpdir(), 'leasehold-'))
  const store = await fileStore(folder)
  const server = await createServer({ store, port: 0 })
  const leasehold = await Leasehold.open(server.url, { holder: 'follower' })
  const election = leasehold.election('scheduler')
  const candidates = new Candidates(store, server.url, election)

  const ada = await candidates.begin('ada')
  await candidates.leads('ada')
  const others = [await candidates.begin('bea'), await candidates.begin('cid')] as const
  ada.kill('SIGKILL')
  await once(ada, 'exit')
  const killed = performance.now()
  say('ada', 'is KILLED: she resigned nothing, and nobody can lead until her lease is over')
  await candidates.leads('bea')
  const seconds = ((performance.now() - killed) / 1000).toFixed(2)
  say('follower', `the next in the queue took over by itself, ${seconds} s later`)

  const again = await candidates.begin('ada')
  say('ada', 'is back, behind cid; now bea is asked to hand over to her')
  others[0].send({ handOverTo: 'ada' })
  await candidates.leads('ada')
  say('follower', 'cid, who was before ada in the queue, has made room and never led')

  // Each ends its work, resigns and leaves. The waiting ones go first, so that nobody else leads.
  for (const child of [...others, again]) {
    child.send({ stop: true })
    await once(child, 'exit')
  }
  say('follower', `all have left; writes with an old token: ${candidates.refused}`)
  const { tenures } = await store.read({ history: election.key })
  // A candidate that only passed the front was there for a moment.
  const led = tenures.filter(({ heldSince, endedAt }) => endedAt - heldSince > 100)
  for (const { holder, token, end } of led.reverse()) {
    say('store', `history: ${holder}, term ${token}, ${end.reason}`)
  }
  await leasehold.close()
  await server.close()
  await store.close()
  await rm(folder, { recursive: true })
}

const [name, url] = process.argv.slice(2)
await (name === undefined || url === undefined ? follow() : candidate(name, url))
