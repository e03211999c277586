import { describe, expect, it } from 'vitest'
import { AppendedEntries } from '../../src/logs/appended-entries.ts'

const bytes = (text: string) => new Uint8Array(Buffer.from(text))
const never = () => new Promise<Uint8Array>(() => {})
const unread = () => Promise.reject(new Error('it was read'))

describe('the entries of this process', () => {
  it('are not read if they were appended before they are wanted', async () => {
    const own = new AppendedEntries()
    const entry = bytes('a')
    own.add(7, entry)
    entry.fill(0)
    expect(await own.take(7, unread)).toEqual(bytes('a'))
    expect(await own.take(7, async () => bytes('read'))).toEqual(bytes('read'))
  })

  it('come from the first source if the append is answered after they are needed', async () => {
    const own = new AppendedEntries()
    const wanted = own.take(7, never)
    own.add(8, bytes('other'))
    own.add(7, bytes('a'))
    expect(await wanted).toEqual(bytes('a'))
    expect(await own.take(9, async () => bytes('read'))).toEqual(bytes('read'))
  })

  it('that cannot be read are reported', async () => {
    await expect(new AppendedEntries().take(7, unread)).rejects.toThrow('it was read')
  })

  it('are kept up to a number: the oldest are read instead', async () => {
    const own = new AppendedEntries()
    for (let position = 1; position <= 257; position++) own.add(position, bytes(`${position}`))
    expect(await own.take(1, async () => bytes('read'))).toEqual(bytes('read'))
    expect(await own.take(2, unread)).toEqual(bytes('2'))
    expect(await own.take(257, unread)).toEqual(bytes('257'))
  })
})
