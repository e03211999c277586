import { EngineAddress, isEngine } from 'leasehold/engines'
import { withoutPassword } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { openStore } from '../../src/index.ts'

describe("an engine's address", () => {
  it('has several hosts, a login, a path, and settings', () => {
    const address = new EngineAddress('etcd://me:p%40ss@a:2379,b:2379/my/prefix?x=1&y=2')
    expect(address).toMatchObject({
      scheme: 'etcd',
      hosts: ['a:2379', 'b:2379'],
      user: 'me',
      password: 'p@ss',
      path: 'my/prefix',
    })
    expect(new EngineAddress('redis://me:a:b@h').password).toBe('a:b')
    expect(address.take('x')).toBe('1')
    expect(address.rest).toBe('etcd://me:p%40ss@a:2379,b:2379/my/prefix?y=2')
    expect(() => address.finish('x')).toThrowError(/an unknown setting "y"; known settings: x/)
  })

  it('is distinguished from a folder', () => {
    expect(
      [
        'redis://h',
        'rediss://h',
        'postgresql://h',
        'zookeeper://h',
        'nats://h',
        'azure+https://h',
      ].every(isEngine),
    ).toBe(true)
    expect(['file:./data', 'memory:', 'http://h', 'constructor://h'].some(isEngine)).toBe(false)
  })

  it('is printed without its password, in messages too', async () => {
    expect(withoutPassword('postgres://me:secret@h/db')).toBe('postgres://…@h/db')
    expect(withoutPassword('redis://:se/c@ret@h')).toBe('redis://…@h')
    expect(withoutPassword('azure+https://h/c?sv=1&sig=secret&x=1')).toBe(
      'azure+https://h/c?sv=1&sig=…&x=1',
    )
    await expect(openStore('mysql://me:secret@h/db')).rejects.toThrowError(/^(?!.*secret).*use one/)
  })

  it.each([
    ['redis+sentinel://h:26379', /has no master name/],
    [
      'redis+sentinel://h:26379/m?namespce=x',
      /an unknown setting "namespce"; known settings: namespace/,
    ],
    ['redis://h?replicas=two', /replicas in the store address is "two"/],
    ['zookeeper://', /without a host/],
    ['etcd://h:2379?x=1', /an unknown setting "x"/],
    ['nats://h:4222?x=1', /an unknown setting "x"; known settings: replicas/],
    ['redis://h?form=table', /form in the store address is "table": use native or log/],
    ['redis+sentinel://h/m?form=', /form in the store address is "": use native or log/],
    ['postgres://h/d?form=store', /form in the store address is "store": use native or/],
    ['nats://127.0.0.1:1', /cannot reach NATS at 127.0.0.1:1/],
    ['azure+http://a:a2V5@127.0.0.1:1/a/c', /Azure gave no answer/],
  ])('that is wrong is refused with what is wrong: %s', async (address, message) => {
    await expect(openStore(address)).rejects.toThrowError(message)
  })
})
