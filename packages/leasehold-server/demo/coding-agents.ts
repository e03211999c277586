import type { Leasehold } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import type { Agent } from './agent.ts'

/** What the demo needs of a coding agent, as `leasehold mcp` serves one. */
export interface CodingAgent {
  announce(doing: string, capabilities: readonly string[]): Promise<void>
  /** Takes files, or waits for them. Resolves with a function that releases them. */
  edit(files: readonly string[], purpose: string, signal: AbortSignal): Promise<() => Promise<void>>
  askBack(file: string, why: string): Promise<void>
  close(): Promise<void>
}

/** Opens a coding agent with this name. */
export type OpenCodingAgent = (
  leasehold: Leasehold,
  store: LeaseStore,
  name: string,
  repository: string,
) => CodingAgent

export const CODERS = ['iris', 'jon', 'kim', 'lou'] as const
export const REPOSITORY = 'demo-shop'

const TASKS = [
  { files: ['src/cart.ts', 'src/prices.ts'], purpose: 'rename Cart to Basket', doing: 'the cart' },
  { files: ['src/cart.ts'], purpose: 'round prices to cents', doing: 'prices in the cart' },
  { files: ['src/checkout'], purpose: 'pay by invoice', doing: 'a new way to pay' },
  { files: ['src/checkout/form.tsx'], purpose: 'label every field', doing: 'accessible forms' },
  { files: ['package.json'], purpose: 'update the test runner', doing: 'dependencies' },
] as const
/** Why an impatient agent asks for a file back. */
const WHY = 'the release is at noon'
const CAPABILITIES = [['typescript', 'css'], ['typescript'], ['sql', 'typescript'], ['review']]

/** A coding agent that takes files of one repository, works, and sometimes has to wait. */
export function startCoding(agent: Agent, coding: CodingAgent, at: number): void {
  const { signal } = agent
  signal.addEventListener('abort', () => void coding.close().catch(() => {}))
  const capabilities = CAPABILITIES[at % CAPABILITIES.length]!
  agent.work(async () => {
    const { files, purpose, doing } = agent.one(TASKS)
    await coding.announce(doing, capabilities)
    let isWaiting = agent.between(0, 1) < 0.5
    void agent.pause(5000).then(async () => {
      if (isWaiting && !signal.aborted) await coding.askBack(files[0], WHY).catch(() => {})
    })
    const release = await coding.edit(files, purpose, signal)
    isWaiting = false
    await agent.pause(agent.between(6000, 20_000))
    await release()
    await agent.pause(agent.between(500, 3000))
  })
}
