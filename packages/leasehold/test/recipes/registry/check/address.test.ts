import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../../src/index.ts'
import {
  addressKind,
  type CheckPolicy,
  checkedPolicy,
  complaintAboutAddress,
  complaintAboutTarget,
  parseAddress,
  targetOf,
} from '../../../../src/recipes/index.ts'

const kind = (text: string) => {
  const bytes = parseAddress(text)
  return bytes === undefined ? 'no address' : addressKind(bytes)
}

describe('an address', () => {
  it.each([
    ['8.8.8.8', 'public'],
    ['172.32.0.1', 'public'],
    ['2606:4700::1111', 'public'],
    ['10.1.2.3', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.0.1', 'private'],
    ['100.64.0.1', 'private'],
    ['fd12::1', 'private'],
    ['127.0.0.1', 'loopback'],
    ['127.255.0.9', 'loopback'],
    ['::1', 'loopback'],
    ['169.254.0.1', 'link-local'],
    ['fe80::1', 'link-local'],
    ['febf::1', 'link-local'],
    ['169.254.169.254', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['fd00:ec2::254', 'metadata'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['::', 'unspecified'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.255', 'multicast'],
    ['ff02::1', 'multicast'],
    ['255.255.255.255', 'reserved'],
    ['2001::1', 'reserved'],
    // The same, written as IPv6.
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['0:0:0:0:0:ffff:a9fe:a9fe', 'metadata'],
    ['::ffff:169.254.7.7', 'link-local'],
    ['::ffff:0.0.0.0', 'unspecified'],
    ['::ffff:224.0.0.1', 'multicast'],
    ['::ffff:10.0.0.1', 'private'],
    ['::ffff:0:127.0.0.1', 'loopback'],
    ['::127.0.0.1', 'loopback'],
    ['64:ff9b::169.254.169.254', 'metadata'],
    ['2002:7f00:1::', 'loopback'],
    ['2002:a9fe:a9fe::1', 'metadata'],
    ['::ffff:8.8.8.8', 'public'],
  ])('%s is %s', (text, expected) => {
    expect(kind(text)).toBe(expected)
  })

  it.each([
    '127.1',
    '0x7f.1',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
    '127.0.0.01',
    '1.2.3.256',
    '1.2.3.4.5',
    ':::',
    '1::2::3',
    '12345::',
    'fe80::1%eth0',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
    '::1.2.3.4:5',
    '',
  ])('%s is not an address', (text) => {
    expect(kind(text)).toBe('no address')
  })
})

describe('the URL of a check', () => {
  it('is parsed', () => {
    expect(targetOf('check', 'http://10.0.0.7:8080/health?deep=1')).toEqual({
      scheme: 'http',
      host: '10.0.0.7',
      port: 8080,
      path: '/health?deep=1',
    })
    expect(targetOf('check', 'https://a.example')).toMatchObject({ port: 443, path: '/' })
    expect(targetOf('check', 'grpc://[2606:4700::1]:50051/a.B')).toMatchObject({
      host: '2606:4700::1',
      path: '/a.B',
    })
  })

  it.each([
    ['http://169.254.169.254/latest/meta-data', /checks of metadata addresses are never allowed/],
    ['http://[fe80::1]/', /checks of link-local addresses are never allowed/],
    ['http://[::ffff:169.254.1.1]/', /checks of link-local addresses are never allowed/],
    ['http://0.0.0.0:8080/', /checks of unspecified addresses are never allowed/],
    ['tcp://224.0.0.1:53', /checks of multicast addresses are never allowed/],
    ['http://0x7f.1/', /neither a host name nor a valid address/],
    ['http://2130706433/', /neither a host name nor a valid/],
    ['http://127.1/', /neither a host name nor a valid/],
    ['http://0177.0.0.1/', /neither a host name nor a valid/],
    ['http://127.0.0.1./', /neither a host name nor a valid/],
    ['tcp://0x7f000001:80', /neither a host name nor a valid/],
    ['http://[fe80::1%25eth0]/', /write scheme:\/\/host:port/],
    ['http://user:secret@a.example/', /without user/],
    ['http://a.example/#x\u0000', /printable|without user/],
    ['http://a.example/\r\nHost: b', /printable|write it as/],
    ['http://a.example/ x', /write scheme/],
    ['file:///etc/passwd', /must start with http/],
    ['tcp://a.example', /give it a port/],
    ['http://a.example:0/', /give it a port/],
    ['http://a.example:99999/', /give it a port/],
  ])('%s is refused when it is registered', async (url, message) => {
    const kindOf = url.startsWith('tcp') ? 'tcp' : 'http'
    const leasehold = await Leasehold.open('memory:')
    const refused = leasehold.registry.register('s', { check: { [kindOf]: url } as never })
    await expect(refused).rejects.toThrowError(message)
    await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' })
    await leasehold.close()
  })

  it('is completed from the address if only a part is given', async () => {
    const leasehold = await Leasehold.open('memory:')
    const urlOf = async (address: string, check: object) => {
      const me = await leasehold.registry.register('s', { address, check: check as never })
      return me.description.check?.url
    }
    expect(await urlOf('10.0.0.7:8080', { http: '/health' })).toBe('http://10.0.0.7:8080/health')
    expect(await urlOf('https://a.example:1', { http: '/h' })).toBe('https://a.example:1/h')
    expect(await urlOf('https://a.example/api', { tcp: true })).toBe('tcp://a.example:443')
    expect(await urlOf('a.example:5', { grpc: 'my.Service' })).toBe('grpc://a.example:5/my.Service')
    expect(await urlOf('grpcs://a.example:5', { grpc: true })).toBe('grpcs://a.example:5')
    await leasehold.close()
  })
})

describe('the rules for checks', () => {
  const target = (url: string, policy: CheckPolicy = {}) =>
    complaintAboutTarget(targetOf('check', url), checkedPolicy(policy))
  const address = (text: string, policy: CheckPolicy = {}, port = 80) =>
    complaintAboutAddress(text, checkedPolicy(policy), {
      port,
      ownAddresses: ['10.0.0.9', 'fd12::9', '127.0.0.1'],
    })

  it('allow web ports and high ports, or the configured ones', () => {
    expect(target('http://a.example/')).toBeUndefined()
    expect(target('http://a.example:8080/')).toBeUndefined()
    expect(target('tcp://a.example:22')).toMatch(/port 22/)
    expect(target('tcp://a.example:22', { ports: [22] })).toBeUndefined()
    expect(target('http://a.example:8080/', { ports: [[8000, 8010]] })).toMatch(/port 8080/)
  })

  it('allow the configured schemes', () => {
    expect(target('http://a.example/', { schemes: ['https'] })).toMatch(/by http are not allowed/)
    expect(() => target('http://a.example/', { schemes: ['ftp' as never] })).toThrowError(/"ftp"/)
  })

  it('allow loopback only by configuration, and private networks by default', () => {
    expect(address('127.0.0.1')).toMatch(/loopback/)
    expect(address('::ffff:127.0.0.1')).toMatch(/loopback/)
    expect(address('127.0.0.1', { loopback: true })).toBeUndefined()
    expect(address('10.0.0.1')).toBeUndefined()
    expect(address('10.0.0.1', { private: false })).toMatch(/private/)
  })

  it("treat every address of the checker's own machine like loopback", () => {
    for (const own of ['10.0.0.9', '::ffff:10.0.0.9', 'fd12::9', 'fd12:0::0:9']) {
      expect(address(own)).toMatch(/own machine are not allowed here.*allow\.loopback/)
      expect(address(own, { loopback: true })).toBeUndefined()
    }
    expect(address('10.0.0.8')).toBeUndefined()
    expect(address('fd12::8')).toBeUndefined()
  })

  it("never allow the server's own port on its own machine", () => {
    const policy = { loopback: true, ownPort: () => 7420 }
    for (const own of ['10.0.0.9', 'fd12::9', '127.0.0.1', '::1', '127.9.9.9']) {
      expect(address(own, policy, 7420)).toMatch(/port 7420 here is the server's own/)
      expect(address(own, policy, 7421)).toBeUndefined()
    }
    expect(address('10.0.0.8', policy, 7420)).toBeUndefined()
  })

  it('name the settings that allow more', () => {
    const settings = { loopback: 'use --here', private: 'use --inside' }
    expect(address('127.0.0.1', { settings })).toMatch(/To allow them: use --here/)
    expect(address('10.0.0.1', { private: false, settings })).toMatch(/allow them: use --inside/)
  })

  it('never allow the rest, whatever the configuration', () => {
    const all: CheckPolicy = { loopback: true, private: true }
    for (const text of ['169.254.169.254', 'fe80::1', '0.0.0.0', '::', '224.1.1.1', 'ff02::1']) {
      expect(address(text, all)).toMatch(/addresses are never allowed/)
      if (!text.includes(':'))
        expect(address(`::ffff:${text}`, all)).toMatch(/addresses are never allowed/)
    }
  })
})
