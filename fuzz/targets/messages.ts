import { hostile, type Json } from '../mutate.ts'
import type { Random } from '../random.ts'

/** Values that follow the grammar of the stream. One in ten does not. */
class Values {
  readonly random: Random

  constructor(random: Random) {
    this.random = random
  }

  maybe(value: Json): Json {
    return this.random.oneIn(10) ? hostile(this.random) : value
  }

  lease(): Json {
    return this.maybe(this.random.pick(['$lease', '$lease', '1.1', '2.5', 'x']))
  }

  key(): Json {
    return this.maybe(`fuzz/${this.random.pick(['a', 'b', 'c/d', ''])}`)
  }

  spec(): Json {
    const key = this.key()
    const shared = { key, mode: 'shared', limit: this.maybe(2) }
    return this.maybe(this.random.pick<Json>([key, shared, { key, value: this.maybe('v') }]))
  }

  query(): Json {
    const key = this.key()
    const page = { prefix: key, after: this.key(), limit: this.maybe(3) }
    const lease = { lease: this.lease() }
    const queries = [{ key }, { prefix: key }, lease, { leases: true }, { history: key }, page]
    return this.maybe(this.random.pick<Json>(queries))
  }
}

/** The arguments after the operation in a request. */
const ARGUMENTS: Readonly<Record<string, (values: Values) => Json[]>> = {
  grant: (values) => {
    const { random } = values
    const rare = {
      parent: values.lease(),
      labels: values.maybe({ a: 'b' }),
      grace: 10,
      maxLife: 100,
    }
    const request = {
      holder: values.maybe('me'),
      ttl: values.maybe(random.pick([50, 60_000])),
      claims: values.maybe([values.maybe({ key: values.key() })]),
      ...(random.oneIn(3) && rare),
    }
    return [values.maybe(request)]
  },
  claim: (values) => [
    values.lease(),
    values.maybe([values.spec(), values.spec()]),
    values.maybe(values.random.below(2)),
    ...(values.random.oneIn(3) ? [values.maybe('request')] : []),
  ],
  release: (values) => [values.lease(), values.maybe('$token'), values.maybe([values.key()])],
  renew: (values) => [values.maybe([values.lease(), values.lease()])],
  tie: (values) => [values.maybe([values.lease(), values.lease()])],
  revoke: (values) => {
    const { random } = values
    const targets = [{ lease: values.lease() }, { key: values.key() }, { prefix: 'fuzz/' }]
    const request = {
      target: values.maybe(random.pick<Json>(targets)),
      by: values.maybe('me'),
      why: values.maybe('test'),
      ...(random.oneIn(3) && { after: values.maybe(5) }),
    }
    return [values.maybe(request)]
  },
  update: (values) => {
    const claim = { lease: values.lease(), token: values.maybe('$token'), key: values.key() }
    return [values.maybe({ ...claim, value: values.maybe('w') })]
  },
  read: (values) => [values.query()],
  watch: (values) => [values.query()],
  unwatch: (values) => [values.maybe(values.random.below(50))],
  hello: (values) => [values.maybe(1), values.maybe({ client: 'x' })],
}

const OPERATIONS = Object.keys(ARGUMENTS)

export function message(random: Random): Json {
  const id = random.oneIn(12) ? hostile(random) : random.below(50)
  const operation = random.pick(OPERATIONS)
  return [id, operation, ...ARGUMENTS[operation]!(new Values(random))]
}
