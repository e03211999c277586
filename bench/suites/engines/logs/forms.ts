/**
 * Our two forms on Redis and PostgreSQL: a log with a replica in each process, against the native
 * store, in which the engine decides. It shows which form suits one busy process, and which suits
 * several that write at the same time.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Engine, startPostgres, startRedis } from '../../../engines/start.js'
import { type Candidate, compare } from '../../../measure/compare.js'
import { perSecondAsync, type Row } from '../../../measure/rows.js'
import { pairsPerSecond } from '../../parts/server/pairs.js'
import { type EngineName, FORMS, type FormName } from './open-form.js'

const PROCESSES = 4
const EACH_IN_FLIGHT = 64
const PROGRAM = fileURLToPath(new URL('./forms-process.js', import.meta.url))

async function inOneProcess(name: string, engine: EngineName, on: Engine): Promise<Row[]> {
  const [log, native] = [await FORMS[engine].log(on.port), await FORMS[engine].native(on.port)]
  const rows: Row[] = []
  for (const [inFlight, pairs] of [
    [1, 300],
    [64, 6400],
    [512, 10_240],
  ] as const) {
    const form = (called: string, { pair }: typeof log): Candidate => ({
      name: called,
      run: async () => ({ value: await pairsPerSecond(pair, inFlight, pairs), count: pairs }),
      pids: [on.pid],
    })
    rows.push(
      ...(await compare({
        name: `${name}, log form, ${inFlight} in flight`,
        unit: 'pairs/s',
        better: 'more',
        ours: form('log form', log),
        peers: [form('our native store', native)],
      })),
    )
  }
  await log.end()
  await native.end()
  return rows
}

async function inProcesses(name: string, engine: EngineName, on: Engine): Promise<Row[]> {
  const pairs = 3200
  const started: ChildProcess[] = []
  const form = async (called: string, which: FormName): Promise<Candidate> => {
    const args = [engine, which, `${on.port}`, `${EACH_IN_FLIGHT}`]
    const children = Array.from({ length: PROCESSES }, () => fork(PROGRAM, args))
    started.push(...children)
    const answers = () => Promise.all(children.map((child) => once(child, 'message')))
    await answers()
    const run = async () => {
      const value = await perSecondAsync(PROCESSES * pairs, () => {
        const done = answers()
        for (const child of children) child.send(pairs)
        return done
      })
      return { value }
    }
    return { name: called, run }
  }
  const rows = await compare({
    name: `${name}, log form, ${PROCESSES} processes with ${EACH_IN_FLIGHT} in flight each`,
    unit: 'pairs/s',
    better: 'more',
    ours: await form('log form', 'log'),
    peers: [await form('our native store', 'native')],
  })
  for (const child of started) {
    const ended = once(child, 'exit')
    child.disconnect()
    await ended
  }
  return rows
}

const rows: Row[] = []
for (const [name, engine, start] of [
  ['Redis on the disk', 'redis', () => startRedis(true)],
  ['Redis in memory', 'redis', () => startRedis(false)],
  ['PostgreSQL', 'postgres', startPostgres],
] as const) {
  const on = await start()
  if (!on) continue
  rows.push(...(await inOneProcess(name, engine, on)), ...(await inProcesses(name, engine, on)))
  await on.end()
}
console.log(JSON.stringify(rows))
