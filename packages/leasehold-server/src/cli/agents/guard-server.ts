import { Leasehold } from 'leasehold'
import { systemClock, systemRandom } from 'leasehold/port'
import { aheadParty } from '../../agents/ahead.ts'
import type { GuardAnswer, GuardQuestion } from '../../agents/guard/decide.ts'
import { refusal } from '../../agents/guard/decide.ts'
import { AgentHolds, Fleet, noteOf } from '../../agents/index.ts'
import { openRemote } from '../connection.ts'

/** For a host without `leasehold mcp`: reads from the lease server who holds the files. */
export async function askServer(
  { paths, folder, take }: GuardQuestion,
  args: readonly string[],
): Promise<GuardAnswer> {
  const flag = (name: string) => {
    const at = args.indexOf(`--${name}`)
    return at < 0 ? undefined : args[at + 1]
  }
  const agent = flag('agent') ?? process.env['LEASEHOLD_AGENT'] ?? ''
  const { store } = await openRemote({ server: flag('server'), timeout: '1s' })
  const [clock, random] = [systemClock, systemRandom]
  try {
    const leasehold = await Leasehold.open(store, { holder: agent || 'guard', timeout: '1s' })
    const own = { folder, repository: flag('repository') }
    const holds = new AgentHolds({ leasehold, store, clock, random, agent, paths: own })
    const fleet = new Fleet({ leasehold, store, clock, random }, holds)
    for (const path of paths) {
      const others = (await fleet.holdersOf({ path })).filter((it) => noteOf(it)?.agent !== agent)
      if (others.length === 0) continue
      const named = others.map(aheadParty)
      return { allow: false, text: refusal(path, named, undefined) }
    }
    if (!take) return { allow: true }
    return {
      allow: true,
      text: 'leasehold guard: nothing was taken, because no leasehold mcp runs under this host to keep it',
    }
  } finally {
    await store.close()
  }
}
