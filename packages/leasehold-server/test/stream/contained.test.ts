import { CLOSE } from 'leasehold/remote'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Place, type ServerProcess } from '../setup/server-process.ts'
import { helloFrom, RawStream } from './raw-stream.ts'

/** In a separate process, so that a crash of the server does not end the test. */
const place = new Place()
let server: ServerProcess
let clients = 0

beforeAll(async () => {
  server = await place.server('memory:')
})

afterAll(() => place.clean())

const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

async function expectAlive(): Promise<void> {
  const other = await RawStream.greeted(server.url, `other-${++clients}`)
  expect(await other.ask(1, 'read', { key: 'k' })).toMatchObject([1, 1, { count: 0 }])
  other.socket.terminate()
}

/** Sends a frame, and something harmless after it; fulfilled with the answer or the close code. */
async function outcomeOf(stream: RawStream, frame: string): Promise<unknown> {
  stream.socket.send(frame)
  stream.send([77, 'read', { key: 'k' }])
  const answered = stream.until(([id]) => id === 77).then(() => stream.heard.at(-2))
  return Promise.race([stream.closed.then(([code]) => code), answered.catch(() => stream.closed)])
}

describe('a server', () => {
  it.each([
    ['nothing', '[]'],
    ['an empty message', '[[]]'],
    ['no message', '[null]'],
    ['a hello of null', '[["hello",1,null]]'],
    ['a hello of a number', '[["hello",1,5]]'],
    ['a version that is an object', '[["hello",{"toString":1},{}]]'],
    ['a client that is an object', '[["hello",1,{"client":{"toString":1}}]]'],
    ['nothing but brackets', deep(20_000)],
    ['an empty text', ''],
  ])('closes a stream that starts with %s, and keeps running', async (_name, frame) => {
    const stream = await RawStream.open(server.url)
    stream.socket.send(frame)
    expect([CLOSE.malformed, CLOSE.version]).toContain((await stream.closed)[0])
    await expectAlive()
  })

  it.each([
    ['leases that are objects', '[[1,"tie",[{"toString":1}]]]', 'invalid-argument'],
    ['leases that are arrays', '[[1,"tie",[[["x"]]]]]', 'invalid-argument'],
    ['invalid leases', '[[1,"tie",5]]', 'invalid-argument'],
    ['leases without an id', '[[1,"tie",[""]]]', 'invalid-argument'],
    ['leases to renew that are objects', '[[1,"renew",[{"toString":1}]]]', 'invalid-argument'],
  ])('refuses %s, and lives on', async (_name, frame, code) => {
    const stream = await RawStream.greeted(server.url, `tied-${++clients}`, { tied: 0 })
    expect(await outcomeOf(stream, frame)).toMatchObject([1, 0, code, expect.any(String)])
    stream.socket.terminate()
    await expectAlive()
  })

  it.each([
    ['leases that are deep', `[[1,"tie",${deep(20_000)}]]`],
    ['a request that is deep', `[[1,"claim","x",${deep(20_000)}]]`],
    ['an operation that is an object', '[[1,{"toString":1}]]'],
    ['the name of what every object has', '[[1,"constructor"]]'],
    ['an id that is an object', '[[{"toString":1},"read",{}]]'],
    ['a second hello', helloFrom('again')],
    ['a second hello that asks for a watch', '[["hello","watch",{"prefix":""}]]'],
  ])('closes a stream that sends %s, and lives on', async (_name, frame) => {
    const stream = await RawStream.greeted(server.url, `tied-${++clients}`, { tied: 0 })
    expect(await outcomeOf(stream, frame)).toBe(CLOSE.malformed)
    await expectAlive()
  })
})
