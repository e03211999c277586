import type { Done } from 'leasehold'
import { LeaseholdError, type LeaseId, show, type Token } from 'leasehold/port'
import type { Call, Parameter, Route } from '../route.ts'
import { optionalDuration } from './durations.ts'
import { takeLock } from './locks.ts'
import {
  answered,
  anything,
  duration,
  flag,
  given,
  holderPart,
  leasePart,
  span,
  text,
  tokenPart,
  waitPart,
  whole,
} from './schemas.ts'

/** Work that is done once, for clients that have only HTTP: one of them runs it, all get its result. */

/** A name, which may have slashes in it. */
const PARAMS: Readonly<Record<string, Parameter>> = {
  key: { schema: text(), about: 'What is done.', required: true, example: 'report/2026-11' },
}

const DONE = {
  done: { ...flag, description: 'Whether it was done.' },
  result: { ...anything, description: 'What the work returned: any JSON.' },
  by: { ...text(), description: 'Who did it.' },
  at: { ...whole(), description: 'When, in milliseconds since 1970.' },
  until: { ...whole(), description: 'When the store forgets it.' },
}
const ONLY_IF_DONE = ['result', 'by', 'at', 'until'] as const

export const ONCE: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/once/{key}',
    rest: true,
    id: 'readOnce',
    group: 'Once',
    title: 'Read whether something was done',
    params: PARAMS,
    answer: {
      status: 200,
      about: 'Its result, if it was done.',
      schema: answered(DONE, ...ONLY_IF_DONE),
    },
    handle: async (call) => (await doneIn(call)) ?? { done: false },
  },
  {
    method: 'POST',
    path: '/v1/once/{key}',
    rest: true,
    id: 'startOnce',
    group: 'Once',
    title: 'Read the result, or start the work',
    about:
      'With `done`, use the result. Otherwise do the work, and store its result with PUT and this `lease` and `token`: nobody else does it meanwhile. Renew the lease if the work takes longer than `remaining`. While somebody else does it, the request waits for up to `wait`. If you fail, end the lease: the next caller starts.',
    params: PARAMS,
    query: {
      wait: waitPart('How long to wait for another caller. Default: no wait.'),
      ttl: { schema: duration, about: 'How soon a dead caller is replaced. Default: 30s.' },
      holder: holderPart,
    },
    answer: {
      status: 200,
      about: 'The result, or the lease and the token of the caller that does the work.',
      schema: answered(
        { ...DONE, lease: text(), token: whole(1), remaining: span },
        ...[...ONLY_IF_DONE, 'lease', 'token', 'remaining'],
      ),
    },
    problems: [409, 410],
    handle: start,
  },
  {
    method: 'PUT',
    path: '/v1/once/{key}',
    rest: true,
    id: 'finishOnce',
    group: 'Once',
    title: 'Store the result',
    about:
      'Answers with what is stored: an earlier result, if there is one. 410 if the lease has ended and nothing is stored: the next caller does the work again.',
    params: PARAMS,
    query: {
      lease: leasePart,
      token: tokenPart,
      keep: { schema: duration, about: 'How long it is remembered. Default: 30 days.' },
    },
    body: { schema: given({ result: anything }), example: { result: { rows: 1200 } } },
    answer: { status: 200, about: 'It is done.', schema: answered(DONE, 'result') },
    problems: [410],
    handle: finish,
  },
  {
    method: 'DELETE',
    path: '/v1/once/{key}',
    rest: true,
    id: 'forgetOnce',
    group: 'Once',
    title: 'Forget that it was done',
    about: 'The next caller does it again.',
    params: PARAMS,
    answer: {
      status: 200,
      about: 'Whether it was done.',
      schema: answered({ forgotten: flag }),
    },
    handle: (call) =>
      call.leasehold(async (leasehold) => ({
        forgotten: await leasehold.forgetOnce(call.params['key']!),
      })),
  },
]

function doneIn(call: Call): Promise<unknown | undefined> {
  return call.leasehold(async (leasehold) => {
    const done = await leasehold.onceResult(call.params['key']!)
    return done && answerOf(done)
  })
}

function answerOf({ result, by, at, until }: Done): unknown {
  return { done: true, result, by, at, until }
}

async function start(call: Call): Promise<unknown> {
  const before = await doneIn(call)
  if (before !== undefined) return before
  const key = await call.leasehold(async (leasehold) => leasehold.onceKey(call.params['key']!))
  const { lease, token, remaining } = await takeLock(call, key)
  // Nobody else does it now, so this answer stays true.
  const earlier = await doneIn(call)
  if (earlier === undefined) return { done: false, lease, token, remaining }
  await call.store.revoke({ target: { lease }, why: 'it was done before' }).catch(() => {})
  return earlier
}

async function finish(call: Call): Promise<unknown> {
  const query: { lease?: LeaseId; token?: Token; keep?: string } = call.query
  const { result } = call.body as { result?: unknown }
  const name = call.params['key']!
  const keep = optionalDuration('keep', query.keep)
  const done = await call.leasehold((leasehold) =>
    leasehold.finishOnce(name, query.token!, result, { keep }),
  )
  if (done === undefined) {
    throw new LeaseholdError(
      'lost',
      `the lock of ${show(name)} is lost, so its result was not stored: start again`,
      { reason: 'expired' },
    )
  }
  await call.store.revoke({ target: { lease: query.lease! }, why: 'done' }).catch(() => {})
  return answerOf(done)
}
