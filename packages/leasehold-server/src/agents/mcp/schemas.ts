import { z } from 'zod'
import { convertedOnce } from './converted-once.ts'

/** The shapes of what agents send and get. Descriptions are for the model that reads them. */

const name = (max: number) => z.string().trim().min(1).max(max)

export const purpose = name(500).describe(
  'What you are doing with it, for others who wait: "rename Cart to Basket in the checkout".',
)
export const agent = name(100)
  .optional()
  .describe('Your name, if several agents share this connection. Use the same one every time.')
export const hold = name(100).describe(
  'The handle of a hold, as acquire, claim_next or mine gave it.',
)
export const wait = z
  .number()
  .min(0)
  .max(50)
  .optional()
  .describe(
    'How many seconds to wait if it is not free: 0 to 50, 20 if not given. Your place is kept.',
  )
const key = name(500)
export const keys = z
  .array(key)
  .max(100)
  .describe(
    'Names of anything that only one may use at a time, such as "deploy/staging" or "branch/main".',
  )
export const paths = z
  .array(name(2000))
  .max(50)
  .describe(
    'Files or folders, absolute or from the working directory. A folder includes everything in it.',
  )

/** What to look at, by key, path or prefix. */
export const target = {
  key: key.optional().describe('A key, as it was given to acquire.'),
  path: name(2000).optional().describe('A file or folder.'),
}

const time = z.string().describe('ISO 8601, UTC')
const party = z.object({
  agent: z.string(),
  purpose: z.string(),
  for: z.array(z.string()).describe('What it asked for.'),
  mode: z.enum(['exclusive', 'shared']),
  since: time,
  until: time.nullable().describe('The latest end of what it holds; null if it has none.'),
  token: z.number(),
})
const ahead = party.extend({
  key: z.string(),
  state: z.enum(['holds', 'waits']),
  yours: z.string().optional().describe('Your own hold: release it first.'),
})
const holdView = z.object({
  hold: z.string(),
  state: z.enum(['held', 'waiting', 'lost', 'released']),
  agent: z.string(),
  purpose: z.string(),
  for: z.array(z.string()),
  since: time,
  until: time.optional(),
  token: z.number().optional(),
  resources: z.array(z.string()).optional(),
  why: z.string().optional(),
})
const notices = z
  .array(
    z.object({
      about: z.enum(['asked-back', 'your-turn', 'lost', 'ceiling']),
      hold: z.string().optional(),
      agent: z.string().optional(),
      text: z.string(),
    }),
  )
  .describe('Read these: somebody asks for a hold back, a hold was lost, or will end.')
const next = z.string().describe('What to do now.')

const outcomeAnswer = z.object({
  state: z.enum(['held', 'waiting', 'busy', 'done']),
  hold: z.string().optional().describe('Keep this handle: wait and release need it.'),
  token: z
    .number()
    .optional()
    .describe('The fencing token: send it with writes to systems that compare tokens.'),
  for: z.array(z.string()).optional(),
  resources: z.array(z.string()).optional(),
  until: time.optional().describe('The latest end of the hold.'),
  position: z.number().optional().describe('How many are ahead of you.'),
  ahead: z.array(ahead).optional(),
  skipped: z
    .object({ busy: z.number(), done: z.number(), unable: z.number(), untried: z.number() })
    .optional(),
  result: z.unknown().optional().describe('The result, if it was done before.'),
  done_by: z.string().optional(),
  done_at: time.optional(),
  next,
  notices,
})
export const outcome = convertedOnce(outcomeAnswer)
export type OutcomeAnswer = z.infer<typeof outcomeAnswer>

export const released = convertedOnce(z.object({ released: z.array(z.string()), next, notices }))
export const mine = convertedOnce(z.object({ holds: z.array(holdView), next, notices }))
export const who = convertedOnce(
  z.object({
    keys: z.array(z.object({ key: z.string(), holders: z.array(party), waiting: z.array(party) })),
    history: z.array(z.object({ holder: z.string(), since: time, until: time, end: z.string() })),
    next,
    notices,
  }),
)
export const agents = convertedOnce(
  z.object({
    agents: z.array(
      z.object({
        agent: z.string(),
        doing: z.string().optional(),
        paths: z.array(z.string()).optional(),
        capabilities: z.array(z.string()).optional(),
        holds: z.array(party),
        waits: z.array(party),
      }),
    ),
    next,
    notices,
  }),
)
export const announced = convertedOnce(z.object({ agent: z.string(), next, notices }))
export const asked = convertedOnce(z.object({ asked: z.array(party), next, notices }))
export const broken = convertedOnce(
  z.object({ broken: z.array(party), ends_at: time, next, notices }),
)

/** A task of `claim_next`: its key, or its key with what it needs. */
export const tasks = z
  .array(z.union([key, z.object({ key, needs: z.array(name(100)).max(20).optional() }).strict()]))
  .min(1)
  .max(500)
  .describe('Tasks in order of preference: keys, or {key, needs: [capability, …]}.')
export const capability = z
  .array(name(100))
  .max(50)
  .optional()
  .describe('What you can do. If not given: what you announced.')
const attribute = z.union([z.string(), z.number(), z.boolean()])
export const where = z
  .string()
  .max(1000)
  .optional()
  .describe("Which resources are suitable, such as 'memory >= 40, model = H100'.")
export const resources = z
  .array(z.object({ name: name(100) }).catchall(attribute))
  .min(1)
  .max(1000)
  .optional()
  .describe(
    'Creates the pool if it does not exist: [{name: "5170"}, {name: "5171"}]. Everybody must give the same list, or none.',
  )
