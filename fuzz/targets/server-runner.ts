import { Child, type Report } from '../child.ts'
import type { Failure } from '../failure.ts'
import type { Runner } from '../target.ts'
import { type Description, learnRequests } from './described-requests.ts'

/** Anonymous to the open server; to the other anonymous, or with a right or wrong access token. */
export const SENDERS = ['open', 'none', 'wrong', 'powerless', 'partial', 'normal', 'admin'] as const
export type Sender = (typeof SENDERS)[number]

export interface Place {
  readonly url: URL
  readonly authorization: string | undefined
}

/** The servers restart after this many inputs, which bounds what inputs leave behind. */
const INPUTS_MAX = 3000
const RSS_MAX = 700 << 20

/** Two servers in one process, and a well-behaved client in another. */
export class ServerRunner<Input> implements Runner<Input> {
  readonly #coverage: boolean
  readonly #send: (input: Input, place: (sender: Sender) => Place) => Promise<Failure | undefined>
  #server: Child | undefined
  #bystander: Child | undefined
  #inputs = 0

  constructor(
    coverage: boolean,
    send: (input: Input, place: (sender: Sender) => Place) => Promise<Failure | undefined>,
  ) {
    this.#coverage = coverage
    this.#send = send
  }

  /** Starts the servers before the first input is made, because they describe the requests. */
  async prepared(): Promise<this> {
    await this.#started()
    return this
  }

  async run(input: Input): Promise<Report> {
    const { server, bystander } = await this.#started()
    const place = (sender: Sender) => placeOf(server, sender)
    const failure = await this.#send(input, place)
    const report = await server.ask({})
    const lost = server.died ? undefined : (await bystander.ask({})).failure
    const found = report.failure ?? failure ?? lost
    this.#inputs++
    if (found || report.rss > RSS_MAX || this.#inputs >= INPUTS_MAX) await this.stop()
    return { ...report, failure: found }
  }

  async stop(): Promise<void> {
    const children = [this.#bystander, this.#server]
    this.#bystander = undefined
    this.#server = undefined
    this.#inputs = 0
    for (const child of children) await child?.stop()
  }

  async #started(): Promise<{ server: Child; bystander: Child }> {
    if (this.#server === undefined) {
      this.#server = await Child.start({ name: 'server', coverage: this.#coverage })
      learnRequests(this.#server.ready['description'] as Description)
    }
    if (this.#bystander === undefined) {
      const { open, guarded, tokens } = this.#server.ready as unknown as ServerFacts
      const more = [open, guarded, tokens.bystander]
      this.#bystander = await Child.start({ name: 'bystander', coverage: false, more })
    }
    return { server: this.#server, bystander: this.#bystander }
  }
}

interface ServerFacts {
  readonly open: string
  readonly guarded: string
  readonly tokens: Readonly<
    Record<'powerless' | 'partial' | 'normal' | 'admin' | 'bystander', string>
  >
}

function placeOf(server: Child, sender: Sender): Place {
  const { open, guarded, tokens } = server.ready as unknown as ServerFacts
  if (sender === 'open') return { url: new URL(open), authorization: undefined }
  const url = new URL(guarded)
  if (sender === 'none') return { url, authorization: undefined }
  if (sender === 'wrong') return { url, authorization: `Bearer lh_normal_${'x'.repeat(43)}` }
  return { url, authorization: `Bearer ${tokens[sender]}` }
}
