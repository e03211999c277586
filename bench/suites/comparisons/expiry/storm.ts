/**
 * Many leases with one deadline: how long until all have ended, and how slow are the renewals of
 * others meanwhile? etcd ends a thousand leases a second by design, so it gets only the smaller
 * storm. Its ttl is in whole seconds, so the time counts from the last deadline.
 */
import { compareFigures } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { etcdExpirer, ourExpirer, redisExpirer } from './expirers.js'
import { stormFigures, stormOf } from './measure-storm.js'

const rows: Row[] = []
for (const count of [10_000, 50_000]) {
  const expirers = [
    await ourExpirer(),
    await redisExpirer(),
    count === 10_000 ? await etcdExpirer() : undefined,
  ]
  const [ours, ...peers] = expirers.map((one) => one && stormOf(one, count))
  const [name, figures] = [`a storm of ${count}`, stormFigures(count)]
  rows.push(...(await compareFigures({ name, figures, ours: ours!, peers, warmUp: false })))
  await Promise.all(expirers.map((one) => one?.end()))
}
console.log(JSON.stringify(rows))
