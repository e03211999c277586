import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { isLeaseholdError } from 'leasehold/port'
import type { AgentHolds } from '../agent-holds.ts'
import { type AheadParty, aheadText } from '../ahead.ts'
import type { HoldRecord } from '../hold-record.ts'
import type { Outcome, Skipped } from '../hold-requests.ts'
import type { OutcomeAnswer } from './schemas.ts'

/** The answers of tools: each says what is the case and what to do next. */

export interface ToolResult {
  [name: string]: unknown
  readonly content: { readonly type: 'text'; readonly text: string }[]
  readonly structuredContent?: Record<string, unknown>
  readonly isError?: boolean
}

/** An answer with the notices of the connection. Clients without structured output read the text. */
export async function answer(holds: AgentHolds, given: object): Promise<ToolResult> {
  const structuredContent = { ...given, notices: await holds.notices() }
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
}

/** A failure as a result that the model reads, with what it can do about it. */
export function failure(error: unknown): ToolResult {
  const text = error instanceof Error ? error.message : String(error)
  return { content: [{ type: 'text', text: `${text}${adviceFor(error)}` }], isError: true }
}

/** The same for resources, whose failures are errors of the protocol: the request was wrong. */
export function refuse(error: unknown): never {
  if (!isLeaseholdError(error)) throw error
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${error.message}${adviceFor(error)}`)
}

function adviceFor(error: unknown): string {
  if (!isLeaseholdError(error)) return ''
  if (error.code === 'unknown-outcome' || error.code === 'timeout') {
    return '. The lease server did not answer in time: call mine to see what you hold, then try again'
  }
  if (error.code === 'forbidden' || error.code === 'unauthenticated') {
    return '. A person must change the rights of this access token; do not work around it'
  }
  return ''
}

export function outcomeAnswer(
  outcome: Outcome & { readonly skipped?: Skipped },
): Omit<OutcomeAnswer, 'notices'> {
  switch (outcome.state) {
    case 'held': {
      const { handle, note, lockOrPermit, latest } = outcome.record
      const { resources, claimToken: token } = lockOrPermit!
      return {
        state: 'held',
        hold: handle,
        token,
        for: [...note.for],
        until: new Date(latest).toISOString(),
        ...(resources && { resources: [...resources] }),
        ...skippedOf(outcome),
        next: `It is yours, and is kept for you while you work. Call release with hold ${handle} as soon as you are finished`,
      }
    }
    case 'waiting': {
      const { record, ahead, position } = outcome
      const { handle: hold, note } = record
      const next = waitingText(record, ahead)
      return { state: 'waiting', hold, for: [...note.for], position, ahead: listOf(ahead), next }
    }
    case 'busy':
      return {
        state: 'busy',
        ahead: listOf(outcome.ahead),
        ...skippedOf(outcome),
        next: busyText(outcome),
      }
    case 'done': {
      const { result, by, at } = outcome.done
      const next = `${outcome.name} was done by ${by} at ${at}. Do not do it again; use the result`
      return { state: 'done', result, done_by: by, done_at: at, next }
    }
  }
}

function listOf(ahead: readonly AheadParty[]): NonNullable<OutcomeAnswer['ahead']> {
  return ahead.map((each) => ({ ...each, for: [...each.for] }))
}

function skippedOf({ skipped }: { readonly skipped?: Skipped }): { skipped?: Skipped } {
  return skipped === undefined ? {} : { skipped }
}

function waitingText({ handle: hold, pool }: HoldRecord, ahead: readonly AheadParty[]): string {
  const own = ahead.find(({ yours }) => yours !== undefined)
  if (own !== undefined) {
    return `You wait for yourself: your own hold ${own.yours} (${own.purpose}) has ${own.key}. Release that one, or use it and release ${hold}`
  }
  // A permit of a pool names its tenant, not a hold that can be asked for.
  const urgent = pool === undefined ? ' If it is urgent, call ask_back.' : ''
  return `${aheadText(ahead)}. You are in the queue under hold ${hold}. Call wait with it, or do other work meanwhile: a notice tells you when it is your turn.${urgent} Do not touch it before you hold it`
}

function busyText({
  ahead,
  skipped,
}: {
  readonly ahead: readonly AheadParty[]
  readonly skipped?: Skipped | undefined
}): string {
  if (skipped === undefined) {
    return `${aheadText(ahead)}. You are not in the queue. Do other work and try again later, or call acquire without queue: false to wait`
  }
  const { busy, done, unable, untried } = skipped
  const counts = `${busy} are held by others, ${done} are done, ${unable} need a capability that you lack`
  if (untried > 0) {
    return `No free task was found in time: ${counts}. Call claim_next again with the last ${untried} tasks of your list`
  }
  if (busy > 0) {
    return `No task is free: ${counts}. Call claim_next again later: a task whose agent dies becomes free`
  }
  if (unable > 0) return `No task is left for you: ${counts}`
  return 'All tasks are done. Stop'
}
