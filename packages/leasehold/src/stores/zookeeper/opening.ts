import { isLeaseholdError, LeaseholdError } from '../../port/index.ts'
import type { settingsOf } from './options.ts'
import { Paths } from './paths.ts'
import { NOTHING } from './records.ts'
import {
  CODE,
  CREATOR,
  type Horizon,
  isFault,
  multi,
  multiRead,
  OPEN,
  type Op,
  Session,
  type SessionOptions,
} from './wire/index.ts'

/** The session for everything but the leases; nothing is lost with it. */
const MAIN_MS = 10_000
const UNIMPLEMENTED = -6

export interface Opened {
  readonly main: Session
  readonly options: SessionOptions
  /** The shortest session that the ensemble grants. */
  readonly shortest: number
  readonly paths: Paths
}

/** Finds the ensemble, learns what it grants, and makes the nodes that must be there. */
export async function open(settings: ReturnType<typeof settingsOf>): Promise<Opened> {
  const { servers, connect, auth, clock, random, timeout, root } = settings
  const horizon: Horizon = { zxid: 0 }
  const first = {
    servers,
    connect,
    auth,
    clock,
    random,
    horizon,
    patience: timeout,
    pingEvery: 1000,
  }
  const probe = new Session(first, 1)
  try {
    await reach(probe, settings)
    const shortest = probe.timeout
    const options = { ...first, pingEvery: shortest / 4 }
    const main = new Session(options, Math.max(MAIN_MS, shortest))
    try {
      await main.touch()
      const paths = new Paths(root)
      await makeNodes(main, paths, auth ? CREATOR : OPEN)
      return { main, options, shortest, paths }
    } catch (error) {
      await main.close('end')
      throw error
    }
  } finally {
    await probe.close('end')
  }
}

async function reach(session: Session, { servers, timeout }: ReturnType<typeof settingsOf>) {
  try {
    await session.touch()
  } catch (error) {
    if (!isLeaseholdError(error, 'unknown-outcome')) throw error
    const names = servers.map(({ host, port }) => `${host}:${port}`).join(',')
    throw new LeaseholdError(
      'timeout',
      `no ZooKeeper server at ${names} answered within ${Math.round(timeout)} ms: start the ensemble, or correct servers (${error.message})`,
      { cause: error },
    )
  }
}

async function makeNodes(main: Session, paths: Paths, acl: typeof OPEN): Promise<void> {
  const fixed = paths.fixed
  for (;;) {
    const missing = await missingOf(main, fixed)
    if (missing.length === 0) return
    const ops = missing.map(
      (path): Op => ({ do: 'create', path, data: NOTHING, kind: 'persistent' }),
    )
    try {
      await main.call(multi(ops, acl))
    } catch (error) {
      // Somebody else opens the same root at this moment.
      if (!isFault(error, CODE.nodeExists)) throw error
    }
  }
}

async function missingOf(main: Session, fixed: readonly string[]): Promise<string[]> {
  try {
    const { value } = await main.call(multiRead(fixed.map((path) => ({ at: 'data', path }))))
    return fixed.filter((_, at) => !value[at]?.data)
  } catch (error) {
    if (!isFault(error, UNIMPLEMENTED)) throw error
    throw new LeaseholdError(
      'unsupported',
      'this ZooKeeper cannot read several nodes at once: use version 3.6 or later',
    )
  }
}
