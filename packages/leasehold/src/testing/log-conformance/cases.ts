import assert from 'node:assert/strict'
import type { Log, Position } from '../../log/index.ts'
import { isLeaseholdError } from '../../port/index.ts'
import { bytesOf, type Recorder } from './recorder.ts'

/** The environment of a case: one log of its own, opened as often as needed. */
export interface LogScene {
  open(): Promise<Log>
  follow(log: Log, after: Position): Recorder
}

export type LogCase = (scene: LogScene) => Promise<void>

export const appending: Readonly<Record<string, LogCase>> = {
  'an empty log has its tail at 0': async (scene) => {
    assert.equal(await (await scene.open()).tail(), 0)
  },

  'positions increase, and entries come back byte for byte': async (scene) => {
    const log = await scene.open()
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const positions = [await log.append(all), await log.append(bytesOf('b')), await log.append(all)]
    assert.ok(positions[0]! > 0, 'the first position is greater than 0')
    assert.ok(positions[1]! > positions[0]! && positions[2]! > positions[1]!, `${positions}`)
    const follower = scene.follow(log, 0)
    await follower.until(3)
    assert.deepEqual(
      follower.entries.map(({ position }) => position),
      positions,
    )
    assert.deepEqual(follower.entries[0]!.bytes, all)
    assert.deepEqual(follower.texts[1], 'b')
    assert.equal(await log.tail(), positions[2])
  },

  'the largest entry fits, and a larger one is refused and not appended': async (scene) => {
    const log = await scene.open()
    const { entryBytes } = log.promises
    const largest = new Uint8Array(entryBytes).fill(7)
    const position = await log.append(largest)
    await refused(log.append(new Uint8Array(entryBytes + 1)), 'limit-exceeded')
    await refused(log.append(new Uint8Array(0)), 'invalid-argument')
    const follower = scene.follow(log, 0)
    await follower.until(1)
    assert.equal(follower.entries[0]!.bytes.length, entryBytes)
    assert.deepEqual(follower.entries[0]!.bytes, largest)
    assert.equal(await log.tail(), position)
  },

  'the caller may reuse its buffer as soon as the append is answered': async (scene) => {
    const log = await scene.open()
    const buffer = bytesOf('first')
    await log.append(buffer)
    buffer.fill(0)
    const follower = scene.follow(log, 0)
    await follower.until(1)
    assert.deepEqual(follower.texts, ['first'])
  },

  'entries of several processes come to all in one order, each once': async (scene) => {
    const logs = [await scene.open(), await scene.open(), await scene.open()]
    const followers = logs.map((log) => scene.follow(log, 0))
    const appended = new Map<Position, string>()
    await Promise.all(
      logs.map(async (log, writer) => {
        for (let count = 0; count < 40; count++) {
          const text = `${writer}.${count}`
          appended.set(await log.append(bytesOf(text)), text)
        }
      }),
    )
    for (const follower of followers) await follower.until(120)
    const expected = [...appended].sort(([one], [other]) => one - other)
    for (const { entries, texts } of followers) {
      const got = entries.map(({ position }, at) => [position, texts[at]])
      assert.deepEqual(got, expected)
    }
  },

  'appends that overlap in one process are each there once': async (scene) => {
    const log = await scene.open()
    const texts = Array.from({ length: 50 }, (_, count) => `entry ${count}`)
    const positions = await Promise.all(texts.map((text) => log.append(bytesOf(text))))
    const follower = scene.follow(log, 0)
    await follower.until(texts.length)
    const byPosition = new Map(positions.map((position, at) => [position, texts[at]]))
    assert.equal(byPosition.size, texts.length)
    for (const [at, { position }] of follower.entries.entries()) {
      assert.equal(follower.texts[at], byPosition.get(position))
    }
    assert.equal(follower.entries.length, texts.length)
  },
}

export const following: Readonly<Record<string, LogCase>> = {
  'starts after a position in the middle, and goes on with what comes': async (scene) => {
    const [log, other] = [await scene.open(), await scene.open()]
    await log.append(bytesOf('a'))
    const middle = await log.append(bytesOf('b'))
    await log.append(bytesOf('c'))
    const follower = scene.follow(log, middle)
    await follower.until(1)
    await other.append(bytesOf('d'))
    await other.append(bytesOf('e'))
    await follower.until(3)
    assert.deepEqual(follower.texts, ['c', 'd', 'e'])
  },

  'starts at the end: nothing comes twice': async (scene) => {
    const log = await scene.open()
    const position = await log.append(bytesOf('a'))
    const follower = scene.follow(log, position)
    await log.append(bytesOf('b'))
    await follower.until(1)
    assert.deepEqual(follower.texts, ['b'])
  },

  'misses nothing that is appended while it starts': async (scene) => {
    const [log, other] = [await scene.open(), await scene.open()]
    for (let round = 0; round < 10; round++) {
      const start = await log.tail()
      const appends = Promise.all(
        Array.from({ length: 5 }, (_, count) => other.append(bytesOf(`${round}.${count}`))),
      )
      const follower = scene.follow(log, start)
      const positions = await appends
      await follower.until(5)
      const sorted = positions.toSorted((one, next) => one - next)
      assert.deepEqual(
        follower.entries.map(({ position }) => position),
        sorted,
      )
      follower.close()
    }
  },

  'a closed follower is not called again, and others go on': async (scene) => {
    const log = await scene.open()
    const [one, other] = [scene.follow(log, 0), scene.follow(log, 0)]
    await log.append(bytesOf('a'))
    await Promise.all([one.until(1), other.until(1)])
    one.close()
    one.close()
    await log.append(bytesOf('b'))
    await other.until(2)
    assert.deepEqual(one.texts, ['a'])
  },

  'ends with "ahead" if the log does not reach so far': async (scene) => {
    const log = await scene.open()
    const tail = await log.append(bytesOf('a'))
    assert.deepEqual(await scene.follow(log, tail + 1000).untilEnded(), { cause: 'ahead', tail })
  },
}

export const tails: Readonly<Record<string, LogCase>> = {
  'the tail is at or after every entry whose append was confirmed': async (scene) => {
    const [log, other] = [await scene.open(), await scene.open()]
    for (let round = 0; round < 20; round++) {
      const position = await log.append(bytesOf(`${round}`))
      const tail = await other.tail()
      assert.ok(tail >= position, `the tail is ${tail} after an append at ${position}`)
    }
  },

  'a follower reaches the tail': async (scene) => {
    const [log, other] = [await scene.open(), await scene.open()]
    await log.append(bytesOf('a'))
    await log.append(bytesOf('b'))
    const tail = await other.tail()
    const follower = scene.follow(other, 0)
    await follower.until(2)
    assert.equal(follower.entries[1]!.position, tail)
  },
}

export const trimming: Readonly<Record<string, LogCase>> = {
  'entries up to a position go, and the others stay': async (scene) => {
    const log = await scene.open()
    await log.append(bytesOf('a'))
    const through = await log.append(bytesOf('b'))
    await log.append(bytesOf('c'))
    await log.trim(through)
    const follower = scene.follow(log, through)
    await follower.until(1)
    assert.deepEqual(follower.texts, ['c'])
  },

  'who follows from before learns that entries were trimmed': async (scene) => {
    const log = await scene.open()
    const positions: Position[] = []
    for (let count = 0; count < 300; count++) positions.push(await log.append(bytesOf(`${count}`)))
    await log.saveSnapshot({ position: positions[298]!, chunks: [bytesOf('s')] })
    await log.trim(positions[298]!)
    assert.deepEqual(await scene.follow(log, 0).untilEnded(), { cause: 'trimmed' })
    const early = scene.follow(log, positions[0]!)
    assert.deepEqual(await early.untilEnded(), { cause: 'trimmed' })
    assert.deepEqual(early.texts, [])
  },

  'positions go on rising after everything was trimmed, in other processes too': async (scene) => {
    const log = await scene.open()
    let last = 0
    for (let count = 0; count < 5; count++) last = await log.append(bytesOf(`${count}`))
    await log.saveSnapshot({ position: last, chunks: [bytesOf('s')] })
    await log.trim(last)
    await log.trim(last)
    await log.trim(1)
    const other = await scene.open()
    assert.equal(await other.tail(), last)
    const follower = scene.follow(other, last)
    const next = await other.append(bytesOf('next'))
    assert.ok(next > last, `${next} comes after ${last}`)
    await follower.until(1)
    assert.deepEqual(follower.texts, ['next'])
  },

  'a follower that has read everything does not notice a trim': async (scene) => {
    const log = await scene.open()
    const follower = scene.follow(log, 0)
    const position = await log.append(bytesOf('a'))
    await follower.until(1)
    await log.trim(position)
    await log.append(bytesOf('b'))
    await follower.until(2)
    assert.deepEqual(follower.texts, ['a', 'b'])
  },
}

export const snapshots: Readonly<Record<string, LogCase>> = {
  'there is none at first': async (scene) => {
    assert.equal(await (await scene.open()).loadSnapshot(), undefined)
  },

  'comes back in its chunks, to every process': async (scene) => {
    const [log, other] = [await scene.open(), await scene.open()]
    const position = await log.append(bytesOf('a'))
    const { entryBytes } = log.promises
    const chunks = [
      new Uint8Array(entryBytes).fill(1),
      new Uint8Array(entryBytes).fill(2),
      bytesOf('end'),
    ]
    await log.saveSnapshot({ position, chunks })
    const loaded = await other.loadSnapshot()
    assert.equal(loaded!.position, position)
    assert.equal(loaded!.chunks.length, 3)
    for (const [at, chunk] of chunks.entries()) {
      assert.ok(Buffer.from(loaded!.chunks[at]!).equals(chunk), `chunk ${at} is as it was saved`)
    }
  },

  'a newer one replaces an older one, never the reverse': async (scene) => {
    const [log, other] = [await scene.open(), await scene.open()]
    const first = await log.append(bytesOf('a'))
    const second = await log.append(bytesOf('b'))
    await log.saveSnapshot({ position: first, chunks: [bytesOf('1'), bytesOf('1')] })
    await other.saveSnapshot({ position: second, chunks: [bytesOf('2')] })
    await log.saveSnapshot({ position: first, chunks: [bytesOf('3')] })
    const loaded = await log.loadSnapshot()
    assert.equal(loaded!.position, second)
    assert.deepEqual(
      loaded!.chunks.map((chunk) => [...chunk]),
      [[...bytesOf('2')]],
    )
  },

  'of several saved at once the newest stays, and every reading is whole': async (scene) => {
    const logs = [await scene.open(), await scene.open(), await scene.open()]
    const positions: Position[] = []
    for (let count = 0; count < 6; count++) positions.push(await logs[0]!.append(bytesOf('x')))
    const saving = Promise.all(
      positions.map((position, at) => {
        const chunks = Array.from({ length: 4 }, () => bytesOf(`${position}`))
        return logs[at % 3]!.saveSnapshot({ position, chunks })
      }),
    )
    for (let round = 0; round < 10; round++) wholeSnapshot(await logs[round % 3]!.loadSnapshot())
    await saving
    const last = await logs[1]!.loadSnapshot()
    wholeSnapshot(last)
    assert.equal(last!.position, positions[5])
  },
}

function wholeSnapshot(snapshot: Awaited<ReturnType<Log['loadSnapshot']>>): void {
  if (snapshot === undefined) return
  assert.equal(snapshot.chunks.length, 4)
  for (const chunk of snapshot.chunks) {
    assert.deepEqual([...chunk], [...bytesOf(`${snapshot.position}`)])
  }
}

export const closing: Readonly<Record<string, LogCase>> = {
  'a closed log refuses calls, and its followers hear nothing more': async (scene) => {
    const [log, other] = [await scene.open(), await scene.open()]
    const [closed, open] = [scene.follow(log, 0), scene.follow(other, 0)]
    await log.append(bytesOf('a'))
    await Promise.all([closed.until(1), open.until(1)])
    await log.close()
    await log.close()
    await refused(log.append(bytesOf('b')), 'closed')
    await refused(log.tail(), 'closed')
    await refused(log.loadSnapshot(), 'closed')
    await other.append(bytesOf('c'))
    await open.until(2)
    assert.deepEqual(closed.texts, ['a'])
  },

  'what one process appended is there for the next': async (scene) => {
    const log = await scene.open()
    const position = await log.append(bytesOf('kept'))
    await log.close()
    const next = await scene.open()
    assert.equal(await next.tail(), position)
    const follower = scene.follow(next, 0)
    await follower.until(1)
    assert.deepEqual(follower.texts, ['kept'])
  },
}

async function refused(call: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(isLeaseholdError(error), `not one of our errors: ${error}`)
    assert.equal(error.code, code)
    return true
  })
}
