import type { AgentSession } from '../agent-session.ts'
import { type AheadParty, aheadParty, aheadText } from '../ahead.ts'

/** What an agent is about to edit. */
export interface GuardQuestion {
  /** Files, absolute or from `folder`. */
  readonly paths: readonly string[]
  readonly folder: string
  /** Takes what is free. */
  readonly take: boolean
}

export interface GuardAnswer {
  readonly allow: boolean
  /** Why it is denied, or what was taken. */
  readonly text?: string | undefined
}

const PURPOSE = 'editing; taken by the guard'

/** Whether an agent may edit these files: not if another agent holds one of them. */
export async function decide(
  { holds, fleet }: AgentSession,
  { paths, take }: Pick<GuardQuestion, 'paths' | 'take'>,
): Promise<GuardAnswer> {
  holds.touch()
  const free: string[] = []
  for (const path of paths) {
    const holding = await fleet.holdersOf({ path })
    const others = holding.filter((claim) => !holds.isOwn(claim))
    if (others.length > 0) {
      return {
        allow: false,
        text: refusal(path, others.map(aheadParty), holds.waitingFor(path)),
      }
    }
    if (holding.length === 0) free.push(path)
  }
  if (!take || free.length === 0) return { allow: true }
  const outcome = await holds.tryAcquire({ paths: free, purpose: PURPOSE })
  if (outcome.state === 'busy') {
    return { allow: false, text: refusal(free.join(', '), outcome.ahead, undefined) }
  }
  if (outcome.state !== 'held') return { allow: true }
  return {
    allow: true,
    text: `${free.join(', ')} is yours now, as hold ${outcome.record.handle}. Call release with it when you are finished`,
  }
}

/** Names the holder, the purpose and the next step. */
export function refusal(
  path: string,
  others: readonly AheadParty[],
  waiting: string | undefined,
): string {
  const next =
    waiting === undefined
      ? `call acquire with paths ["${path}"] to wait in the queue`
      : `you are in the queue under hold ${waiting}: call wait with it`
  return `Do not edit ${path}: ${aheadText(others)}. Next: ${next}, or do other work. If it is urgent, call ask_back`
}
