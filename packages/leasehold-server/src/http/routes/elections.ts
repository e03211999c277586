import type { Candidate, Election } from 'leasehold'
import { LeaseholdError, type LeaseId, show } from 'leasehold/port'
import { goneError } from '../requests/call.ts'
import { lostError, renewed, stillHeld, waitUntilHeld, withdraw } from '../requests/waits.ts'
import { NotAvailable } from '../responses/problem.ts'
import type { Call, Parameter, Route } from '../route.ts'
import { durationOf, waitOf } from './durations.ts'
import {
  answered,
  duration,
  flag,
  leasePart,
  list,
  span,
  text,
  time,
  waitPart,
  whole,
} from './schemas.ts'

/** Elections for clients that have only HTTP: a term is its own lease with one claim. */

const DEFAULT_TTL = '10s'

const election: Parameter = {
  schema: text(),
  about: 'The election.',
  required: true,
  example: 'scheduler',
}

const candidate = answered(
  {
    candidate: text('The name that others see.'),
    holder: text(),
    priority: { type: 'number' },
    preempt: flag,
    leads: flag,
    value: text('What it publishes, such as its address.'),
    token: { ...whole(1), description: 'If it leads: the number of its term.' },
    since: { ...time, description: 'Since when it is at the front; absent while it waits.' },
  },
  ...['value', 'since'],
)

const term = answered(
  {
    election: text(),
    candidate: text(),
    lease: text('Keep it secret: anyone who has it can renew and end the term.'),
    term: { ...whole(1), description: 'The fencing token: send it with every write.' },
    remaining: { ...span, description: 'Milliseconds until it ends unless it is renewed.' },
    asked: {
      ...candidate,
      description: 'A candidate with a higher priority that asks for the term. Resign soon.',
    },
  },
  'asked',
)

const state = answered(
  { election: text(), leader: candidate, candidates: list(candidate) },
  'leader',
)

export const ELECTIONS: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/elections',
    id: 'listElections',
    group: 'Elections',
    title: 'List the elections with candidates',
    answer: { status: 200, about: 'Their names.', schema: answered({ elections: list(text()) }) },
    handle: listNames,
  },
  {
    method: 'GET',
    path: '/v1/elections/{election}',
    id: 'readElection',
    group: 'Elections',
    title: 'Read who leads, and who waits',
    params: { election },
    answer: {
      status: 200,
      about: 'The candidates in the order of the queue. Without `leader`, nobody leads.',
      schema: state,
    },
    handle: (call) => call.leasehold((leasehold) => stateOf(leasehold.election(nameOf(call)))),
  },
  {
    method: 'GET',
    path: '/v1/elections/{election}/events',
    id: 'observeElection',
    group: 'Elections',
    title: 'Observe who leads',
    about:
      'Server-sent events named `leader`: who leads now, and then each change. The data is `{"leader": …}`, with `null` while nobody leads. `bye` means that the client should reconnect.',
    params: { election },
    answer: {
      status: 200,
      about: 'A stream, until one side closes it.',
      schema: text(),
      type: 'text/event-stream',
    },
    handle: observe,
  },
  {
    method: 'POST',
    path: '/v1/elections/{election}',
    id: 'campaign',
    group: 'Elections',
    title: 'Campaign, and lead a term',
    about:
      'Waits in the queue of candidates for up to `wait`. Closing the connection leaves the queue. Renew the term with PUT before `remaining` ends, for example every third of the ttl.',
    params: { election },
    query: {
      candidate: {
        schema: text(),
        about: 'The name that others see. Default: the name of the access token.',
        example: 'host-a',
      },
      ttl: { schema: duration, about: 'How soon another leads after a death. Default: 10s.' },
      wait: waitPart('How long to wait in the queue. Default: no wait.'),
      priority: { schema: { type: 'number' }, about: 'Higher is preferred. Default: 0.' },
      preempt: { schema: flag, about: 'Ask a leader of lower priority to step down.' },
      value: { schema: text(), about: 'What to publish, such as an address.' },
    },
    answer: { status: 201, about: 'The candidate leads.', schema: term },
    problems: [409, 410],
    handle: campaign,
  },
  {
    method: 'PUT',
    path: '/v1/elections/{election}',
    id: 'keepTerm',
    group: 'Elections',
    title: 'Renew a term, and publish a value',
    about: 'The term has its full ttl again. 410 means that it is over: stop the work under it.',
    params: { election },
    query: {
      lease: leasePart,
      value: { schema: text(), about: 'Replaces the published value.' },
    },
    answer: { status: 200, about: 'The candidate still leads.', schema: term },
    problems: [404, 410],
    handle: keep,
  },
  {
    method: 'DELETE',
    path: '/v1/elections/{election}',
    id: 'resign',
    group: 'Elections',
    title: 'Resign',
    about: 'The next candidate in the queue can lead at once.',
    params: { election },
    query: { lease: leasePart },
    answer: { status: 200, about: 'The term is over.', schema: answered({ ended: flag }) },
    problems: [404, 410],
    handle: resign,
  },
]

async function listNames(call: Call): Promise<unknown> {
  return { elections: await call.leasehold((leasehold) => leasehold.elections()) }
}

function nameOf({ params }: Call): string {
  return params['election']!
}

async function stateOf(one: Election): Promise<unknown> {
  const candidates = await one.candidates()
  const leader = candidates[0]?.leads ? candidates[0] : undefined
  return { election: one.name, leader, candidates }
}

async function observe(call: Call): Promise<void> {
  await call.leasehold(async (leasehold) => {
    const observation = leasehold.election(nameOf(call)).observe()
    try {
      // Before the response starts, so that an error can still set the status.
      await observation.ready
      const sink = call.stream()
      sink.closed = () => observation.close()
      for await (const leader of observation) {
        const { age: _, ...shown } = leader ?? {}
        sink.send('leader', { leader: leader === undefined ? null : shown })
      }
    } finally {
      observation.close()
    }
  })
}

interface CampaignQuery {
  readonly candidate?: string
  readonly ttl?: string
  readonly priority?: number
  readonly preempt?: boolean
  readonly value?: string
}

async function campaign(call: Call): Promise<unknown> {
  const { candidate: name = call.principal.name, ttl: given, ...rest }: CampaignQuery = call.query
  const { priority, preempt, value } = rest
  const ttl = durationOf('ttl', given ?? DEFAULT_TTL)
  const until = call.clock.now() + waitOf(call)
  return call.leasehold(async (leasehold) => {
    const options = { candidate: name, ttl, priority, preempt, value }
    const one = leasehold.election(nameOf(call), options)
    for (;;) {
      const left = Math.max(0, until - call.clock.now())
      const won = await tryToLead(call, one, ttl, left)
      if (won !== undefined) return won
      // It let a preferred candidate pass, and is behind it from now on.
      if (call.clock.now() >= until) throw await notWon(one)
    }
  })
}

/** Joins the queue and leads; `undefined` if it had to let a preferred candidate pass. */
async function tryToLead(
  call: Call,
  one: Election,
  ttl: number,
  wait: number,
): Promise<object | undefined> {
  const { store, serverActions } = call
  const holder = one.candidate
  const claims = [one.entry(false)]
  const granted = await store.grant({ holder, ttl, claims, ifFree: wait === 0 })
  if (granted.outcome === 'busy') throw NotAvailable.from(granted)
  const { lease, token } = granted
  const queued = { lease, token, ttl, wait, targets: [{ lease }], by: holder } as const
  if (!granted.holds && !(await waitUntilHeld(call, queued))) throw await notWon(one)
  try {
    const isBehind = (await one.preferredTo(token)) !== undefined
    if (isBehind) {
      await withdraw(call, queued)
      return undefined
    }
    await store.update({ lease, token, ...one.entry(true) })
    const remaining = await stillHeld(serverActions, queued, [one.key])
    if (call.gone) throw goneError()
    return { election: one.name, candidate: holder, lease, term: token, remaining }
  } catch (error) {
    await withdraw(call, queued)
    throw error
  }
}

async function notWon(one: Election): Promise<NotAvailable> {
  const candidates = await one.candidates().catch((): readonly Candidate[] => [])
  const leader = candidates[0]?.leads ? `: ${candidates[0].candidate} leads` : ''
  return new NotAvailable('timeout', `${show(one.name)} was not won in time${leader}; wait longer`)
}

interface HeldTerm {
  readonly ttl: number
  readonly candidate: Candidate
}

/** The term under this lease. Another lease must not be renewed by its name. */
async function termOf({ store, query }: Call, one: Election): Promise<HeldTerm> {
  const lease: LeaseId = query['lease']!
  const { lease: found, end, claims } = await store.read({ lease })
  if (end !== undefined) throw lostError(`the term of ${show(one.name)} is over`, end)
  const claim = claims.find(({ key }) => key === one.key)
  const candidate = claim && (await one.candidates()).find(({ token }) => token === claim.token)
  if (found !== undefined && candidate?.since !== undefined) return { ttl: found.ttl, candidate }
  if (found !== undefined && claim === undefined) {
    throw lostError(`the term of ${show(one.name)} is over`, { reason: 'revoked' })
  }
  throw new LeaseholdError(
    'lease-not-found',
    `this lease is not a term of ${show(one.name)}: use the lease that the campaign answered with`,
  )
}

async function keep(call: Call): Promise<unknown> {
  const { lease, value }: { lease: LeaseId; value?: string } = call.query as never
  return call.leasehold(async (leasehold) => {
    const { ttl, candidate } = await termOf(call, leasehold.election(nameOf(call)))
    const { candidate: name, priority, preempt, token } = candidate
    const options = { candidate: name, priority, preempt, value }
    const one = leasehold.election(nameOf(call), options)
    const remaining = await renewed(call.store, lease, ttl)
    if (value !== undefined) await call.store.update({ lease, token, ...one.entry(true) })
    const asked = await one.preemptorOf(token)
    return { election: one.name, candidate: one.candidate, lease, term: token, remaining, asked }
  })
}

async function resign(call: Call): Promise<unknown> {
  const lease: LeaseId = call.query['lease']!
  await call.leasehold((leasehold) => termOf(call, leasehold.election(nameOf(call))))
  await call.store.revoke({ target: { lease }, why: 'resigned' })
  return { ended: true }
}
