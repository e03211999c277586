import type { Parameter, Schema } from '../route.ts'

/** The building blocks of the schemas of all routes. */

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
  description: "Milliseconds, or a string such as '250ms', '30s', '1.5h' or 'infinite'.",
}
/** JSON has no infinity: it is null. */
export const span: Schema = {
  type: ['number', 'null'],
  description: 'Milliseconds; null means forever.',
}
export const time: Schema = {
  type: ['integer', 'null'],
  description: "Time of the store's clock, in milliseconds since about 1970; null means never.",
}

/** A request object with these properties and no others. */
export function given(properties: Readonly<Record<string, Schema>>, ...required: string[]): Schema {
  return { type: 'object', properties, required, additionalProperties: false }
}

/** An answer object with these properties; later versions may add more. */
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
    value: text('Any string; others can read it.'),
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
    heldSince: { ...time, description: 'Since when it holds; absent while it waits.' },
    until: { ...time, description: 'When it ends unless it is renewed; null means never.' },
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

/** The shared schemas of the description. */
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
    holders: { ...whole(), description: 'This many of the first claims hold the key.' },
    count: whole(),
  }),
  Held: answered({
    key: text(),
    lease: text('Keep it secret: anyone who has it can renew and release the lock.'),
    token: { ...whole(1), description: 'The fencing token: send it with every write.' },
    remaining: { ...span, description: 'Milliseconds until it ends unless it is renewed.' },
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
      code: text('One of the codes in the list of problems.'),
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
  about: 'The key. Write slashes as they are; percent-encode other special characters.',
  required: true,
  example: EXAMPLE.key,
}

export const leasePart: Parameter = {
  schema: text(),
  about: 'The lease id, as it was granted.',
  required: true,
  example: EXAMPLE.lease,
}

export const tokenPart: Parameter = {
  schema: whole(1),
  about: 'The fencing token of the claim.',
  required: true,
  example: EXAMPLE.token,
}

export const holderPart: Parameter = {
  schema: text(),
  about: 'The holder, for people and logs. Default: the name of the access token.',
  example: 'me',
}

export const limitPart: Parameter = { schema: whole(1), about: 'The most entries.', example: 100 }

export const waitPart = (about: string): Parameter => ({ schema: duration, about, example: '10s' })

export const byPart: Parameter = { schema: text(), about: 'Who requests it.', example: 'ops' }
export const whyPart: Parameter = {
  schema: text(),
  about: 'The reason: shown to the holder and kept in the history.',
  example: 'its host is gone',
}
