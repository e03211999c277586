import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readInPieces } from '../../src/stream/short-reads.ts'

function source(): { readonly socket: Readable; readonly sizes: number[] } {
  const socket = new Readable({ read() {} })
  const sizes: number[] = []
  readInPieces(socket)
  socket.on('data', (bytes: Buffer) => sizes.push(bytes.length))
  return { socket, sizes }
}

const ticks = () => new Promise((resolve) => setImmediate(resolve))

describe('a socket that is read in pieces', () => {
  it('delivers a long read in pieces of 8 kB, with the same bytes', async () => {
    const { socket, sizes } = source()
    const sent = Buffer.from(Array.from({ length: 20_000 }, (_, at) => at % 251))
    const received: Buffer[] = []
    socket.on('data', (bytes: Buffer) => received.push(bytes))
    socket.push(sent)
    await ticks()
    expect(sizes).toEqual([8192, 8192, 3616])
    expect(Buffer.concat(received)).toEqual(sent)
  })

  it('delivers a short read as it is', async () => {
    const { socket, sizes } = source()
    socket.push(Buffer.alloc(8192))
    await ticks()
    expect(sizes).toEqual([8192])
  })

  it('stops after the piece in which the reader pauses, and goes on when it resumes', async () => {
    const { socket, sizes } = source()
    socket.once('data', () => socket.pause())
    socket.push(Buffer.alloc(65_536))
    await ticks()
    expect(sizes).toEqual([8192])
    socket.resume()
    await ticks()
    expect(sizes).toEqual(Array(8).fill(8192))
  })

  it('stops reading from the system while more than its buffer is unread', () => {
    const { socket } = source()
    socket.pause()
    expect(socket.push(Buffer.alloc(65_536))).toBe(false)
  })

  it('reports the end after the last piece', async () => {
    const { socket, sizes } = source()
    let ended = false
    socket.on('end', () => {
      ended = true
    })
    socket.push(Buffer.alloc(10_000))
    socket.push(null)
    await ticks()
    expect([sizes, ended]).toEqual([[8192, 1808], true])
  })
})
