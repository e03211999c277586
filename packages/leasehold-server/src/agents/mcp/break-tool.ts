import {
  acceptedContent,
  inputRequired,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { LeaseholdError, milliseconds, show } from 'leasehold/port'
import { z } from 'zod'
import type { SessionOf } from '../agent-session.ts'
import { type Party, partyOf } from '../hold-note.ts'
import { DESTROYS } from './annotations.ts'
import { failure } from './answers.ts'
import { convertedOnce } from './converted-once.ts'
import * as schemas from './schemas.ts'
import { runAs } from './tool-runner.ts'

const BREAK_AFTER = '30s'

const BREAK_HOLD = {
  title: 'Take a hold away',
  description:
    'Take a key or path away from an agent that is stuck and does not answer ask_back. Its unsaved work may be lost, so a person is asked first. Prefer wait and ask_back.',
  inputSchema: convertedOnce(
    z.strictObject({
      ...schemas.target,
      why: z
        .string()
        .trim()
        .min(1)
        .max(200)
        .describe('Why it must be taken away. The holder and the history get it.'),
      after: z
        .string()
        .optional()
        .describe(`How long the holder still has, such as "1m". "${BREAK_AFTER}" if not given.`),
      agent: schemas.agent,
    }),
  ),
  outputSchema: schemas.broken,
  annotations: DESTROYS,
}

const CONFIRMATION = z.object({
  confirm: z.boolean().describe('Take it away from its holder'),
})

/** `breaksFreely`: agents may break holds without asking a person. */
export function addBreakTool(server: McpServer, sessionOf: SessionOf, breaksFreely: boolean): void {
  server.registerTool(
    'break_hold',
    BREAK_HOLD,
    async ({ why, after = BREAK_AFTER, agent, ...target }, context) => {
      try {
        const { holds, fleet } = await sessionOf({ agent })
        const by = agent ?? holds.agent
        const ms = milliseconds(after as '30s', 'after')
        const claims = await fleet.breakable(target)
        const named = claims.map(partyOf)
        const question = `confirm-${claims.map(({ token }) => token).join('-')}`
        const confirmation = breaksFreely ? 'given' : confirmationIn(context, question)
        if (confirmation === 'refused') throw refusedByPerson()
        if (confirmation === 'missing') {
          if (!asksPeople(server, context)) throw needsPerson(claims[0]!.key, why, after)
          const also = await fleet.alsoEnding(claims)
          const more = also.length === 0 ? '' : ` With it they lose ${also.join(', ')}.`
          return askPerson(
            question,
            `Agent ${by} wants to take ${show(target.key ?? target.path)} away from ${partiesText(named)}, in ${after}, because: ${why}.${more}`,
          )
        }
        return await runAs(holds, async () => {
          await fleet.break(claims, by, why, ms)
          const ends_at = new Date(holds.now() + ms).toISOString()
          const next = `They end at ${ends_at} at the latest. Call acquire to be the next in the queue, and check the state of the work before you continue`
          return { broken: named, ends_at, next }
        })
      } catch (error) {
        return failure(error)
      }
    },
  )
}

function partiesText(parties: readonly Party[]): string {
  return parties.map((it) => `${it.agent} (${it.purpose}, since ${it.since})`).join('; ')
}

/**
 * What a person answered, in a repeated call of the tool. The name of the question has the tokens of
 * what would be taken, so that an answer does not count for whoever holds it next.
 */
function confirmationIn(
  { mcpReq }: ServerContext,
  question: string,
): 'given' | 'refused' | 'missing' {
  const { inputResponses } = mcpReq
  if (inputResponses?.[question] === undefined) return 'missing'
  const content = acceptedContent(inputResponses, question, CONFIRMATION)
  return content?.confirm === true ? 'given' : 'refused'
}

function askPerson(question: string, message: string) {
  const request = inputRequired.elicit({ message, requestedSchema: CONFIRMATION })
  return inputRequired({ inputRequests: { [question]: request } })
}

function refusedByPerson(): LeaseholdError {
  return new LeaseholdError('aborted', 'the person did not agree. Wait, or do other work')
}

/** Whether the client can ask a person. */
function asksPeople(server: McpServer, context: ServerContext): boolean {
  const envelope = context.mcpReq.envelope as Record<string, unknown> | undefined
  const declared = envelope?.['io.modelcontextprotocol/clientCapabilities'] as
    | { elicitation?: unknown }
    | undefined
  return (declared ?? server.server.getClientCapabilities())?.elicitation !== undefined
}

function needsPerson(key: string, why: string, after: string): LeaseholdError {
  return new LeaseholdError(
    'aborted',
    `a person must agree, and this client cannot ask one. Ask your user to run: leasehold break ${shellWord(key)} --after ${shellWord(after)} --why ${shellWord(why)}. Meanwhile wait, or do other work`,
  )
}

/** A word of a command for a person's shell. A model chose the text, so nothing in it may be run. */
export function shellWord(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
