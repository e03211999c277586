import { connectPlainly, type Server, type Socket } from '../../../src/stores/zookeeper/client.ts'

export const TRANSACTION = 14

/** What a test does with the messages of a store's connections. */
export interface Tap {
  /** Called before messages leave: they, and those after them, wait for what it answers with. */
  leaves?(packets: readonly Buffer[]): Promise<void> | undefined
  /** Whether a message that has arrived is lost: then nobody hears it, and the connection breaks. */
  loses?(packet: Buffer): boolean
  /** Called after a message has arrived and was heard; each comes in a turn of its own. */
  heard?(packet: Buffer): void
}

/** The number by which a request and its answer are told to belong together. */
export function xidOf(packet: Buffer): number {
  return packet.length >= 4 ? packet.readInt32BE(0) : 0
}

export function typeOf(packet: Buffer): number {
  return packet.length >= 8 ? packet.readInt32BE(4) : 0
}

/** A tap that loses the answer to the next transaction, when it is told to. */
export class AnswerLoss implements Tap {
  isWanted = false
  #lost: number | undefined

  leaves(packets: readonly Buffer[]): undefined {
    const transaction = packets.find((packet) => typeOf(packet) === TRANSACTION)
    if (this.isWanted && transaction) this.#lost = xidOf(transaction)
  }

  loses(packet: Buffer): boolean {
    if (this.#lost === undefined || xidOf(packet) !== this.#lost) return false
    this.#lost = undefined
    this.isWanted = false
    return true
  }
}

/** Connects plainly, through a tap. */
export function tapped(tap: Tap): (server: Server) => Socket {
  return (server) => {
    const socket = connectPlainly(server)
    let leaving: Promise<void> = Promise.resolve()
    const hear = (listener: (bytes: Buffer) => void) => {
      let rest = Buffer.alloc(0)
      const heard: Buffer[] = []
      const next = () => {
        const packet = heard.shift()!
        if (tap.loses?.(packet)) return void socket.destroy()
        listener(Buffer.concat([lengthOf(packet), packet]))
        tap.heard?.(packet)
        if (heard.length > 0) setImmediate(next)
      }
      socket.on('data', (bytes) => {
        const [packets, left] = split(Buffer.concat([rest, bytes]))
        rest = left
        if (heard.push(...packets) === packets.length && packets.length > 0) setImmediate(next)
      })
    }
    return {
      write: (bytes) => {
        const held = tap.leaves?.(split(bytes)[0])
        leaving = leaving.then(() => held).then(() => void socket.write(bytes))
      },
      destroy: () => socket.destroy(),
      on: (event: string, listener: never) =>
        event === 'data' ? hear(listener) : socket.on(event as never, listener),
    }
  }
}

function lengthOf(packet: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(packet.length)
  return length
}

/** The messages, without their lengths, and what is left of one that has not come whole yet. */
function split(bytes: Buffer): [Buffer[], Buffer<ArrayBuffer>] {
  const packets: Buffer[] = []
  let rest = Buffer.from(bytes)
  while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
    const end = 4 + rest.readInt32BE(0)
    packets.push(rest.subarray(4, end))
    rest = rest.subarray(end)
  }
  return [packets, rest]
}
