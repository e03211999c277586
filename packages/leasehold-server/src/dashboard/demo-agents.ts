import { type Clock, LeaseholdError, type Random } from 'leasehold/port'
import type { OpenCodingAgent } from '#demo'
import { AgentHolds, Fleet, WAIT_MAX_MS } from '../agents/index.ts'

/** Opens coding agents for the demo, on the modules that `leasehold mcp` uses. */
export function openCodingAgents(clock: Clock, random: Random): OpenCodingAgent {
  return (leasehold, store, agent, repository) => {
    const paths = { repository }
    const holds = new AgentHolds({ leasehold, store, clock, random, agent, paths })
    const fleet = new Fleet({ leasehold, store, random, clock }, holds)
    return {
      announce: (doing, capabilities) => fleet.announce({ doing, capabilities }),
      edit: async (files, purpose, signal) => {
        let outcome = await holds.acquire({ paths: files, purpose })
        while (outcome.state === 'waiting' && !signal.aborted) {
          outcome = await holds.wait(outcome.record.handle, { wait: WAIT_MAX_MS, signal })
        }
        if (outcome.state !== 'held') throw new LeaseholdError('closed', 'the demo is ending')
        const { handle } = outcome.record
        return async () => void (await holds.release(handle))
      },
      askBack: async (path, why) => void (await fleet.askBack({ path }, why)),
      close: () => holds.close(),
    }
  }
}
