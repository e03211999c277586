import { withoutPassword } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { openStore } from '../../src/index.ts'
import { EngineAddress, isEngine } from '../../src/stores/engines.ts'

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
    expect(() => address.finish('x')).toThrowError(/a setting "y": there are only x/)
  })

  it('is told from a folder', () => {
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
    await expect(openStore('mysql://me:secret@h/db')).rejects.toThrowError(
      /^(?!.*secret).*write one/,
    )
  })

  it.each([
    ['redis+sentinel://h:26379', /names no master/],
    ['redis+sentinel://h:26379/m?namespce=x', /a setting "namespce": there are only namespace/],
    ['redis://h?replicas=two', /replicas in the address of the store is "two"/],
    ['zookeeper://', /names no host/],
    ['etcd://h:2379?x=1', /a setting "x"/],
    ['nats://h:4222?x=1', /a setting "x": there are only replicas/],
    ['redis://h?form=table', /form in the address of the store is "table": write native or log/],
    ['redis+sentinel://h/m?form=', /form in the address of the store is "": write native or log/],
    ['postgres://h/d?form=store', /form in the address of the store is "store": write native or/],
    ['nats://127.0.0.1:1', /NATS at 127.0.0.1:1 cannot be reached/],
    ['azure+http://a:a2V5@127.0.0.1:1/a/c', /Azure gave no answer/],
  ])('that is wrong is refused with what is wrong: %s', async (address, message) => {
    await expect(openStore(address)).rejects.toThrowError(message)
  })
})
