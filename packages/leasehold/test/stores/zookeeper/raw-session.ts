import { systemClock, systemRandom } from '../../../src/port/index.ts'
import { connectPlainly } from '../../../src/stores/zookeeper/client.ts'
import { Session } from '../../../src/stores/zookeeper/wire/index.ts'

/** A session beside the stores', to see their nodes and to do what no store does. */
export function rawSession(port: number): Session {
  return new Session(
    {
      servers: [{ host: '127.0.0.1', port }],
      connect: connectPlainly,
      auth: undefined,
      clock: systemClock,
      random: systemRandom,
      patience: 10_000,
      pingEvery: 1000,
      horizon: { zxid: 0 },
    },
    10_000,
  )
}

export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 30_000
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error('waited 30 s in vain')
    await pause(20)
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
