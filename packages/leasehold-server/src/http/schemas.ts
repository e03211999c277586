import type { Parameter, Schema } from './route.ts'

/** The pieces that the schemas of all routes are made of. */

export const text = (about?: string): Schema => ({
  type: 'string',
  ...(about && { description: about }),
})
export const flag: Schema = { type: 'boolean' }
export const whole = (minimum = 0): Schema => ({ type: 'integer', minimum })
export const list = (items: Schema): Schema => ({ type: 'array', items })
export const texts: Schema = { type: 'array', items: { type: 'string' }, maxItems: 1000 }
export const record: Schema = { type: 'object', additionalProperties: { type: 'string' } }
export const anything: Schema = {}
export const duration: Schema = {
  type: ['string', 'number'],
  description: "Milliseconds, or a text such as '250ms', '30s', '1.5h' or 'infinite'.",
}
/** JSON has no word for what never ends: it is null. */
export const span: Schema = {
  type: ['number', 'null'],
  description: 'Milliseconds; null for ever.',
}
export const time: Schema = {
  type: ['number', 'null'],
  description: "The store's own time, in milliseconds near 1970; null for never.",
}

/** An object that has these and nothing else, for what is sent to us. */
export function given(properties: Readonly<Record<string, Schema>>, ...required: string[]): Schema {
  return { type: 'object', properties, required, additionalProperties: false }
}

/** An object that has these and perhaps, some day, more: for what we answer. */
export function answered(
  properties: Readonly<Record<string, Schema>>,
  ...optional: string[]
): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name))
  return { type: 'object', properties, required }
}

export const named = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

export const claimSpec = given(
  {
    key: text(),
    mode: { enum: ['exclusive', 'shared'] },
    limit: whole(1),
    value: text('Any text; others can read it.'),
  },
  'key',
)

const claim = answered(
  {
    key: text(),
    token: whole(1),
    lease: text(),
    holder: text(),
    mode: { enum: ['exclusive', 'shared'] },
    limit: whole(1),
    value: text(),
    claimedAt: time,
    heldSince: { ...time, description: 'Since when it holds; not there while it waits.' },
    until: { ...time, description: 'When it will be gone unless it is renewed; null for never.' },
  },
  'limit',
  'value',
  'heldSince',
)

const end = answered(
  { reason: { enum: ['released', 'expired', 'revoked', 'broken'] }, by: text(), why: text() },
  'by',
  'why',
)

/** What the description names once, and refers to. */
export const SHARED: Readonly<Record<string, Schema>> = {
  Claim: claim,
  End: end,
  Ahead: answered({ key: text(), count: whole(), first: named('Claim') }),
  Lease: answered(
    {
      id: text(),
      holder: text(),
      ttl: span,
      grace: { type: 'number' },
      labels: record,
      parent: text(),
      grantedAt: time,
      renewedAt: time,
      until: time,
      endOfLife: time,
      claims: whole(),
      children: whole(),
    },
    'parent',
  ),
  Tenure: answered({
    token: whole(1),
    holder: text(),
    lease: text(),
    heldSince: time,
    endedAt: time,
    end: named('End'),
  }),
  Key: answered({
    key: text(),
    claims: list(named('Claim')),
    holders: { ...whole(), description: 'The first so many claims hold the key.' },
    count: whole(),
  }),
  Held: answered({
    key: text(),
    lease: text('Keep it secret: whoever has it can keep and release the lock.'),
    token: { ...whole(1), description: 'The fencing token: send it with every write.' },
    remaining: { ...span, description: 'Milliseconds until it ends unless it is kept.' },
  }),
  Kept: answered({ lease: text(), remaining: span }),
  Changed: answered({ revision: whole() }),
  Revoked: answered({ revision: whole(), leases: whole(), claims: whole(), more: flag }),
  Problem: answered(
    {
      type: text(),
      title: text(),
      status: whole(400),
      detail: text('What is wrong, with the value, the limit and what to do.'),
      code: text('One of the codes at the end of this page.'),
      outcome: { enum: ['refused', 'unknown'] },
      reason: text(),
      by: text(),
      why: text(),
      holder: text(),
      token: whole(),
      until: time,
      ahead: list(named('Ahead')),
    },
    ...['reason', 'by', 'why', 'holder', 'token', 'until', 'ahead'],
  ),
}

export const EXAMPLE = {
  key: 'reports/2026-11',
  lease: '17.42',
  token: 42,
} as const

export const keyPart: Parameter = {
  schema: text(),
  about: 'The key. Its slashes stand as they are; other special characters are percent-encoded.',
  required: true,
  example: EXAMPLE.key,
}

export const leasePart: Parameter = {
  schema: text(),
  about: 'The lease, as it was granted.',
  required: true,
  example: EXAMPLE.lease,
}

export const tokenPart: Parameter = {
  schema: whole(1),
  about: 'The token that the claim was answered with.',
  required: true,
  example: EXAMPLE.token,
}

export const holderPart: Parameter = {
  schema: text(),
  about: 'Who, for people and logs. The name of the token if not given.',
  example: 'me',
}

export const limitPart: Parameter = { schema: whole(1), about: 'At most so many.', example: 100 }

export const waitPart = (about: string): Parameter => ({ schema: duration, about, example: '10s' })

export const byPart: Parameter = { schema: text(), about: 'Who asks for it.', example: 'ops' }
export const whyPart: Parameter = {
  schema: text(),
  about: 'Why: told to the holder, and kept.',
  example: 'its host is gone',
}
